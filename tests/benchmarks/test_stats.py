"""Intervals and tests against independent computations, by hand and by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from benchmarks.reporting.stats import (
    adjusted_wald,
    bootstrap_mean,
    holm,
    mcnemar_exact,
    paired_difference,
    paired_p_value,
    spread,
    wilson,
)

UNHURRIED = settings(deadline=None, max_examples=50)


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("successes", "low", "high"), [(0, 0.0, 0.0279), (67, 0.4165, 0.5835), (134, 0.9721, 1.0)]
)
def test_p5_wilson_gives_the_known_bounds_for_134_tasks(successes: int, low: float, high: float) -> None:
    interval = wilson(successes / 134, 134)
    assert (interval.low, interval.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))
    assert (interval.unit, interval.n) == ("tasks", 134)


@UNHURRIED
@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy_and_statsmodels(counts: tuple[int, int]) -> None:
    successes, n = counts
    interval = wilson(successes / n, n)
    theirs = scipy.stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert (interval.low, interval.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert (interval.low, interval.high) == pytest.approx(
        proportion_confint(successes, n, method="wilson"), abs=1e-9
    )
    assert 0.0 <= interval.low <= interval.estimate <= interval.high <= 1.0


@pytest.mark.parametrize(("rate", "n"), [(0.5, 0), (1.2, 10), (-0.1, 10), (math.nan, 10)])
def test_wilson_refuses_impossible_counts(rate: float, n: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        wilson(rate, n)


@UNHURRIED
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
    theirs = mcnemar([[0, wins], [losses, 0]], exact=True).pvalue if n else 1.0
    assert mcnemar_exact(first, second) == pytest.approx(theirs, abs=1e-9)


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


def test_tasks_stay_paired_so_that_their_difficulty_adds_no_uncertainty() -> None:
    reference = np.tile([0.1, 0.9], 100)[None, :]
    gain = np.tile([0.04, 0.05, 0.06, 0.05], 50)
    interval = paired_difference(reference + gain, reference, generator())
    assert (interval.low, interval.high) == (pytest.approx(0.049, abs=5e-4), pytest.approx(0.051, abs=5e-4))


@pytest.mark.parametrize("seeds", [1, 3])
def test_policies_that_agree_on_every_task_differ_by_zero_give_or_take_what_so_many_tasks_can_hide(
    seeds: int,
) -> None:
    outcomes = np.tile((generator().random((1, 200)) < 0.5).astype(float), (seeds, 1))
    interval = paired_difference(outcomes, outcomes, generator())
    half = 1.959964 * math.sqrt(2 / 202 / 202)  # as if one of 202 tasks were won and one lost
    assert interval.estimate == 0.0
    assert (interval.low, interval.high) == (pytest.approx(-half), pytest.approx(half))
    assert (interval.unit, interval.n, interval.seeds) == ("tasks", 200, seeds)
    assert paired_p_value(outcomes, outcomes, generator()).value == 1.0


@UNHURRIED
@given(wins=st.integers(0, 60), losses=st.integers(0, 60), ties=st.integers(0, 60))
def test_adjusted_wald_is_bonett_and_prices_formula(wins: int, losses: int, ties: int) -> None:
    n = wins + losses + ties
    if n == 0:
        return
    interval = adjusted_wald(np.repeat([1.0, -1.0, 0.0], [wins, losses, ties]))
    won, lost = (wins + 1) / (n + 2), (losses + 1) / (n + 2)
    half = 1.959963984540054 * math.sqrt((won + lost - (won - lost) ** 2) / (n + 2))
    assert interval.low == pytest.approx(max(-1.0, won - lost - half), abs=1e-9)
    assert interval.high == pytest.approx(min(1.0, won - lost + half), abs=1e-9)
    assert interval.low <= interval.estimate <= interval.high


def test_few_tasks_that_stand_out_are_not_left_to_the_bootstrap() -> None:
    reference = np.zeros((1, 134))
    methods = []
    for won in (4, 5):
        treated = reference.copy()
        treated[0, :won] = 1.0
        methods.append(paired_difference(treated, reference, generator()).method)
    assert methods == ["adjusted Wald", "bootstrap"]


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


@pytest.mark.parametrize("size", [1, 12, 40])
def test_holm_agrees_with_statsmodels(size: int) -> None:
    p_values = (generator().integers(0, 30, size) / 600).tolist()  # some alike, some near 0.05 once corrected
    assert holm(p_values) == pytest.approx(tuple(multipletests(p_values, method="holm")[1]), abs=1e-9)


@UNHURRIED
@given(st.lists(st.floats(0.0, 1.0), max_size=20))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values: list[float]) -> None:
    rejected = set()
    for place in sorted(range(len(p_values)), key=p_values.__getitem__):
        if p_values[place] * (len(p_values) - len(rejected)) >= 0.05:
            break
        rejected.add(place)
    adjusted = holm(p_values)
    assert {place for place, value in enumerate(adjusted) if value < 0.05} == rejected


def test_holm_keeps_the_order_and_a_later_test_is_never_below_an_earlier_one() -> None:
    # 0.01 × 4, 0.02 × 3, then 0.03 × 2 and 0.04 × 1, which may not fall below 0.06.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))
    assert holm([0.6, 0.7]) == (1.0, 1.0)


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1])
def test_holm_refuses_what_is_no_p_value(bad: float) -> None:
    with pytest.raises(ValueError, match=r"expected a value in \[0, 1\]"):
        holm([0.5, bad])


@UNHURRIED
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_sign_flips_are_mcnemars_test_for_tasks_played_more_than_once(pairs: list[tuple[bool, bool]]) -> None:
    first, second = np.array(pairs, dtype=float).T
    once = paired_p_value(first[None, :], second[None, :], generator())
    assert (once.test, once.value) == ("exact McNemar", mcnemar_exact(first > 0, second > 0))
    # A third task outcome of one half makes it no matter of solved or not, and adds no difference.
    halves = [np.append(arm, 0.5)[None, :] for arm in (first, second)]
    repeated = paired_p_value(halves[0], halves[1], generator())
    assert repeated.test == "sign flips"
    assert repeated.value == pytest.approx(once.value, abs=1e-9)


def test_sign_flips_count_all_ways_to_flip_where_tasks_are_few() -> None:
    difference = np.array([0.75, 0.5, 0.25, -0.25, 1.0])
    flipped = [abs(np.dot(signs, difference)) for signs in itertools.product((1, -1), repeat=5)]
    expected = np.mean([value >= 2.25 - 1e-12 for value in flipped])
    reference = np.full((1, 5), 0.0)
    found = paired_p_value(reference + difference, reference, generator())
    assert found.value == pytest.approx(expected, abs=1e-9)


def test_sign_flips_of_many_tasks_come_near_the_exact_distribution_and_repeat_themselves() -> None:
    random = np.random.default_rng(5)
    quarters = random.integers(0, 5, size=(2, 60)) / 4
    steps = np.rint(4 * (quarters[0] - quarters[1])).astype(int)
    distribution = np.ones(1)
    for step in np.abs(steps):
        shifted = np.zeros(distribution.size + 2 * step)
        shifted[: distribution.size] += distribution / 2
        shifted[2 * step :] += distribution / 2
        distribution = shifted
    total = np.arange(distribution.size) - np.abs(steps).sum()
    exact = distribution[np.abs(total) >= abs(steps.sum())].sum()
    found = [paired_p_value(quarters[:1], quarters[1:], generator()) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].value == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 9999))


def test_the_p_value_of_several_seeds_is_the_t_test_of_its_interval() -> None:
    difference = generator().normal(0.1, 0.2, size=30).clip(-0.5, 0.5)
    reference = np.full((3, 30), 0.5)
    of_tasks = paired_p_value(reference + difference, reference, generator())
    assert (of_tasks.value, of_tasks.test) == (
        pytest.approx(scipy.stats.ttest_1samp(difference, 0.0).pvalue, abs=1e-9),
        "Student t",
    )
    one, two = np.array([0.5, 0.6, 0.9]), np.array([0.3, 0.35, 0.4])
    of_seeds = paired_p_value(np.tile(one[:, None], 10), np.tile(two[:, None], 10), generator())
    welch = scipy.stats.ttest_ind(one, two, equal_var=False).pvalue
    assert of_seeds.value == pytest.approx(welch, abs=1e-9)


@UNHURRIED
@given(st.integers(0, 10_000), st.integers(2, 4), st.floats(0.0, 0.3))
def test_with_several_seeds_p_is_below_5_percent_exactly_where_the_interval_leaves_out_zero(
    number: int, seeds: int, gain: float
) -> None:
    random = np.random.default_rng(number)
    arms = [(random.random((seeds, 15)) < 0.4 + more).astype(float) for more in (gain, 0.0)]
    interval = paired_difference(arms[0], arms[1], random)
    p_value = paired_p_value(arms[0], arms[1], random)
    if p_value.test == "Student t":
        assert (p_value.value < 0.05) == (not interval.contains_zero)


def test_seeds_that_never_vary_do_not_make_two_tasks_significant() -> None:
    won = paired_p_value(np.ones((3, 2)), np.zeros((3, 2)), generator())
    assert (won.value, won.test) == (0.5, "sign flips")  # both won, or by the other sign both lost


def test_p5_differences_refuse_unequal_panels_missing_outcomes_and_lone_seeds() -> None:
    three, one = np.zeros((3, 5)), np.zeros((1, 5))
    with pytest.raises(ValueError, match="5 tasks against 4"):
        paired_difference(one, np.zeros((1, 4)), generator())
    with pytest.raises(ValueError, match="missing values"):
        paired_difference(np.full((1, 5), np.nan), one, generator())
    with pytest.raises(ValueError, match="one seed against several"):
        paired_difference(three, one, generator())
    with pytest.raises(ValueError, match=r"expected \[seeds, tasks\]"):
        paired_difference(np.zeros(5), one, generator())


def test_p4_every_interval_states_its_unit_and_n_and_one_seed_claims_no_spread_over_seeds() -> None:
    one, three = generator().random((1, 12)), generator().random((3, 12))
    stated = [
        (found.unit, found.n, found.seeds)
        for found in (
            wilson(0.5, 12),
            bootstrap_mean(one[0], generator()),
            adjusted_wald(one[0]),
            paired_difference(one, one[:, ::-1], generator()),
            paired_difference(three, three[:, ::-1], generator()),
        )
    ]
    assert stated == [("tasks", 12, 1)] * 4 + [("tasks and seeds", 12, 3)]


def test_p4_one_seed_has_no_standard_deviation_and_several_have_the_sample_one() -> None:
    assert spread([0.5]).sd is None
    assert spread([0.2, 0.4, 0.6]).sd == pytest.approx(0.2)
    with pytest.raises(ValueError, match="at least one seed"):
        spread([])
