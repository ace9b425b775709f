"""Figures and the data they show: the data is computed first, written as CSV, and drawn exactly as written.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; line style and marker repeat the
distinction for print. PNG files carry no date or version, so equal records give equal bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from benchmarks.reporting.load import Run
from benchmarks.reporting.outcomes import label
from benchmarks.reporting.paper import EntropyChangeBin
from benchmarks.reporting.schema import IterationRow
from benchmarks.reporting.stats import Array
from benchmarks.reporting.tables import csv_text, one_line

BINS = 20
DPI = 150
RAGGED = "stops at the shortest run"


@dataclass(frozen=True)
class Look:
    """How a variant is drawn in every figure."""

    colour: str
    line: str
    marker: str
    hatch: str


LOOKS: Mapping[str, Look] = {
    "grpo": Look("#0072B2", "-", "o", ""),
    "grpo+empg": Look("#D55E00", "--", "s", "//"),
    "dapo": Look("#009E73", "-.", "^", ".."),
    "dapo+empg": Look("#CC79A7", ":", "D", "xx"),
}
SPARE_LOOKS = (
    Look("#E69F00", "-", "v", "\\\\"),
    Look("#56B4E9", "--", "P", "++"),
    Look("#000000", "-.", "X", "--"),
    Look("#8C8C8C", ":", "*", "oo"),
)


@dataclass(frozen=True)
class Curve:
    """One quantity of one variant by iteration, over its seeds."""

    variant: str
    seeds: tuple[int, ...]
    iterations: tuple[int, ...]
    """All from the first to the last that any run logged."""
    values: Array
    """[seeds, iterations]; NaN where a run has no value, so that a gap in its record stays a gap."""
    common: int
    """How many iterations every seed reached; the mean and the band end there."""

    @property
    def ragged(self) -> bool:
        """Whether some seed went further than another."""
        return self.common < len(self.iterations)

    @property
    def mean(self) -> Array:
        """[common]: mean over seeds, NaN where any seed has no value."""
        return np.asarray(self.values[:, : self.common].mean(axis=0))


@dataclass(frozen=True)
class EntropyBins:
    """Mean change of step entropy by percentile of initial step entropy."""

    variant: str
    seeds: int
    change: Array
    """[BINS] nats; NaN for an empty bin."""
    sd: Array
    """[BINS]: standard deviation over steps."""
    count: NDArray[np.int64]
    """[BINS] steps."""


def curve(runs: Sequence[Run], value: Callable[[IterationRow], float | None]) -> Curve:
    """A quantity of `metrics.jsonl` over the runs of one variant."""
    logged = {row.iteration for run in runs for row in run.metrics}
    iterations = range(min(logged, default=0), max(logged, default=-1) + 1)
    place = {iteration: column for column, iteration in enumerate(iterations)}
    values = np.full((len(runs), len(iterations)), np.nan)
    for line, run in enumerate(runs):
        for row in run.metrics:
            if (found := value(row)) is not None:
                values[line, place[row.iteration]] = found
    ends = [place[run.metrics[-1].iteration] + 1 if run.metrics else 0 for run in runs]
    return Curve(
        runs[0].info.variant, tuple(run.info.seed for run in runs), tuple(iterations), values, min(ends)
    )


def entropy_bins(variant: str, seeds: int, before: Array, after: Array) -> EntropyBins:
    """Bin steps by the percentile of their entropy before the update; both arrays are [steps] in nats.

    Equal entropies share their mean rank and so fall into one bin, whatever the order of the rows.
    """
    known = np.isfinite(before) & np.isfinite(after)
    before, change = before[known], after[known] - before[known]
    percentile = (scipy_stats.rankdata(before) - 0.5) / max(before.size, 1)
    bins = np.minimum((percentile * BINS).astype(np.int64), BINS - 1)
    count = np.bincount(bins, minlength=BINS)
    mean, sd = np.full(BINS, np.nan), np.full(BINS, np.nan)
    for one in np.flatnonzero(count):
        values = change[bins == one]
        mean[one] = values.mean()
        sd[one] = values.std(ddof=1) if values.size > 1 else np.nan
    return EntropyBins(variant, seeds, mean, sd, count)


def curve_csv(curves: Sequence[Curve], quantity: str) -> str:
    """Every raw point, and the mean over seeds where every seed has one."""
    lines: list[Sequence[object]] = []
    for one in curves:
        mean = one.mean
        for column, iteration in enumerate(one.iterations):
            shared = column < one.common
            average = _number(mean[column]) if shared else ""
            for seed, value in zip(one.seeds, one.values[:, column], strict=True):
                lines.append(
                    (one.variant, seed, iteration, _number(value), average, "yes" if shared else "no")
                )
    return csv_text(
        ("variant", "seed", "iteration", quantity, "mean_over_seeds", "reached_by_all_seeds"), lines
    )


def entropy_csv(ours: Sequence[EntropyBins], paper: Sequence[EntropyChangeBin]) -> str:
    """Bins of every variant in nats, then the paper's bars."""
    lines: list[Sequence[object]] = []
    width = 100 // BINS
    for one in ours:
        for place in range(BINS):
            numbers = (_number(one.change[place]), _number(one.sd[place]), one.count[place], one.seeds)
            lines.append(("ours", one.variant, place * width, (place + 1) * width, *numbers))
    lines += [
        ("paper", "not stated", f"{bar.low:g}", f"{bar.high:g}", f"{bar.change:g}", "", "", "")
        for bar in paper
    ]
    columns = (
        "source",
        "variant",
        "percentile_low",
        "percentile_high",
        "entropy_change",
        "sd",
        "steps",
        "seeds",
    )
    return csv_text(columns, lines)


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.9g}"


def draw_kl(curves: Sequence[Curve]) -> bytes:
    """KL loss at every update, raw: each seed a line of its own, nothing smoothed."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for number, one in enumerate(curves):
            look = look_of(one.variant, number)
            for line, values in enumerate(one.values):
                name = _name(one.variant, len(one.seeds)) if line == 0 else None
                _line(axes, one.iterations, values, look, name)
        axes.set(xlabel="iteration", ylabel="KL loss (k3 to the warm start, nats per token)")
        axes.set_title("KL loss per update: raw points, one line per seed, same estimator for all")
        axes.set_ylim(bottom=0.0)
        axes.legend()

    return _png(draw, (8.0, 4.8))


def draw_learning(curves: Sequence[Curve]) -> bytes:
    """Success of all generated training episodes: mean over seeds, band from the lowest to the highest."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for number, one in enumerate(curves):
            look = look_of(one.variant, number)
            reached = one.iterations[: one.common]
            name = _name(one.variant, len(one.seeds)) + (f"; {RAGGED}" if one.ragged else "")
            _line(axes, reached, 100 * one.mean, look, name)
            if len(one.seeds) > 1:
                values = 100 * one.values[:, : one.common]
                axes.fill_between(
                    reached,
                    values.min(axis=0),
                    values.max(axis=0),
                    color=look.colour,
                    alpha=0.15,
                    linewidth=0,
                )
        axes.set(xlabel="iteration", ylabel="success in training (%)")
        axes.set_ylim(bottom=0.0)
        band = " Band: range over seeds." if any(len(one.seeds) > 1 for one in curves) else ""
        axes.set_title(f"Success of all generated training episodes.{band}")
        axes.legend()

    return _png(draw, (8.0, 4.8))


def draw_entropy(ours: Sequence[EntropyBins], paper: Sequence[EntropyChangeBin]) -> bytes:
    """Change of step entropy by percentile of initial step entropy, beside the paper's bars."""

    def draw(figure: Figure) -> None:
        own, theirs = figure.subplots(1, 2, width_ratios=(3, 2))
        middle = [(place + 0.5) * 100 / BINS for place in range(BINS)]
        for number, one in enumerate(ours):
            steps = f", {int(one.count.sum()):,} steps"
            _line(
                own, middle, one.change, look_of(one.variant, number), _name(one.variant, one.seeds) + steps
            )
        own.axhline(0.0, color="#404040", linewidth=0.8)
        own.set_title("Ours: mean change over one update round")
        own.set(xlabel="percentile of step entropy before", ylabel="entropy after − before (nats)")
        own.legend(fontsize="small")
        low, width = [bar.low for bar in paper], [bar.high - bar.low for bar in paper]
        theirs.bar(low, [bar.change for bar in paper], width, align="edge", fill=False, edgecolor="#404040")
        theirs.set_title("Paper, Figure 3 (ALFWorld, after RL)")
        theirs.set(xlabel="percentile of step entropy before", ylabel="average change (unit not stated)")
        for axes in (own, theirs):
            axes.set_xlim(0, 100)

    return _png(draw, (11.0, 4.8))


def look_of(variant: str, number: int) -> Look:
    """The fixed look of a known variant; others take the spare ones in turn."""
    return LOOKS.get(variant, SPARE_LOOKS[number % len(SPARE_LOOKS)])


def _line(axes: Axes, at: Sequence[float], values: Array, look: Look, name: str | None) -> None:
    every = max(1, len(at) // 20)
    if name is not None and not np.isfinite(values).any():
        name += ": no values"
    axes.plot(
        at, values, color=look.colour, linestyle=look.line, marker=look.marker, markersize=4, markevery=every,
        linewidth=1.4, label=name,
    )  # fmt: skip


def _name(variant: str, seeds: int) -> str:
    # A dollar sign would start a formula.
    return f"{one_line(label(variant))} (n={seeds} {'seed' if seeds == 1 else 'seeds'})".replace("$", r"\$")


def _png(draw: Callable[[Figure], None], size: tuple[float, float]) -> bytes:
    """Draw under matplotlib's own defaults, so that a user's settings change no byte."""
    with matplotlib.style.context("default"):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        for axes in figure.axes:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.grid(color="#DDDDDD", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return out.getvalue()
