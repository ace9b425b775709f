"""The published tables are what the published records give, byte for byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.reporting.report import write_report

PUBLISHED = Path(__file__).resolve().parents[2] / "results" / "published"
REBUILT = ("table.md", "table.csv", "differences.csv", "kl_loss.csv", "learning_curve.csv")
"""The entropy figure is not among them: the step tables it needs are too large to publish."""


@pytest.mark.parametrize("name", sorted(path.parent.name for path in PUBLISHED.glob("*/runs")))
def test_the_published_tables_follow_from_the_published_records(
    name: str, tmp_path: Path, undrawn: None
) -> None:
    title = (PUBLISHED / name / "table.md").read_text(encoding="utf-8").splitlines()[0]
    suite = tmp_path / title.removeprefix("## ").split(":")[0]
    shutil.copytree(PUBLISHED / name / "runs", suite)
    report = write_report(suite)
    for file in REBUILT:
        assert (report.folder / file).read_bytes() == (PUBLISHED / name / file).read_bytes(), file
