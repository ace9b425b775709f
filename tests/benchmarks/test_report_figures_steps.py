"""Figures of agent steps and their tokens: entropy change and credit, checked by hand and by brute force."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy import stats as scipy_stats

from benchmarks.reporting import figures
from benchmarks.reporting.figures import credit, entropy
from benchmarks.reporting.figures.arms import arms_of
from benchmarks.reporting.figures.bins import means, percentile_bins, quantiles
from benchmarks.reporting.figures.rows import Rows
from benchmarks.reporting.figures.style import Chart
from benchmarks.reporting.load import load_suite
from benchmarks.reporting.schema import RecordError
from tests.benchmarks.report_runs import add_run, write_tokens

TIED = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.7, 1.0 / 3.0]), min_size=1, max_size=60)


def chart(suite: Path, name: str) -> Chart:
    return next(one for one in figures.charts(load_suite(suite)) if one.name == name)


def rows(one: Chart, **wanted: str) -> list[dict[str, str]]:
    found = csv.DictReader(io.StringIO(one.csv))
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def texts(one: Chart) -> list[str]:
    figure = Figure()
    one.draw(figure)
    return [text.get_text() for text in figure.findobj(Text)]


# Bins


@given(st.one_of(TIED, st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=60)), st.integers(1, 25))
def test_a_value_is_in_the_bin_of_its_mean_rank(values: list[float], bins: int) -> None:
    # scipy's mean ranks are multiples of 1/2, so that the expected bin is exact.
    ranks = scipy_stats.rankdata(values)
    expected = [int(2 * rank - 1) * bins // (2 * len(values)) for rank in ranks]
    assert percentile_bins(np.array(values), bins).tolist() == expected


@given(TIED, st.randoms())
def test_equal_entropies_share_a_bin_whatever_the_order_of_steps(values: list[float], random: Any) -> None:
    order = random.sample(range(len(values)), len(values))
    bins = percentile_bins(np.array(values), 20)
    assert percentile_bins(np.array(values)[order], 20).tolist() == bins[order].tolist()
    assert len(set(bins.tolist())) <= len(set(values))


def test_equally_many_distinct_values_are_in_each_bin() -> None:
    values = np.random.default_rng(0).permutation(40) / 10
    assert np.bincount(percentile_bins(values, 20)).tolist() == [2] * 20


def test_no_values_have_no_bins() -> None:
    assert percentile_bins(np.empty(0), 20).size == 0


def test_quartiles_and_means_of_a_bin_are_those_of_its_values_alone() -> None:
    values, bin_of = np.array([1.0, 2.0, 3.0, 4.0, 100.0]), np.array([0, 0, 0, 0, 2], dtype=np.int8)
    assert quantiles(values, bin_of, 3).tolist()[0] == [1.75, 2.5, 3.25]
    assert np.isnan(quantiles(values, bin_of, 3)[1]).all()
    mean, sd = means(values, bin_of, 3)
    assert (mean[0], mean[2]) == (2.5, 100.0)
    assert sd[0] == pytest.approx(math.sqrt(5 / 3))
    assert np.isnan([mean[1], sd[1], sd[2]]).all()


# Entropy change


def add_steps(
    suite: Path, seed: int, before: Sequence[float], after: Sequence[float | None], variant: str = "grpo"
) -> Path:
    steps = {"iteration": [0.0] * len(before), "entropy": before, "entropy_after": after}
    return add_run(suite, variant, seed, steps=steps)


def test_entropy_change_is_averaged_in_twenty_bins_of_equally_many_steps(tmp_path: Path) -> None:
    # 40 steps of rising entropy, two in each bin; the change of step i is i, so bin b averages 2b + 0.5.
    before = [place / 10 for place in range(40)]
    add_steps(tmp_path, 0, before, [value + place for place, value in enumerate(before)])
    found = rows(chart(tmp_path, "entropy_change"), source="ours", level="step")
    assert [row["count"] for row in found] == ["2"] * 20
    assert [float(row["entropy_change"]) for row in found] == pytest.approx([2 * b + 0.5 for b in range(20)])
    assert float(found[0]["sd"]) == pytest.approx(math.sqrt(0.5))
    assert [(row["percentile_low"], row["percentile_high"]) for row in found[:2]] == [("0", "5"), ("5", "10")]


def test_steps_that_were_not_scored_again_are_left_out_before_percentiles_are_taken(tmp_path: Path) -> None:
    add_steps(tmp_path, 0, [100.0, *map(float, range(20))], [None, *(value + 1.0 for value in range(20))])
    found = rows(chart(tmp_path, "entropy_change"), source="ours", level="step")
    assert [(row["count"], row["entropy_change"]) for row in found] == [("1", "1")] * 20


def test_the_band_of_entropy_change_spans_the_means_of_the_seeds_in_the_bins_of_all(tmp_path: Path) -> None:
    # Entropies 0..39 alternate between the seeds, so each bin holds one step of each.
    add_steps(tmp_path, 0, [float(2 * i) for i in range(20)], [float(3 * i) for i in range(20)])
    add_steps(tmp_path, 1, [float(2 * i + 1) for i in range(20)], [float(2 * i - 4) for i in range(20)])
    found = rows(chart(tmp_path, "entropy_change"), source="ours", level="step")
    assert [float(row["highest_seed"]) for row in found] == [float(i) for i in range(20)]
    assert {row["lowest_seed"] for row in found} == {"-5"}
    assert [float(row["entropy_change"]) for row in found] == [(i - 5) / 2 for i in range(20)]
    assert {row["seeds"] for row in found} == {"2"}


def token_rows(groups: Sequence[int], after: Sequence[list[float] | None], before: list[list[float]]) -> Any:
    size = len(before)
    return {"iteration": [0] * size, "attempt": [0] * size, "group": groups, "entropy": before,
            "entropy_after": after}  # fmt: skip


def test_token_level_pools_the_tokens_of_steps_that_were_scored_again(tmp_path: Path) -> None:
    run = add_run(tmp_path, "grpo")
    # Ten steps of two tokens: entropies 0..19, each token's change is its entropy; an eleventh was not scored again.
    before = [[float(2 * i), float(2 * i + 1)] for i in range(10)]
    after: list[list[float] | None] = [[2 * value for value in values] for values in before]
    write_tokens(run, token_rows([i // 5 for i in range(10)] + [7], [*after, None], [*before, [50.0, 60.0]]))
    one = chart(tmp_path, "entropy_change")
    found = rows(one, source="ours", level="token")
    assert [float(row["entropy_change"]) for row in found] == [float(i) for i in range(20)]
    assert {row["count"] for row in found} == {"1"}
    assert "GRPO (n=1 seed): 150 steps, 20 tokens of 2 groups" in texts(one)


def test_groups_of_different_runs_iterations_and_attempts_are_different_groups(tmp_path: Path) -> None:
    for seed in (0, 1):
        run = add_run(tmp_path, "grpo", seed)
        columns = token_rows([3] * 4, [[1.0]] * 4, [[1.0]] * 4)
        write_tokens(run, columns | {"iteration": [0, 0, 5, 5], "attempt": [0, 1, 0, 0]})
    (change,) = (entropy.token_change(arm) for arm in arms_of(load_suite(tmp_path)))
    assert (change.groups, change.count.sum(), change.seeds) == (6, 8, 2)


def test_without_recorded_tokens_the_step_level_stands_alone_and_the_note_says_so(tmp_path: Path) -> None:
    (add_run(tmp_path, "grpo") / "tokens.parquet").unlink()
    one = chart(tmp_path, "entropy_change")
    assert {row["level"] for row in rows(one)} == {"step"}
    assert "Token level: not recorded." in one.note
    assert "Ours, token level" not in texts(one)


def test_without_steps_scored_again_there_is_no_entropy_figure(tmp_path: Path) -> None:
    run = add_steps(tmp_path, 0, [0.5, 0.25], [None, None])
    write_tokens(run, token_rows([0], [None], [[0.5]]))
    assert "entropy_change" not in {one.name for one in figures.charts(load_suite(tmp_path))}


def test_both_levels_stand_beside_the_papers_bars(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo")
    one = chart(tmp_path, "entropy_change")
    assert {"Ours, step level", "Ours, token level", "Paper, Figure 3 (ALFWorld, after RL)"} <= set(
        texts(one)
    )
    theirs = rows(one, source="paper")
    assert len(theirs) == 20
    assert (theirs[3]["percentile_low"], theirs[3]["percentile_high"], theirs[3]["entropy_change"]) == (
        "15", "20", "0.11",
    )  # fmt: skip


def test_token_lists_of_unequal_length_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    run = add_run(tmp_path, "grpo")
    write_tokens(run, token_rows([0], [[0.5]], [[0.5, 0.6]]))
    with pytest.raises(RecordError, match=r"tokens\.parquet: entropy and entropy_after differ in length"):
        figures.charts(load_suite(tmp_path))


# Credit


def add_credit(suite: Path, variant: str, seed: int = 0, **columns: Sequence[float]) -> Path:
    size = len(columns["entropy"])
    steps = {"iteration": [0.0] * size, "entropy_after": [None] * size} | columns
    return add_run(suite, variant, seed, steps=steps)


def numbers(found: list[dict[str, str]], column: str) -> list[float]:
    return [float(row[column]) if row[column] else math.nan for row in found]


def test_credit_shows_quartiles_of_g_by_percentile_of_entropy(tmp_path: Path) -> None:
    # Entropies 0..99, five in each bin; g falls with entropy.
    entropies = [float(i) for i in range(100)]
    add_credit(tmp_path, "grpo+empg", entropy=entropies, g=[2.0 - i / 100 for i in range(100)])
    found = rows(chart(tmp_path, "credit"), quantity="g")
    assert {row["steps"] for row in found} == {"5"}
    assert numbers(found, "median") == pytest.approx([2.0 - (5 * b + 2) / 100 for b in range(20)])
    assert numbers(found, "lower_quartile") == pytest.approx([2.0 - (5 * b + 3) / 100 for b in range(20)])
    assert numbers(found, "upper_quartile") == pytest.approx([2.0 - (5 * b + 1) / 100 for b in range(20)])
    assert numbers(found, "mean_entropy") == pytest.approx([5 * b + 2 for b in range(20)])


def test_f_is_that_of_the_next_step_and_last_steps_are_left_out(tmp_path: Path) -> None:
    f = [0.0 if i % 2 else 0.5 for i in range(40)]
    add_credit(tmp_path, "grpo+empg", entropy=[float(i) for i in range(40)], f=f)
    found = rows(chart(tmp_path, "credit"), quantity="f")
    assert {(row["steps"], row["median"]) for row in found} == {("1", "0.5")}


def test_the_final_advantage_is_split_by_the_sign_of_the_raw_one(tmp_path: Path) -> None:
    raw = [(-1.0, 0.0, 2.0)[i % 3] for i in range(60)]
    final = [value * 1.5 + 0.1 for value in raw]
    add_credit(
        tmp_path, "dapo+empg", entropy=[float(i) for i in range(60)], g=[1.5] * 60, raw_advantage=raw,
        advantage=final,
    )  # fmt: skip
    one = chart(tmp_path, "credit")
    for sign, expected in (("above 0", 3.1), ("below 0", -1.4), ("0", 0.1)):
        found = rows(one, quantity="advantage", raw_advantage_sign=sign)
        assert numbers(found, "median") == pytest.approx([expected] * 20)
        assert {row["steps"] for row in found} == {"1"}
    raws = rows(one, quantity="raw_advantage", raw_advantage_sign="above 0")
    assert {row["median"] for row in raws} == {"2"}


def test_credit_pools_the_runs_of_a_variant_and_states_steps_and_seeds(tmp_path: Path) -> None:
    for seed, g in enumerate((0.5, 1.5)):
        add_credit(tmp_path, "grpo+empg", seed, entropy=[1.0] * 4, g=[g] * 4)
    one = chart(tmp_path, "credit")
    found = [row for row in rows(one, quantity="g") if row["median"]]
    assert [(row["median"], row["steps"], row["seeds"]) for row in found] == [("1", "8", "2")]
    assert "GRPO+EMPG\n(n=2 seeds)\n8 steps" in texts(one)


def test_only_variants_with_a_part_of_empg_are_shown_and_a_part_that_is_off_says_so(tmp_path: Path) -> None:
    add_credit(tmp_path, "dapo", entropy=[0.1, 0.2])
    add_credit(tmp_path, "dapo+scaling", entropy=[0.1, 0.2], g=[1.1, 0.9])
    add_credit(tmp_path, "dapo+bonus", entropy=[0.1, 0.2], f=[0.5, 0.0])
    one = chart(tmp_path, "credit")
    assert list(dict.fromkeys(row["variant"] for row in rows(one))) == ["dapo+scaling", "dapo+bonus"]
    assert texts(one).count("off") == 1
    assert not any(row["steps"] != "0" for row in rows(one, variant="dapo+scaling", quantity="f"))


def test_without_empg_there_is_no_credit_figure(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo")
    assert "credit" not in {one.name for one in figures.charts(load_suite(tmp_path))}


@given(st.integers(0, 2**32 - 1), st.integers(1, 80))
def test_credit_equals_a_count_by_brute_force(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    entropies = random.choice([0.0, 0.3, 0.5, 0.9], size=size)
    raw = random.choice([-1.0, 0.0, 1.0], size=size)
    final = random.normal(size=size)
    bins = [int(2 * rank - 1) * 20 // (2 * size) for rank in scipy_stats.rankdata(entropies)]
    columns = {"entropy": entropies, "g": np.full(size, 2.0), "f": np.zeros(size), "raw_advantage": raw,
               "advantage": final}  # fmt: skip
    found = credit.credit(Rows(None, [columns]))
    assert found is not None
    (above,) = (each for each in found.spreads if (each.quantity, each.sign) == ("advantage", "above 0"))
    for place in range(20):
        values = [final[i] for i in range(size) if bins[i] == place and raw[i] > 0]
        assert above.count[place] == len(values)
        if values:
            assert above.quartiles[place][1] == pytest.approx(float(np.median(values)))
        else:
            assert np.isnan(above.quartiles[place]).all()
