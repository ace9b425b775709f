"""SIGKILL to a real process, at moments that chance decides, then the same command again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import records

ROOT = Path(__file__).resolve().parents[2]
NAME = "webshop-grpo-empg-s0"


def start(suite: Path, results: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks", "run-one", str(suite), NAME, "--results", str(results)]
    return subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE
    )


@pytest.mark.slow
def test_killed_processes_complete_with_the_metrics_of_one_that_was_not(tiny_suite, tmp_path):
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    whole = start(tiny_suite, straight)
    folder = killed / "runs" / "tiny" / NAME
    for rows in (1, 2):
        process = start(tiny_suite, killed)
        while len(records.read_jsonl(folder / "metrics.jsonl")) < rows:
            assert process.poll() is None, process.communicate()[1].decode()
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert not (folder / "summary.json").exists()
    last = start(tiny_suite, killed)
    for process in (whole, last):
        assert process.communicate()[1] is not None
        assert process.returncode == 0
    for name in ("metrics.jsonl", "episodes.jsonl", "eval.jsonl"):
        assert (folder / name).read_bytes() == (straight / "runs" / "tiny" / NAME / name).read_bytes()
