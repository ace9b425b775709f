"""Whether scaling by g steadies the gradient: its variance over steps, relative to the squared norm of its mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy import stats as scipy_stats

from benchmarks.reporting.figures.arms import Arm, lacking
from benchmarks.reporting.figures.curves import Curve, curve
from benchmarks.reporting.figures.style import (
    GREY,
    Chart,
    key,
    legend,
    line,
    log_scale,
    number,
    raw_lines,
    sentence,
    whole_numbers,
)
from benchmarks.reporting.load import rising
from benchmarks.reporting.schema import VarianceRow
from benchmarks.reporting.stats import CONFIDENCE, Array, Interval, spread
from benchmarks.reporting.tables import csv_text

NOTE = (
    "Step gradients A ∇ log π (plain) and A g(H) ∇ log π (scaled) of the same probed steps of an iteration, g as EMPG "
    "would have it whether or not the variant trains with it: trace of their sample covariance over steps, divided by "
    "the squared norm of their mean. Points and ratios are geometric means over seeds (pale: each seed), ratios with "
    "95% intervals over seeds; below 1, scaling steadies the gradient. The steps of a trajectory are not independent, "
    "and the squared mean of n steps holds a share 1/n of the variance, which draws the ratio towards 1."
)


@dataclass(frozen=True)
class Variance:
    """Relative variances of the step gradients of one variant, as natural logarithms by iteration."""

    rows: Sequence[Sequence[VarianceRow]]
    """Of each run of the curves."""
    plain: Curve
    scaled: Curve
    ratio: Curve
    """Scaled to plain."""
    overall: Interval | None
    """The ratio itself: geometric mean over a seed's iterations, then over seeds; None where it is never defined."""

    @property
    def arm(self) -> Arm:
        """The variant, with the runs that were probed."""
        return self.ratio.arm


def variance(arm: Arm) -> Variance | None:
    """Of the runs of a variant that were probed; None without one."""
    recorded = [
        rising(VarianceRow, run.variance_file) if run.variance_file.exists() else () for run in arm.runs
    ]
    probed = replace(arm, runs=tuple(run for run, found in zip(arm.runs, recorded, strict=True) if found))
    rows = [found for found in recorded if found]
    if not rows:
        return None

    def of(value: Callable[[VarianceRow], float | None]) -> Curve:
        return curve(probed, [[(row.iteration, value(row)) for row in of_run] for of_run in rows])

    plain = of(lambda row: _log_ratio(row.plain_variance, row.plain_mean_sq))
    scaled = of(lambda row: _log_ratio(row.scaled_variance, row.scaled_mean_sq))
    ratio = replace(plain, values=scaled.values - plain.values)
    return Variance(rows, plain, scaled, ratio, geometric_mean(ratio.values))


def _log_ratio(above: float | None, below: float) -> float | None:
    """None where it is not defined: a single step has no variance, equal ones none to speak of."""
    return math.log(above / below) if above is not None and above > 0.0 and below > 0.0 else None


def geometric_mean(logs: Array) -> Interval | None:
    """Of `logs` [seeds, iterations], NaN where there is none: over a seed's iterations, then over seeds.

    The 95% interval is Student's t over the seeds' logarithms; with a single seed it is NaN.
    """
    of_seed = [float(values[np.isfinite(values)].mean()) for values in logs if np.isfinite(values).any()]
    if not of_seed:
        return None
    found, n, half = spread(of_seed), len(of_seed), math.nan
    if found.sd is not None:
        half = float(scipy_stats.t.ppf(0.5 + CONFIDENCE / 2, n - 1)) * found.sd / math.sqrt(n)
    mean, low, high = (math.exp(found.mean + change) for change in (0.0, -half, half))
    return Interval(mean, low, high, "Student t of logarithms", "seeds", n, n)


def chart(arms: Sequence[Arm], about: str) -> Chart | None:
    """Relative variances and their ratio by iteration; None where no run was probed."""
    shown = [found for arm in arms if (found := variance(arm)) is not None]
    if not shown:
        return None

    def draw(figure: Figure) -> None:
        both, ratio = figure.subplots(1, 2)
        for one in shown:
            _means(both, one.plain, markerfacecolor="white", linestyle=":")
            _means(both, one.scaled, linestyle="-")
            seeds = np.exp(one.ratio.values)
            raw_lines(ratio, [one.ratio.iterations] * len(seeds), seeds, one.arm.look)
            _means(ratio, one.ratio)
        ratio.axhline(1.0, color=GREY, linewidth=0.8)
        both.set(ylabel="variance / squared norm of the mean")
        _draw_noise(both, {row.steps for one in shown for rows in one.rows for row in rows})
        means = [each.mean for one in shown for each in (one.plain, one.scaled)]
        log_scale(both, "y", np.exp(np.concatenate(means)))
        both.set_title("Relative variance of step gradients")
        ratio.set(ylabel="scaled / plain")
        ratio.set_title("Ratio: below 1, scaling steadies")
        for axes in (both, ratio):
            axes.set(xlabel="iteration")
            whole_numbers(axes)
        legend(figure, [*(key(one.arm.look, _name(one)) for one in shown), *_form_keys()])

    probed = {run.folder for one in shown for run in one.arm.runs}
    unprobed = [run for arm in arms for run in arm.runs if run.folder not in probed]
    return Chart(
        name="gradient_variance",
        title="Gradient variance with and without scaling by g",
        note=sentence(NOTE, lacking("Gradients", unprobed), about),
        csv=_csv(shown),
        draw=draw,
        size=(9.6, 4.8),
    )


def _means(axes: Axes, one: Curve, **changes: object) -> None:
    """At probed iterations alone; they lie apart, so that points are joined over those between."""
    there = np.isfinite(one.mean)
    at = np.array(one.iterations[: one.common])[there]
    line(axes, at, np.exp(one.mean[there]), one.arm.look, markevery=1, **changes)


def _draw_noise(axes: Axes, steps: set[int]) -> None:
    """Where the relative variance of n steps lies when their mean is nothing but noise."""
    for n in steps if len(steps) == 1 else ():
        axes.axhline(n, color=GREY, linewidth=0.8, linestyle="--")
        axes.annotate(
            f"n = {n} steps: noise alone", (0.99, n), xycoords=("axes fraction", "data"), xytext=(0, 3),
            textcoords="offset points", ha="right", fontsize="small", color=GREY,
        )  # fmt: skip


def _form_keys() -> list[Line2D]:
    shared: dict[str, Any] = {"color": GREY, "marker": "o", "markersize": 4}
    return [
        Line2D([], [], linestyle=":", markerfacecolor="white", label="plain: A ∇ log π", **shared),
        Line2D([], [], linestyle="-", label="scaled: A g ∇ log π", **shared),
    ]


def _name(one: Variance) -> str:
    """`GRPO+EMPG (n=3 seeds): ratio 0.93 [0.85, 1.02]`."""
    if one.overall is None:
        return f"{one.ratio.name}: no ratio"
    interval = "" if math.isnan(one.overall.low) else f" [{one.overall.low:.3g}, {one.overall.high:.3g}]"
    return f"{one.ratio.name}: ratio {one.overall.estimate:.3g}{interval}"


def _csv(shown: Sequence[Variance]) -> str:
    """The record of every probed iteration, then one row for each variant."""
    lines: list[Sequence[object]] = []
    for one in shown:
        for seed, rows in enumerate(one.rows):
            for row in rows:
                at = row.iteration - one.ratio.iterations[0]
                ratios = [
                    number(math.exp(each.values[seed, at])) for each in (one.plain, one.scaled, one.ratio)
                ]
                record = row.plain_variance, row.plain_mean_sq, row.scaled_variance, row.scaled_mean_sq
                values = ["" if value is None else number(value) for value in record]
                lines.append(
                    (one.arm.variant, one.arm.seeds[seed], row.iteration, row.steps, *values, *ratios, "", "")
                )
        if (found := one.overall) is not None:
            interval = (number(value) for value in (found.estimate, found.low, found.high))
            lines.append((one.arm.variant, "all", "all", "", "", "", "", "", "", "", *interval))
    columns = (
        "variant", "seed", "iteration", "steps", "plain_variance", "plain_mean_sq", "scaled_variance",
        "scaled_mean_sq", "plain_relative_variance", "scaled_relative_variance", "ratio", "low", "high",
    )  # fmt: skip
    return csv_text(columns, lines)
