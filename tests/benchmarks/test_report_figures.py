"""The numbers behind the figures, and that drawn lines can be told apart."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reporting import figures, paper
from benchmarks.reporting.load import IterationRow, Run, load_suite
from tests.benchmarks.report_runs import add_run

PNG = b"\x89PNG\r\n\x1a\n"


def runs_of(suite: Path, variant: str) -> tuple[Run, ...]:
    return load_suite(suite).of(variant)


def kl(row: IterationRow) -> float | None:
    return row.kl_loss


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_raw_kl_value_is_kept_at_its_own_iteration(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo", 0, iterations=(0, 1, 2), kl=(0.0, 0.5, 0.1))
    add_run(tmp_path, "grpo", 1, iterations=(0, 1, 2), kl=(0.0, 0.3, 0.2))
    found = rows(figures.curve_csv([figures.curve(runs_of(tmp_path, "grpo"), kl)], "kl_loss"))
    points = {(row["seed"], row["iteration"]): row["kl_loss"] for row in found}
    assert points["0", "1"] == "0.5"
    assert points["1", "2"] == "0.2"
    assert [row["mean_over_seeds"] for row in found if row["seed"] == "0"] == ["0", "0.4", "0.15"]


def test_a_mean_over_ragged_runs_stops_at_the_shortest_and_is_flagged(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo", 0, iterations=range(100), kl=[1.0] * 100)
    add_run(tmp_path, "grpo", 1, iterations=range(80), kl=[3.0] * 80)
    curve = figures.curve(runs_of(tmp_path, "grpo"), kl)
    assert (curve.common, curve.ragged, curve.mean.shape) == (80, True, (80,))
    found = rows(figures.curve_csv([curve], "kl_loss"))
    late = [row for row in found if int(row["iteration"]) >= 80]
    assert {(row["mean_over_seeds"], row["reached_by_all_seeds"]) for row in late} == {("", "no")}
    assert {row["kl_loss"] for row in late if row["seed"] == "0"} == {"1"}


def test_a_gap_in_a_record_stays_a_gap_and_is_not_bridged(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo", iterations=(0, 1, 4, 5), kl=(0.0, 0.1, None, 0.5))
    curve = figures.curve(runs_of(tmp_path, "grpo"), kl)
    assert curve.iterations == (0, 1, 2, 3, 4, 5)
    assert np.isnan(curve.values[0]).tolist() == [False, False, True, True, True, False]
    assert np.isnan(curve.mean).tolist() == [False, False, True, True, True, False]


def test_the_mean_is_missing_where_any_seed_is_missing(tmp_path: Path) -> None:
    add_run(tmp_path, "grpo", 0, iterations=(0, 1), kl=(0.2, None))
    add_run(tmp_path, "grpo", 1, iterations=(0, 1), kl=(0.4, 0.9))
    mean = figures.curve(runs_of(tmp_path, "grpo"), kl).mean
    assert mean[0] == pytest.approx(0.3)
    assert np.isnan(mean[1])


def test_entropy_change_is_averaged_in_twenty_bins_of_equally_many_steps() -> None:
    # 40 steps of rising entropy, two in each bin; the change of step i is i, so bin b averages 2b + 0.5.
    before = np.arange(40) / 10
    after = before + np.arange(40)
    bins = figures.entropy_bins("grpo", 1, before, after)
    assert bins.count.tolist() == [2] * 20
    assert bins.change.tolist() == pytest.approx([2 * place + 0.5 for place in range(20)])


def test_steps_that_were_not_scored_again_are_left_out_before_percentiles_are_taken() -> None:
    before = np.array([100.0, *np.arange(20)])
    after = np.array([np.nan, *(np.arange(20) + 1.0)])
    bins = figures.entropy_bins("grpo", 1, before, after)
    assert bins.count.tolist() == [1] * 20
    assert bins.change.tolist() == [1.0] * 20


@given(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.7]), min_size=1, max_size=60), st.randoms())
def test_equal_entropies_share_a_bin_whatever_the_order_of_steps(values: list[float], random: object) -> None:
    before = np.array(values)
    order = np.array(sorted(range(len(values)), key=lambda _: random.random()))  # type: ignore[attr-defined]
    change = np.array([hash(value) % 7 for value in values], dtype=float)
    one = figures.entropy_bins("grpo", 1, before, before + change)
    two = figures.entropy_bins("grpo", 1, before[order], (before + change)[order])
    np.testing.assert_allclose(one.change, two.change)
    assert one.count.tolist() == two.count.tolist()
    assert np.count_nonzero(one.count) <= len(set(values))
    assert one.count.sum() == len(values)


def test_the_papers_bars_stand_in_the_data_file_with_their_source() -> None:
    bins = figures.entropy_bins("grpo", 1, np.arange(20.0), np.arange(20.0))
    found = rows(figures.entropy_csv([bins], paper.entropy_change()))
    theirs = [row for row in found if row["source"] == "paper"]
    assert len(theirs) == 20
    assert (theirs[3]["percentile_low"], theirs[3]["percentile_high"]) == ("15", "20")
    assert theirs[3]["entropy_change"] == "0.11"


def test_every_variant_differs_from_every_other_in_colour_line_and_marker() -> None:
    looks = list(figures.LOOKS.values())
    for part in ("colour", "line", "marker"):
        assert len({getattr(look, part) for look in looks}) == len(looks)
    everything = {(look.colour, look.marker) for look in (*looks, *figures.SPARE_LOOKS)}
    assert len(everything) == len(looks) + len(figures.SPARE_LOOKS)


def test_figures_are_png_and_change_when_a_value_changes(tmp_path: Path) -> None:
    add_run(tmp_path / "a", "grpo", kl=(0.0, 0.1, 0.2, 0.3, 0.4))
    add_run(tmp_path / "b", "grpo", kl=(0.0, 0.1, 0.2, 0.3, 0.5))
    curves = [figures.curve(runs_of(tmp_path / name, "grpo"), kl) for name in ("a", "b")]
    one, two = (figures.draw_kl([curve]) for curve in curves)
    assert one.startswith(PNG)
    assert one != two
    assert figures.draw_kl([curves[0]]) == one
