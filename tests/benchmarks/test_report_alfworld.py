"""The ALFWorld report: six task types and All, the paper's numbers beside them, the split by its name."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Text
from rich.console import Console

from benchmarks.reporting.columns import of_type
from benchmarks.reporting.figures import style
from benchmarks.reporting.load import load_suite
from benchmarks.reporting.outcomes import arm_row, compare
from benchmarks.reporting.report import Report
from tests.benchmarks.alfworld_runs import TYPES, UNSEEN, add_alfworld, alfworld_suite, world
from tests.benchmarks.report_runs import report_of

SMALL = {"pick": 4, "look": 2, "clean": 3, "cool": 1}
"""Ten tasks; no heat, no pick2."""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "alfworld"


@pytest.fixture(autouse=True)
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text of the figures, which are laid out but not rendered."""
    found: list[str] = []

    def lay_out(chart):
        figure = Figure()
        chart.draw(figure)
        found.extend([chart.note, *(text.get_text() for text in figure.findobj(Text))])
        return {"png": b"not rendered", "svg": b"<svg/>"}

    monkeypatch.setattr(style, "render", lay_out)
    return found


def cells(report: Report, name: str, table: str = "") -> list[str]:
    """The cells of the first Markdown row with that name, in the table whose title has the given words."""
    text = (report.folder / "table.md").read_text()
    for line in text[text.index(table) :].splitlines():
        found = [cell.strip() for cell in line.strip("|").split(" | ")]
        if found[0] == name:
            return found[1:]
    raise AssertionError(f"no row {name!r}")


def long_form(report: Report, **wanted: str) -> list[dict[str, str]]:
    rows = csv.DictReader(io.StringIO((report.folder / "table.csv").read_text()))
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def test_the_table_has_six_types_and_all_with_hand_counted_rates(suite: Path) -> None:
    report = report_of(alfworld_suite(suite))
    assert cells(report, "method") == [
        "Pick (n=24)", "Look (n=18)", "Clean (n=31)", "Heat (n=23)", "Cool (n=21)", "Pick2 (n=17)",
        "All, sampled", "All, greedy", "errored", "seeds",
    ]  # fmt: skip
    grpo = cells(report, "GRPO")  # 8 of each type
    assert [cell.split(" ")[0] for cell in grpo[:6]] == ["33.3", "44.4", "25.8", "34.8", "38.1", "47.1"]
    assert grpo[0] == "33.3 [18.0, 53.3]"  # Wilson of 8 of 24
    assert grpo[6] == grpo[7] == "35.8 [28.2, 44.2]"  # of 48 of 134
    assert grpo[8:] == ["0/268", "1/1, n=1"]
    assert cells(report, "warm start")[0].startswith("12.5 ")
    assert cells(report, "demonstrator (ceiling)")[5].startswith("94.1 ")  # 16 of 17


def test_two_seeds_show_mean_and_spread_of_each_type(suite: Path) -> None:
    for seed, solved in ((0, 6), (1, 12)):
        add_alfworld(suite, "grpo", seed, solved={"pick": solved})
    report = report_of(suite)
    # 6 and 12 of 24: mean 37.5, sample sd 12.5 * sqrt(2); Wilson of the mean over 24 tasks, not 48 episodes.
    assert cells(report, "GRPO")[0] == "37.5 ± 17.7 [21.2, 57.3]"
    assert cells(report, "GRPO")[1] == "0.0 ± 0.0 [0.0, 17.6]"
    (row,) = long_form(report, measure="success:pick", mode="greedy", method="grpo", source="ours")
    assert (row["tasks"], row["seeds"], row["per_seed"]) == ("24", "2", "0.250000 0.500000")


def test_a_type_that_a_small_panel_lacks_is_a_dash_with_n_zero(suite: Path) -> None:
    add_alfworld(suite, "grpo", counts=SMALL, solved={"pick": 2})
    report = report_of(suite)
    assert cells(report, "method")[3:6] == ["Heat (n=0)", "Cool (n=1)", "Pick2 (n=0)"]
    assert cells(report, "GRPO")[3] == cells(report, "GRPO")[5] == "—"
    assert cells(report, "GRPO")[6].startswith("20.0 ")
    assert "by type 4 + 2 + 3 + 0 + 1 + 0 = 10." in (report.folder / "table.md").read_text()
    (row,) = long_form(report, measure="success:heat", mode="sampled", method="grpo", source="ours")
    assert (row["mean"], row["tasks"], row["episodes"]) == ("", "", "0")
    assert cells(report, "EMPG adds to GRPO, ours (0.664M params)") == ["—"] * 7


def test_the_paper_stands_beside_ours_by_type_and_so_does_what_empg_adds(suite: Path) -> None:
    report = report_of(alfworld_suite(suite))
    assert cells(report, "method, source") == ["Pick", "Look", "Clean", "Heat", "Cool", "Pick2", "All"]
    ours = ["33.3", "44.4", "25.8", "34.8", "38.1", "47.1", "35.8"]
    assert cells(report, "GRPO, ours (0.664M params)") == ours
    assert cells(report, "GRPO+EMPG, paper (Qwen2.5-1.5B)") == [
        "85.5 ± 4.8", "33.5 ± 6.4", "78.9 ± 2.5", "76.2 ± 9.7", "74.7 ± 1.9", "69.1 ± 6.4", "73.7 ± 2.7"
    ]  # fmt: skip
    gain = "EMPG adds to {}, {}".format
    assert cells(report, gain("GRPO", "ours (0.664M params)"))[0] == "+4.2"  # one of 24
    assert cells(report, gain("GRPO", "ours (0.664M params)"))[6] == "+4.5"  # six of 134
    theirs = cells(report, gain("DAPO", "paper (Qwen2.5-7B)"))
    assert theirs == ["+0.1", "+0.7", "+2.4", "+11.7", "-5.6", "+0.2", "+1.6"]
    text = (report.folder / "table.md").read_text().replace("\\_", "_")
    assert "it does not say at which temperature, on which split (valid_seen or valid_unseen) nor" in text
    (row,) = long_form(
        report, source="paper", model="Qwen2.5-7B-Instruct", method="dapo", measure="success:look"
    )
    assert (row["mean"], row["sd_over_seeds"]) == ("0.861000", "0.071000")


def test_there_is_no_score_and_differences_are_of_all_tasks(suite: Path) -> None:
    report = report_of(alfworld_suite(suite))
    columns = ["mode", "success", "Holm p", "tasks × seeds", "success difference is"]
    assert cells(report, "comparison") == columns
    won = cells(report, "GRPO − warm start")
    assert (won[1].split(" ")[0], won[3]) == ("+22.4", "134 × 1")  # 30 of 134
    assert not long_form(report, measure="score")
    differences = csv.DictReader(io.StringIO((report.folder / "differences.csv").read_text()))
    assert {row["measure"] for row in differences} == {"success"}


def test_an_errored_episode_counts_for_its_type_where_any_other_episode_knows_it(suite: Path) -> None:
    add_alfworld(
        suite, "grpo", counts=SMALL, solved={"pick": 2}, errored={0: "down", 9: "down"}, untyped=(0, 9)
    )
    add_alfworld(suite, "dapo", counts=SMALL, errored={9: "down"}, untyped=(9,))
    report = report_of(suite)
    # Task 0 is a pick in the other run; task 9 failed everywhere.
    assert cells(report, "method")[:5:4] == ["Pick (n=4)", "Cool (n=0)"]
    grpo = cells(report, "GRPO")
    assert (grpo[0].split(" ")[0], grpo[4], grpo[6].split(" ")[0], grpo[8]) == ("33.3", "—", "12.5", "4/20")
    errored = {
        measure: long_form(report, measure=measure, mode="sampled", method="grpo", source="ours")[0][
            "errored"
        ]
        for measure in ("success", "success:pick", "success:cool")
    }
    assert errored == {"success": "4", "success:pick": "2", "success:cool": "0"}
    text = (report.folder / "table.md").read_text()
    assert "4 + 2 + 3 + 0 + 0 + 0 = 9, and 1 of unknown type, which failed" in text


def test_a_seed_without_a_result_for_a_type_is_named_in_the_cell(suite: Path) -> None:
    add_alfworld(suite, "grpo", 0, counts=SMALL, solved={"cool": 1})
    add_alfworld(suite, "grpo", 1, counts=SMALL, errored={9: "down"})
    report = report_of(suite)
    assert cells(report, "GRPO")[4] == "100.0 [20.7, 100.0] (1/2 seeds)"
    (row,) = long_form(report, measure="success:cool", mode="sampled", method="grpo", source="ours")
    assert (row["per_seed"], row["seeds"], row["planned_seeds"]) == ("1.000000", "1", "2")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counts=st.dictionaries(st.sampled_from(TYPES), st.integers(1, 5), min_size=1),
    data=st.data(),
)
def test_the_types_sum_to_all(
    counts: dict[str, int], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("property") / "alfworld"
    size = sum(counts.values())
    broken = data.draw(st.sets(st.integers(0, size - 1), max_size=size - 1))
    for variant in ("grpo", "grpo+empg"):
        solved = {name: data.draw(st.integers(0, number)) for name, number in counts.items()}
        add_alfworld(
            folder, variant, counts=counts, solved=solved, errored=dict.fromkeys(broken, "down"), steps={}
        )
    found = load_suite(folder)
    assert sum(len(found.tasks_of(name)) for name in TYPES) == size
    row = arm_row(found, "grpo")
    parts = [row.measures["sampled", of_type(name)] for name in TYPES]
    whole = row.measures["sampled", "success"]
    assert whole is not None
    measured = [part for part in parts if part is not None]
    assert sum(part.interval.n for part in measured) == whole.interval.n == size - len(broken)
    successes = sum(part.spread.mean * part.interval.n for part in measured)
    assert successes == pytest.approx(whole.spread.mean * whole.interval.n)
    assert sum(row.parts[of_type(name)].errored for name in TYPES) == row.errored == 2 * len(broken)
    gain = compare(found, "grpo+empg", "grpo").by_mode["sampled"]
    gains = [
        (gain.parts[of_type(name)] or 0.0) * (part.interval.n if part else 0)
        for name, part in zip(TYPES, parts, strict=True)
    ]
    assert sum(gains) == pytest.approx(gain.success.estimate * whole.interval.n)


@pytest.mark.parametrize(
    ("counts", "facts", "words"),
    [
        (UNSEEN, world(), "valid_unseen, 134 tasks"),
        ({"pick": 140}, world("seen", 140), "valid_seen, 140 tasks"),
        (SMALL, world(), "valid_unseen, 10 of 134 tasks"),
        ({"pick": 128}, world("seen", 140), "valid_seen, 128 of 140 tasks"),
        ({"pick": 120}, world(tasks=120), "valid_unseen, 120 of 134 tasks"),  # an incomplete tree
        (SMALL, world(tasks=10, data="generated"), "unseen part of the generated games, 10 tasks"),
        (SMALL, world("seen", 60, data="generated"), "seen part of the generated games, 10 of 60 tasks"),
    ],
)
def test_the_split_and_its_denominator_stand_in_title_note_and_facts(
    suite: Path, counts: dict[str, int], facts: dict[str, object], words: str
) -> None:
    add_alfworld(suite, "expert", counts=counts, world=facts)
    report = report_of(suite)
    text = (report.folder / "table.md").read_text().replace("\\_", "_")
    assert f"## alfworld: success by task type on {words} (%)" in text
    assert f"Last checkpoint; {words}, by type" in text
    assert report.facts["test panel"] == f"{words}, sha256 aaaaaaaaaaaa"
    assert f"evaluated_on {facts['evaluated_on']}" in report.facts["data"]


@pytest.mark.parametrize(("width", "blocks"), [(40, 5), (80, 2), (200, 1)])
def test_a_terminal_shows_every_cell_whole_in_as_many_blocks_as_it_needs(
    suite: Path, width: int, blocks: int
) -> None:
    shown = io.StringIO()
    report_of(alfworld_suite(suite, seeds=(0, 1)), Console(file=shown, width=width))
    main, rest = shown.getvalue().split("Last checkpoint")
    paper = rest[rest.index("Beside the paper") : rest.index("Ours: sampled")]
    assert max(len(line) for line in (main + paper).splitlines()) <= width
    assert main.count("GRPO+EMPG") == blocks
    for whole in ("35.4 ± 2.9", "[19.6, 55.3]", "(n=31)", "sampled", "errored", "0/536", "1/1, n=1"):
        assert whole in main
    for whole in ("± 2.9", "+40.5", "-13.3", "Pick2"):
        assert whole in paper


def test_every_file_is_written_and_none_speaks_of_another_benchmark(suite: Path, texts: list[str]) -> None:
    report = report_of(alfworld_suite(suite, seeds=(0, 1)))
    assert {"table.md", "table.tex", "cost.csv", "kl_loss.png"} <= {path.name for path in report.files}
    written = " ".join(path.read_text() for path in report.files if path.suffix in (".md", ".csv", ".tex"))
    assert "webshop" not in (written + " ".join(texts)).lower()
    assert "Paper, Figure 3 (ALFWorld, after RL)" in texts


def test_before_any_run_is_complete_there_are_dashes_and_the_split(suite: Path) -> None:
    add_alfworld(suite, "grpo", complete=False)
    report = report_of(suite)
    assert cells(report, "method")[0] == "Pick (n=0)"
    assert cells(report, "GRPO") == ["—"] * 10
    assert report.facts["test panel"].startswith("valid_unseen, 134 tasks")
