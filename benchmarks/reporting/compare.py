"""Two sides on the same tasks: by how much they differ, on which kinds of tasks, and on which tasks.

A side is a suite or some of its runs. What is measured is B minus A, on the tasks that every compared run finished.
Everything here is a function of checked runs; words, tables and files are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.reporting import stats
from benchmarks.reporting.columns import What
from benchmarks.reporting.evaluations import MODES, Evaluation
from benchmarks.reporting.load import Run, Suite, check_same_ground, check_same_tasks
from benchmarks.reporting.outcomes import (
    EXPERT,
    UNTRAINED,
    all_variants,
    bootstrap_generator,
    label,
    paired_rates,
)
from benchmarks.reporting.schema import RecordError
from benchmarks.reporting.stats import Array, Interval, PValue, Spread

LIBRARIES = "versions"
"""What a world says of the libraries below it; sides may differ in it, and it is said where they do."""

Runs = tuple[Run, ...]


@dataclass(frozen=True)
class Side:
    """Checked runs of one suite, by the name they were asked for."""

    name: str
    suite: Suite

    @property
    def variants(self) -> tuple[str, ...]:
        """Those with complete runs, in the order of the suite's table."""
        there = {run.info.variant for run in self.suite.runs}
        return tuple(variant for variant in all_variants(self.suite) if variant in there)

    @property
    def single(self) -> str | None:
        """The only trained variant, or the only one at all; None where there are several."""
        trained = [name for name in self.variants if name not in (*UNTRAINED, *self.suite.served)]
        found = trained or self.variants
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class Rates:
    """One quantity on the tasks that every compared run finished."""

    a: Spread
    """Over the compared seeds."""
    b: Spread
    difference: Interval
    """B minus A."""


@dataclass(frozen=True)
class TaskResult:
    """One task of the panel; pairs are (A, B)."""

    task_id: str
    task_type: str
    """Empty where no run knows it."""
    success: tuple[float, float]
    """Mean over seeds and samples; NaN where some compared run never finished the task."""
    score: tuple[float, float]
    errored: tuple[int, int]
    """Episodes that failed in the environment."""

    @property
    def compared(self) -> bool:
        """Whether every compared run finished it."""
        return not np.isnan(self.change)

    @property
    def change(self) -> float:
        """Success of B minus that of A; its rounding would otherwise turn an exact 0 into 1e-17."""
        return round(self.success[1] - self.success[0], 12)


@dataclass(frozen=True)
class Outcome:
    """Two policies, or two methods over seeds, in one evaluation mode."""

    mode: str
    played_once: bool
    """Whether one pair of runs played each task once, so that a task is solved or not."""
    measures: Mapping[What, Rates]
    """Over all tasks."""
    parts: Mapping[str, Rates | None]
    """Success by heading of a task type or of a group of types; None where no task of it is left."""
    p_value: PValue
    """That both solve equally many tasks."""
    holm: float
    """The same corrected for all tests of the comparison, which are one family."""
    tasks: tuple[TaskResult, ...]
    """The whole panel."""

    @property
    def success(self) -> Rates:
        """Over all tasks."""
        return self.measures["success"]

    @property
    def errored(self) -> tuple[int, int]:
        """Episodes of A and of B that failed in the environment."""
        return sum(task.errored[0] for task in self.tasks), sum(task.errored[1] for task in self.tasks)

    @property
    def left_out(self) -> int:
        """Tasks that some compared run never finished."""
        return sum(not task.compared for task in self.tasks)

    @property
    def won(self) -> tuple[TaskResult, ...]:
        """Tasks that B solves more often than A, the largest change first."""
        return _by_change(task for task in self.tasks if task.change > 0)

    @property
    def lost(self) -> tuple[TaskResult, ...]:
        """Tasks that A solves more often than B, the largest change first."""
        return _by_change(task for task in self.tasks if task.change < 0)


@dataclass(frozen=True)
class Pair:
    """A variant of A against one of B."""

    a: Runs
    """Compared ones: of the seeds that both have where both were trained."""
    b: Runs
    alone: tuple[tuple[int, ...], tuple[int, ...]]
    """Seeds of complete runs that only A has, and that only B has."""
    outcomes: tuple[Outcome, ...]
    """By mode; without one that a side did not play or of which no task is left."""

    @property
    def variants(self) -> tuple[str, str]:
        """Of A and of B."""
        return self.a[0].info.variant, self.b[0].info.variant

    @property
    def title(self) -> str:
        """`GRPO+EMPG − GRPO`, or `GRPO: B − A` where both sides are the same variant."""
        a, b = map(label, self.variants)
        return f"{a}: B − A" if a == b else f"{b} − {a}"


@dataclass(frozen=True)
class Comparison:
    """All that is measured between two sides."""

    a: Side
    b: Side
    pairs: tuple[Pair, ...]

    @property
    def compared(self) -> tuple[Runs, Runs]:
        """The runs of A and of B that any pair compares."""
        a = (run for pair in self.pairs for run in pair.a)
        return tuple(a), tuple(run for pair in self.pairs for run in pair.b)

    @property
    def outcomes(self) -> tuple[tuple[Pair, Outcome], ...]:
        """All, pair by pair."""
        return tuple((pair, outcome) for pair in self.pairs for outcome in pair.outcomes)

    @property
    def tests(self) -> int:
        """How many tests of success are corrected for together."""
        return len(self.outcomes)


def compare(a: Side, b: Side, task_types: Mapping[str, str]) -> Comparison:
    """B against A, sides that `check_sides` lets through. `task_types`: task -> type, for the differences by type.

    Raises `RecordError` where they have no variant or no seed to compare.
    """
    parts = _parts(a.suite, task_types)
    pairs = []
    for first, second in matched(a, b):
        runs = same_seeds(a.suite.of(first), b.suite.of(second))
        outcomes = [_outcome(runs, mode, task_types, parts, a.suite.columns.measures) for mode in MODES]
        pairs.append(
            Pair(
                runs[0],
                runs[1],
                (_others(a.suite.of(first), runs[0]), _others(b.suite.of(second), runs[1])),
                tuple(one for one in outcomes if one is not None),
            )
        )
    return Comparison(a, b, _corrected(pairs))


def _corrected(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """With Holm's correction over the modes of all pairs."""
    holm = iter(stats.holm([outcome.p_value.value for pair in pairs for outcome in pair.outcomes]))
    return tuple(
        replace(pair, outcomes=tuple(replace(outcome, holm=next(holm)) for outcome in pair.outcomes))
        for pair in pairs
    )


def check_sides(a: Side, b: Side) -> None:
    """Refuse sides without complete runs, and runs of unequal tasks, data, step limits, benchmarks or scales.

    Raises `RecordError` with the values, or the hashes, of both.
    """
    for letter, side in (("A", a), ("B", b)):
        if not side.suite.runs:
            raise RecordError(f"{letter} is {side.name}: no complete run; expected one with summary.json")
    runs = (*a.suite.runs, *b.suite.runs)
    check_same_ground({run.folder: run.info for run in runs}, apart=(LIBRARIES,))
    check_same_tasks(runs)


def matched(a: Side, b: Side) -> tuple[tuple[str, str], ...]:
    """(variant of A, variant of B) to compare: all that both have, and the sides where each holds a single one.

    The demonstrator is the same player on both sides: it is compared only where a side holds nothing else.
    """
    pairs = [(name, name) for name in a.variants if name in b.variants and name != EXPERT]
    if a.single and b.single and (a.single, b.single) not in pairs:
        pairs.append((a.single, b.single))
    if not pairs:
        raise RecordError(
            f"A is {a.name} with {', '.join(a.variants)} and B is {b.name} with {', '.join(b.variants)}; "
            "expected a variant that both have, or a single one on each side"
        )
    return tuple(pairs)


def same_seeds(a: Sequence[Run], b: Sequence[Run]) -> tuple[Runs, Runs]:
    """The runs of seeds that both have; all of them where a side was not trained, for its seed means nothing.

    Raises `RecordError` where no seed is left.
    """
    if not _trained(a) or not _trained(b):
        return tuple(a), tuple(b)
    seeds = [{run.info.seed for run in side} for side in (a, b)]
    if not (both := seeds[0] & seeds[1]):
        said = [", ".join(map(str, sorted(found))) for found in seeds]
        raise RecordError(
            f"{a[0].info.variant} of A has seeds {said[0]} and {b[0].info.variant} of B {said[1]}; "
            "expected a seed that both have"
        )
    first, second = (tuple(run for run in side if run.info.seed in both) for side in (a, b))
    return first, second


def _others(runs: Sequence[Run], compared: Sequence[Run]) -> tuple[int, ...]:
    seeds = {run.info.seed for run in compared}
    return tuple(run.info.seed for run in runs if run.info.seed not in seeds)


def _trained(runs: Sequence[Run]) -> bool:
    return any(run.info.kind == "train" for run in runs)


def _parts(suite: Suite, task_types: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Heading -> tasks, of each type and each group of types; empty where all tasks are of one type."""
    types = {part.heading: part.types for part in suite.columns.parts.values()}
    if not types:
        types = {name: (name,) for name in sorted(set(task_types.values()))}
    if len(types) < 2:
        return {}
    return {
        heading: frozenset(task for task, own in task_types.items() if own in names)
        for heading, names in types.items()
    }


def _outcome(
    runs: tuple[Runs, Runs],
    mode: str,
    task_types: Mapping[str, str],
    parts: Mapping[str, frozenset[str]],
    measures: Sequence[What],
) -> Outcome | None:
    """None where a side has no such evaluation, or no task is left that every run finished."""
    if not all(mode in run.evaluations for side in runs for run in side):
        return None
    arms = [[run.evaluations[mode] for run in side] for side in runs]
    trained = _trained(runs[0]), _trained(runs[1])
    found = {what: _rates(arms, what, trained) for what in measures}
    rates = {what: one for what, one in found.items() if one is not None}
    if "success" not in rates:
        return None
    (a, b), _ = paired_rates(arms, "success")
    once = len(a) == len(b) == 1 and all(arm[0].success.shape[1] == 1 for arm in arms)
    p_value = _p_value(a, b, trained)
    return Outcome(
        mode=mode,
        played_once=once,
        measures=rates,
        parts={
            heading: _rates([[one.only(tasks) for one in arm] for arm in arms], "success", trained)
            for heading, tasks in parts.items()
        },
        p_value=p_value,
        holm=p_value.value,
        tasks=_task_results(arms, task_types),
    )


def _rates(arms: Sequence[Sequence[Evaluation]], what: What, trained: tuple[bool, bool]) -> Rates | None:
    """None where no task is left that every run finished."""
    (a, b), tasks = paired_rates(arms, what)
    if tasks == 0:
        return None
    spreads = [stats.spread([float(seed.mean()) for seed in side]) for side in (a, b)]
    return Rates(spreads[0], spreads[1], _difference(a, b, trained))


def _difference(a: Array, b: Array, trained: tuple[bool, bool]) -> Interval:
    """B minus A, both [seeds, tasks]."""
    treated, reference, fixed = _roles(a, b, trained)
    found = stats.paired_difference(treated, reference, bootstrap_generator(), reference_is_fixed=fixed)
    if treated is b:
        return found
    return replace(found, estimate=-found.estimate, low=-found.high, high=-found.low)


def _p_value(a: Array, b: Array, trained: tuple[bool, bool]) -> PValue:
    """Of no difference, both [seeds, tasks]."""
    treated, reference, fixed = _roles(a, b, trained)
    return stats.paired_p_value(treated, reference, bootstrap_generator(), reference_is_fixed=fixed)


def _roles(a: Array, b: Array, trained: tuple[bool, bool]) -> tuple[Array, Array, bool]:
    """Treated, reference, and whether that is fixed: a side that was not trained adds no chance of its own seeds."""
    treated, reference = (a, b) if trained == (True, False) else (b, a)
    return treated, reference, not all(trained)


def _task_results(
    arms: Sequence[Sequence[Evaluation]], task_types: Mapping[str, str]
) -> tuple[TaskResult, ...]:
    """Every task of the panel, in its order."""
    compared = np.logical_and.reduce([found.usable for arm in arms for found in arm])
    success, score = (
        [np.where(compared, np.mean([found.rates(what) for found in arm], axis=0), np.nan) for arm in arms]
        for what in _WHAT
    )
    errored = [np.sum([np.isnan(found.success).sum(axis=1) for found in arm], axis=0) for arm in arms]
    return tuple(
        TaskResult(
            task_id=task,
            task_type=task_types.get(task, ""),
            success=(float(success[0][place]), float(success[1][place])),
            score=(float(score[0][place]), float(score[1][place])),
            errored=(int(errored[0][place]), int(errored[1][place])),
        )
        for place, task in enumerate(arms[0][0].task_ids)
    )


_WHAT: tuple[What, What] = ("success", "score")


def _by_change(tasks: Iterable[TaskResult]) -> tuple[TaskResult, ...]:
    """The largest change first; equal ones in the panel's order. NaN compares as neither and never gets here."""
    return tuple(sorted(tasks, key=lambda task: -abs(task.change)))
