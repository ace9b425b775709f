"""The published tables are what the published records give, byte for byte."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from benchmarks.reporting.figures import build_overview, style
from benchmarks.reporting.files import MANIFEST, written_before
from benchmarks.reporting.joint import SUITES, JointName, joint_table
from benchmarks.reporting.load import Suite, load_suite
from benchmarks.reporting.report import write_report

PUBLISHED = Path(__file__).resolve().parents[2] / "results" / "published"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in PUBLISHED.glob("*/runs")))
def test_the_published_report_follows_from_the_published_records(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn files depend on the machine's fonts and are taken as published, and so is what needs step tables."""

    def published(chart: style.Chart) -> dict[str, bytes]:
        return {kind: (PUBLISHED / name / f"{chart.name}.{kind}").read_bytes() for kind in ("png", "svg")}

    monkeypatch.setattr(style, "render", published)
    folder = tmp_path / name
    shutil.copytree(PUBLISHED / name, folder)
    report = write_report(folder / "runs", folder)
    for path in report.files:
        file = path.relative_to(folder)
        assert path.read_bytes() == (PUBLISHED / name / file).read_bytes(), file
    assert (folder / MANIFEST).read_bytes() == (PUBLISHED / name / MANIFEST).read_bytes()
    names = {PurePosixPath(file).parts[0] for file in written_before(folder)}
    assert {path.name for path in folder.iterdir()} == {"runs", MANIFEST, *names}


@pytest.fixture(scope="module")
def suites() -> dict[str, Suite]:
    """The published records of the suites that stand in joint tables."""
    names = [name for chosen in SUITES.values() for name in chosen]
    return {name: replace(load_suite(PUBLISHED / name / "runs"), name=name) for name in names}


@pytest.mark.parametrize("name", SUITES)
def test_the_published_joint_tables_follow_from_the_published_records(
    name: JointName, suites: dict[str, Suite]
) -> None:
    first, second = (suites[each] for each in SUITES[name])
    for file, content in joint_table(name, first, second).files(name).items():
        assert (PUBLISHED / file).read_bytes() == content, file


def test_the_published_overview_follows_from_the_published_records(
    suites: dict[str, Suite], undrawn: None
) -> None:
    assert build_overview(list(suites.values()))["figure1.csv"] == (PUBLISHED / "figure1.csv").read_bytes()
