"""The paper's numbers and its slips, against its own arithmetic."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from benchmarks.reporting import paper
from benchmarks.reporting.columns import COLUMNS, PAPER_DOMAINS, deep_search, of_type

ARTEFACTS = ("table1", "table2", "table5", "figure1", "figure2")


def test_averages_of_table_2_are_those_of_its_data_sets_but_for_the_one_that_is_footnoted() -> None:
    wrong = []
    for row in paper.rows_of(deep_search(PAPER_DOMAINS)):
        for group, domain in (("ID", "id"), ("OOD", "ood")):
            sets = [row.numbers[of_type(name)].mean for name, own in PAPER_DOMAINS.items() if own == domain]
            printed = row.numbers[of_type(group)]
            if abs(sum(sets) / len(sets) - printed.mean) > 0.05 + 1e-9:
                wrong.append((row.method, group, printed.mean, round(sum(sets) / len(sets), 1)))
            assert bool(printed.remark) == ((row.method, group) == ("dapo+empg", "OOD"))
    assert wrong == [("dapo+empg", "OOD", 63.7, 63.3)]
    (slip,) = paper.slips("table2")
    assert "is 63.3" in slip.says
    assert "adds 3.5 points" in slip.says  # 63.3 - 59.8


def test_the_row_of_table_5_that_is_footnoted_is_the_row_of_table_1() -> None:
    grid = COLUMNS["alfworld"]
    table1 = {(row.base, row.method): row for row in paper.rows_of(grid)}
    ours = {"grpo+empg,zeta=0.05,k=1.0"}
    table5 = paper.rows_of(replace(grid, paper_table="table5", paper={**grid.paper, "success": "overall"}))
    assert {row.method for row in table5 if row.remark} == ours
    for row in table5:
        same = {name: number.cell for name, number in row.numbers.items()} == {
            name: number.cell for name, number in table1["Qwen2.5-1.5B-Instruct", "grpo+empg"].numbers.items()
        }
        assert same == bool(row.remark)
    assert {row.runs for row in table5} == {4}


def test_the_bars_that_figure_1_calls_ood_are_the_overall_averages() -> None:
    rows = {row.method: row.numbers for row in paper.rows_of(deep_search(PAPER_DOMAINS))}
    overall = [rows[name]["success"].mean for name in ("dapo", "dapo+empg")]
    ood = [rows[name][of_type("OOD")].mean for name in ("dapo", "dapo+empg")]
    (slip,) = paper.slips("figure1")
    assert "calls {} and {} OOD".format(*overall) in slip.says
    assert "printed as {} and {}".format(*ood) in slip.says


def test_every_slip_is_of_a_known_artefact_and_of_a_row_that_exists() -> None:
    known = [slip for name in ARTEFACTS for slip in paper.slips(name)]
    text = (paper.FOLDER / "slips.csv").read_text(encoding="utf-8")
    assert len(known) == len(text.splitlines()) - 1
    assert all(slip.says.endswith(".") for slip in known)


def test_all_rows_of_table_1_are_there_and_what_was_copied_says_so() -> None:
    rows = paper.rows_of(COLUMNS["webshop"], every=True)
    assert len(rows) == 2 + 2 * 9
    assert {row.method for row in rows if not row.remark} == {"grpo", "grpo+empg", "dapo", "dapo+empg"}
    by_key = {(row.base, row.method): row.numbers["success"] for row in rows}
    assert by_key["Qwen2.5-7B-Instruct", "rloo"].cell == "65.7"
    assert by_key["Qwen2.5-7B-Instruct", "dapo+empg"].cell == "82.7 ± 1.0"
    assert "Llama-3.1-8B-Instruct" not in {row.base for row in rows}


def test_equal_remarks_share_a_mark_and_every_mark_is_explained_once() -> None:
    rows = paper.rows_of(COLUMNS["webshop"], every=True) + paper.rows_of(deep_search(PAPER_DOMAINS))
    marks = paper.marks_of(rows)
    assert marks[""] == ""
    assert set(marks.values()) == {"", "ᵃ", "ᵇ"}
    notes = paper.footnotes(marks).split("\n\n")[1:]
    assert [note[:2] for note in notes] == ["ᵃ ", "ᵇ "]
    assert set(chain(*(note[2:].splitlines() for note in notes))) == set(marks) - {""}


def test_a_method_that_is_not_in_the_file_is_named(tmp_path) -> None:
    (tmp_path / "slips.csv").write_text("artefact,base,method,column,says\n")
    (tmp_path / "table1.csv").write_text("base,method,webshop_success,webshop_score\n")
    with pytest.raises(ValueError, match=r"table1\.csv: no row for \('Qwen2\.5-1\.5B-Instruct', 'grpo'\)"):
        paper.rows_of(COLUMNS["webshop"], tmp_path)
