"""Intervals and tests for success rates: pure functions on arrays, always with unit and n.

Outcomes are arrays `[seeds, tasks]`: the result of each task of one pinned panel under each training seed, in
[0, 1] (a task played several times enters as its mean, so that repeats never pass for further tasks). Two
kinds of chance are kept apart: which tasks are on the panel, and how training would end with another seed.

Departures from common practice: no interval treats episodes as independent across seeds or samples of a task,
and none resamples three seeds by bootstrap alone, which is far too narrow. `python -m benchmarks coverage`
measures how often each interval holds the truth, and where it falls short.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats as scipy_stats

Array = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 10_000
FEW = 5
"""A bootstrap over tasks of which fewer stand out is far too narrow: resamples cannot show what was rarely seen."""
ROUNDING = 1e-9
"""Of rates that are equal but for the order in which they were summed."""


@dataclass(frozen=True)
class Interval:
    """A point estimate and its interval, never one without the other."""

    estimate: float
    low: float
    high: float
    method: str
    """How the interval was made, for the caption."""
    unit: str
    """What was counted: `tasks`, or `tasks and seeds`."""
    n: int
    """Number of tasks."""
    seeds: int = 1

    @property
    def contains_zero(self) -> bool:
        """Whether no difference is among the values that the data allow."""
        return self.low <= 0.0 <= self.high


@dataclass(frozen=True)
class PValue:
    """How well the data agree with no difference at all, and the test that says so."""

    value: float
    """Two-sided."""
    test: str
    """For the caption: `exact McNemar`, `sign flips`, `Student t`."""


@dataclass(frozen=True)
class Spread:
    """Mean over seeds, with the sample standard deviation (ddof 1) when there is more than one."""

    mean: float
    sd: float | None
    values: tuple[float, ...]


def wilson(rate: float, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson score interval of a success rate over `n` tasks.

    `rate` may be a mean of per-task rates. For those the binomial variance is an upper bound, so the interval
    stays honest (it can only be too wide) when tasks were played more than once.
    """
    if n < 1:
        raise ValueError(f"an interval over {n} tasks; expected at least one")
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"a success rate of {rate}; expected a value in [0, 1]")
    z = float(scipy_stats.norm.ppf(0.5 + confidence / 2))
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if rate == 0.0 else max(0.0, centre - half)
    high = 1.0 if rate == 1.0 else min(1.0, centre + half)
    return Interval(rate, low, high, "Wilson", "tasks", n)


def mcnemar_exact(
    first: Sequence[bool] | NDArray[np.bool_], second: Sequence[bool] | NDArray[np.bool_]
) -> float:
    """Two-sided p-value that two policies solve equally many of the same tasks.

    Only tasks that one of them solved and the other did not carry information; without any the answer is 1.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} outcomes against {len(second)}; expected the same tasks in both")
    one, two = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    only_first, only_second = int(np.sum(one & ~two)), int(np.sum(~one & two))
    if only_first + only_second == 0:
        return 1.0
    return float(scipy_stats.binomtest(only_first, only_first + only_second, 0.5).pvalue)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P-values corrected for being one family, in the order given (Holm 1979).

    Calling those below 0.05 significant keeps the chance of any false call at 5%, whatever their dependence.
    """
    values = np.asarray(p_values, dtype=float)
    if bad := [value for value in p_values if not 0.0 <= value <= 1.0]:
        raise ValueError(f"a p-value of {bad[0]}; expected a value in [0, 1]")
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(values.size, 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return tuple(map(float, adjusted))


def spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation over seeds; a single seed has no standard deviation."""
    if not values:
        raise ValueError("no values to average; expected at least one seed")
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Spread(float(np.mean(values)), sd, tuple(values))


def bootstrap_mean(
    values: Array, generator: np.random.Generator, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> Interval:
    """Percentile bootstrap interval of a mean over tasks; `values` is [tasks].

    For a paired difference, pass the differences: resampling tasks then keeps each pair together.
    """
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"values of shape {values.shape}; expected [tasks] with at least one task")
    n = values.size
    counts = generator.multinomial(n, np.full(n, 1.0 / n), size=resamples)
    # One product instead of a gather; its rounding would otherwise turn an exact 0 into 1e-17.
    means = np.round(counts @ values / n, 12)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(values.mean()), float(low), float(high), "bootstrap", "tasks", n)


def paired_difference(
    treated: Array,
    reference: Array,
    generator: np.random.Generator,
    *,
    reference_is_fixed: bool = False,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Mean of `treated` minus mean of `reference` on the same tasks, both `[seeds, tasks]`.

    With one seed each: paired bootstrap over tasks, or `adjusted_wald` where all but a few tasks differ
    equally. It speaks about these two policies, not about the methods that trained them. With more seeds:
    `crossed_interval`, which speaks about the methods. A fixed reference is one policy that is not retrained,
    such as the warm start: it adds no chance of its own seeds.
    """
    trained = _arms_of_chance(treated, reference, reference_is_fixed)
    if trained:
        return crossed_interval(treated, reference, trained, confidence)
    difference = treated.mean(axis=0) - reference.mean(axis=0)
    if _stand_out(difference) < FEW:
        return adjusted_wald(difference, confidence)
    return bootstrap_mean(difference, generator, resamples, confidence)


def paired_p_value(
    treated: Array, reference: Array, generator: np.random.Generator, *, reference_is_fixed: bool = False
) -> PValue:
    """Of no difference between two arms, both `[seeds, tasks]`; the test that belongs to `paired_difference`.

    With one seed each, of these two policies: exact McNemar where every task was solved or not, else a
    permutation test that flips the signs of the tasks' differences (the same test for rates between 0 and 1).
    With more seeds, of the methods: the Student t of `crossed_interval`, so that p < 0.05 exactly where the
    95% interval leaves out 0.
    """
    trained = _arms_of_chance(treated, reference, reference_is_fixed)
    difference = treated.mean(axis=0) - reference.mean(axis=0)
    if trained:
        centre, error, freedom = _student(treated, reference, trained)
        if error > ROUNDING:  # else nothing varies, and only the number of tasks speaks
            return PValue(float(2 * scipy_stats.t.sf(abs(centre) / error, freedom)), "Student t")
    elif all(np.isin(arm, (0.0, 1.0)).all() for arm in (treated, reference)):
        return PValue(mcnemar_exact(treated[0] > 0, reference[0] > 0), "exact McNemar")
    return PValue(_sign_flips(difference, generator), "sign flips")


def _sign_flips(difference: Array, generator: np.random.Generator) -> float:
    """Two-sided p of a mean of 0 by flipping signs: in all ways where they are few, else in random ones."""
    sizes = np.abs(difference[np.abs(difference) > ROUNDING])
    observed = abs(float(difference.sum())) - ROUNDING
    if 2**sizes.size <= RESAMPLES:
        signs = np.array(list(itertools.product((-1, 1), repeat=sizes.size)))
        return float(np.mean(np.abs(signs @ sizes) >= observed))
    signs = generator.choice((-1, 1), size=(RESAMPLES - 1, sizes.size))
    return float(1 + np.sum(np.abs(signs @ sizes) >= observed)) / RESAMPLES


def _arms_of_chance(treated: Array, reference: Array, reference_is_fixed: bool) -> tuple[Array, ...]:
    """The arms whose training seeds are chance; none where each has a single seed, which shows no such chance."""
    for name, outcomes in (("treated", treated), ("reference", reference)):
        if outcomes.ndim != 2 or 0 in outcomes.shape:
            raise ValueError(f"{name} outcomes of shape {outcomes.shape}; expected [seeds, tasks]")
        if not np.all(np.isfinite(outcomes)):
            raise ValueError(
                f"{name} outcomes hold missing values; expected only tasks that every run finished"
            )
    if treated.shape[1] != reference.shape[1]:
        raise ValueError(f"{treated.shape[1]} tasks against {reference.shape[1]}; expected the same panel")
    trained = (treated,) if reference_is_fixed else (treated, reference)
    seeds = [arm.shape[0] for arm in trained]
    if min(seeds) > 1:
        return trained
    if max(seeds) > 1:
        raise ValueError("one seed against several; compare the seeds that both have")
    return ()


def _stand_out(difference: Array) -> int:
    """How many tasks differ otherwise than most do."""
    _, counts = np.unique(np.round(difference, 9), return_counts=True)
    return int(difference.size - counts.max())


def adjusted_wald(difference: Array, confidence: float = CONFIDENCE) -> Interval:
    """Interval of a mean paired difference; `difference` is [tasks] in [-1, 1].

    As if one more task had been won and one more lost (Bonett and Price 2012), so that it has a width even
    where all tasks differ equally: 200 equal tasks do not prove that the next one would be.
    """
    z = float(scipy_stats.norm.ppf(0.5 + confidence / 2))
    padded = np.append(difference, (1.0, -1.0))
    half = z * float(padded.std()) / math.sqrt(padded.size)
    low, high = max(-1.0, float(padded.mean()) - half), min(1.0, float(padded.mean()) + half)
    return Interval(float(difference.mean()), low, high, "adjusted Wald", "tasks", difference.size)


def crossed_interval(
    treated: Array, reference: Array, trained: Sequence[Array], confidence: float = CONFIDENCE
) -> Interval:
    """Student-t interval of a difference in means where tasks and training seeds are both chance.

    The variance is the sum of what the panel contributes (the spread of per-task differences) and what each
    trained arm's seeds contribute beyond it (the two-way analysis-of-variance component, not below 0). Its
    degrees of freedom follow Welch and Satterthwaite, which is what makes three seeds honest. Where nothing
    varies at all, over neither tasks nor seeds: `adjusted_wald`.

    It holds the truth in 93 to 97% of simulated tables with three seeds that vary by up to 10 points; of two seeds
    it is too narrow once they vary by 5 points or more (85 to 92%): seeds that happen to agree hide how they vary.
    """
    centre, error, freedom = _student(treated, reference, trained)
    seeds = min(arm.shape[0] for arm in trained)
    if error <= ROUNDING:
        return replace(adjusted_wald(treated.mean(axis=0) - reference.mean(axis=0), confidence), seeds=seeds)
    half = float(scipy_stats.t.ppf(0.5 + confidence / 2, freedom)) * error
    low, high = max(-1.0, centre - half), min(1.0, centre + half)  # outcomes lie in [0, 1]
    return Interval(centre, low, high, "Student t", "tasks and seeds", treated.shape[1], seeds)


def _student(treated: Array, reference: Array, trained: Sequence[Array]) -> tuple[float, float, float]:
    """Difference in means, its standard error and the error's degrees of freedom."""
    tasks = treated.shape[1]
    difference = treated.mean(axis=0) - reference.mean(axis=0)
    parts = [(float(difference.var(ddof=1)) / tasks if tasks > 1 else 0.0, tasks - 1)]
    parts += [(seed_variance(arm), arm.shape[0] - 1) for arm in trained]
    variance = sum(value for value, _ in parts)
    weight = sum(value**2 / freedom for value, freedom in parts if freedom > 0)
    return float(difference.mean()), math.sqrt(variance), variance**2 / weight if weight > 0 else 1.0


def seed_variance(outcomes: Array) -> float:
    """Variance that seeds add to the mean of `outcomes` [seeds, tasks], beyond chance within tasks."""
    seeds, tasks = outcomes.shape
    of_seed = outcomes.mean(axis=1)
    between = float(of_seed.var(ddof=1) / seeds)
    if tasks == 1:
        return between
    residual = outcomes - of_seed[:, None] - outcomes.mean(axis=0)[None, :] + outcomes.mean()
    within = float(np.sum(residual**2) / ((seeds - 1) * (tasks - 1)) / (seeds * tasks))
    return max(0.0, between - within)
