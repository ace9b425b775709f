"""How an update changed entropies, by percentile of the entropy before it: the paper's Figure 3.

At step level, as the paper shows it, and at token level, from which the paper says that it differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.reporting.arrays import load_lists, load_numbers
from benchmarks.reporting.figures.arms import Arm, lacking
from benchmarks.reporting.figures.bins import Bins, bounds, means, middles, percentile_bins
from benchmarks.reporting.figures.rows import Piece, Rows, rows_of
from benchmarks.reporting.figures.style import GREY, Chart, band, key, legend, line, number, sentence
from benchmarks.reporting.load import Run
from benchmarks.reporting.paper import EntropyChangeBin
from benchmarks.reporting.stats import Array
from benchmarks.reporting.tables import csv_text

BINS = 20
Level = Literal["step", "token"]
COLUMNS = (
    "source", "level", "variant", "percentile_low", "percentile_high", "entropy_change", "sd", "lowest_seed",
    "highest_seed", "count", "seeds",
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """Mean change of entropy by percentile of initial entropy; arrays are [BINS], NaN for an empty bin."""

    arm: Arm
    level: Level
    seeds: int
    """Runs with a measurement."""
    lacking: tuple[Run, ...]
    """Runs without."""
    mean: Array
    """Nats, over all steps or tokens."""
    sd: Array
    """Over steps or tokens."""
    lowest: Array
    """Mean of the seed where it is lowest."""
    highest: Array
    count: NDArray[np.int64]
    """Steps or tokens."""
    groups: int
    """Recorded groups of episodes behind the tokens; 0 at step level."""


def step_change(arm: Arm) -> Change:
    """Of the steps that were scored again after their update."""
    return _change("step", rows_of(arm, lambda run: run.step_file, _steps).measured("entropy_after"))


def _steps(path: Path) -> Piece:
    return load_numbers(path, ("entropy",), nullable=("entropy_after",))


def token_change(arm: Arm) -> Change:
    """Of the tokens of the recorded groups that were scored again after their update."""
    return _change("token", rows_of(arm, lambda run: run.token_file, _tokens).measured("entropy_after"))


def _tokens(path: Path) -> Piece:
    """A row a token; `group` numbers the recorded groups of the run."""
    place, tokens, lengths = load_lists(
        path, ("iteration", "attempt", "group"), ("entropy", "entropy_after"), measured="entropy_after"
    )
    _, group = np.unique(np.stack(list(place.values())), axis=1, return_inverse=True)
    return {**tokens, "group": np.repeat(group.astype(np.float64), lengths)}


def _change(level: Level, rows: Rows) -> Change:
    before, after, run = rows.column("entropy"), rows.column("entropy_after"), rows.run_of_row()
    known = np.isfinite(after)
    before, change, run = before[known], (after - before)[known], run[known]
    bin_of = percentile_bins(before, BINS)
    mean, sd = means(change, bin_of, BINS)
    lowest, highest = _seed_range(change, bin_of, run, len(rows.arm.runs))
    groups = sum(np.unique(piece["group"]).size for piece in rows.pieces if piece and level == "token")
    count = np.bincount(bin_of, minlength=BINS)
    return Change(rows.arm, level, rows.seeds, tuple(rows.lacking), mean, sd, lowest, highest, count, groups)


def _seed_range(change: Array, bin_of: Bins, run: NDArray[np.int64], runs: int) -> tuple[Array, Array]:
    """Of each bin, the mean of the run where it is lowest and of the one where it is highest."""
    cell = run * BINS + bin_of
    count = np.bincount(cell, minlength=runs * BINS)
    total = np.bincount(cell, weights=change, minlength=runs * BINS)
    of_run = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0).reshape(runs, BINS)
    return np.fmin.reduce(of_run), np.fmax.reduce(of_run)


def chart(changes: Sequence[Change], paper: Sequence[EntropyChangeBin], about: str) -> Chart | None:
    """Our changes at each level that was measured, beside the paper's bars; None where none was."""
    found = [one for one in changes if one.seeds]
    levels = [level for level in get_args(Level) if any(one.level == level for one in found)]
    if not levels:
        return None

    def draw(figure: Figure) -> None:
        *own, theirs = figure.subplots(1, len(levels) + 1)
        for axes, level in zip(own, levels, strict=True):
            _draw_level(axes, level, [one for one in found if one.level == level])
        low, width = [bar.low for bar in paper], [bar.high - bar.low for bar in paper]
        theirs.bar(low, [bar.change for bar in paper], width, align="edge", fill=False, edgecolor=GREY)
        theirs.set_title("Paper, Figure 3 (ALFWorld, after RL)")
        theirs.set(xlabel="percentile of step entropy before", ylabel="average change (unit not stated)")
        theirs.set_xlim(0, 100)
        arms = {one.arm.variant: one.arm for one in found}
        legend(figure, [key(arm.look, _name(arm, found)) for arm in arms.values()])

    return Chart(
        name="entropy_change",
        title="Entropy change by percentile of initial entropy",
        note=sentence(
            f"Mean change of entropy over one update, in {BINS} bins of equally many steps or tokens by their "
            "entropy before; band: lowest to highest seed. The scales of the panels differ.",
            *(_missing(level, [one for one in changes if one.level == level]) for level in get_args(Level)),
            about,
        ),
        csv=_csv(found, paper),
        draw=draw,
        size=(3.4 * (len(levels) + 1), 4.2),
    )


def _missing(level: Level, changes: Sequence[Change]) -> str:
    if not any(one.seeds for one in changes):
        return f"{level.capitalize()} level: not recorded."
    which = "Token level: the tokens of some recorded groups." if level == "token" else ""
    return (
        f"{which} {lacking(f'{level.capitalize()} level', (run for one in changes for run in one.lacking))}"
    )


def _draw_level(axes: Axes, level: Level, changes: Sequence[Change]) -> None:
    for one in changes:
        line(axes, middles(BINS), one.mean, one.arm.look)
        if one.seeds > 1:
            band(axes, middles(BINS), one.lowest, one.highest, one.arm.look)
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.set_title(f"Ours, {level} level")
    axes.set(
        xlabel=f"percentile of {level} entropy before", ylabel="entropy after − before (nats)", xlim=(0, 100)
    )


def _name(arm: Arm, changes: Sequence[Change]) -> str:
    """`GRPO (n=3 seeds): 2,303 steps, 41,020 tokens of 24 groups`."""
    counts = []
    for one in changes:
        if one.arm is arm:
            behind = f" of {one.groups:,} groups" if one.level == "token" else ""
            counts.append(f"{int(one.count.sum()):,} {one.level}s{behind}")
    return f"{arm.name}: {', '.join(counts)}"


def _csv(changes: Sequence[Change], paper: Sequence[EntropyChangeBin]) -> str:
    """Bins of every variant and level in nats, then the paper's bars."""
    lines: list[Sequence[object]] = []
    for one in changes:
        arrays = one.mean, one.sd, one.lowest, one.highest
        for place, (low, high) in enumerate(bounds(BINS)):
            values = [number(values[place]) for values in arrays]
            lines.append(
                ("ours", one.level, one.arm.variant, low, high, *values, one.count[place], one.seeds)
            )
    lines += [
        (
            "paper",
            "step",
            "not stated",
            f"{bar.low:g}",
            f"{bar.high:g}",
            f"{bar.change:g}",
            "",
            "",
            "",
            "",
            "",
        )
        for bar in paper
    ]
    return csv_text(COLUMNS, lines)
