"""Gradient norms against Rényi-2 entropy on the policy in training: the paper's Proposition 1 on real batches.

The proposition is about one token and the gradient with respect to its logits z, on average over the action:
E ||grad_z log pi(a)||² = 1 - exp(-H2). Records hold means over a step's tokens of the sampled value and of that
expectation, so what can be checked is their difference. Each token's difference has mean 0 whatever came before it;
therefore the sum over all tokens of a policy's steps has mean 0 exactly, and a mean over tokens does so as nearly as
their number is known. A plain mean over steps does not, since the tokens of a step decide how many follow, and so
steps are weighted by their tokens here. Differences of different tokens are uncorrelated; intervals treat a
trajectory as the unit all the same. The proposition says nothing about the gradient of the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from benchmarks.reporting.arrays import load_numbers
from benchmarks.reporting.figures.arms import Arm, lacking
from benchmarks.reporting.figures.bins import Bins, bounds, percentile_bins, quantiles
from benchmarks.reporting.figures.rows import Piece, Rows, rows_of
from benchmarks.reporting.figures.style import (
    GREY,
    Chart,
    band,
    key,
    legend,
    line,
    listed,
    log_scale,
    number,
    sentence,
)
from benchmarks.reporting.stats import CONFIDENCE, Array, Interval
from benchmarks.reporting.tables import csv_text

BINS = 10
SMALL = 1e-4
"""Nats; smaller entropies are drawn there, on an axis that cannot show 0."""
TRAJECTORY = ("iteration", "attempt", "group", "sample")
VALUES = ("tokens", "renyi2", "logit_gradient_sq", "logit_gradient_expected", "gradient_norm")


@dataclass(frozen=True)
class Probes:
    """The probed steps of one variant; arrays are [BINS] by percentile of the steps' Rényi-2 entropy."""

    rows: Rows
    iterations: tuple[int, ...]
    tokens: int
    overall: Interval
    """Squared norm of the sampled actions' logit gradients minus its expectation: mean over all tokens."""
    rank: float
    """Spearman's correlation of a step's gradient norm with its Rényi-2 entropy; NaN where either is constant."""
    renyi2: Array
    """Nats; this and the next two are means over the tokens of the bin's steps."""
    sampled: Array
    """Squared norm of the logit gradient of the actions that were sampled."""
    expected: Array
    """1 - exp(-H2)."""
    differences: tuple[Interval | None, ...]
    """Sampled minus expected; None for an empty bin."""
    norm: Array
    """[BINS, 3]: quartiles over steps of the L2 norm of the gradient with respect to the parameters."""
    count: NDArray[np.int64]
    """Steps."""

    @property
    def arm(self) -> Arm:
        """The variant."""
        return self.rows.arm

    @property
    def at(self) -> Array:
        """Where each bin is drawn."""
        return np.maximum(self.renyi2, SMALL)


def probed(arm: Arm) -> Rows:
    """The probed steps of a variant."""
    return rows_of(arm, lambda run: run.gradient_file, _load)


def _load(path: Path) -> Piece:
    return load_numbers(path, (*TRAJECTORY, *VALUES))


def probes(rows: Rows) -> Probes:
    """Summarise probed steps, at least one."""
    tokens, renyi2, sampled, expected, norm = (rows.column(name) for name in VALUES)
    places = np.stack([rows.run_of_row(), *(rows.column(name) for name in TRAJECTORY)])
    _, trajectory = np.unique(places, axis=1, return_inverse=True)
    bin_of = percentile_bins(renyi2, BINS)
    per_token = [_weighted(values, tokens, bin_of) for values in (renyi2, sampled, expected)]
    chosen = [bin_of == place for place in range(BINS)]
    difference = sampled - expected
    return Probes(
        rows=rows,
        iterations=tuple(map(int, np.unique(rows.column("iteration")))),
        tokens=int(tokens.sum()),
        overall=mean_over_tokens(difference, tokens, trajectory),
        rank=_rank_correlation(renyi2, norm),
        renyi2=per_token[0],
        sampled=per_token[1],
        expected=per_token[2],
        differences=tuple(
            mean_over_tokens(difference[of], tokens[of], trajectory[of]) if of.any() else None
            for of in chosen
        ),
        norm=quantiles(norm, bin_of, BINS),
        count=np.bincount(bin_of, minlength=BINS),
    )


def mean_over_tokens(values: Array, tokens: Array, trajectory: NDArray[np.int64]) -> Interval:
    """Mean of step values weighted by their tokens, with a 95% interval; all arguments are [steps], at least one.

    The interval is Student's t for a ratio of sums over trajectories (linearised); with a single one it is NaN.
    """
    _, place = np.unique(trajectory, return_inverse=True)
    total = float(tokens.sum())
    mean = float(values @ tokens) / total
    of_trajectory = np.bincount(place, weights=tokens * (values - mean))
    n = of_trajectory.size
    half = math.nan
    if n > 1:
        error = math.sqrt(n / (n - 1) * float(of_trajectory @ of_trajectory)) / total
        half = float(scipy_stats.t.ppf(0.5 + CONFIDENCE / 2, n - 1)) * error
    return Interval(mean, mean - half, mean + half, "Student t", "trajectories", n)


def _weighted(values: Array, weights: Array, bin_of: Bins) -> Array:
    total = np.bincount(bin_of, weights=values * weights, minlength=BINS)
    weight = np.bincount(bin_of, weights=weights, minlength=BINS)
    return np.asarray(np.divide(total, weight, out=np.full(BINS, np.nan), where=weight > 0))


def _rank_correlation(first: Array, second: Array) -> float:
    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return math.nan
    return float(scipy_stats.spearmanr(first, second).statistic)


def chart(found: Sequence[Rows], about: str) -> Chart | None:
    """What the proposition says beside what was measured; None where no run was probed."""
    shown = [probes(rows) for rows in found if rows.seeds]
    if not shown:
        return None

    def draw(figure: Figure) -> None:
        logits, difference, norm = figure.subplots(1, 3)
        _draw_logits(logits, shown)
        _draw_difference(difference, shown)
        for one in shown:
            low, median, high = one.norm.T
            band(norm, one.at, low, high, one.arm.look)
            line(norm, one.at, median, one.arm.look)
        norm.set(ylabel="L2 norm over all parameters", ylim=(0.0, None))
        norm.set_title("Parameter gradient")
        for axes in (logits, difference, norm):
            axes.set(xlabel="Rényi-2 entropy H₂ of the step (nats)")
            log_scale(axes, "x", np.concatenate([one.at for one in shown]))
        legend(figure, [key(one.arm.look, _name(one)) for one in shown])

    return Chart(
        name="gradient_norm",
        title="Gradient norms against Rényi-2 entropy",
        note=sentence(
            _note(shown), lacking("Gradients", (run for one in found for run in one.lacking)), about
        ),
        csv=_csv(shown),
        draw=draw,
        size=(9.9, 4.9),
    )


def _note(shown: Sequence[Probes]) -> str:
    iterations = sorted({iteration for one in shown for iteration in one.iterations})
    small = any((one.renyi2 < SMALL).any() for one in shown)
    return (
        f"Steps sampled from the trained batches of iterations {listed(iterations)}, under the policy "
        f"before its update, in {BINS} bins of equally many by H₂. Proposition 1, for one token: E‖∇z log π(a)‖² = "
        "1 − exp(−H₂). Left: means over the tokens of a bin's steps; the mean of 1 − exp(−H₂) over unequal tokens "
        "lies below the curve at their mean H₂. Middle: sampled minus expected with 95% intervals (trajectories as "
        "units); 0 is expected over all tokens of a policy, and only nearly by bin or in groups kept for their "
        "outcome (DAPO); where tokens are almost certain, a small sample lacks the rare others, and its interval is "
        "too narrow. Right: median and quartiles over steps of the norm of the gradient of a step's mean log π with "
        "respect to the parameters, of which the proposition says nothing; ρ: Spearman's correlation over steps."
        f"{f' Entropies below {SMALL:g} are drawn there.' if small else ''}"
    )


def _draw_logits(axes: Axes, shown: Sequence[Probes]) -> None:
    there = np.concatenate([one.at for one in shown])
    at = np.geomspace(np.nanmin(there), np.nanmax(there), 200)
    axes.plot(at, -np.expm1(-at), color=GREY, linewidth=1.0)
    axes.annotate("1 − exp(−H₂)", (at[140], -np.expm1(-at[140])), xytext=(-6, 4), textcoords="offset points",
                  ha="right", fontsize="small", color=GREY)  # fmt: skip
    for one in shown:
        line(axes, one.at, one.sampled, one.arm.look, linestyle="none")
        axes.plot(one.at, one.expected, color=one.arm.look.colour, linestyle=one.arm.look.line, linewidth=0.9)
    axes.set(ylabel="squared norm, mean over tokens", ylim=(0.0, None))
    axes.set_title("Logit gradient (lines: expected)")


def _draw_difference(axes: Axes, shown: Sequence[Probes]) -> None:
    for one in shown:
        there = [(at, each) for at, each in zip(one.at, one.differences, strict=True) if each is not None]
        at = np.array([at for at, _ in there])
        mean, high = (np.array([getattr(each, name) for _, each in there]) for name in ("estimate", "high"))
        line(axes, at, mean, one.arm.look)
        axes.errorbar(at, mean, np.nan_to_num(high - mean), color=one.arm.look.colour, linestyle="none", capsize=2,
                      elinewidth=0.8)  # fmt: skip
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.set(ylabel="difference, mean over tokens")
    axes.set_title("Sampled minus expected")


def _name(one: Probes) -> str:
    """`GRPO (n=3 seeds): 960 steps; difference -0.001 [-0.004, +0.002]; Spearman's ρ 0.71`."""
    low, high = one.overall.low, one.overall.high
    interval = "n=1" if math.isnan(low) else f"[{low:+.2g}, {high:+.2g}]"
    rank = "—" if math.isnan(one.rank) else f"{one.rank:.2f}"
    steps = int(one.count.sum())
    return f"{one.arm.name}: {steps:,} steps; difference {one.overall.estimate:+.2g} {interval}; ρ(norm, H₂) {rank}"


def _csv(shown: Sequence[Probes]) -> str:
    """A row for each bin, then one for all steps of the variant."""
    lines: list[Sequence[object]] = []
    for one in shown:
        for place, (low, high) in enumerate(bounds(BINS)):
            values = one.renyi2[place], one.sampled[place], one.expected[place]
            lines.append(
                (
                    one.arm.variant, low, high, *map(number, values), *_interval(one.differences[place]),
                    *map(number, one.norm[place]), "", one.count[place],
                )
            )  # fmt: skip
        lines.append(
            (one.arm.variant, "0", "100", "", "", "", *_interval(one.overall), "", "", "", number(one.rank),
             one.count.sum())
        )  # fmt: skip
    columns = (
        "variant", "percentile_low", "percentile_high", "renyi2", "logit_gradient_sq", "logit_gradient_expected",
        "difference", "low", "high", "trajectories", "gradient_norm_lower_quartile", "gradient_norm_median",
        "gradient_norm_upper_quartile", "spearman", "steps",
    )  # fmt: skip
    return csv_text(columns, lines)


def _interval(found: Interval | None) -> Sequence[object]:
    if found is None:
        return "", "", "", 0
    return number(found.estimate), number(found.low), number(found.high), found.n
