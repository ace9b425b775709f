"""The paper's Tables 1 and 2 over several suites: ours and all of the paper's rows, and nothing invented."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from benchmarks.collection import runs_of_models
from benchmarks.reporting.joint import SUITES, Joint, Pair, joint_table
from benchmarks.reporting.load import load_suite
from tests.benchmarks.alfworld_runs import alfworld_suite, rewrite
from tests.benchmarks.report_runs import PANEL, add_run, full_suite
from tests.benchmarks.test_report_deepsearch import add

DATASETS = {"hotpotqa": "id", "2wikimultihopqa": "ood"}


def rows_of(joint: Joint) -> dict[str, dict[str, str]]:
    """Cells by heading, by the name of the row."""
    table = joint.table
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_table_1_joins_both_benchmarks_in_one_row_that_states_both_model_sizes(tmp_path: Path) -> None:
    alfworld = load_suite(alfworld_suite(tmp_path / "alfworld", policy={"parameters": 681_344}))
    webshop = load_suite(full_suite(tmp_path / "webshop", seeds=(0, 1, 2)))
    rows = rows_of(joint_table("table1", alfworld, webshop))
    ours = rows["GRPO, ours (ALFWorld 0.681M params; WebShop 0.664M params)"]
    assert list(ours)[1:] == [
        "Pick", "Look", "Clean", "Heat", "Cool", "Pick2", "ALFWorld, all", "WebShop, score", "WebShop, success",
        "seeds, ALFWorld", "seeds, WebShop",
    ]  # fmt: skip
    assert ours["ALFWorld, all"].startswith("35.8 [")  # 6 * 8 of 134
    assert ours["WebShop, success"].startswith("45.0 ± 5.0 [")  # 8, 9 and 10 of 20
    assert (ours["seeds, ALFWorld"], ours["seeds, WebShop"]) == ("1/1, n=1", "3/3")
    theirs = rows["GRPO, paper (Qwen2.5-1.5B)"]
    assert (theirs["ALFWorld, all"], theirs["WebShop, score"]) == ("65.6 ± 2.9", "78.0 ± 1.1")
    assert theirs["seeds, WebShop"] == "3"
    copied = rows["RLOO, paper (Qwen2.5-7B)ᵃ"]
    assert (copied["Pick"], copied["WebShop, success"], copied["seeds, WebShop"]) == ("87.6", "65.7", "—")
    assert sum("ours" in name for name in rows) == 6
    assert sum("paper" in name for name in rows) == 20


def test_models_of_equal_size_are_named_once_and_a_smoke_scale_says_so(tmp_path: Path) -> None:
    alfworld = load_suite(alfworld_suite(tmp_path / "alfworld", scale="smoke"))
    assert "GRPO, ours (0.664M params, scale smoke)" in rows_of(joint_table("table1", alfworld, None))
    webshop = load_suite(full_suite(tmp_path / "webshop"))
    rows = rows_of(joint_table("table1", alfworld, webshop))
    assert "GRPO, ours (ALFWorld 0.664M params, scale smoke; WebShop 0.664M params)" in rows
    assert "demonstrator (ceiling), ours (ALFWorld scale smoke)" in rows


def test_runs_of_another_model_are_rows_of_their_own_below_ours(tmp_path: Path) -> None:
    small = load_suite(full_suite(tmp_path / "small"))
    large = load_suite(full_suite(tmp_path / "large", seeds=(0, 1, 2)))
    alone = rows_of(joint_table("table1", None, small))
    both = joint_table("table1", None, small, [Pair("Large-7B", None, large), Pair("Absent", None, None)])
    rows = rows_of(both)
    assert rows["GRPO, ours: Large-7B (0.664M params)"]["seeds, WebShop"] == "3/3"
    assert rows["GRPO, ours: Large-7B (0.664M params)"]["ALFWorld, all"] == "—"
    assert {name: cells for name, cells in rows.items() if "Large-7B" not in name} == alone
    assert not any("Absent" in name for name in rows)
    assert both.table.note.count("no runs here") == 1


def test_runs_of_the_paper_s_models_are_found_by_collection_on_official_data_first(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    full_suite(runs / "webshop-paper")
    full_suite(runs / "webshop-Qwen2.5-7B-Instruct-paper")
    full_suite(runs / "webshop-Qwen2.5-7B-Instruct-paper-webshop")
    assert runs_of_models("table1", SUITES["table1"], tmp_path) == {
        "Qwen2.5-1.5B-Instruct": (None, "webshop-paper"),
        "Qwen2.5-7B-Instruct": (None, "webshop-Qwen2.5-7B-Instruct-paper-webshop"),
    }
    assert runs_of_models("table2", SUITES["table2"], tmp_path) == {}


@pytest.mark.parametrize("there", ["alfworld", "webshop", "none"])
def test_a_suite_without_runs_is_a_row_of_dashes_beside_the_other(tmp_path: Path, there: str) -> None:
    alfworld = load_suite(alfworld_suite(tmp_path / "alfworld")) if there == "alfworld" else None
    webshop = load_suite(full_suite(tmp_path / "webshop")) if there == "webshop" else None
    joint = joint_table("table1", alfworld, webshop)
    (dapo,) = [cells for name, cells in rows_of(joint).items() if name.startswith("DAPO, ours")]
    missing = {heading for heading, cell in dapo.items() if cell == "—"}
    of_games = {"Pick", "Look", "Clean", "Heat", "Cool", "Pick2", "ALFWorld, all", "seeds, ALFWorld"}
    of_shop = {"WebShop, score", "WebShop, success", "seeds, WebShop"}
    assert missing == {"alfworld": of_shop, "webshop": of_games, "none": of_shop | of_games}[there]
    assert ("ALFWorld: no runs here" in joint.table.note) == (there != "alfworld")
    assert bool(joint.facts) == (there != "none")


def test_a_seed_that_is_missing_is_counted(tmp_path: Path) -> None:
    suite = tmp_path / "webshop"
    for seed in (0, 1, 2):
        add_run(suite, "grpo", seed, solved=range(8), complete=seed < 2)
    rows = rows_of(joint_table("table1", None, load_suite(suite)))
    assert rows["GRPO, ours (0.664M params)"]["seeds, WebShop"] == "(2/3 seeds)"


def test_table_2_has_the_rows_of_both_suites_and_the_footnoted_average(tmp_path: Path) -> None:
    for variant in ("dapo", "dapo+scaling", "dapo+empg"):
        add(tmp_path / "ablation", variant, {"bridge": 5, "same": 3, "bridge3": 2})
    add(tmp_path / "deepsearch", "grpo", {"bridge": 6})
    joint = joint_table("table2", load_suite(tmp_path / "ablation"), load_suite(tmp_path / "deepsearch"))
    rows = rows_of(joint)
    ours = rows["DAPO+EMPG, ours: ablation (0.664M params)"]
    assert (ours["WebWalker"], ours["Musique"]) == ("—", "—")  # generated questions are of other kinds
    assert [ours[name].split(" ")[0] for name in ("ID", "OOD", "Overall")] == ["50.0", "25.0", "41.7"]
    assert rows["DAPO+future bonus, ours: ablation (0.664M params)"]["Overall"] == "—"
    assert rows["GRPO, ours: deepsearch (0.664M params)"]["ID"].startswith("37.5")
    assert rows["DAPO+EMPG, paper (Qwen2.5-32B)"]["OOD"] == "63.7ᵃ"
    assert rows["DAPO+gradient scaling, paper (Qwen2.5-32B)"]["OOD"] == "63.7"
    assert "ᵃ The paper prints 63.7, but the mean" in joint.table.note


def test_published_data_sets_of_ours_stand_under_the_papers_headings(tmp_path: Path) -> None:
    suite = tmp_path / "sets"
    folder = add_run(
        suite, "dapo", tasks=4, solved=[0, 1, 2], config={"benchmark": "deepsearch"}, world={"task_types": DATASETS},
        panels={"test": {"digest": PANEL, "size": 4}}, variants=["dapo"],
    )  # fmt: skip
    rewrite(folder, lambda task: "hotpotqa" if task < 2 else "2wikimultihopqa")
    row = rows_of(joint_table("table2", load_suite(suite), None))["DAPO, ours: ablation (0.664M params)"]
    shown = [row[name].split(" ")[0] for name in ("HotpotQA", "2Wiki", "ID", "OOD", "Bamboogle", "Overall")]
    assert shown == ["100.0", "50.0", "100.0", "50.0", "—", "75.0"]


def test_the_long_form_says_benchmark_suite_and_source_of_every_number(tmp_path: Path) -> None:
    webshop = load_suite(full_suite(tmp_path / "webshop"))
    rows = list(csv.DictReader(io.StringIO(joint_table("table1", None, webshop).csv)))
    ours = [row for row in rows if row["source"] == "ours"]
    assert {(row["benchmark"], row["suite"]) for row in ours} == {("WebShop", "webshop")}
    theirs = [row for row in rows if row["source"] == "paper"]
    assert len(theirs) == 20 * (7 + 2)
    assert {row["remark"] for row in theirs if row["method"] == "rloo"} == {
        "Copied by the paper from the GiGPO paper."
    }


def test_its_files_are_markdown_csv_and_latex_and_do_not_change(tmp_path: Path) -> None:
    suite = full_suite(tmp_path / "webshop")
    first, second = (joint_table("table1", None, load_suite(suite)).files("table1") for _ in range(2))
    assert first == second
    assert set(first) == {"table1.md", "table1.csv", "table1.tex"}
    assert "U+" not in first["table1.tex"].decode()
    assert "webshop, code: commit" in first["table1.md"].decode()
