"""The learning curves of both sides of a comparison: those of a pair share one axis."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.reporting.compare import Comparison, Pair
from benchmarks.reporting.figures.arms import Arm
from benchmarks.reporting.figures.curves import WHEN, Curve, curve_csv, success
from benchmarks.reporting.figures.style import (
    Chart,
    band,
    key,
    legend,
    line,
    looks,
    raw_lines,
    sentence,
    whole_numbers,
)
from benchmarks.reporting.outcomes import label
from benchmarks.reporting.tables import one_line

COLUMNS = 2
PANEL = (8.0, 4.8)
"""Width and height of a single one in inches."""


def learning_chart(found: Comparison) -> Chart | None:
    """Success in training of the compared seeds, a panel for each pair; None where neither side was trained."""
    panels = [(_title(pair), curves) for pair in found.pairs if (curves := _curves(pair))]
    if not panels:
        return None
    shown = [one for _, curves in panels for one in curves]
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
        for axes, (title, curves) in zip(grid, panels, strict=False):
            _draw_panel(axes, curves)
            axes.set_title(title)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        legend(figure, [key(one.arm.look, one.name) for one in shown])

    return Chart(
        name="learning",
        title="Success in training of A and B",
        note=sentence(
            f"{WHEN} Only seeds that are compared. Line: mean over seeds as far as all of them went; where there are "
            "several, pale: raw points of each, and band: lowest to highest. Nothing is smoothed."
        ),
        csv=curve_csv(shown, "success"),
        draw=draw,
        size=(PANEL[0] * (1 if columns == 1 else 1.5), PANEL[1] * (0.5 + 0.5 * rows)),
    )


def _title(pair: Pair) -> str:
    return one_line(" and ".join(dict.fromkeys(map(label, pair.variants))))


def _curves(pair: Pair) -> list[Curve]:
    """Of its trained sides; B is drawn as another variant where it is the same one as A."""
    a, b = pair.variants
    known = looks([a, b if a != b else f"B: {b}"]).values()
    return [
        success(
            Arm(f"{letter}: {one_line(name)}", f"{letter}: {one_line(label(name))}", runs, len(runs), look)
        )
        for letter, name, runs, look in zip("AB", pair.variants, (pair.a, pair.b), known, strict=True)
        if runs[0].info.kind == "train"
    ]


def _draw_panel(axes: Axes, curves: Sequence[Curve]) -> None:
    for one in curves:
        values, look = 100 * one.values, one.arm.look
        reached, shared = one.iterations[: one.common], values[:, : one.common]
        raw_lines(axes, [one.iterations] * len(values), values, look)
        if len(values) > 1:
            band(axes, reached, shared.min(axis=0), shared.max(axis=0), look)
        line(axes, reached, 100 * one.mean, look)
    axes.set(xlabel="iteration", ylabel="success in training (%)", ylim=(0.0, None))
    whole_numbers(axes)
