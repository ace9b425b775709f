"""SIGKILL to a real process at a moment that chance decides, then the same run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import records
from benchmarks.run import execute
from tests.benchmarks.tiny import NAME, planned

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_a_killed_process_leaves_a_run_that_completes_with_the_numbers_of_an_uninterrupted_one(
    tiny_suite, tmp_path, straight
):
    folder = planned(tiny_suite, tmp_path).folder
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "run-one",
        str(tiny_suite),
        NAME,
        "--results",
        str(tmp_path),
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE
    )
    while len(records.read_jsonl(folder / "metrics.jsonl")) < 2:
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (folder / "summary.json").exists()

    execute(planned(tiny_suite, tmp_path), tmp_path / "cache")
    for name in ("metrics.jsonl", "episodes.jsonl", "eval.jsonl", "steps.parquet"):
        assert (folder / name).read_bytes() == (straight / name).read_bytes()
