"""Aggregates over benchmarks against rliable and brute force, and their bootstrap against what it must keep."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rliable import metrics

from benchmarks.reporting.stratified import (
    bootstrap_stratified,
    interquartile_mean,
    mean_over_benchmarks,
    probability_of_improvement,
)

RATES = st.sampled_from([number / 10 for number in range(11)])  # few values, so that ties are common
SHAPES = st.tuples(st.integers(1, 8), st.integers(1, 5))
RUNS = SHAPES.flatmap(lambda shape: arrays(float, shape, elements=RATES))
PAIRS = st.integers(1, 4).flatmap(
    lambda benchmarks: st.tuples(
        *(
            st.integers(1, 6).flatmap(lambda runs: arrays(float, (runs, benchmarks), elements=RATES))
            for _ in range(2)
        )
    )
)

UNHURRIED = settings(deadline=None, max_examples=50)


def by_benchmark(runs: np.ndarray) -> list[np.ndarray]:
    """rliable's runs × tasks as one array of runs for each benchmark."""
    return list(runs.T)


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def outcomes(seeds: int, tasks: int = 40, chance: float = 0.5, number: int = 3) -> np.ndarray:
    return (np.random.default_rng(number).random((seeds, tasks)) < chance).astype(float)


@UNHURRIED
@given(RUNS)
def test_the_interquartile_mean_is_rliables_and_scipys(runs: np.ndarray) -> None:
    found = float(interquartile_mean(by_benchmark(runs)))
    assert found == pytest.approx(metrics.aggregate_iqm(runs), abs=1e-9)
    assert found == pytest.approx(scipy.stats.trim_mean(runs, 0.25, axis=None), abs=1e-9)


@UNHURRIED
@given(RUNS)
def test_the_mean_over_benchmarks_is_rliables(runs: np.ndarray) -> None:
    assert float(mean_over_benchmarks(by_benchmark(runs))) == pytest.approx(
        metrics.aggregate_mean(runs), abs=1e-9
    )


@UNHURRIED
@given(PAIRS)
def test_the_probability_of_improvement_is_rliables_and_counts_pairs_with_ties_as_half(
    pair: tuple[np.ndarray, np.ndarray],
) -> None:
    one, other = pair
    found = float(probability_of_improvement(by_benchmark(one), by_benchmark(other)))
    assert found == pytest.approx(metrics.probability_of_improvement(one, other), abs=1e-9)
    counted = [
        np.mean([1.0 if x > y else 0.5 if x == y else 0.0 for x, y in itertools.product(*columns)])
        for columns in zip(one.T, other.T, strict=True)
    ]
    assert found == pytest.approx(np.mean(counted), abs=1e-9)
    assert 1 - found == pytest.approx(
        float(probability_of_improvement(by_benchmark(other), by_benchmark(one))), abs=1e-9
    )


def test_a_benchmark_with_more_seeds_weighs_no_more() -> None:
    low, high = np.array([0.1, 0.1, 0.1]), np.array([0.9])
    assert float(interquartile_mean([low, high])) == pytest.approx(0.5)
    assert float(mean_over_benchmarks([low, high])) == pytest.approx(0.5)


def test_one_outlying_run_moves_the_mean_and_not_the_interquartile_mean() -> None:
    runs = [np.array([0.5, 0.5, 0.5, 0.0])]
    assert float(interquartile_mean(runs)) == 0.5
    assert float(mean_over_benchmarks(runs)) == 0.375


def test_the_interval_of_one_seed_is_of_tasks_and_that_of_several_is_of_both() -> None:
    one = bootstrap_stratified(interquartile_mean, [outcomes(1), outcomes(1, 60)], generator=generator())
    three = bootstrap_stratified(interquartile_mean, [outcomes(3), outcomes(3, 60)], generator=generator())
    assert (one.unit, one.n, one.seeds) == ("tasks", 100, 1)
    assert (three.unit, three.n, three.seeds) == ("tasks and seeds", 100, 3)


def test_with_one_seed_it_is_the_bootstrap_over_the_tasks_of_each_benchmark() -> None:
    panels = [outcomes(1, 300, 0.3), outcomes(1, 200, 0.6)]
    found = bootstrap_stratified(mean_over_benchmarks, panels, generator=generator(), resamples=20_000)
    error = math.sqrt(sum(panel.var() / panel.size for panel in panels)) / 2
    assert found.low == pytest.approx(found.estimate - 1.96 * error, abs=2e-3)
    assert found.high == pytest.approx(found.estimate + 1.96 * error, abs=2e-3)


def test_where_seeds_alone_vary_the_interval_reaches_as_far_as_three_seeds_can_show() -> None:
    # Two degrees of freedom put the ends beyond all draws: the best is three times the best seed, and deviations
    # are scaled by sqrt(3 / 2), because three values vary about their own mean less than about the true one.
    panel = np.tile(np.array([0.4, 0.5, 0.6])[:, None], 50)
    found = bootstrap_stratified(mean_over_benchmarks, [panel], generator=generator())
    assert found.high - found.estimate == pytest.approx(0.1 * math.sqrt(3 / 2))
    assert found.estimate - found.low == pytest.approx(0.1 * math.sqrt(3 / 2))


def test_seeds_that_differ_no_more_than_chance_within_tasks_allows_add_nothing() -> None:
    panel = np.zeros((3, 40))
    panel[[0, 1, 2, 2], [0, 1, 2, 3]] = 1.0  # rates of 1, 1 and 2 in 40
    found = bootstrap_stratified(mean_over_benchmarks, [panel], generator=generator())
    alone = bootstrap_stratified(mean_over_benchmarks, [panel.mean(axis=0)[None, :]], generator=generator())
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high))


def test_arms_share_their_tasks_so_that_a_better_run_stays_better_on_every_resample() -> None:
    reference = np.linspace(0.0, 0.8, 50)[None, :]
    found = bootstrap_stratified(
        probability_of_improvement, [reference + 0.1], [reference], generator=generator()
    )
    assert (found.estimate, found.low, found.high) == (1.0, 1.0, 1.0)


def test_an_episode_that_failed_in_the_environment_counts_in_no_rate() -> None:
    whole, broken = outcomes(1, 60), outcomes(1, 60)
    broken = np.append(broken, [[np.nan] * 5], axis=1)
    found = [
        bootstrap_stratified(mean_over_benchmarks, [panel], generator=generator(), resamples=20_000)
        for panel in (whole, broken)
    ]
    assert found[0].estimate == found[1].estimate
    assert (found[1].low, found[1].high) == pytest.approx((found[0].low, found[0].high), abs=0.02)


def test_an_interval_depends_on_its_generator_and_on_nothing_else() -> None:
    panels = [np.random.default_rng(3).random((3, 40)) for _ in range(2)]
    np.random.seed(1)
    first = bootstrap_stratified(interquartile_mean, panels, generator=generator())
    np.random.seed(2)
    assert bootstrap_stratified(interquartile_mean, panels, generator=generator()) == first
    other = bootstrap_stratified(interquartile_mean, panels, generator=np.random.default_rng(9))
    assert other.low != first.low


def test_what_cannot_be_resampled_is_refused() -> None:
    with pytest.raises(ValueError, match="expected the same ones in each"):
        bootstrap_stratified(probability_of_improvement, [outcomes(1)], [], generator=generator())
    with pytest.raises(ValueError, match=r"expected \[seeds, tasks\]"):
        bootstrap_stratified(interquartile_mean, [np.empty((0, 3))], generator=generator())
    with pytest.raises(ValueError, match="a run without any outcome"):
        bootstrap_stratified(interquartile_mean, [np.full((1, 3), np.nan)], generator=generator())
    with pytest.raises(ValueError, match="expected the same panel in every arm"):
        bootstrap_stratified(
            probability_of_improvement, [outcomes(1)], [outcomes(1, 41)], generator=generator()
        )
