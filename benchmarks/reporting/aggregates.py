"""Methods over several benchmarks: a table of aggregate success, and one of who beats whom how often.

An aggregate stands on all benchmarks that were asked for or it is missing: over fewer it would be another quantity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.reporting.cells import MISSING, interval_cell, percent, seed_count
from benchmarks.reporting.evaluations import MODES
from benchmarks.reporting.latex import to_latex
from benchmarks.reporting.load import Suite, judged
from benchmarks.reporting.outcomes import (
    EXPERT,
    UNTRAINED,
    additions,
    bootstrap_generator,
    in_order,
    label,
    variants,
)
from benchmarks.reporting.provenance import provenance
from benchmarks.reporting.schema import RecordError
from benchmarks.reporting.stats import Array, Interval
from benchmarks.reporting.stratified import (
    Statistic,
    bootstrap_stratified,
    interquartile_mean,
    mean_over_benchmarks,
    probability_of_improvement,
)
from benchmarks.reporting.tables import Table, csv_text, one_line, to_markdown

NAME = "aggregates"
"""Of the files."""
SUITES = ("webshop", "alfworld", "deepsearch")
"""What is aggregated by default: one suite of each benchmark."""
CSV_COLUMNS = (
    "measure", "method", "reference", "mode", "value", "low", "high", "interval", "unit", "tasks", "seeds",
    "runs",
)  # fmt: skip


@dataclass(frozen=True)
class Arm:
    """One method on one benchmark in one evaluation mode."""

    outcomes: Array
    """[seeds, tasks] success rates; NaN where the environment failed. A run that only failed is not among them."""
    planned: int
    """Runs that there should be."""

    @property
    def seeds(self) -> int:
        """Runs with a result."""
        return len(self.outcomes)

    @property
    def scores(self) -> Array:
        """[seeds]: success rate of each run."""
        return np.asarray(np.nanmean(self.outcomes, axis=1))


@dataclass(frozen=True)
class Aggregate:
    """One method in one mode over all benchmarks."""

    variant: str
    mode: str
    arms: tuple[Arm, ...]
    """By benchmark."""
    iqm: Interval | None
    mean: Interval | None
    """None where a benchmark has no result."""


@dataclass(frozen=True)
class Improvement:
    """How often one method's run beats another's."""

    treated: str
    reference: str
    mode: str
    arms: tuple[tuple[Arm, Arm], ...]
    """By benchmark."""
    probability: Interval | None
    """None where a benchmark has no result of both."""


def build(suites: Sequence[Suite]) -> tuple[tuple[Table, Table], dict[str, bytes]]:
    """Both tables, and the files that hold them: Markdown, LaTeX, and CSV with every number by itself.

    Raises `RecordError` where suites are of one benchmark or of unequal scale.
    """
    found, gains = aggregates(suites), improvements(suites)
    tables = aggregate_table(suites, found), improvement_table(suites, gains)
    files = {
        f"{NAME}.md": to_markdown(tables, _facts(suites)),
        f"{NAME}.tex": to_latex(tables),
        f"{NAME}.csv": csv_text(CSV_COLUMNS, [*_aggregate_lines(suites, found), *_gain_lines(suites, gains)]),
    }
    return tables, {name: text.encode() for name, text in files.items()}


def aggregates(suites: Sequence[Suite]) -> tuple[Aggregate, ...]:
    """Every method that any of the suites has or should have, in every mode."""
    check(suites)
    return tuple(_aggregate(suites, name, mode) for name in methods(suites) for mode in MODES)


def improvements(suites: Sequence[Suite]) -> tuple[Improvement, ...]:
    """Every `base+change` against its base, in every mode."""
    check(suites)
    names = [name for name in methods(suites) if name not in UNTRAINED]
    return tuple(_improvement(suites, *pair, mode) for pair in additions(names) for mode in MODES)


def check(suites: Sequence[Suite]) -> None:
    """Refuse what cannot stand in one table."""
    if not suites:
        raise ValueError("no suites to aggregate; expected at least one")
    known: dict[str, Suite] = {}
    for suite in suites:
        if (twin := known.setdefault(suite.columns.title, suite)) is not suite:
            raise RecordError(
                f"{twin.name} and {suite.name} are both {suite.columns.title}; expected one suite of each benchmark"
            )
    scales = {suite.name: {info.scale for info in suite.infos} for suite in suites}
    if len(set().union(*scales.values())) > 1:
        raise RecordError(f"suites of unequal scale are not aggregated: {scales}")


def methods(suites: Sequence[Suite]) -> tuple[str, ...]:
    """Rows: all that any suite expects, the demonstrator excepted, which has no method."""
    expected = {name for suite in suites for name in variants(suite)} - {EXPERT}
    return tuple(in_order(sorted(expected)))


def _arm(suite: Suite, variant: str, mode: str) -> Arm:
    played = [run.evaluations[mode] for run in suite.of(variant) if mode in run.evaluations]
    rates = [found.rates("success") for found in played if found.usable.any()]
    outcomes = np.stack(rates) if rates else np.empty((0, len(suite.task_ids)))
    planned = 1 if variant in UNTRAINED else len(suite.planned_seeds)
    return Arm(outcomes, max(planned, len(outcomes)))


def _aggregate(suites: Sequence[Suite], variant: str, mode: str) -> Aggregate:
    arms = tuple(_arm(suite, variant, mode) for suite in suites)
    return Aggregate(
        variant,
        mode,
        arms,
        _interval(interquartile_mean, arms),
        _interval(mean_over_benchmarks, arms),
    )


def _improvement(suites: Sequence[Suite], treated: str, reference: str, mode: str) -> Improvement:
    arms = [tuple(_arm(suite, name, mode) for suite in suites) for name in (treated, reference)]
    probability = _interval(probability_of_improvement, *arms)
    return Improvement(treated, reference, mode, tuple(zip(*arms, strict=True)), probability)


def _interval(statistic: Statistic, *arms: Sequence[Arm]) -> Interval | None:
    """None unless every benchmark has a result of every arm."""
    if not all(one.seeds for arm in arms for one in arm):
        return None
    outcomes = ([one.outcomes for one in arm] for arm in arms)
    return bootstrap_stratified(statistic, *outcomes, generator=bootstrap_generator())


def aggregate_table(suites: Sequence[Suite], found: Sequence[Aggregate]) -> Table:
    """One row per method and mode: both aggregates, then what they are made of."""
    return Table(
        title="Success over benchmarks (%)",
        columns=("method", "mode", "IQM", "mean", *map(_heading, suites)),
        rows=tuple(
            (
                label(one.variant),
                one.mode,
                interval_cell(one.iqm),
                interval_cell(one.mean),
                *map(_part, one.arms),
            )
            for one in found
        ),
        note=(
            f"{_chosen(suites)} A run's success is its rate on its benchmark's panel. IQM: mean of the middle half "
            "of all runs of all benchmarks (of fewer than four runs nothing is cut off: it is the mean); mean: "
            "over benchmarks. Benchmarks weigh equally in both. "
            f"{_intervals(suites, [one.arms for one in found if one.variant not in UNTRAINED])} "
            f"Single benchmarks: mean over seeds, and how many. {MISSING}: a benchmark is missing, so there is no "
            "aggregate."
        ),
    )


def improvement_table(suites: Sequence[Suite], found: Sequence[Improvement]) -> Table:
    """One row per change of a method and mode: how often it improves, over all benchmarks and on each."""
    return Table(
        title="Probability of improvement over benchmarks (%)",
        columns=("comparison", "mode", "probability", *map(_heading, suites)),
        rows=tuple(
            (
                f"{label(one.treated)} over {label(one.reference)}",
                one.mode,
                interval_cell(one.probability),
                *(_pairs(*pair) for pair in one.arms),
            )
            for one in found
        ),
        note=(
            f"{_chosen(suites)} How often a run of the first has more success than one of the second, equal runs "
            "counting half: over all pairs of runs of a benchmark, then the mean over benchmarks. 50 is no "
            "difference; how large a difference is plays no part. "
            f"{_intervals(suites, [arms for one in found for arms in zip(*one.arms, strict=True)])} "
            f"Single benchmarks: the same without interval, and runs × runs. {MISSING}: a benchmark lacks one of "
            "the two, so there is no probability."
        ),
    )


def _chosen(suites: Sequence[Suite]) -> str:
    return f"{judged(suites).capitalize()} of every run; none is chosen by its test results."


def _heading(suite: Suite) -> str:
    return f"{suite.columns.title} (n={len(suite.task_ids)})"


def _part(arm: Arm) -> str:
    counted = seed_count(arm.seeds, arm.planned)
    return f"{percent(float(arm.scores.mean()))} ({counted.strip('()')})" if arm.seeds else counted


def _pairs(treated: Arm, reference: Arm) -> str:
    runs = f"{treated.seeds}/{treated.planned} × {reference.seeds}/{reference.planned} seeds"
    if not treated.seeds or not reference.seeds:
        return f"{MISSING} ({runs})"
    found = probability_of_improvement([treated.scores], [reference.scores])
    return f"{percent(float(found))} ({runs})"


def _intervals(suites: Sequence[Suite], trained: Sequence[Sequence[Arm]]) -> str:
    """Unit, n and what the intervals cannot cover. `trained`: by method, then by benchmark."""
    panels = ", ".join(f"{suite.columns.title} {len(suite.task_ids)}" for suite in suites)
    said = (
        "Intervals: 95%, bootstrap stratified by benchmark. Unit: tasks "
        f"({panels}), and training seeds where there are several; the benchmarks are given, not a sample of others."
    )
    alone = {
        suite.columns.title
        for arms in trained
        for suite, arm in zip(suites, arms, strict=True)
        if arm.seeds == 1
    }
    if alone:
        said += (
            f" With one seed (n=1: {', '.join(sorted(alone))}) they cover which tasks were drawn, not how another "
            "training run would end: they speak about these policies, not about the methods."
        )
    return said


def _aggregate_lines(suites: Sequence[Suite], found: Sequence[Aggregate]) -> Iterator[Sequence[str]]:
    for one in found:
        runs = _listed(suites, [f"{arm.seeds}/{arm.planned}" for arm in one.arms])
        for measure, interval in (("iqm", one.iqm), ("mean", one.mean)):
            yield measure, one_line(one.variant), "", one.mode, *_numbers(interval), runs


def _gain_lines(suites: Sequence[Suite], found: Sequence[Improvement]) -> Iterator[Sequence[str]]:
    for one in found:
        counts = [f"{ours.seeds}/{ours.planned} x {base.seeds}/{base.planned}" for ours, base in one.arms]
        names = one_line(one.treated), one_line(one.reference)
        runs = _listed(suites, counts)
        yield "probability_of_improvement", *names, one.mode, *_numbers(one.probability), runs


def _listed(suites: Sequence[Suite], counts: Sequence[str]) -> str:
    return "; ".join(f"{suite.name} {count}" for suite, count in zip(suites, counts, strict=True))


def _numbers(interval: Interval | None) -> tuple[str, ...]:
    """Value, low, high, how the interval was made, unit, tasks and seeds; empty where there is no result."""
    if interval is None:
        return ("",) * 7
    numbers = (f"{number:.6f}" for number in (interval.estimate, interval.low, interval.high))
    return *numbers, interval.method, interval.unit, str(interval.n), str(interval.seeds)


def _facts(suites: Sequence[Suite]) -> dict[str, str]:
    return {f"{suite.name}, {name}": value for suite in suites for name, value in provenance(suite).items()}
