"""Learning curves of both sides of a comparison: what they show, and where they stop."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from benchmarks.reporting.compare import Comparison, Side, compare
from benchmarks.reporting.compare_figure import learning_chart
from benchmarks.reporting.compare_report import contents
from benchmarks.reporting.figures.curves import RAGGED
from benchmarks.reporting.figures.style import Chart
from benchmarks.reporting.load import load_suite
from tests.benchmarks.report_runs import add_run


def between(folder: Path) -> Comparison:
    return compare(*(Side(side, load_suite(folder / side)) for side in ("a", "b")), {})


def chart_of(folder: Path) -> Chart:
    chart = learning_chart(between(folder))
    assert chart is not None
    return chart


def drawn(chart: Chart) -> Figure:
    figure = Figure(layout="constrained")
    chart.draw(figure)
    return figure


def rows(chart: Chart) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(chart.csv)))


def test_both_sides_share_an_axis_with_every_raw_point_and_a_mean_that_ends_with_the_shortest_run(
    tmp_path: Path,
) -> None:
    add_run(tmp_path / "a", "grpo", 0, iterations=range(3), success=(0.1, 0.2, 0.3))
    add_run(tmp_path / "a", "grpo", 1, iterations=range(2), success=(0.3, 0.4))
    for seed in (0, 1):
        add_run(tmp_path / "b", "grpo+empg", seed, iterations=range(3), success=(0.5, 0.6, 0.7))
    chart = chart_of(tmp_path)
    points = {(row["variant"], row["seed"], row["iteration"]): row["success"] for row in rows(chart)}
    assert points["A: grpo", "0", "2"] == "0.3"
    assert points["B: grpo+empg", "1", "2"] == "0.7"
    assert [row["mean_over_seeds"] for row in rows(chart) if row["variant"] == "A: grpo" and row["seed"] == "0"] == [
        "0.2", "0.3", "",
    ]  # fmt: skip
    figure = drawn(chart)
    (axes,) = figure.axes
    lengths = sorted(len(line.get_xdata()) for line in axes.lines)
    # Two raw lines and the mean of each side; that of A ends at its second point.
    assert len(axes.lines) == 6
    assert lengths == [2, 3, 3, 3, 3, 3]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == [f"A: GRPO (n=2 seeds); {RAGGED}", "B: GRPO+EMPG (n=2 seeds)"]


def test_seeds_that_are_not_compared_are_not_drawn(tmp_path: Path) -> None:
    for seed in (0, 1):
        add_run(tmp_path / "a", "grpo", seed)
    add_run(tmp_path / "b", "dapo", 1)
    assert {(row["variant"], row["seed"]) for row in rows(chart_of(tmp_path))} == {
        ("A: grpo", "1"),
        ("B: dapo", "1"),
    }


def test_the_same_variant_on_both_sides_is_drawn_in_two_ways_each_pair_on_its_own_axis(
    tmp_path: Path,
) -> None:
    for side in ("a", "b"):
        for variant in ("grpo", "dapo", "dapo+empg", "warm-start"):
            add_run(tmp_path / side, variant)
    figure = drawn(chart_of(tmp_path))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == ["GRPO", "DAPO", "DAPO+EMPG"]
    for axes in shown:
        colours = [line.get_color() for line in axes.lines]
        assert len(colours) == len(set(colours)) == 2


def test_a_side_that_was_not_trained_has_no_curve(tmp_path: Path) -> None:
    add_run(tmp_path / "a", "warm-start")
    add_run(tmp_path / "b", "grpo")
    assert {row["variant"] for row in rows(chart_of(tmp_path))} == {"B: grpo"}
    add_run(tmp_path / "none" / "a", "warm-start")
    add_run(tmp_path / "none" / "b", "expert")
    assert learning_chart(between(tmp_path / "none")) is None


@pytest.mark.parametrize("variant", ["$x$ & _y", "a\x1b[31m\nb"])
def test_a_foreign_name_is_drawn_and_written_as_it_is_on_one_line(tmp_path: Path, variant: str) -> None:
    add_run(tmp_path / "a", "grpo")
    folder = add_run(tmp_path / "b", "dapo")
    record = (folder / "run.json").read_text()
    encoded = variant.replace("\x1b", "\\u001b").replace("\n", "\\n")
    (folder / "run.json").write_text(record.replace('"variant": "dapo"', f'"variant": "{encoded}"'))
    files = chart_of(tmp_path).files()
    assert set(files) == {"learning.csv", "learning.png", "learning.svg"}
    for name in ("learning.csv", "learning.svg"):
        assert b"\x1b" not in files[name]
    assert files == chart_of(tmp_path).files()


def test_the_figure_stands_in_the_text_and_its_files_beside_it(tmp_path: Path) -> None:
    add_run(tmp_path / "a", "grpo")
    add_run(tmp_path / "b", "dapo")
    files = contents(between(tmp_path), ())
    assert "](learning.png)" in files["compare.md"].decode()
    assert {"learning.csv", "learning.png", "learning.svg"} <= files.keys()
