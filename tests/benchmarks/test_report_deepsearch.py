"""Tables of Deep Search: kinds of questions by domain, the ablation's rows, and the paper's Table 2 beside them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from benchmarks import records
from benchmarks.reporting.report import Report
from benchmarks.reporting.schema import RecordError
from tests.benchmarks.alfworld_runs import rewrite
from tests.benchmarks.report_runs import PANEL, add_run, report_of

pytestmark = pytest.mark.usefixtures("undrawn")

KINDS = {"bridge": "id", "same": "id", "bridge3": "ood"}
SIZES = {"bridge": 10, "same": 6, "bridge3": 8}
ABLATION = ("dapo", "dapo+scaling", "dapo+bonus", "dapo+empg")


def add(
    suite: Path, variant: str, solved: dict[str, int], kinds: dict[str, str] | None = None, **changes: Any
) -> None:
    """A run that solved the first so many questions of each kind."""
    types = [name for name, size in SIZES.items() for _ in range(size)]
    wins = [types.index(name) + place for name, count in solved.items() for place in range(count)]
    folder = add_run(
        suite,
        variant,
        tasks=len(types),
        solved=wins,
        config={"benchmark": "deepsearch"},
        world={"name": "deepsearch", "task_types": KINDS if kinds is None else kinds},
        panels={"test": {"digest": PANEL, "size": len(types)}},
        **changes,
    )
    rewrite(folder, lambda task: types[task])


def ablation(suite: Path) -> Report:
    add(suite, "warm-start", {"bridge": 2, "same": 2, "bridge3": 1})
    for place, variant in enumerate(ABLATION):
        counts = {"bridge": 5 + place, "same": 3, "bridge3": 2 + place}
        add(suite, variant, counts, variants=list(ABLATION))
    add(suite, "expert", {"bridge": 10, "same": 6, "bridge3": 8})
    return report_of(suite)


def row(report: Report, name: str, table: int = 0) -> dict[str, str]:
    """The cells of a table's row by heading."""
    blocks = (report.folder / "table.md").read_text().split("\n## ")[table].splitlines()
    lines = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in blocks if line.startswith("|")
    ]
    return next(dict(zip(lines[0], cells, strict=True)) for cells in lines if cells[0] == name)


def test_kinds_come_by_domain_each_with_the_group_behind_its_kinds(tmp_path: Path) -> None:
    cells = row(ablation(tmp_path / "ablation"), "DAPO+EMPG")
    assert list(cells)[1:7] == [
        "Bridge (n=10)", "Same (n=6)", "ID (n=16)", "Bridge3 (n=8)", "OOD (n=8)", "All, sampled",
    ]  # fmt: skip
    shown = [cells[name].split(" ")[0] for name in list(cells)[1:7]]
    assert shown == ["80.0", "50.0", "68.8", "62.5", "62.5", "66.7"]  # 8/10, 3/6, 11/16, 5/8, 5/8, 16/24


def test_the_rows_are_those_that_the_suite_trains(tmp_path: Path) -> None:
    report = ablation(tmp_path / "ablation")
    assert [one.label for one in report.rows] == [
        "warm start", "DAPO", "DAPO+gradient scaling", "DAPO+future bonus", "DAPO+EMPG", "demonstrator (ceiling)",
    ]  # fmt: skip


def test_a_variant_that_was_not_started_is_shown_as_missing(tmp_path: Path) -> None:
    suite = tmp_path / "ablation"
    add(suite, "dapo", {"bridge": 5}, variants=list(ABLATION))
    cells = row(report_of(suite), "DAPO+gradient scaling")
    assert cells["All, sampled"] == "—"


def test_differences_have_an_interval_for_each_domain(tmp_path: Path) -> None:
    report = ablation(tmp_path / "ablation")
    cells = row(report, "DAPO+EMPG − DAPO", table=1)
    assert [cells[name].split(" ")[0] for name in ("success", "ID", "OOD")] == ["+25.0", "+18.8", "+37.5"]
    assert all("[" in cells[name] for name in ("success", "ID", "OOD"))
    with (report.folder / "differences.csv").open() as file:
        found = {
            (one["treated"], one["reference"], one["mode"], one["measure"]): one
            for one in csv.DictReader(file)
        }
    assert float(found["dapo+empg", "dapo", "sampled", "success:OOD"]["difference"]) == 0.375
    assert found["dapo+empg", "dapo", "sampled", "success:OOD"]["tasks"] == "8"


def test_the_papers_table_2_stands_beside_with_its_printed_averages(tmp_path: Path) -> None:
    report = ablation(tmp_path / "ablation")
    theirs = row(report, "DAPO+EMPG, paper (Qwen2.5-32B)", table=2)
    assert (theirs["ID"], theirs["OOD"], theirs["All"]) == ("66.6", "63.7ᵃ", "65.3")
    assert theirs["Bridge"] == "—"
    gain = row(report, "gradient scaling adds to DAPO, paper (Qwen2.5-32B)", table=2)
    assert (gain["ID"], gain["OOD"]) == ("+0.2", "+3.9")
    ours = row(report, "future bonus adds to DAPO, ours (0.664M params)", table=2)
    assert (ours["ID"], ours["OOD"]) == ("+12.5", "+25.0")
    text = (report.folder / "table.md").read_text()
    assert "Table 2, one run each" in text
    of_empg = row(report, "EMPG adds to DAPO, paper (Qwen2.5-32B)", table=2)
    assert (of_empg["ID"], of_empg["OOD"]) == ("+3.1", "+3.9ᵃ")
    footnote = next(line for line in text.splitlines() if line.startswith("ᵃ"))
    assert "the mean of 41.8 (Musique) and 84.8 (Bamboogle) is 63.3" in footnote.replace("\\", "")
    assert "by which judge or metric" in text


def test_published_data_sets_stand_under_the_papers_headings(tmp_path: Path) -> None:
    kinds = {"hotpotqa": "id", "2wikimultihopqa": "ood"}
    suite = tmp_path / "deepsearch"
    folder = add_run(
        suite, "dapo", tasks=4, solved=[0], config={"benchmark": "deepsearch"},
        world={"task_types": kinds}, panels={"test": {"digest": PANEL, "size": 4}}, variants=["dapo"],
    )  # fmt: skip
    rewrite(folder, lambda task: "hotpotqa" if task < 2 else "2wikimultihopqa")
    cells = row(report_of(suite), "DAPO, paper (Qwen2.5-32B)", table=2)
    assert (cells["HotpotQA"], cells["2Wiki"]) == ("66.4", "68.9")


def test_a_domain_that_does_not_exist_is_refused_with_its_place(tmp_path: Path) -> None:
    suite = tmp_path / "deepsearch"
    add(suite, "dapo", {"bridge": 1}, kinds={"bridge": "id", "same": "id", "bridge3": "far"})
    with pytest.raises(RecordError, match=r"world: task_types\.bridge3: .*'id' or 'ood'"):
        report_of(suite)


def test_a_heading_from_data_cannot_break_the_table(tmp_path: Path) -> None:
    suite = tmp_path / "deepsearch"
    folder = add_run(
        suite, "dapo", tasks=2, solved=[0], config={"benchmark": "deepsearch"},
        world={"task_types": {"a|b <i>": "id"}}, panels={"test": {"digest": PANEL, "size": 2}}, variants=["dapo"],
    )  # fmt: skip
    rewrite(folder, lambda task: "a|b <i>")
    report = report_of(suite)
    header = (report.folder / "table.md").read_text().splitlines()[2]
    assert "A\\|b \\<i\\>" in header
    assert records.read_json(folder / "run.json")["variants"] == ["dapo"]
