"""The figure over all benchmarks: our averages beside the paper's, each with its model."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from benchmarks.reporting import figures, stats
from benchmarks.reporting.figures import bars
from benchmarks.reporting.figures.style import Chart
from benchmarks.reporting.load import load_suite
from tests.benchmarks.report_runs import add_run, full_suite


def overview(*suites: Path) -> Chart:
    return bars.chart([load_suite(suite) for suite in suites])


def rows(chart: Chart, **wanted: str) -> list[dict[str, str]]:
    found = csv.DictReader(io.StringIO(chart.csv))
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def drawn(chart: Chart) -> Figure:
    figure = Figure()
    chart.draw(figure)
    return figure


def texts(chart: Chart) -> list[str]:
    return [text.get_text() for text in drawn(chart).findobj(Text)]


def test_our_average_has_the_wilson_interval_over_tasks_in_percent(tmp_path: Path) -> None:
    chart = overview(full_suite(tmp_path / "webshop", seeds=(0, 1)))
    (row,) = rows(chart, source="ours", suite="webshop", method="grpo")
    expected = stats.wilson(0.425, 20)  # 8 and 9 of 20
    assert (row["success_percent"], row["tasks"], row["seeds"]) == ("42.5", "20", "2")
    assert (float(row["low"]), float(row["high"])) == (
        pytest.approx(100 * expected.low), pytest.approx(100 * expected.high),
    )  # fmt: skip
    assert row["interval"] == "Wilson 95% over tasks"


def test_the_papers_averages_are_those_of_its_tables_with_model_std_and_seeds(tmp_path: Path) -> None:
    chart = overview(full_suite(tmp_path / "webshop"))
    (shop,) = rows(chart, benchmark="WebShop", model="Qwen2.5-7B", method="dapo+empg")
    assert (shop["success_percent"], shop["low"], shop["high"], shop["seeds"]) == (
        "82.7",
        "81.7",
        "83.7",
        "3",
    )
    (search,) = rows(chart, benchmark="Deep Search", model="Qwen2.5-32B", method="dapo+empg")
    assert (search["success_percent"], search["low"], search["high"], search["seeds"]) == ("65.3", "", "", "")
    (house,) = rows(chart, benchmark="ALFWorld", model="Qwen2.5-1.5B", method="grpo")
    assert house["success_percent"] == "65.6"


def test_every_group_of_bars_is_labelled_with_its_model(tmp_path: Path) -> None:
    shown = texts(overview(full_suite(tmp_path / "webshop", seeds=(0, 1))))
    assert "ours, n=2 seeds\n0.664M params" in shown
    for base in ("Qwen2.5-1.5B", "Qwen2.5-7B"):
        assert f"paper, n=3 seeds\n{base}" in shown
    assert "paper\nQwen2.5-32B" in shown


def test_a_benchmark_without_a_suite_is_marked_as_missing_beside_the_papers_bars(tmp_path: Path) -> None:
    chart = overview(full_suite(tmp_path / "webshop"))
    found = rows(chart, benchmark="ALFWorld", source="ours")
    assert {(row["success_percent"], row["interval"]) for row in found} == {("", "no result")}
    house, shop, search = drawn(chart).axes
    assert house.get_title("left") == "ALFWorld: no results of ours"
    assert search.get_title("left") == "Deep Search: no results of ours"
    assert [text.get_text() for text in house.texts].count("—") == 4
    assert [text.get_text() for text in shop.texts].count("—") == 0
    assert len(house.patches) == 8


def test_a_variant_without_a_complete_run_is_a_dash_and_not_a_bar_of_zero(tmp_path: Path) -> None:
    add_run(tmp_path / "webshop", "grpo", solved=range(8))
    add_run(tmp_path / "webshop", "dapo", complete=False)
    chart = overview(tmp_path / "webshop")
    shop = drawn(chart).axes[1]
    assert [text.get_text() for text in shop.texts].count("—") == 3
    assert len(shop.patches) == 1 + 8
    (row,) = rows(chart, suite="webshop", method="dapo")
    assert row["interval"] == "no result"


def test_a_success_of_zero_is_a_bar_and_not_a_dash(tmp_path: Path) -> None:
    add_run(tmp_path / "webshop", "grpo", solved=())
    (row,) = rows(overview(tmp_path / "webshop"), suite="webshop", method="grpo")
    assert (row["success_percent"], row["low"]) == ("0", "0")


def test_missing_seeds_are_named(tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        add_run(tmp_path / "webshop", "grpo", seed, solved=range(8))
        add_run(tmp_path / "webshop", "dapo", seed, solved=range(8), complete=seed < 2)
    chart = overview(tmp_path / "webshop")
    assert "webshop: DAPO (2/3 seeds)." in chart.note
    assert "ours, n=2–3 seeds\n0.664M params" in texts(chart)


def test_each_suite_of_a_benchmark_has_its_own_panel_and_none_are_mixed(tmp_path: Path) -> None:
    small, large = full_suite(tmp_path / "webshop"), tmp_path / "webshop-large"
    add_run(large, "grpo", solved=range(12), policy={"parameters": 7_000_000_000})
    chart = overview(small, large)
    headings = [axes.get_title("left") for axes in drawn(chart).axes]
    assert [heading.split(",")[0] for heading in headings[1:3]] == [
        "WebShop: suite webshop", "WebShop: suite webshop-large",
    ]  # fmt: skip
    models = {row["suite"]: row["model"] for row in rows(chart, source="ours", benchmark="WebShop")}
    assert models == {"webshop": "0.664M params", "webshop-large": "7B params"}


def test_a_benchmark_that_the_paper_does_not_have_stands_alone(tmp_path: Path) -> None:
    add_run(tmp_path / "maze", "grpo", solved=range(8), config={"benchmark": "corridor"})
    chart = overview(tmp_path / "maze")
    assert {row["source"] for row in rows(chart, benchmark="corridor")} == {"ours"}
    assert drawn(chart).axes[-1].get_title("left").startswith("corridor: suite maze")


def test_the_note_keeps_the_two_kinds_of_whisker_apart_and_corrects_the_papers_label(tmp_path: Path) -> None:
    note = overview(full_suite(tmp_path / "webshop")).note
    assert "95% Wilson interval over tasks" in note
    assert "± std over 3 seeds" in note
    assert "the levels are not comparable" in note
    assert "calls 62.0 and 65.3 OOD; they are the overall averages of its Table 2" in note


def test_the_overview_is_written_and_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    suites = [load_suite(full_suite(tmp_path / "webshop"))]
    files = figures.build_overview(suites)
    assert tuple(files) == figures.OVERVIEW_FILES
    assert figures.build_overview(suites) == files
