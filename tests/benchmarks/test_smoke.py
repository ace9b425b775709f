"""The whole suite at smoke scale, as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import records

ROOT = Path(__file__).resolve().parents[2]


def start(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["webshop", "alfworld", "deepsearch"])
def test_the_smoke_suite_runs_from_nothing_to_table_and_figures_and_then_has_nothing_left_to_do(
    benchmark, tmp_path
):
    command = ("run", benchmark, "--scale", "smoke", "--results", tmp_path)
    first = start(*command)
    assert first.returncode == 0, first.stdout + first.stderr
    folder = tmp_path / "runs" / f"{benchmark}-smoke"
    runs = sorted(path.parent.name for path in folder.glob("*/summary.json"))
    assert runs == sorted(
        f"{benchmark}-{name}"
        for name in ("warm-start", "expert", "grpo-s0", "grpo-empg-s0", "dapo-s0", "dapo-empg-s0")
    )
    records_of = [records.read_json(folder / name / "run.json") for name in runs]
    assert len({record["panels"]["test"]["digest"] for record in records_of}) == 1
    assert len({record["policy"]["weights"] for record in records_of if record["policy"]}) == 1
    report = {path.name for path in (tmp_path / "published" / folder.name).iterdir()}
    assert {
        "table.md",
        "table.tex",
        "table.csv",
        "cost.csv",
        "kl_loss.png",
        "learning_curve.png",
        "entropy_change.png",
    } <= report
    assert "DAPO+EMPG" in first.stdout

    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    second = start(*command)
    assert second.returncode == 0, second.stdout + second.stderr
    assert {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before


@pytest.mark.slow
def test_a_point_of_the_sensitivity_grid_runs_and_stands_in_its_table(tmp_path):
    name = "alfworld-grpo-empg-zeta-0.1-k-1.0-s0"
    options = ("--scale", "smoke", "--results", tmp_path)
    trained = start("run-one", "sensitivity", name, *options)
    assert trained.returncode == 0, trained.stdout + trained.stderr
    folder = tmp_path / "runs" / "sensitivity-smoke"
    empg = records.read_json(folder / name / "run.json")["config"]["learner"]["empg"]
    assert (empg["zeta"], empg["k"], empg["k_f"]) == (0.1, 1.0, 1.0)
    reported = start("report", "sensitivity", *options)
    assert reported.returncode == 0, reported.stdout + reported.stderr
    table = (tmp_path / "published" / "sensitivity-smoke" / "table.md").read_text()
    rows = [line.split(" | ") for line in table.splitlines() if "ours (0.681M params)" in line]
    assert [row[0] for row in rows] == [
        f"| GRPO+EMPG, ζ={zeta}, k={k}, ours (0.681M params)"
        for zeta, k in ((0.01, 1.0), (0.05, 1.0), (0.1, 1.0), (0.05, 0.5), (0.05, 1.5))
    ]
    assert [row[-1] == "— |" for row in rows] == [True, True, False, True, True]
