"""The report as a whole: what stands in it, what is missing, what is refused, and that it never changes."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import matplotlib
import pytest
from rich.console import Console

from benchmarks.reporting import figures, paper, tables
from benchmarks.reporting.load import RecordError
from benchmarks.reporting.outcomes import EXPERT, TABLE_1, WARM_START, label
from benchmarks.reporting.report import Report
from tests.benchmarks.report_runs import add_run, full_suite, report_of, tree

FIGURES = set(figures.FILES)
TEXTS = {
    "table.md", "table.tex", "table.csv", "differences.csv", "cost.csv", "index.html", "lens/runs.js",
}  # fmt: skip


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "webshop"


@pytest.fixture(autouse=True)
def _fast(request: pytest.FixtureRequest) -> None:
    """Tests that need figures to be drawn take the fixture `drawn`."""
    if "drawn" not in request.fixturenames:
        request.getfixturevalue("undrawn")


@pytest.fixture
def drawn() -> None:
    """Asks for real figures."""


def markdown_row(report: Report, name: str) -> list[str]:
    """The cells of the first table row with that name."""
    for line in (report.folder / "table.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells[0] == name:
            return cells
    raise AssertionError(f"no row {name!r}")


def csv_rows(report: Report, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((report.folder / name).read_text())))


def test_the_table_has_every_row_in_order_with_hand_counted_rates(suite: Path) -> None:
    report = report_of(full_suite(suite))
    assert [row.label for row in report.rows] == [label(name) for name in (WARM_START, *TABLE_1, EXPERT)]
    # 8 of 20 tasks: Wilson [21.9, 61.3]; score (8 * 1 + 12 * 0.5) / 20.
    cells = markdown_row(report, "GRPO")
    assert cells[1] == "40.0 [21.9, 61.3]"
    assert cells[3].startswith("70.0 [")
    assert cells[4:] == ["0/40", "1/1, n=1"]


def test_every_file_is_written_and_a_second_report_changes_no_byte(suite: Path, drawn: None) -> None:
    first = report_of(full_suite(suite, seeds=(0, 1)))
    before = tree(first.folder)
    assert set(before) == TEXTS | FIGURES | {"files.json"}
    with matplotlib.rc_context({"lines.linewidth": 9.0, "font.size": 20.0}):
        second = report_of(suite)
    assert tree(second.folder) == before


def test_a_figure_that_no_longer_applies_does_not_stay_behind(suite: Path) -> None:
    run = add_run(suite, "grpo")
    report = report_of(suite)
    assert (report.folder / "kl_loss.png").exists()
    (run / "summary.json").unlink()
    report_of(suite)
    assert not (report.folder / "kl_loss.png").exists()


def test_missing_runs_are_dashes_and_missing_seeds_are_counted(suite: Path) -> None:
    add_run(suite, "warm-start", solved=range(4))
    for seed in (0, 1, 2):
        add_run(suite, "grpo", seed, solved=range(8 + seed))
    add_run(suite, "dapo", 0, solved=range(9))
    add_run(suite, "dapo", 1, solved=range(10))
    add_run(suite, "dapo", 2, complete=False)
    report = report_of(suite)
    assert markdown_row(report, "GRPO")[-1] == "3/3"
    assert markdown_row(report, "DAPO")[-1] == "(2/3 seeds)"
    assert markdown_row(report, "GRPO+EMPG")[1:] == ["—"] * 4 + ["(0/3 seeds)"]
    assert markdown_row(report, "demonstrator (ceiling)")[1:] == ["—"] * 5
    assert "webshop-dapo-s2 (started, not complete)" in report.facts["left out"]


def test_planned_seeds_make_a_run_that_was_never_started_visible(suite: Path) -> None:
    report = report_of(full_suite(suite), planned_seeds=(0, 1, 2))
    assert markdown_row(report, "DAPO+EMPG")[-1] == "(1/3 seeds, n=1)"


def test_one_seed_shows_no_spread_and_several_show_the_mean_not_the_best(suite: Path) -> None:
    single = report_of(full_suite(suite / "one"))
    assert "±" not in markdown_row(single, "GRPO")[1]
    several = report_of(full_suite(suite / "three", seeds=(0, 1, 2)))
    # 8, 9 and 10 of 20 tasks: mean 45, sample sd 5; Wilson over 20 tasks, not over 60 episodes.
    assert markdown_row(several, "GRPO")[1] == "45.0 ± 5.0 [25.8, 65.8]"
    row = next(row for row in csv_rows(several, "table.csv") if row["method"] == "grpo")
    assert (row["per_seed"], row["unit"], row["tasks"]) == ("0.400000 0.450000 0.500000", "tasks", "20")


def test_the_caption_states_decoding_checkpoint_unit_and_number_of_tasks(suite: Path) -> None:
    report = report_of(full_suite(suite))
    text = (report.folder / "table.md").read_text()
    for wanted in ("temperature 1", "Last checkpoint, 20 tasks", "Unit of both intervals: tasks"):
        assert wanted in text


def test_differences_are_paired_and_say_when_they_are_not_significant(suite: Path) -> None:
    add_run(suite, "warm-start", solved=range(4))
    add_run(suite, "grpo", solved=range(14))
    add_run(suite, "grpo+empg", solved=[*range(13), 14, 15])  # 15 of 20, but one task lost and two won
    report = report_of(suite)
    won = markdown_row(report, "GRPO − warm start")
    # Six tests: twice 2 / 2^11, twice 2 / 2^10, twice 1; the third smallest is multiplied by four.
    assert (won[2].split(" ")[0], won[4], won[-1]) == ("+50.0", "0.008", "significant")
    level = markdown_row(report, "GRPO+EMPG − GRPO")
    assert (level[2].split(" ")[0], level[4], level[-1]) == ("+5.0", "1.000", "not significant")


def test_the_note_of_the_differences_names_the_family_of_tests_and_what_makes_a_verdict(suite: Path) -> None:
    text = (report_of(full_suite(suite)).folder / "table.md").read_text()
    for wanted in (
        "two-sided test of equal success (exact McNemar), corrected by Holm's method for all 12 tests of this "
        "table, sampled and greedy, as one family",
        r"Significant: Holm p \< 0.05 and the interval leaves out 0",
        "95% intervals, each for its difference alone",
    ):
        assert wanted in text


def test_an_interval_above_zero_is_not_called_significant_against_the_exact_test(suite: Path) -> None:
    add_run(suite, "warm-start", solved=range(4))
    add_run(suite, "grpo", solved=range(9))  # five tasks won, none lost: p = 2 / 32, in each of two modes
    cells = markdown_row(report_of(suite), "GRPO − warm start")
    assert not cells[2].split("[")[1].startswith("-")
    assert (cells[4], cells[-1]) == ("0.125", "not significant")


def test_repeated_samples_of_a_task_are_not_further_tasks(suite: Path) -> None:
    add_run(suite, "warm-start", solved=range(4), samples=5)
    add_run(suite, "grpo", solved=range(8), samples=5)
    report = report_of(suite)
    assert markdown_row(report, "GRPO")[1] == "40.0 [21.9, 61.3]"
    sampled, greedy = (
        row
        for row in csv_rows(report, "differences.csv")
        if row["measure"] == "success" and row["mode"] != ""
    )
    for row in (sampled, greedy):
        assert (row["test"], row["p"], row["holm_p"]) == ("exact McNemar", "0.125", "0.25")


def test_comparisons_use_only_seeds_that_both_variants_have(suite: Path) -> None:
    for seed in (0, 1, 2):
        add_run(suite, "grpo", seed, solved=range(8))
    add_run(suite, "grpo+empg", 1, solved=range(14))
    cells = markdown_row(report_of(suite), "GRPO+EMPG − GRPO")
    assert cells[5] == "20 × 1"


def test_an_unlisted_variant_is_shown_and_compared_not_dropped(suite: Path) -> None:
    full_suite(suite)
    add_run(suite, "grpo+other", solved=range(12))
    report = report_of(suite)
    assert markdown_row(report, "grpo+other")[1].startswith("60.0")
    assert markdown_row(report, "grpo+other − GRPO")[2].startswith("+20.0")
    assert report.rows[-1].label == "demonstrator (ceiling)"


def test_errored_episodes_lower_no_rate_and_are_counted(suite: Path) -> None:
    add_run(suite, "warm-start", solved=range(4))
    add_run(suite, "grpo", solved=range(8), errored={18: "index is gone", 19: "index is gone"})
    report = report_of(suite)
    cells = markdown_row(report, "GRPO")
    assert cells[1].startswith("44.4 [")  # 8 of 18
    assert cells[4] == "4/40"
    assert markdown_row(report, "GRPO − warm start")[5] == "18 × 1"
    assert report.facts["errors"] == "4 × index is gone"


def test_a_seed_whose_environment_always_failed_is_shown_as_such_and_not_as_zero(suite: Path) -> None:
    add_run(suite, "grpo", errored=dict.fromkeys(range(20), "down"))
    cells = markdown_row(report_of(suite), "GRPO")
    assert cells[1:5] == ["—", "—", "—", "40/40"]


def test_p4_of_several_seeds_one_whose_environment_always_failed_is_missed_by_name(suite: Path) -> None:
    add_run(suite, "grpo", 0, solved=range(8))
    add_run(suite, "grpo", 1, errored=dict.fromkeys(range(20), "down"))
    report = report_of(suite)
    cells = markdown_row(report, "GRPO")
    assert cells[1:3] == ["40.0 [21.9, 61.3] (1/2 seeds)"] * 2
    assert cells[4:] == ["40/80", "2/2"]
    row = next(row for row in csv_rows(report, "table.csv") if row["method"] == "grpo")
    assert (row["per_seed"], row["seeds"], row["planned_seeds"]) == ("0.400000", "1", "2")


def test_the_papers_rows_stand_beside_ours_with_both_model_sizes(suite: Path) -> None:
    report = report_of(full_suite(suite))
    text = (report.folder / "table.md").read_text()
    header = next(line for line in text.splitlines() if "Qwen2.5-7B" in line)
    assert "ours (0.664M params)" in header
    assert "paper (Qwen2.5-1.5B)" in header
    beside = text[text.index(header) :]
    grpo = next(line for line in beside.splitlines() if line.startswith("| GRPO |"))
    assert grpo == "| GRPO | 40.0 | 70.0 | 58.2 ± 2.4 | 78.0 ± 1.1 | 65.6 ± 1.0 | 77.8 ± 1.4 |"
    assert "| EMPG adds to DAPO | +10.0 | +5.0 | +0.6 | +0.9 | +3.1 | +1.4 |" in beside
    theirs = [row for row in csv_rows(report, "table.csv") if row["source"] == "paper"]
    assert {row["model"] for row in theirs} == set(paper.TABLES["table1"].bases)
    assert len(theirs) == 16


def test_the_papers_rows_are_left_out_of_other_benchmarks(suite: Path) -> None:
    add_run(suite, "grpo", config={"benchmark": "corridor"})
    assert "Qwen" not in (report_of(suite).folder / "table.md").read_text()


def test_the_facts_name_model_data_panel_training_code_and_hardware(suite: Path) -> None:
    facts = report_of(full_suite(suite)).facts
    assert facts["model"] == "parameters 663,808"
    assert facts["data"] == "goal_source synthetic, goals 690, name webshop, products 1,000"
    assert facts["test panel"] == "20 tasks, sha256 aaaaaaaaaaaa"
    assert facts["training"] == "5 iterations; the last checkpoint is evaluated"
    assert facts["code"] == "commit cccccccccccc"
    assert facts["hardware"] == "cpu, cores 2, processor x86_64"


def test_foreign_text_steers_neither_the_terminal_nor_markdown(suite: Path) -> None:
    hostile = "[bold red]x[/] | a\x1b[31mb\u202e <script>alert(1)</script>\n# *h* `c`"
    add_run(suite, "grpo", errored={3: hostile}, device=hostile)
    shown = io.StringIO()
    report = report_of(suite, Console(file=shown, width=200, force_terminal=True, color_system=None))
    terminal = re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue())  # rich's own styles
    assert r"[bold red]x[/] | a\x1b[31mb\u202e <script>" in terminal
    assert "\u202e" not in shown.getvalue()
    assert "a\x1b" not in shown.getvalue()
    markdown = (report.folder / "table.md").read_text()
    assert r"\<script\>" in markdown
    assert r"\[bold red\]x\[/\] \| a" in markdown
    assert "\x1b" not in markdown
    assert not any(line.startswith("# ") for line in markdown.splitlines())


def test_the_terminal_table_keeps_every_cell_whole_at_eighty_columns(suite: Path) -> None:
    shown = io.StringIO()
    report_of(full_suite(suite, seeds=(0, 1, 2)), Console(file=shown, width=80))
    text = shown.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    for whole in ("[25.8, 65.8]", "[+13.0, +57.0]", "92.0 ± 1.2", "not significant"):
        assert whole in text


def test_a_refused_suite_writes_nothing(suite: Path) -> None:
    add_run(suite, "grpo")
    add_run(suite, "dapo", panels={"test": {"digest": "f" * 64, "size": 20}})
    with pytest.raises(RecordError):
        report_of(suite)
    assert not (suite.parent / "published").exists()


def test_markdown_escapes_keep_a_cell_one_cell() -> None:
    table = tables.Table("t", ("name", "value"), (("a | b\nc", "1"),), "")
    assert r"| a \| b c | 1 |" in tables.to_markdown([table], {})
