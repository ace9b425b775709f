"""The page as a part of the report: written with it, refused with it, and kept where its records are not there."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from benchmarks.reporting.load import RecordError
from benchmarks.reporting.report import Report
from tests.benchmarks.page_runs import add_played_run
from tests.benchmarks.report_runs import report_of, tree

LENS = "lens/webshop-grpo-s0"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    add_played_run(tmp_path / "webshop", "grpo")
    return tmp_path / "webshop"


def lens_of(report: Report) -> dict[str, bytes]:
    return {name: content for name, content in tree(report.folder).items() if name.startswith("lens/")}


def test_a_report_has_the_page_and_a_second_one_changes_no_byte_of_it(suite: Path) -> None:
    report = report_of(suite)
    before = tree(report.folder)
    assert {"index.html", "lens/runs.js", f"{LENS}/0.js", f"{LENS}/1.js", f"{LENS}/index.js"} <= set(before)
    assert tree(report_of(suite).folder) == before


def test_the_page_shows_every_table_and_figure_of_the_report(suite: Path) -> None:
    report = report_of(suite)
    page = html.unescape((report.folder / "index.html").read_text())
    headings = [
        line[3:] for line in (report.folder / "table.md").read_text().splitlines() if line.startswith("## ")
    ]
    assert [heading for heading in headings[:-1] if heading.replace("\\", "") not in page] == []
    assert [path.name for path in report.folder.glob("*.png") if f'"{path.name}"' not in page] == []


def test_episodes_that_cannot_be_trusted_leave_the_report_as_it_was(suite: Path) -> None:
    report = report_of(suite)
    before = tree(report.folder)
    episodes = suite / "webshop-grpo-s0" / "episodes.jsonl"
    episodes.write_bytes(episodes.read_bytes()[:-5])
    with pytest.raises(RecordError, match=r"episodes\.jsonl: line 8 is cut off"):
        report_of(suite)
    assert tree(report.folder) == before


def test_a_run_that_is_gone_takes_its_episodes_off_the_page(suite: Path) -> None:
    gone = add_played_run(suite, "dapo")
    assert any(name.startswith("lens/webshop-dapo-s0") for name in lens_of(report_of(suite)))
    (gone / "summary.json").unlink()
    assert not any(name.startswith("lens/webshop-dapo-s0") for name in lens_of(report_of(suite)))


def test_records_without_episodes_keep_the_lens_that_was_made_of_them(suite: Path) -> None:
    before = lens_of(report_of(suite))
    (suite / "webshop-grpo-s0" / "episodes.jsonl").unlink()
    (suite / "webshop-grpo-s0" / "tokens.parquet").unlink()
    assert lens_of(report_of(suite)) == before
