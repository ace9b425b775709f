"""What the runs of a suite came to: a row per variant, one per comparison, as numbers with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.reporting import stats
from benchmarks.reporting.columns import What
from benchmarks.reporting.evaluations import MODES, Evaluation
from benchmarks.reporting.load import Run, Suite
from benchmarks.reporting.settings import split
from benchmarks.reporting.stats import Array, Interval, PValue, Spread

WARM_START, ZERO_SHOT, FEW_SHOT, EXPERT = "warm-start", "zero-shot", "few-shot", "expert"
UNTRAINED = (WARM_START, ZERO_SHOT, FEW_SHOT, EXPERT)
METHODS = {"grpo": "GRPO", "dapo": "DAPO"}
ADDITIONS = {"scaling": "gradient scaling", "bonus": "future bonus", "empg": "EMPG"}
LABELS = {WARM_START: "warm start", ZERO_SHOT: "zero-shot", FEW_SHOT: "few-shot"}
for _name, _label in METHODS.items():
    LABELS |= {_name: _label} | {
        f"{_name}+{change}": f"{_label}+{added}" for change, added in ADDITIONS.items()
    }
LABELS[EXPERT] = "demonstrator (ceiling)"
TABLE_1 = ("grpo", "grpo+empg", "dapo", "dapo+empg")
"""The rows of a suite whose records do not say which variants it trains."""
BOOTSTRAP_SEED = 20250911
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Measure:
    """One quantity of one variant in one evaluation mode."""

    spread: Spread
    """Over training seeds."""
    interval: Interval
    """Over the tasks of the panel, of the mean over seeds."""


@dataclass(frozen=True)
class Part:
    """The episodes behind a measure that is not of all tasks."""

    episodes: int
    errored: int


@dataclass(frozen=True)
class ArmRow:
    """All that the main table says of a variant."""

    variant: str
    label: str
    seeds: int
    """Complete runs."""
    planned: int
    tasks: int
    """Tasks of the panel."""
    episodes: int
    """Evaluated episodes, all modes and seeds together."""
    errored: int
    measures: dict[tuple[str, str], Measure | None]
    """By evaluation mode and name (`success`, `success:pick`); None where nothing was evaluated."""
    parts: Mapping[str, Part]
    """By name, of the measures of one task type."""


@dataclass(frozen=True)
class Difference:
    """Treated minus reference in one evaluation mode, on the same tasks."""

    seeds: tuple[int, ...]
    """Seeds that both have, or the treated variant's own when the reference was not trained."""
    success: Interval
    score: Interval
    p_value: PValue
    """Of no difference in success, tested alone."""
    holm: float
    """The same corrected for the family of tests that it is shown with; see `corrected`."""
    parts: Mapping[str, float | None]
    """By name, of the measures of one task type: the difference alone; None where no task of it is left."""
    groups: Mapping[str, Interval | None]
    """By heading, of the groups of task types."""

    def of(self, what: What) -> Interval:
        """The difference in one measure."""
        return self.success if what == "success" else self.score

    def estimate(self, name: str) -> float | None:
        """The difference in a measure of all tasks or of one task type."""
        if name in self.parts:
            return self.parts[name]
        return (self.score if name == "score" else self.success).estimate

    @property
    def verdict(self) -> str:
        """Of the difference in success: significant only when neither interval nor corrected test allows zero.

        The interval is of this difference alone. It may leave out 0 where the test, corrected for its family,
        does not call the difference significant; never the other way round.
        """
        allowed = self.success.contains_zero or self.holm >= SIGNIFICANCE
        return "not significant" if allowed else "significant"


@dataclass(frozen=True)
class Comparison:
    """Two variants of one suite."""

    treated: str
    reference: str
    by_mode: dict[str, Difference]
    """Without the modes in which one of the two has no usable result."""

    @property
    def title(self) -> str:
        """`GRPO+EMPG − GRPO`."""
        return f"{label(self.treated)} − {label(self.reference)}"


def label(variant: str) -> str:
    """The name a reader knows a variant by, with its settings; an unlisted one keeps its own."""
    method, settings = split(variant)
    return ", ".join((LABELS.get(method, method), *settings))


def all_variants(suite: Suite) -> tuple[str, ...]:
    """Rows of the main table: the suite's own, with the served models before the demonstrator."""
    *own, demonstrator = variants(suite)
    return (*own, *suite.served, demonstrator)


def variants(suite: Suite) -> tuple[str, ...]:
    """The suite's own: the expected ones, present or not, then any others, the demonstrator last.

    Well-known ones are always in the same order, others as their suite lists them.
    """
    started = {info.variant for info in suite.infos} - set(suite.served)
    expected = {start(suite), *(suite.variants or TABLE_1), *started} - {EXPERT}
    return (*in_order((*suite.variants, *sorted(expected))), EXPERT)


def trained_variants(suite: Suite) -> tuple[str, ...]:
    """The same without those that are not trained."""
    return tuple(name for name in variants(suite) if name not in UNTRAINED)


def start(suite: Suite) -> str:
    """What training starts from: a warm start, or a given model with as many examples as in training."""
    trained = [info.config for info in suite.infos if info.kind == "train"]
    for config in trained or [info.config for info in suite.infos if info.kind == "base"]:
        if config.policy.model is not None:
            return FEW_SHOT if config.rollout.shots else ZERO_SHOT
    return WARM_START


def in_order(methods: Iterable[str]) -> list[str]:
    """Each method once: the well-known ones as they are always listed, then the others as they come."""
    found = dict.fromkeys(methods)
    return [name for name in LABELS if name in found] + [name for name in found if name not in LABELS]


def additions(methods: Sequence[str]) -> list[tuple[str, str]]:
    """Every `base+change` with its base, where that is among them too."""
    pairs = ((name, name.split("+")[0]) for name in methods if "+" in name)
    return [(name, base) for name, base in pairs if base in methods]


def arm_row(suite: Suite, variant: str) -> ArmRow:
    """Summarise a variant's complete runs; with none of them every measure is None."""
    runs = suite.of(variant)
    trained = variant not in (*UNTRAINED, *suite.served)
    evaluations = [found for run in runs for found in run.evaluations.values()]
    return ArmRow(
        variant=variant,
        label=label(variant),
        seeds=len(runs),
        planned=len(suite.planned_seeds) if trained else 1,
        tasks=max((len(found.task_ids) for found in evaluations), default=0),
        episodes=sum(found.success.size for found in evaluations),
        errored=sum(len(found.errors) for found in evaluations),
        measures=_measures(suite, runs),
        parts={name: _part(evaluations, tasks) for name, tasks in _tasks_of_types(suite).items()},
    )


def _tasks_of_types(suite: Suite) -> dict[str, frozenset[str]]:
    """The tasks behind each measure of one or several task types."""
    return {name: suite.tasks_of(*part.types) for name, part in suite.columns.parts.items()}


def _measures(suite: Suite, runs: Sequence[Run]) -> dict[tuple[str, str], Measure | None]:
    types = _tasks_of_types(suite)
    found: dict[tuple[str, str], Measure | None] = {}
    for mode in MODES:
        played = _of_mode(runs, mode)
        found |= {(mode, what): _measure(played, what) for what in suite.columns.measures}
        for name, tasks in types.items():
            found[mode, name] = _measure([one.only(tasks) for one in played], "success")
    return found


def _part(evaluations: Sequence[Evaluation], tasks: frozenset[str]) -> Part:
    played = [found.only(tasks) for found in evaluations]
    return Part(sum(found.success.size for found in played), sum(len(found.errors) for found in played))


def _of_mode(runs: Sequence[Run], mode: str) -> list[Evaluation]:
    return [run.evaluations[mode] for run in runs if mode in run.evaluations]


def _measure(evaluations: Sequence[Evaluation], what: What) -> Measure | None:
    finished = [found for found in evaluations if found.usable.any()]
    if not finished:
        return None
    of_seed = [float(np.nanmean(found.rates(what))) for found in finished]
    spread = stats.spread(of_seed)
    if what == "success":
        tasks = min(int(found.usable.sum()) for found in finished)
        return Measure(spread, stats.wilson(min(spread.mean, 1.0), tasks))
    rates, _ = paired_rates([finished], what)
    if not rates[0].size:
        return None
    return Measure(spread, stats.bootstrap_mean(rates[0].mean(axis=0), bootstrap_generator()))


def comparisons(suite: Suite) -> tuple[Comparison, ...]:
    """Every trained variant against where it started, then every `base+change` against its base."""
    names, origin = trained_variants(suite), start(suite)
    others = [name for name in variants(suite) if name in UNTRAINED and name not in (origin, EXPERT)]
    pairs = [*((name, origin) for name in (*others, *names)), *additions(names)]
    return corrected([compare(suite, treated, reference) for treated, reference in pairs])


def compare(suite: Suite, treated: str, reference: str) -> Comparison:
    """Paired over the tasks that every run of both variants finished; its modes are a family of tests."""
    found = {mode: _difference(suite, suite.of(treated), suite.of(reference), mode) for mode in MODES}
    present = {mode: value for mode, value in found.items() if value is not None}
    return corrected([Comparison(treated, reference, present)])[0]


def corrected(found: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The same with the tests of all of them, in every mode, as one family by Holm's correction."""
    tests = [one.p_value.value for each in found for one in each.by_mode.values()]
    holm = iter(stats.holm(tests))
    return tuple(
        replace(each, by_mode={mode: replace(one, holm=next(holm)) for mode, one in each.by_mode.items()})
        for each in found
    )


def _difference(
    suite: Suite, treated: Sequence[Run], reference: Sequence[Run], mode: str
) -> Difference | None:
    treated, reference = ([run for run in runs if mode in run.evaluations] for runs in (treated, reference))
    fixed = all(run.info.kind != "train" for run in reference)
    if not fixed:
        both = {run.info.seed for run in treated} & {run.info.seed for run in reference}
        treated, reference = ([run for run in runs if run.info.seed in both] for runs in (treated, reference))
    if not treated or not reference:
        return None
    arms = [_of_mode(treated, mode), _of_mode(reference, mode)]
    differences = _interval(arms, "success", fixed), _interval(arms, "score", fixed)
    if differences[0] is None or differences[1] is None:
        return None
    (success, base_success), _ = paired_rates(arms, "success")
    p_value = stats.paired_p_value(success, base_success, bootstrap_generator(), reference_is_fixed=fixed)
    return Difference(
        seeds=tuple(run.info.seed for run in treated),
        success=differences[0],
        score=differences[1],
        p_value=p_value,
        holm=p_value.value,
        parts={name: _mean_difference(arms, tasks) for name, tasks in _tasks_of_types(suite).items()},
        groups={
            heading: _interval(_only(arms, suite.tasks_of(*types)), "success", fixed)
            for heading, types in suite.columns.groups.items()
        },
    )


def _interval(arms: Sequence[Sequence[Evaluation]], what: What, fixed: bool) -> Interval | None:
    """First arm minus second; None where no task is left that all finished."""
    (treated, reference), tasks = paired_rates(arms, what)
    if tasks == 0:
        return None
    return stats.paired_difference(treated, reference, bootstrap_generator(), reference_is_fixed=fixed)


def _only(arms: Sequence[Sequence[Evaluation]], tasks: frozenset[str]) -> list[list[Evaluation]]:
    return [[found.only(tasks) for found in arm] for arm in arms]


def _mean_difference(arms: Sequence[Sequence[Evaluation]], tasks: frozenset[str]) -> float | None:
    """First arm minus second on some of the tasks."""
    (treated, reference), count = paired_rates(_only(arms, tasks), "success")
    return float(treated.mean() - reference.mean()) if count else None


def paired_rates(arms: Sequence[Sequence[Evaluation]], what: What) -> tuple[list[Array], int]:
    """([seeds, tasks] per arm, number of tasks), only tasks that every run of every arm finished."""
    everywhere = np.logical_and.reduce([found.usable for arm in arms for found in arm])
    rates = [np.stack([found.rates(what)[everywhere] for found in arm]) for arm in arms]
    return rates, int(everywhere.sum())


def bootstrap_generator() -> np.random.Generator:
    """The same stream for every interval: an interval does not depend on what else is in the table."""
    return np.random.default_rng(BOOTSTRAP_SEED)
