"""Methods over several benchmarks: what stands in the two tables, and what is missing in them."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.reporting import aggregates
from benchmarks.reporting.load import Suite, load_suite
from benchmarks.reporting.schema import RecordError
from benchmarks.reporting.tables import Table
from tests.benchmarks.report_runs import add_run, full_suite

PUBLISHED = Path(__file__).resolve().parents[2] / "results" / "published"
MEAN = ("mean", "grpo", "sampled")


def shop(folder: Path) -> Path:
    return folder / "webshop"


def corridor(folder: Path, variant: str, seed: int = 0, **more: object) -> None:
    """A run on another benchmark, of ten tasks."""
    more = {"tasks": 10, "config": {"benchmark": "corridor"}} | more
    add_run(folder / "corridor", variant, seed, **more)  # type: ignore[arg-type]


def row(table: Table, name: str, mode: str = "sampled") -> list[str]:
    (found,) = [cells[2:] for cells in table.rows if cells[:2] == (name, mode)]
    return list(found)


def load(folder: Path) -> list[Suite]:
    return [load_suite(folder / name) for name in ("webshop", "corridor")]


def test_the_table_gives_both_aggregates_and_what_they_are_made_of(tmp_path: Path) -> None:
    full_suite(shop(tmp_path), seeds=(0, 1, 2))
    for seed, solved in enumerate((2, 4, 9)):
        corridor(tmp_path, "grpo", seed, solved=range(solved))
    (table, _), _ = aggregates.build(load(tmp_path))
    assert table.columns == ("method", "mode", "IQM", "mean", "WebShop (n=20)", "corridor (n=10)")
    iqm, mean, first, second = row(table, "GRPO")
    # 40, 45, 50 and 20, 40, 90: of six runs one is cut off at each end.
    assert (iqm.split(" ")[0], mean.split(" ")[0]) == ("43.8", "47.5")
    assert (first, second) == ("45.0 (3/3)", "50.0 (3/3)")


def test_p4_a_missing_benchmark_is_shown_and_leaves_no_aggregate(tmp_path: Path) -> None:
    full_suite(shop(tmp_path))
    corridor(tmp_path, "grpo", solved=range(4))
    (table, gains), _ = aggregates.build(load(tmp_path))
    assert row(table, "DAPO") == ["—", "—", "60.0 (1/1, n=1)", "—"]
    assert row(gains, "DAPO+EMPG over DAPO") == ["—", "100.0 (1/1 × 1/1 seeds)", "— (0/1 × 0/1 seeds)"]


def test_p4_a_missing_seed_is_shown_and_so_is_one_whose_environment_always_failed(tmp_path: Path) -> None:
    full_suite(shop(tmp_path), seeds=(0, 1, 2))
    corridor(tmp_path, "grpo", 0, solved=range(4))
    corridor(tmp_path, "grpo", 1, errored=dict.fromkeys(range(10), "down"))
    corridor(tmp_path, "grpo", 2, complete=False)
    corridor(tmp_path, "dapo", 1, complete=False)
    (table, _), _ = aggregates.build(load(tmp_path))
    assert row(table, "GRPO")[3] == "40.0 (1/3 seeds, n=1)"
    assert row(table, "DAPO")[3] == "(0/3 seeds)"


def test_the_improvement_of_a_change_is_counted_over_pairs_of_runs(tmp_path: Path) -> None:
    for seed, (plain, changed) in enumerate([(8, 9), (10, 10), (12, 20)]):
        add_run(shop(tmp_path), "grpo", seed, solved=range(plain))
        add_run(shop(tmp_path), "grpo+empg", seed, solved=range(changed))
    corridor(tmp_path, "grpo", solved=range(4))
    corridor(tmp_path, "grpo+empg", solved=range(3))
    (_, gains), _ = aggregates.build(load(tmp_path))
    # 9 beats one of 8, 10, 12; 10 beats one and equals one; 20 beats three: 5.5 of 9. The corridor is lost.
    whole, first, second = row(gains, "GRPO+EMPG over GRPO")
    assert whole.split(" ")[0] == "30.6"
    assert (first, second) == ("61.1 (3/3 × 3/3 seeds)", "0.0 (1/1 × 1/1 seeds)")


def test_p4_the_notes_state_unit_n_last_iterate_and_what_one_seed_cannot_cover(tmp_path: Path) -> None:
    for seed in (0, 1):
        add_run(shop(tmp_path), "grpo", seed, solved=range(8))
        add_run(shop(tmp_path), "grpo+empg", seed, solved=range(9))
    corridor(tmp_path, "grpo")
    corridor(tmp_path, "grpo+empg")
    for table in aggregates.build(load(tmp_path))[0]:
        for wanted in (
            "Last checkpoint of every run; none is chosen by its test results.",
            "Unit: tasks (WebShop 20, corridor 10), and training seeds where there are several",
            "With one seed (n=1: corridor) they cover which tasks were drawn, not how another training run",
        ):
            assert wanted in table.note


def test_nothing_is_said_of_one_seed_where_every_method_has_several(tmp_path: Path) -> None:
    add_run(shop(tmp_path), "warm-start", solved=range(3))  # one policy, which no seed trained
    for seed in (0, 1):
        add_run(shop(tmp_path), "grpo", seed, solved=range(8))
    (table, _), _ = aggregates.build([load_suite(shop(tmp_path))])
    assert "With one seed" not in table.note
    assert row(table, "warm start")[2] == "15.0 (1/1, n=1)"


def test_both_modes_stand_in_the_table_each_by_its_own_results(tmp_path: Path) -> None:
    add_run(shop(tmp_path), "grpo", solved={"sampled": range(5), "greedy": range(15)})
    (table, _), _ = aggregates.build([load_suite(shop(tmp_path))])
    assert row(table, "GRPO")[2] == "25.0 (1/1, n=1)"
    assert row(table, "GRPO", "greedy")[2] == "75.0 (1/1, n=1)"


def test_the_same_suites_give_the_same_bytes_as_markdown_latex_and_csv(tmp_path: Path) -> None:
    full_suite(shop(tmp_path), seeds=(0, 1))
    corridor(tmp_path, "grpo", solved=range(4))
    corridor(tmp_path, "grpo+empg", solved=range(5))
    _, files = aggregates.build(load(tmp_path))
    assert aggregates.build(load(tmp_path))[1] == files
    assert files.keys() == {"aggregates.md", "aggregates.tex", "aggregates.csv"}
    lines = list(csv.DictReader(io.StringIO(files["aggregates.csv"].decode())))
    (mean,) = [line for line in lines if (line["measure"], line["method"], line["mode"]) == MEAN]
    assert (mean["value"], mean["runs"]) == ("0.412500", "webshop 2/2; corridor 1/1")  # 42.5 and 40
    assert (mean["unit"], mean["tasks"], mean["seeds"]) == ("tasks and seeds", "30", "1")
    (gain,) = [line for line in lines if line["reference"] == "grpo" and line["mode"] == "sampled"]
    # 10 and 11 of 20 against 8 and 9, and 5 of 10 against 4: always ahead
    assert (gain["measure"], gain["value"]) == ("probability_of_improvement", "1.000000")
    assert gain["runs"] == "webshop 2/2 x 2/2; corridor 1/1 x 1/1"
    (dapo,) = [line for line in lines if (line["measure"], line["method"]) == ("iqm", "dapo")][:1]
    assert (dapo["value"], dapo["low"], dapo["runs"]) == ("", "", "webshop 2/2; corridor 0/1")
    assert b"webshop, test panel: 20 tasks" in files["aggregates.md"]


def test_the_published_aggregates_follow_from_the_published_records() -> None:
    suites = [replace(load_suite(PUBLISHED / name / "runs"), name=name) for name in aggregates.SUITES]
    for name, content in aggregates.build(suites)[1].items():
        assert content == (PUBLISHED / name).read_bytes(), name


def test_two_suites_of_one_benchmark_or_of_unequal_scale_are_refused_by_name(tmp_path: Path) -> None:
    full_suite(shop(tmp_path))
    full_suite(tmp_path / "webshop-official")
    corridor(tmp_path, "grpo", scale="smoke")
    with pytest.raises(RecordError, match="webshop and webshop-official are both WebShop"):
        aggregates.build([load_suite(tmp_path / name) for name in ("webshop", "webshop-official")])
    with pytest.raises(RecordError, match=r"unequal scale.*'webshop': .'default'.*'corridor': .'smoke'"):
        aggregates.build(load(tmp_path))
    with pytest.raises(ValueError, match="no suites"):
        aggregates.build([])
