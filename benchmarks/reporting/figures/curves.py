"""Quantities of `metrics.jsonl` by iteration and by sampled tokens: learning curves and the KL loss.

Every point is a recorded one, at the iteration that its row names. Nothing is smoothed or interpolated: a gap in a
record stays a gap, and what is made of all seeds ends where the shortest run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from benchmarks.reporting.figures.arms import Arm
from benchmarks.reporting.figures.style import (
    Chart,
    band,
    key,
    legend,
    line,
    number,
    raw_lines,
    sentence,
    whole_numbers,
)
from benchmarks.reporting.load import Run
from benchmarks.reporting.schema import IterationRow, RecordError
from benchmarks.reporting.stats import Array
from benchmarks.reporting.tables import csv_text

SIZE = (8.0, 4.8)
EXACT = 15
"""Digits of token counts, which may be large."""
RAGGED = "stops at the shortest run"
WHEN = "Success of all episodes generated in an iteration, before its update."


@dataclass(frozen=True)
class Curve:
    """One quantity of one variant by iteration, over its seeds."""

    arm: Arm
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

    @property
    def name(self) -> str:
        """The variant with its seeds, and what is unusual about them."""
        empty = int(np.isnan(self.values).all(axis=1).sum())
        parts = [self.arm.name, RAGGED if self.ragged else "", f"{empty} without values" if empty else ""]
        return "; ".join(part for part in parts if part)


def curve(arm: Arm, points: Sequence[Iterable[tuple[int, float | None]]]) -> Curve:
    """(iteration, value) of each run of a variant, in the order of its runs."""
    found = [dict(of_run) for of_run in points]
    logged = {iteration for of_run in found for iteration in of_run}
    iterations = range(min(logged, default=0), max(logged, default=-1) + 1)
    values = np.full((len(found), len(iterations)), np.nan)
    for seed, of_run in enumerate(found):
        for iteration, value in of_run.items():
            values[seed, iteration - iterations.start] = np.nan if value is None else value
    common = min(max(of_run) + 1 - iterations.start if of_run else 0 for of_run in found)
    return Curve(arm, tuple(iterations), values, common)


def metric(arm: Arm, value: Callable[[IterationRow], float | None]) -> Curve:
    """A quantity of `metrics.jsonl`."""
    return curve(arm, [[(row.iteration, value(row)) for row in run.metrics] for run in arm.runs])


def success(arm: Arm) -> Curve:
    """Success in training."""
    return metric(arm, lambda row: row.success)


def tokens(arm: Arm) -> Curve:
    """Tokens sampled so far, those of the iteration itself included; raises `RecordError` where they fall."""
    for run in arm.runs:
        _check_rising(run)
    return metric(arm, lambda row: row.sampled_tokens_total)


def _check_rising(run: Run) -> None:
    before = 0
    for row in run.metrics:
        now = before if row.sampled_tokens_total is None else row.sampled_tokens_total
        if now < before:
            raise RecordError(
                f"{run.folder / 'metrics.jsonl'}: sampled_tokens_total falls from {before} to {now} at iteration "
                f"{row.iteration}; expected a running total"
            )
        before = now


def kl_chart(arms: Sequence[Arm], about: str, origin: str = "warm start") -> Chart:
    """KL loss at every update (the paper's Figure 2): each seed's raw points. origin: what training starts from."""
    curves = [metric(arm, lambda row: row.kl_loss) for arm in arms]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for one in curves:
            raw_lines(axes, [one.iterations] * len(one.values), one.values, one.arm.look)
            line(axes, one.iterations[: one.common], one.mean, one.arm.look)
        axes.set(xlabel="iteration", ylabel="KL loss (nats per token)", ylim=(0.0, None))
        axes.set_title(f"KL loss per update: {_raw_title(curves)}")
        whole_numbers(axes)
        legend(figure, [key(one.arm.look, one.name) for one in curves])

    return Chart(
        name="kl_loss",
        title="KL loss per update",
        note=sentence(
            f"KL loss of every update: k3 estimate of KL(policy ‖ {origin}), mean over the trained tokens; the same "
            "estimator and weighting for all variants, nothing smoothed.",
            _points(curves, "mean over seeds"),
            about,
        ),
        csv=curve_csv(curves, "kl_loss"),
        draw=draw,
        size=SIZE,
    )


def learning_chart(arms: Sequence[Arm], about: str) -> Chart:
    """Success against iterations: mean over seeds, band from the lowest to the highest."""
    curves = [success(arm) for arm in arms]
    banded = "; band: lowest to highest seed" if _several_seeds(curves) else ""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for one in curves:
            reached, values = one.iterations[: one.common], 100 * one.values[:, : one.common]
            line(axes, reached, 100 * one.mean, one.arm.look)
            if len(values) > 1:
                band(axes, reached, values.min(axis=0), values.max(axis=0), one.arm.look)
        axes.set(xlabel="iteration", ylabel="success in training (%)", ylim=(0.0, None))
        axes.set_title(f"Success in training: mean over seeds{banded}")
        whole_numbers(axes)
        legend(figure, [key(one.arm.look, one.name) for one in curves])

    return Chart(
        name="learning_curve",
        title="Success in training by iteration",
        note=sentence(f"{WHEN} Line: mean over seeds{banded}.", about),
        csv=curve_csv(curves, "success"),
        draw=draw,
        size=SIZE,
    )


def token_chart(arms: Sequence[Arm], about: str) -> Chart:
    """Success against sampled tokens.

    Seeds sample unequally many tokens. Their mean is taken at equal iterations, where all play the same tasks, of
    both coordinates; a common grid of tokens would need values between recorded points.
    """
    curves = [(tokens(arm), success(arm)) for arm in arms]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for at, one in curves:
            raw_lines(axes, at.values, 100 * one.values, one.arm.look)
            line(axes, at.mean, 100 * one.mean, one.arm.look)
        axes.set(
            xlabel="sampled tokens", ylabel="success in training (%)", xlim=(0.0, None), ylim=(0.0, None)
        )
        axes.set_title(f"Success in training: {_raw_title([one for _, one in curves])}")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        legend(figure, [key(one.arm.look, one.name) for _, one in curves])

    return Chart(
        name="learning_curve_tokens",
        title="Success in training by sampled tokens",
        note=sentence(
            f"{WHEN} Tokens: all that the policy wrote until then, those of the iteration included. Nothing "
            "is interpolated.",
            _points(
                [one for _, one in curves],
                "mean over seeds of tokens and of success at each iteration that all reached",
            ),
            about,
        ),
        csv=_token_csv(curves),
        draw=draw,
        size=SIZE,
    )


def _several_seeds(curves: Sequence[Curve]) -> bool:
    return any(len(one.values) > 1 for one in curves)


def _raw_title(curves: Sequence[Curve]) -> str:
    return "raw points of each seed, and their mean" if _several_seeds(curves) else "raw points"


def _points(curves: Sequence[Curve], strong: str) -> str:
    """What the pale and the strong points are."""
    return f"Pale: raw points of each seed. Strong: {strong}." if _several_seeds(curves) else ""


def curve_csv(curves: Sequence[Curve], quantity: str) -> str:
    """Every raw point, and the mean over seeds where every seed has one."""
    lines: list[Sequence[object]] = []
    for one in curves:
        mean = _padded(one)
        for column, iteration in enumerate(one.iterations):
            for seed, value in zip(one.arm.seeds, one.values[:, column], strict=True):
                lines.append(
                    (
                        one.arm.variant, seed, iteration, number(value), number(mean[column]),
                        _shared(one, column),
                    )
                )  # fmt: skip
    return csv_text(
        ("variant", "seed", "iteration", quantity, "mean_over_seeds", "reached_by_all_seeds"), lines
    )


def _token_csv(curves: Sequence[tuple[Curve, Curve]]) -> str:
    lines: list[Sequence[object]] = []
    for at, one in curves:
        means = _padded(at), _padded(one)
        for column, iteration in enumerate(one.iterations):
            mean = [number(means[0][column], EXACT), number(means[1][column])]
            for row, seed in enumerate(one.arm.seeds):
                point = [number(at.values[row, column], EXACT), number(one.values[row, column])]
                lines.append((one.arm.variant, seed, iteration, *point, *mean, _shared(one, column)))
    columns = (
        "variant", "seed", "iteration", "sampled_tokens_total", "success", "mean_sampled_tokens_total",
        "mean_success", "reached_by_all_seeds",
    )  # fmt: skip
    return csv_text(columns, lines)


def _padded(one: Curve) -> Array:
    """[iterations]: the mean, NaN beyond the shortest run."""
    return np.append(one.mean, np.full(len(one.iterations) - one.common, np.nan))


def _shared(one: Curve, column: int) -> str:
    return "yes" if column < one.common else "no"
