"""Figures of probed gradients: what Proposition 1 promises and for which mean, and how scaling changes the variance."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy import stats as scipy_stats

from benchmarks.reporting import figures
from benchmarks.reporting.figures.gradient_norm import mean_over_tokens
from benchmarks.reporting.figures.gradient_variance import geometric_mean
from benchmarks.reporting.figures.style import Chart
from benchmarks.reporting.load import load_suite
from benchmarks.reporting.schema import RecordError
from tests.benchmarks.report_runs import add_run, gradient_columns, variance_rows, write_gradients


def chart(suite: Path, name: str) -> Chart:
    return next(one for one in figures.charts(load_suite(suite)) if one.name == name)


def rows(one: Chart, **wanted: str) -> list[dict[str, str]]:
    found = csv.DictReader(io.StringIO(one.csv))
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def drawn(one: Chart) -> Figure:
    figure = Figure()
    one.draw(figure)
    return figure


def texts(one: Chart) -> str:
    return "\n".join(text.get_text() for text in drawn(one).findobj(Text))


# Proposition 1


def two_token_steps(go: float, longest: int) -> list[tuple[float, int, float]]:
    """(probability, tokens, mean difference) of every step of a policy that stops with 1 - go at each token."""
    policy = np.array([go, 1.0 - go])
    squared = 1.0 - 2.0 * policy + policy @ policy  # ||grad_z log pi(a)||^2 of either action
    expected = 1.0 - policy @ policy
    found = []
    for length in range(1, longest + 1):
        for last in (0, 1) if length == longest else (1,):
            actions = [0] * (length - 1) + [last]
            found.append((math.prod(policy[actions]), length, float(squared[actions].mean() - expected)))
    assert sum(probability for probability, _, _ in found) == pytest.approx(1.0)
    return found


@pytest.mark.parametrize(("go", "longest"), [*itertools.product((0.2, 0.5, 0.9), (1, 2, 7))])
def test_the_mean_over_tokens_of_sampled_minus_expected_is_zero_whatever_decides_the_length(
    go: float, longest: int
) -> None:
    probability, tokens, difference = (
        np.array(values) for values in zip(*two_token_steps(go, longest), strict=True)
    )
    found = mean_over_tokens(difference, probability * tokens, np.arange(len(tokens)))
    assert found.estimate == pytest.approx(0.0, abs=1e-12)


def test_the_plain_mean_over_steps_is_not_zero_where_tokens_decide_the_length() -> None:
    found = two_token_steps(0.9, 7)
    assert abs(sum(probability * difference for probability, _, difference in found)) > 0.05


def test_the_interval_of_independent_equal_steps_is_that_of_a_one_sample_t_test() -> None:
    values = np.random.default_rng(0).normal(0.1, 1.0, size=30)
    found = mean_over_tokens(values, np.full(30, 7.0), np.arange(30))
    expected = scipy_stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert (found.unit, found.n) == ("trajectories", 30)


def test_repeating_every_step_within_its_trajectory_makes_no_interval_narrower() -> None:
    random = np.random.default_rng(1)
    values, tokens, trajectory = random.normal(size=40), random.integers(1, 9, size=40), np.arange(40) // 4
    once = mean_over_tokens(values, tokens.astype(float), trajectory)
    twice = mean_over_tokens(*(np.tile(each, 2) for each in (values, tokens.astype(float), trajectory)))
    assert (twice.estimate, twice.low, twice.high) == pytest.approx((once.estimate, once.low, once.high))


def test_a_mean_over_tokens_weighs_each_step_by_its_tokens() -> None:
    found = mean_over_tokens(np.array([1.0, 4.0]), np.array([1.0, 2.0]), np.array([0, 1]))
    assert found.estimate == pytest.approx(3.0)


def test_a_single_trajectory_has_no_interval() -> None:
    found = mean_over_tokens(np.array([1.0, 4.0]), np.array([1.0, 2.0]), np.array([5, 5]))
    assert (math.isnan(found.low), math.isnan(found.high), found.n) == (True, True, 1)


def add_gradients(suite: Path, seed: int = 0, **columns: Sequence[float]) -> Path:
    """20 steps of rising entropy, each a trajectory of its own."""
    run = add_run(suite, "grpo", seed)
    base: Mapping[str, Sequence[float]] = {
        "iteration": [4] * 20,
        "attempt": [0] * 20,
        "group": list(range(20)),
        "sample": [0] * 20,
        "tokens": [1, 3] * 10,
        "renyi2": [0.1 * (i + 1) for i in range(20)],
        "logit_gradient_sq": [0.5] * 20,
        "logit_gradient_expected": [0.4] * 20,
        "gradient_norm": [float(i) for i in range(20)],
    }
    write_gradients(run, {**base, **columns}, variance_rows(seed))
    return run


def test_bins_hold_token_means_of_both_sides_and_quartiles_of_the_parameter_norm(tmp_path: Path) -> None:
    add_gradients(tmp_path, logit_gradient_sq=[0.2, 0.6] * 10)
    *bins, whole = rows(chart(tmp_path, "gradient_norm"))
    assert len(bins) == 10
    first = bins[0]
    assert (first["percentile_low"], first["percentile_high"], first["steps"]) == ("0", "10", "2")
    assert float(first["renyi2"]) == pytest.approx((0.1 + 3 * 0.2) / 4)
    assert float(first["logit_gradient_sq"]) == pytest.approx((0.2 + 3 * 0.6) / 4)
    assert float(first["difference"]) == pytest.approx(0.1)
    quartiles = [
        float(first[f"gradient_norm_{name}"]) for name in ("lower_quartile", "median", "upper_quartile")
    ]
    assert quartiles == [0.25, 0.5, 0.75]
    assert (whole["percentile_low"], whole["percentile_high"], whole["steps"]) == ("0", "100", "20")
    assert (float(whole["difference"]), whole["trajectories"]) == (pytest.approx(0.1), "20")


def test_the_rank_correlation_of_parameter_norm_and_entropy_is_stated(tmp_path: Path) -> None:
    norm = [float((7 * i) % 20) for i in range(20)]
    add_gradients(tmp_path, gradient_norm=norm)
    one = chart(tmp_path, "gradient_norm")
    expected = float(scipy_stats.spearmanr(range(20), norm).statistic)
    assert float(rows(one)[-1]["spearman"]) == pytest.approx(expected)
    assert f"ρ(norm, H₂) {expected:.2f}" in texts(one)


def test_constant_norms_have_no_rank_correlation(tmp_path: Path) -> None:
    add_gradients(tmp_path, gradient_norm=[1.0] * 20)
    one = chart(tmp_path, "gradient_norm")
    assert rows(one)[-1]["spearman"] == ""
    assert "ρ(norm, H₂) —" in texts(one)


def test_the_mean_difference_is_stated_with_its_interval_steps_and_seeds(tmp_path: Path) -> None:
    add_gradients(tmp_path, logit_gradient_sq=[0.3, 0.7] * 10)
    shown = texts(chart(tmp_path, "gradient_norm"))
    # (0.3 + 3 * 0.7) / 4 - 0.4 = 0.2; residuals, tokens times (difference - 0.2), are -0.3 and +0.3.
    half = scipy_stats.t.ppf(0.975, 19) * math.sqrt(20 / 19 * 20 * 0.3**2) / 40
    assert f"GRPO (n=1 seed): 20 steps; difference +0.2 [{0.2 - half:+.2g}, {0.2 + half:+.2g}]" in shown


def test_steps_of_one_trajectory_are_one_unit_and_those_of_different_runs_are_not(tmp_path: Path) -> None:
    for seed in (0, 1):
        add_gradients(tmp_path, seed, group=[i // 4 for i in range(20)])
    assert rows(chart(tmp_path, "gradient_norm"))[-1]["trajectories"] == "10"


def test_the_curve_of_the_proposition_is_drawn_over_the_whole_range(tmp_path: Path) -> None:
    add_gradients(tmp_path)
    curve = drawn(chart(tmp_path, "gradient_norm")).axes[0].get_lines()[0]
    at, values = (np.asarray(data) for data in curve.get_data())
    assert values == pytest.approx(1.0 - np.exp(-at))
    assert (at[0], at[-1]) == (pytest.approx(0.175), pytest.approx((1.9 + 3 * 2.0) / 4))


def test_entropies_that_a_logarithmic_axis_cannot_show_are_drawn_at_its_end_and_the_note_says_so(
    tmp_path: Path,
) -> None:
    add_gradients(tmp_path, renyi2=[-1e-16, 0.0, *(0.1 * i for i in range(1, 19))])
    one = chart(tmp_path, "gradient_norm")
    assert "Entropies below 0.0001 are drawn there." in one.note
    assert drawn(one).axes[0].get_lines()[1].get_xdata()[0] == pytest.approx(1e-4)


def test_the_note_names_the_probed_iterations(tmp_path: Path) -> None:
    add_gradients(tmp_path, iteration=[2] * 10 + [11] * 10)
    assert "iterations 2, 11, under the policy before its update" in chart(tmp_path, "gradient_norm").note


# Variance


def add_variances(suite: Path, seed: int, *found: Mapping[str, Any], variant: str = "grpo+empg") -> None:
    base = {
        "steps": 8,
        "plain_variance": 2.0,
        "plain_mean_sq": 1.0,
        "scaled_variance": 2.0,
        "scaled_mean_sq": 1.0,
    }
    run = add_run(suite, variant, seed)
    write_gradients(
        run, gradient_columns(seed), [{"iteration": place} | base | row for place, row in enumerate(found)]
    )


def test_the_ratio_compares_variances_relative_to_the_squared_mean(tmp_path: Path) -> None:
    # Plain 2 / 0.5 = 4; scaled 3 / 1 = 3.
    add_variances(tmp_path, 0, {"plain_mean_sq": 0.5, "scaled_variance": 3.0})
    row, whole = rows(chart(tmp_path, "gradient_variance"))
    assert (row["plain_relative_variance"], row["scaled_relative_variance"], row["ratio"]) == (
        "4",
        "3",
        "0.75",
    )
    assert (whole["seed"], whole["ratio"], whole["low"]) == ("all", "0.75", "")


def test_the_mean_ratio_is_geometric_over_iterations_then_over_seeds_with_a_t_interval(
    tmp_path: Path,
) -> None:
    add_variances(tmp_path, 0, {"scaled_variance": 1.0}, {"scaled_variance": 4.0})  # 1/2 and 2: mean 1
    add_variances(tmp_path, 1, {"scaled_variance": 1.0}, {"scaled_variance": 1.0})  # 1/2
    one = chart(tmp_path, "gradient_variance")
    whole = rows(one, seed="all")[0]
    half = scipy_stats.t.ppf(0.975, 1) * math.log(2) / math.sqrt(2) / math.sqrt(2)
    assert float(whole["ratio"]) == pytest.approx(math.sqrt(0.5))
    assert float(whole["low"]) == pytest.approx(math.sqrt(0.5) * math.exp(-half))
    assert float(whole["high"]) == pytest.approx(math.sqrt(0.5) * math.exp(half))
    assert "GRPO+EMPG (n=2 seeds): ratio 0.707 [" in texts(one)


def test_a_single_seed_has_a_ratio_without_interval(tmp_path: Path) -> None:
    add_variances(tmp_path, 0, {"scaled_variance": 1.0})
    shown = texts(chart(tmp_path, "gradient_variance")).splitlines()
    assert "GRPO+EMPG (n=1 seed): ratio 0.5" in shown


@pytest.mark.parametrize("plain", [None, 0.0, -1e-18])
def test_a_variance_that_is_not_there_or_nothing_but_rounding_gives_no_ratio(
    tmp_path: Path, plain: float | None
) -> None:
    add_variances(tmp_path, 0, {"plain_variance": plain}, {"scaled_variance": 1.0})
    first, second, whole = rows(chart(tmp_path, "gradient_variance"))
    assert (first["plain_relative_variance"], first["ratio"], first["scaled_relative_variance"]) == (
        "",
        "",
        "2",
    )
    assert (second["ratio"], whole["ratio"]) == ("0.5", "0.5")


def test_a_variant_without_any_ratio_says_so_and_breaks_nothing(tmp_path: Path) -> None:
    add_variances(tmp_path, 0, {"plain_mean_sq": 0.0, "scaled_mean_sq": 0.0})
    one = chart(tmp_path, "gradient_variance")
    assert "GRPO+EMPG (n=1 seed); 1 without values: no ratio" in texts(one)
    assert rows(one, seed="all") == []


def test_every_probe_stands_at_its_iteration_and_those_between_are_not_invented(tmp_path: Path) -> None:
    add_variances(tmp_path, 0, {"iteration": 5}, {"iteration": 11, "scaled_variance": 1.0})
    (ratio,) = (line for line in drawn(chart(tmp_path, "gradient_variance")).axes[1].get_lines()[:1])
    assert (list(ratio.get_xdata()), list(ratio.get_ydata())) == ([5, 11], [1.0, 0.5])


def test_the_figure_shows_how_much_noise_alone_would_be_and_names_dependence(tmp_path: Path) -> None:
    add_variances(tmp_path, 0, {})
    one = chart(tmp_path, "gradient_variance")
    assert "n = 8 steps: noise alone" in texts(one)
    assert "The steps of a trajectory are not independent" in one.note


def test_an_iteration_that_was_probed_twice_is_refused(tmp_path: Path) -> None:
    add_variances(tmp_path, 0, {"iteration": 5}, {"iteration": 5})
    with pytest.raises(RecordError, match=r"gradients\.jsonl: iteration 5 after 5"):
        figures.charts(load_suite(tmp_path))


def test_a_variance_that_is_no_number_is_refused_with_file_line_and_key(tmp_path: Path) -> None:
    add_variances(tmp_path, 0, {"scaled_variance": "much"})
    with pytest.raises(RecordError, match=r"gradients\.jsonl: line 1: scaled_variance"):
        figures.charts(load_suite(tmp_path))


def test_without_any_ratio_there_is_no_geometric_mean() -> None:
    assert geometric_mean(np.full((2, 3), np.nan)) is None
