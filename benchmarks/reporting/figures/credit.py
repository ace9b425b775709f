"""Where EMPG puts the credit: g, f of the next step and the final advantage, by percentile of step entropy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.reporting.arrays import load_numbers
from benchmarks.reporting.figures.arms import Arm, lacking
from benchmarks.reporting.figures.bins import Bins, bounds, middles, percentile_bins, quantiles
from benchmarks.reporting.figures.rows import Piece, Rows, rows_of
from benchmarks.reporting.figures.style import GREY, Chart, Look, band, key, legend, line, number, sentence
from benchmarks.reporting.load import Run
from benchmarks.reporting.stats import Array
from benchmarks.reporting.tables import csv_text

BINS = 20
COLUMNS = ("entropy", "g", "f", "raw_advantage", "advantage")
SIGNS = {"above 0": 1, "below 0": -1, "0": 0}
"""Of the raw advantage: better than its group, worse than it, in a group of equal outcomes."""
SIGN_LOOKS = {
    "above 0": Look("#0072B2", "-", "^", ""),
    "below 0": Look("#D55E00", "--", "v", "//"),
    "0": Look("#8C8C8C", ":", "o", ".."),
}
PANELS = {"g": "g(H)", "f": "f(H of the next step)", "advantage": "final advantage"}
QUANTITY_LOOK = Look("#000000", "-", "o", "")


@dataclass(frozen=True)
class Spread:
    """How a quantity is spread over the steps of each bin."""

    quantity: str
    """`g`, `f`, `advantage`, or `raw_advantage` for comparison."""
    sign: str
    """Of the raw advantage; empty for all steps together."""
    quartiles: Array
    """[BINS, 3]: lower quartile, median, upper quartile; NaN for an empty bin."""
    count: NDArray[np.int64]
    """[BINS] steps."""


@dataclass(frozen=True)
class Credit:
    """The credit of one variant."""

    arm: Arm
    seeds: int
    """Runs with a step table."""
    spreads: tuple[Spread, ...]
    entropy: Array
    """[BINS] mean step entropy (nats)."""
    steps: int
    last: int
    """Steps without a next one, which get no bonus; all of them where the bonus is off."""


def steps_of(arm: Arm) -> Rows:
    """The steps that a variant trained on; at millions of them, those of one variant at a time are to be held."""
    return rows_of(arm, lambda run: run.step_file, lambda path: load_numbers(path, COLUMNS))


def credit(rows: Rows) -> Credit | None:
    """Of a variant's steps; None where every g is 1 and every f is 0: EMPG is off."""
    if all(piece is None or _is_off(piece) for piece in rows.pieces):
        return None
    entropy = rows.column("entropy")
    bin_of = percentile_bins(entropy, BINS)
    total, count = np.bincount(bin_of, weights=entropy, minlength=BINS), np.bincount(bin_of, minlength=BINS)
    mean = np.divide(total, count, out=np.full(BINS, np.nan), where=count > 0)
    del entropy  # one quantity after the other in memory
    spreads = [_spread("g", "", rows.column("g"), bin_of)]
    f = rows.column("f")
    followed = f > 0.0  # f is exp(-k' Hn): 0 only where no step follows, or where the bonus is off
    spreads.append(_spread("f", "", f[followed], bin_of[followed]))
    del f
    sign = np.sign(rows.column("raw_advantage")).astype(np.int8)
    for quantity in ("advantage", "raw_advantage"):
        values = rows.column(quantity)
        for name, chosen in ((name, sign == of) for name, of in SIGNS.items()):
            spreads.append(_spread(quantity, name, values[chosen], bin_of[chosen]))
    last = int((~followed).sum())
    return Credit(rows.arm, rows.seeds, tuple(spreads), mean, sign.size, last)


def _is_off(steps: Piece) -> bool:
    return bool(np.all(steps["g"] == 1.0) and np.all(steps["f"] == 0.0))


def _spread(quantity: str, sign: str, values: Array, bin_of: Bins) -> Spread:
    return Spread(quantity, sign, quantiles(values, bin_of, BINS), np.bincount(bin_of, minlength=BINS))


def chart(credits: Sequence[Credit], unrecorded: Sequence[Run], about: str) -> Chart | None:
    """A row of panels for each variant with EMPG, None where there is none; `unrecorded` are runs without steps."""
    if not credits:
        return None

    def draw(figure: Figure) -> None:
        grid = figure.subplots(len(credits), len(PANELS), sharex=True, sharey="col", squeeze=False)
        for line_of, one in zip(grid, credits, strict=True):
            for axes, quantity in zip(line_of, PANELS, strict=True):
                _draw_panel(axes, one, quantity)
            name = one.arm.name.replace(" (", "\n(")
            line_of[0].set_ylabel(f"{name}\n{one.steps:,} steps", fontsize="small")
        for axes, heading in zip(grid[0], PANELS.values(), strict=True):
            axes.set_title(heading)
        for axes in grid[-1]:
            axes.set(xlabel="percentile of step entropy", xlim=(0, 100))
        legend(figure, [key(look, f"raw advantage {sign}") for sign, look in SIGN_LOOKS.items()])

    return Chart(
        name="credit",
        title="Credit by step entropy",
        note=sentence(
            f"Steps of all runs and iterations of a variant in {BINS} bins of equally many by their entropy H. "
            "Line: median; area: between the quartiles. f: steps that another follows; the last step of an "
            "episode gets none. Final advantage: A g(H) + ζ f(H of the next step), centred, split by the sign of "
            "the raw advantage A (better or worse than its group, or 0 in a group of equal outcomes); thin lines: "
            "median of A itself.",
            lacking("Steps", unrecorded),
            about,
        ),
        csv=_csv(credits),
        draw=draw,
        size=(9.6, 1.9 + 2.3 * len(credits)),
    )


def _draw_panel(axes: Axes, one: Credit, quantity: str) -> None:
    drawn = [spread for spread in one.spreads if spread.quantity == quantity]
    if not any(spread.count.any() for spread in drawn):
        axes.text(0.5, 0.5, "off", transform=axes.transAxes, ha="center", va="center", color=GREY)
    for spread in drawn:
        look = SIGN_LOOKS.get(spread.sign, QUANTITY_LOOK)
        low, median, high = spread.quartiles.T
        band(axes, middles(BINS), low, high, look)
        line(axes, middles(BINS), median, look, markersize=3)
    for spread in one.spreads if quantity == "advantage" else ():
        if spread.quantity == "raw_advantage":
            look = SIGN_LOOKS[spread.sign]
            axes.plot(middles(BINS), spread.quartiles[:, 1], color=look.colour, linewidth=0.7)
    if quantity != "f":
        axes.axhline(1.0 if quantity == "g" else 0.0, color=GREY, linewidth=0.8)


def _csv(credits: Sequence[Credit]) -> str:
    lines = [row for one in credits for spread in one.spreads for row in _lines(one, spread)]
    columns = (
        "variant", "quantity", "raw_advantage_sign", "percentile_low", "percentile_high", "mean_entropy",
        "lower_quartile", "median", "upper_quartile", "steps", "seeds",
    )  # fmt: skip
    return csv_text(columns, lines)


def _lines(one: Credit, spread: Spread) -> Iterator[Sequence[object]]:
    for place, (low, high) in enumerate(bounds(BINS)):
        quartiles = [number(value) for value in spread.quartiles[place]]
        yield (
            one.arm.variant, spread.quantity, spread.sign or "any", low, high, number(one.entropy[place]),
            *quartiles, spread.count[place], one.seeds,
        )  # fmt: skip
