"""Intervals and tests against independent computations, by hand and by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reporting.stats import (
    bootstrap_mean,
    mcnemar_exact,
    paired_difference,
    spread,
    wilson,
)


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("successes", "low", "high"), [(0, 0.0, 0.0279), (67, 0.4165, 0.5835), (134, 0.9721, 1.0)]
)
def test_wilson_gives_the_published_bounds_for_134_tasks(successes: int, low: float, high: float) -> None:
    interval = wilson(successes / 134, 134)
    assert (interval.low, interval.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))
    assert (interval.unit, interval.n) == ("tasks", 134)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(counts: tuple[int, int]) -> None:
    successes, n = counts
    expected = scipy.stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    interval = wilson(successes / n, n)
    assert interval.low == pytest.approx(expected.low, abs=1e-9)
    assert interval.high == pytest.approx(expected.high, abs=1e-9)
    assert 0.0 <= interval.low <= interval.estimate <= interval.high <= 1.0


@pytest.mark.parametrize(("rate", "n"), [(0.5, 0), (1.2, 10), (-0.1, 10), (math.nan, 10)])
def test_wilson_refuses_impossible_counts(rate: float, n: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        wilson(rate, n)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_mcnemar_sums_the_binomial_tails_of_the_discordant_tasks(pairs: list[tuple[bool, bool]]) -> None:
    first, second = zip(*pairs, strict=True)
    wins = sum(a and not b for a, b in pairs)
    losses = sum(b and not a for a, b in pairs)
    n = wins + losses
    tail = sum(math.comb(n, k) for k in range(max(wins, losses), n + 1)) / 2**n
    expected = 1.0 if wins == losses else min(1.0, 2 * tail)
    assert mcnemar_exact(first, second) == pytest.approx(expected, abs=1e-12)
    assert mcnemar_exact(second, first) == pytest.approx(expected, abs=1e-12)


def test_mcnemar_refuses_outcomes_of_different_panels() -> None:
    with pytest.raises(ValueError, match="3 outcomes against 2"):
        mcnemar_exact([True, False, True], [True, False])


def test_bootstrap_of_four_tasks_matches_the_exact_resampling_distribution() -> None:
    # All 4^4 resamples, enumerated.
    values = np.array([1.0, 0.0, 0.0, 0.25])
    means = np.sort([np.mean(draw) for draw in itertools.product(values, repeat=4)])
    exact_low, exact_high = np.quantile(means, [0.025, 0.975], method="inverted_cdf")
    interval = bootstrap_mean(values, generator(), resamples=200_000)
    assert interval.estimate == pytest.approx(0.3125)
    assert (interval.low, interval.high) == (pytest.approx(exact_low), pytest.approx(exact_high))


def test_bootstrap_agrees_with_scipy_on_many_tasks() -> None:
    values = generator().beta(2.0, 3.0, size=150)
    expected = scipy.stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=1)
    interval = bootstrap_mean(values, generator(), resamples=20_000)
    assert interval.low == pytest.approx(expected.confidence_interval.low, abs=2e-3)
    assert interval.high == pytest.approx(expected.confidence_interval.high, abs=2e-3)


def test_bootstrap_depends_on_the_generator_it_is_given_and_on_nothing_else() -> None:
    values = generator().random(50)
    np.random.seed(1)
    first = bootstrap_mean(values, generator())
    np.random.seed(2)
    assert bootstrap_mean(values, generator()) == first
    assert bootstrap_mean(values, np.random.default_rng(7)).low != first.low


def test_a_constant_gain_on_every_task_has_no_uncertainty_because_tasks_stay_paired() -> None:
    reference = generator().random((1, 60)) * 0.5
    interval = paired_difference(reference + 0.25, reference, generator())
    assert (interval.low, interval.high) == (pytest.approx(0.25), pytest.approx(0.25))
    assert not interval.contains_zero


def test_equal_outcomes_differ_by_exactly_zero() -> None:
    outcomes = (generator().random((1, 40)) < 0.5).astype(float)
    interval = paired_difference(outcomes, outcomes, generator())
    assert (interval.estimate, interval.low, interval.high) == (0.0, 0.0, 0.0)
    assert interval.contains_zero


def test_spread_of_tasks_alone_gives_the_paired_t_interval() -> None:
    difference = generator().normal(0.1, 0.2, size=30).clip(-0.5, 0.5)
    reference = np.full((3, 30), 0.5)
    interval = paired_difference(reference + difference, reference, generator())
    expected = scipy.stats.ttest_1samp(difference, 0.0).confidence_interval()
    assert (interval.low, interval.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert (interval.unit, interval.n, interval.seeds) == ("tasks and seeds", 30, 3)


def test_spread_of_seeds_alone_gives_the_welch_interval() -> None:
    one, two = np.array([0.5, 0.6, 0.9]), np.array([0.3, 0.35, 0.4])
    interval = paired_difference(np.tile(one[:, None], 10), np.tile(two[:, None], 10), generator())
    expected = scipy.stats.ttest_ind(one, two, equal_var=False).confidence_interval()
    assert (interval.low, interval.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_a_fixed_reference_adds_no_chance_of_its_own() -> None:
    # Seeds 0.4, 0.5, 0.6 on every task against a policy that always reaches 0.2:
    # variance 0.01 / 3, two degrees of freedom, t = 4.302653.
    treated = np.tile(np.array([[0.4], [0.5], [0.6]]), 8)
    interval = paired_difference(treated, np.full((1, 8), 0.2), generator(), reference_is_fixed=True)
    half = 4.302653 * math.sqrt(0.01 / 3)
    assert interval.low == pytest.approx(0.3 - half, abs=1e-6)
    assert interval.high == pytest.approx(0.3 + half, abs=1e-6)


@pytest.mark.parametrize(("seeds", "fixed"), [(1, False), (3, False), (3, True)])
def test_difference_intervals_cover_the_truth_about_as_often_as_they_claim(seeds: int, fixed: bool) -> None:
    random = np.random.default_rng(11)
    seed_sd = 0.05 if seeds > 1 else 0.0
    covered, rounds = 0, 300
    for _ in range(rounds):
        difficulty = random.uniform(0.1, 0.7, size=100)
        arms = []
        for gain, rows, sd in (
            (0.1, seeds, seed_sd),
            (0.0, 1 if fixed else seeds, 0.0 if fixed else seed_sd),
        ):
            chance = difficulty + gain + sd * random.normal(size=(rows, 1))
            arms.append((random.random((rows, 100)) < chance).astype(float))
        interval = paired_difference(arms[0], arms[1], random, reference_is_fixed=fixed, resamples=400)
        covered += interval.low <= 0.1 <= interval.high
    assert 0.91 <= covered / rounds <= 0.985


def test_differences_refuse_unequal_panels_missing_outcomes_and_lone_seeds() -> None:
    three, one = np.zeros((3, 5)), np.zeros((1, 5))
    with pytest.raises(ValueError, match="5 tasks against 4"):
        paired_difference(one, np.zeros((1, 4)), generator())
    with pytest.raises(ValueError, match="missing values"):
        paired_difference(np.full((1, 5), np.nan), one, generator())
    with pytest.raises(ValueError, match="one seed against several"):
        paired_difference(three, one, generator())
    with pytest.raises(ValueError, match=r"expected \[seeds, tasks\]"):
        paired_difference(np.zeros(5), one, generator())


def test_one_seed_has_no_standard_deviation_and_several_have_the_sample_one() -> None:
    assert spread([0.5]).sd is None
    assert spread([0.2, 0.4, 0.6]).sd == pytest.approx(0.2)
    with pytest.raises(ValueError, match="at least one seed"):
        spread([])
