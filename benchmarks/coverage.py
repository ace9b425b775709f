"""How often the reports' 95% intervals hold the truth, on simulated tables whose truth is known.

Tasks differ in difficulty, runs in luck and, where a setting says so, training seeds in skill. Everything is
drawn again for each table, as it would be with another panel and other training runs. What no formula
gives (the expected interquartile mean, the expected probability of improvement) is the mean over all tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from rich.console import Console

from benchmarks.progress import Status, display
from benchmarks.reporting.cells import interval_cell, percent
from benchmarks.reporting.stats import Array, Interval, paired_difference, wilson
from benchmarks.reporting.stratified import (
    Statistic,
    bootstrap_stratified,
    interquartile_mean,
    mean_over_benchmarks,
    probability_of_improvement,
)
from benchmarks.reporting.tables import Table, print_tables
from benchmarks.seeding import generator as stream

TABLES = 2000
NOMINAL = (0.93, 0.97)
"""Where the coverage of a 95% interval should lie."""
RESAMPLES = 1000
PANEL = 134
"""Tasks of ALFWorld's valid_unseen."""
LEVELS = (0.35, 0.5, 0.6)
"""Mean success on three benchmarks."""

Draw = Callable[[np.random.Generator], tuple[Interval, float | None]]
"""One table's interval, and the truth where it is known beforehand."""


@dataclass(frozen=True)
class Setting:
    """An interval in circumstances in which it may or may not hold what it promises."""

    interval: str
    about: str
    """What it is an interval of: `policies` or `methods`."""
    circumstances: str
    draw: Draw


@dataclass(frozen=True)
class Coverage:
    """What came of one setting."""

    setting: Setting
    share: Interval
    """Of tables whose interval held the truth, itself with an interval over tables."""
    width: float
    """Mean over tables."""

    @property
    def verdict(self) -> str:
        """Where the share lies, as the table rounds it, in words."""
        low, high = NOMINAL
        shown = round(self.share.estimate, 3)
        if low <= shown <= high:
            return "as promised"
        return "too narrow" if shown < low else "too wide"


def play(generator: np.random.Generator, chance: Array, seeds: int, seed_sd: float) -> Array:
    """[seeds, tasks] successes; each seed's skill moves its chance on all tasks alike."""
    skill = seed_sd * generator.standard_normal((seeds, 1))
    return (generator.random((seeds, chance.size)) < chance + skill).astype(float)


def rate(generator: np.random.Generator, *, tasks: int, low: float, high: float) -> tuple[Interval, float]:
    """Wilson interval of one policy whose true rate is anywhere between two."""
    truth = float(generator.uniform(low, high))
    return wilson(float(generator.binomial(tasks, truth)) / tasks, tasks), truth


def difference(
    generator: np.random.Generator,
    *,
    tasks: int = PANEL,
    seeds: int = 1,
    seed_sd: float = 0.0,
    warm_start: bool = False,
    low: float = 0.3,
    high: float = 0.6,
    gain: float = 0.1,
) -> tuple[Interval, float]:
    """Difference of two arms on one panel, its tasks' chances between `low` and `high` before the gain."""
    chance = generator.uniform(low, high, size=tasks)
    treated = play(generator, chance + gain, seeds, seed_sd)
    reference = play(generator, chance, 1, 0.0) if warm_start else play(generator, chance, seeds, seed_sd)
    found = paired_difference(
        treated, reference, generator, reference_is_fixed=warm_start, resamples=RESAMPLES
    )
    return found, gain


def aggregate(
    generator: np.random.Generator,
    *,
    statistic: Statistic,
    arms: int = 1,
    tasks: int = PANEL,
    seeds: int = 3,
    seed_sd: float = 0.0,
    gain: float = 0.05,
) -> tuple[Interval, None]:
    """A statistic of one arm, or of two whose first gains on every task, over three benchmarks."""
    played: list[list[Array]] = [[] for _ in range(arms)]
    for level in LEVELS:
        chance = generator.uniform(level - 0.2, level + 0.2, size=tasks)
        for place, arm in enumerate(played):
            arm.append(play(generator, chance + (gain if place == 0 else 0.0), seeds, seed_sd))
    return bootstrap_stratified(statistic, *played, generator=generator, resamples=RESAMPLES), None


def settings() -> tuple[Setting, ...]:
    """What is simulated: usual circumstances, then those that strain an interval."""
    return (*_of_rates(), *_of_differences(), *_of_aggregates())


def _of_rates() -> list[Setting]:
    rates = [(PANEL, 0.05, 0.95), (20, 0.05, 0.95), (PANEL, 0.0, 0.05)]
    return [
        Setting(
            "Wilson",
            "policies",
            f"{tasks} tasks, rate {100 * low:.0f} to {100 * high:.0f}%",
            partial(rate, tasks=tasks, low=low, high=high),
        )
        for tasks, low, high in rates
    ]


def _of_differences() -> list[Setting]:
    one_seed = [
        Setting("paired difference", "policies", f"1 seed, {tasks} tasks", partial(difference, tasks=tasks))
        for tasks in (PANEL, 20, 10)
    ]
    rare = partial(difference, low=0.0, high=0.02, gain=0.01)
    misread = partial(difference, seed_sd=0.05)
    several = [
        Setting(
            "paired difference",
            "methods",
            f"{seeds} seeds with sd {100 * sd:.0f} points, {PANEL} tasks{', warm start' if warm_start else ''}",
            partial(difference, seeds=seeds, seed_sd=sd, warm_start=warm_start),
        )
        for seeds, sd, warm_start in (
            (3, 0.0, False), (3, 0.02, False), (3, 0.02, True), (3, 0.05, False), (3, 0.1, False), (2, 0.05, False)
        )
    ]  # fmt: skip
    return [
        *one_seed,
        Setting("paired difference", "policies", f"1 seed, {PANEL} tasks, rates below 3%", rare),
        *several,
        Setting("paired difference", "methods (not promised)", "1 seed, seeds with sd 5 points", misread),
    ]


def _of_aggregates() -> list[Setting]:
    names: dict[str, tuple[Statistic, int]] = {
        "IQM": (interquartile_mean, 1),
        "mean": (mean_over_benchmarks, 1),
        "probability of improvement": (probability_of_improvement, 2),
    }
    return [
        Setting(
            f"stratified bootstrap, {name}",
            "policies" if seeds == 1 else "methods",
            f"3 benchmarks × {PANEL} tasks, {seeds} seed{'s' if seeds > 1 else ''}"
            + (f" with sd {100 * sd:.0f} points" if seeds > 1 else ""),
            partial(aggregate, statistic=statistic, arms=arms, seeds=seeds, seed_sd=sd),
        )
        for name, (statistic, arms) in names.items()
        for seeds, sd in ((1, 0.0), (3, 0.0), (3, 0.02), (3, 0.05), (3, 0.1))
    ]


def measure(
    setting: Setting,
    generator: np.random.Generator,
    tables: int = TABLES,
    on_done: Callable[[int], None] = lambda _: None,
) -> Coverage:
    """Simulate one setting; `on_done` hears how many tables there are so far."""
    drawn = []
    for number in range(tables):
        drawn.append(setting.draw(generator))
        on_done(number + 1)
    expected = float(np.mean([interval.estimate for interval, _ in drawn]))
    held = [
        interval.low <= (expected if truth is None else truth) <= interval.high for interval, truth in drawn
    ]
    share = replace(wilson(float(np.mean(held)), tables), unit="tables")
    return Coverage(setting, share, float(np.mean([one.high - one.low for one, _ in drawn])))


def run_coverage(console: Console, tables: int = TABLES, seed: int = 0) -> tuple[Coverage, ...]:
    """Simulate every setting, each from its own stream, and print how often its intervals hold the truth."""
    found = []
    every = settings()
    with display(Console(stderr=True)) as shown:
        for number, setting in enumerate(every):
            before = number * tables

            def on_done(done: int, stage: str = setting.interval, before: int = before) -> None:
                shown.update("coverage", Status(stage, before + done, len(every) * tables))

            found.append(measure(setting, stream(seed, number), tables, on_done))
    print_tables(console, [coverage_table(found)], {"tables": str(tables), "seed": str(seed)})
    return tuple(found)


def coverage_table(found: Sequence[Coverage]) -> Table:
    """One row per setting."""
    low, high = (f"{100 * bound:.0f}" for bound in NOMINAL)
    return Table(
        title="How often 95% intervals hold the truth (%)",
        columns=("interval", "of", "circumstances", "held", "mean width", "interval is"),
        rows=tuple(
            (
                one.setting.interval,
                one.setting.about,
                one.setting.circumstances,
                interval_cell(one.share),
                percent(one.width),
                one.verdict,
            )
            for one in found
        ),
        note=(
            f"Held: share of {found[0].share.n:,} simulated tables whose interval held the truth, with its own Wilson "
            f"95% interval; unit: tables. As promised: {low} to {high}% of them. Too narrow or too wide: below or "
            f"above. Bootstraps of {RESAMPLES:,} resamples, where reports take more."
        ),
    )
