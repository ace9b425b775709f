"""Statistics of several benchmarks together: rliable's aggregates, with intervals over tasks and seeds.

A run's score is its success rate in [0, 1]. Scores come as one array for each benchmark, runs last, so that
the same function serves the runs themselves (`[runs]`) and thousands of resamples of them (`[resamples, runs]`).

Departures from rliable (Agarwal et al. 2021): tasks are resampled too, because a panel is a sample as well; what
seeds add is separated from chance within tasks and put back at its full size, because three seeds drawn with
replacement vary too little; and the generator is the caller's. Without the three, intervals of such suites hold
the truth in 73 to 90% of simulated suites instead of 95%.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats as scipy_stats

from benchmarks.reporting.stats import CONFIDENCE, RESAMPLES, Array, Interval, seed_variance

Statistic = Callable[..., Array]
"""Of one or more arms, each a list of scores by benchmark."""
TRIMMED = 0.25


def mean_over_benchmarks(scores: Sequence[Array]) -> Array:
    """Mean over benchmarks of the mean over runs; every benchmark weighs the same."""
    return np.asarray(np.mean([of_runs.mean(axis=-1) for of_runs in scores], axis=0))


def interquartile_mean(scores: Sequence[Array]) -> Array:
    """Mean of the middle half of all runs of all benchmarks: without a quarter, rounded down, at each end.

    Where benchmarks have unequal numbers of runs, runs are repeated so that every benchmark weighs the same.
    """
    common = math.lcm(*(of_runs.shape[-1] for of_runs in scores))
    repeated = [np.repeat(of_runs, common // of_runs.shape[-1], axis=-1) for of_runs in scores]
    runs = np.sort(np.concatenate(repeated, axis=-1), axis=-1)
    cut = int(TRIMMED * runs.shape[-1])
    return np.asarray(runs[..., cut : runs.shape[-1] - cut].mean(axis=-1))


def probability_of_improvement(treated: Sequence[Array], reference: Sequence[Array]) -> Array:
    """How often a run of `treated` beats one of `reference`, equals counting half; mean over benchmarks.

    Within a benchmark it is the Mann-Whitney statistic over the number of pairs.
    """
    by_benchmark = []
    for one, other in zip(treated, reference, strict=True):
        ahead = np.sign(one[..., :, None] - other[..., None, :])
        by_benchmark.append(0.5 + ahead.mean(axis=(-2, -1)) / 2)
    return np.asarray(np.mean(by_benchmark, axis=0))


def bootstrap_stratified(
    statistic: Statistic,
    *arms: Sequence[Array],
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """A statistic in [0, 1] of one or more arms, with a bootstrap interval stratified by benchmark.

    arms: for each a list of outcomes `[seeds, tasks]`, one by benchmark and all in the same order; the tasks
    of a benchmark are the same in every arm. NaN where an environment failed; no run may consist of NaN alone.

    Within each benchmark tasks are resampled for all arms and seeds together, which keeps what is paired, and
    what seeds add beyond chance within tasks is resampled for each arm. Its quantiles are moved outwards from the
    normal's to Student's, with the degrees of freedom that the seeds leave. A benchmark with one seed adds no
    chance of training: where all have one, the interval is of these policies, not of the methods.
    """
    _check(arms)
    observed = statistic(*([np.nanmean(outcomes, axis=1) for outcomes in arm] for arm in arms))
    of_policies: list[list[Array]] = [[] for _ in arms]
    of_methods: list[list[Array]] = [[] for _ in arms]
    for panel in zip(*arms, strict=True):
        counts = _resampled_tasks(panel[0].shape[1], generator, resamples)
        for place, outcomes in enumerate(panel):
            rates = _rates(counts, outcomes)
            of_policies[place].append(rates)
            of_methods[place].append(rates + _resampled_seeds(outcomes, generator, resamples))
    drawn = statistic(*of_methods)
    seeds = [outcomes.shape[0] for arm in arms for outcomes in arm]
    freedom = sum(seeds) - len(seeds)
    tail = _tail(float(statistic(*of_policies).var()), float(drawn.var()), freedom, confidence)
    low, high = np.clip(np.quantile(drawn, [tail, 1 - tail]), 0.0, 1.0)
    unit = "tasks and seeds" if freedom else "tasks"
    tasks = sum(outcomes.shape[1] for outcomes in arms[0])
    return Interval(float(observed), float(low), float(high), "stratified bootstrap", unit, tasks, min(seeds))


def _check(arms: Sequence[Sequence[Array]]) -> None:
    if not arms or not arms[0] or len({len(arm) for arm in arms}) != 1:
        raise ValueError(f"arms of {[len(arm) for arm in arms]} benchmarks; expected the same ones in each")
    for panel in zip(*arms, strict=True):
        for outcomes in panel:
            if outcomes.ndim != 2 or 0 in outcomes.shape:
                raise ValueError(f"outcomes of shape {outcomes.shape}; expected [seeds, tasks]")
            if not np.isfinite(outcomes).any(axis=1).all():
                raise ValueError(
                    "a run without any outcome; expected it to be left out, and shown as missing"
                )
        if len({outcomes.shape[1] for outcomes in panel}) != 1:
            raise ValueError(f"{[one.shape[1] for one in panel]} tasks; expected the same panel in every arm")


def _resampled_tasks(tasks: int, generator: np.random.Generator, resamples: int) -> Array:
    """[resamples, tasks]: how often each resample draws each task."""
    drawn = generator.integers(tasks, size=(resamples, tasks)) + tasks * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * tasks).reshape(resamples, tasks).astype(float)


def _rates(counts: Array, outcomes: Array) -> Array:
    """[resamples, seeds]: mean outcome over the drawn tasks that a run finished; over all where it finished none."""
    finished = np.isfinite(outcomes)
    played = counts @ finished.T
    total = counts @ np.where(finished, outcomes, 0.0).T
    overall = np.broadcast_to(np.nanmean(outcomes, axis=1), total.shape)
    return np.asarray(np.divide(total, played, out=overall.copy(), where=played > 0))


def _resampled_seeds(outcomes: Array, generator: np.random.Generator, resamples: int) -> Array:
    """[resamples, seeds]: deviations of drawn seeds, scaled so that their mean varies by `seed_variance`."""
    seeds = outcomes.shape[0]
    if seeds == 1:
        return np.zeros((resamples, 1))
    rates = np.nanmean(outcomes, axis=1)
    everywhere = np.isfinite(outcomes).all(axis=0)
    added = seed_variance(outcomes[:, everywhere]) if everywhere.any() else float(rates.var(ddof=1)) / seeds
    spread = float(rates.var())
    scale = math.sqrt(seeds * added / spread) if spread > 0 else 0.0
    effects = scale * (rates - rates.mean())
    return np.asarray(effects[generator.integers(seeds, size=(resamples, seeds))])


def _tail(of_tasks: float, of_both: float, freedom: int, confidence: float) -> float:
    """Share of draws beyond each end of an interval: the normal's share beyond Student's quantile.

    Satterthwaite: of the variance `of_both` only what is not `of_tasks` was estimated with few degrees of freedom.
    """
    added = max(0.0, 1.0 - of_tasks / of_both) if of_both > 0 else 0.0
    if freedom == 0 or added == 0.0:
        return (1 - confidence) / 2
    quantile = scipy_stats.t.ppf(0.5 + confidence / 2, freedom / added**2)
    return float(scipy_stats.norm.sf(quantile))
