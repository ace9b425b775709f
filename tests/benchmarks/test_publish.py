"""From a folder of results to what is published: which suites, where, and what happens when one cannot be read."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.publish import publish_aggregates
from tests.benchmarks.alfworld_runs import alfworld_suite
from tests.benchmarks.report_runs import add_run, full_suite, write_steps
from tests.benchmarks.test_cli import call

pytestmark = pytest.mark.usefixtures("undrawn")
OVERVIEW = {"figure1.csv", "figure1.png", "figure1.svg"}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Runs of one suite, one at another scale, and folders that are no suites."""
    full_suite(tmp_path / "runs" / "webshop")
    add_run(tmp_path / "runs" / "webshop-smoke", "grpo", scale="smoke")
    (tmp_path / "runs" / "empty").mkdir()
    (tmp_path / "runs" / "file").write_text("x")
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_without_a_suite_every_suite_with_runs_is_reported_once_and_a_second_time_changes_no_byte(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, errors = call(capsys, "report", "--results", results)
    assert (code, errors) == (0, "")
    assert {path.name for path in (results / "published").iterdir()} == OVERVIEW | {
        "table1.csv", "table1.md", "table1.tex", "webshop", "webshop-smoke",
    }  # fmt: skip
    for name in ("webshop", "webshop-smoke"):
        assert out.count(f"report: {results / 'published' / name}\n") == 1
    before = tree(results)
    assert call(capsys, "report", "--results", results)[0] == 0
    assert tree(results) == before


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (("webshop",), "webshop"),
        (("webshop", "--scale", "smoke"), "webshop-smoke"),
        (("webshop-smoke",), "webshop-smoke"),
    ],
)
def test_a_suite_is_named_as_it_was_run_or_by_its_folder(
    results: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], written: str
) -> None:
    code, _, _ = call(capsys, "report", *arguments, "--results", results)
    assert code == 0
    assert [path.name for path in (results / "published").iterdir()] == [written]


def test_published_records_give_the_report_again_and_what_needs_step_tables_is_kept(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "report", "webshop", "--results", results)
    folder = results / "published" / "webshop"
    first = tree(folder)
    shutil.copytree(results / "runs" / "webshop", folder / "runs", ignore=shutil.ignore_patterns("*.parquet"))
    copied = tree(folder / "runs")
    shutil.rmtree(results / "runs")
    code, out, _ = call(capsys, "report", "--runs", folder / "runs", "--results", results)
    assert code == 0
    kept = "credit, entropy_change, gradient_norm as drawn before"
    assert kept in " ".join(out.split())
    assert tree(folder / "runs") == copied
    now = {name: content for name, content in tree(folder).items() if not name.startswith("runs/")}
    assert now.keys() == first.keys()
    assert {name for name in now if now[name] != first[name]} == {"table.md", "index.html"}  # which say so
    assert call(capsys, "report", "webshop", "--results", results)[0] == 0  # found there by its name
    assert tree(folder / "runs") == copied


def test_a_suite_that_cannot_be_read_is_an_error_that_names_the_file_and_the_others_are_written(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = next((results / "runs" / "webshop").glob("*/eval.jsonl"))
    broken.write_bytes(b"\xff\n")
    code, _, errors = call(capsys, "report", "--results", results)
    assert code == 2
    assert errors.startswith(f"error: {broken}: line 1")
    assert errors.count("\n") == 1
    assert errors.count(str(broken)) == 1  # Table 1, which needs it too, says nothing more
    assert [path.name for path in (results / "published").iterdir()] == ["webshop-smoke"]


def test_without_any_runs_there_is_one_line_of_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("report", "figures"):
        code, _, errors = call(capsys, command, "--results", tmp_path)
        assert code == 2
        assert errors.startswith(f"error: no runs below {tmp_path / 'runs'}")
    assert not (tmp_path / "published").exists()


def test_figures_alone_leave_the_tables_as_they_are(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "report", "webshop", "--results", results)
    folder = results / "published" / "webshop"
    before = tree(folder)
    (folder / "kl_loss.png").unlink()
    (folder / "table.md").write_text("kept")
    assert call(capsys, "figures", "webshop", "--results", results)[0] == 0
    assert tree(folder) == before | {"table.md": b"kept"}
    for run in (results / "runs" / "webshop").glob("webshop-*-s0"):
        (run / "tokens.parquet").unlink(missing_ok=True)
        write_steps(run, {"iteration": [0], "entropy": [0.5], "entropy_after": [None]})
    call(capsys, "figures", "--results", results)
    assert not (folder / "entropy_change.png").exists()
    assert {path.name for path in (results / "published").iterdir()} == OVERVIEW | {
        "webshop",
        "webshop-smoke",
    }
    assert (folder / "table.md").read_text() == "kept"


def test_the_joint_tables_take_runs_made_here_before_published_ones_and_other_folders_by_name(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(results / "published" / "webshop" / "runs", "grpo", solved=range(19))
    alfworld_suite(results / "published" / "official" / "runs")
    assert call(capsys, "table1", "--results", results)[0] == 0
    text = (results / "published" / "table1.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| GRPO, ours"))
    assert "40.0 [" in row  # 8 of 20, made here
    assert "ALFWorld: no runs here" in text
    call(capsys, "table1", "--alfworld", "official", "--results", results)
    assert (
        "ALFWorld, suite official: valid\\_unseen, 134 tasks"
        in (results / "published" / "table1.md").read_text()
    )
    shutil.rmtree(results / "runs")
    assert call(capsys, "figures", "--results", results)[0] == 0  # the overview, of published records
    assert {path.name for path in (results / "published").iterdir()} >= OVERVIEW
    code, out, _ = call(capsys, "table2", "--results", results)
    assert code == 0
    assert "Deep Search: no runs here" in " ".join(out.split())


def test_two_benchmarks_with_runs_are_aggregated_and_one_alone_is_not(
    results: Path,
) -> None:
    written = results / "published" / "aggregates.md"
    publish_aggregates(results, Console(file=io.StringIO()))
    assert not written.exists()
    alfworld_suite(results / "published" / "alfworld" / "runs")
    publish_aggregates(results, Console(file=io.StringIO()))
    assert "| method | mode | IQM | mean | WebShop (n=20) | ALFWorld (n=134) |" in written.read_text()
