"""What training took, added up by hand; what was not recorded is missing and never 0."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from benchmarks import records
from benchmarks.reporting.cost import cost_csv, cost_table
from benchmarks.reporting.load import load_suite
from benchmarks.reporting.outcomes import arm_row
from tests.benchmarks.report_runs import add_run

Row = dict[str, Any]


def add(
    suite: Path,
    seed: int,
    metrics: list[Row],
    timing: list[Row] | None,
    wall: float | None,
    variant: str = "grpo",
) -> None:
    """A run with these rows: two iterations each."""
    folder = add_run(suite, variant, seed, iterations=(0, 1))
    rows = records.read_jsonl(folder / "metrics.jsonl")
    records.write_jsonl(folder / "metrics.jsonl", [old | new for old, new in zip(rows, metrics, strict=True)])
    if timing is not None:
        records.write_jsonl(
            folder / "timing.jsonl", [{"iteration": place} | row for place, row in enumerate(timing)]
        )
    summary = records.read_json(folder / "summary.json")
    records.write_json(folder / "summary.json", summary | ({} if wall is None else {"wall_seconds": wall}))


FULL: list[Row] = [
    {"episodes": 10, "episodes_errored": 2, "steps_per_episode": 4.0, "train_tokens": 300, "optimizer_steps": 2,
     "sampled_tokens_total": 1000},
    {"episodes": 20, "episodes_errored": 0, "steps_per_episode": 7.5, "train_tokens": 500, "optimizer_steps": 3,
     "sampled_tokens_total": 2500},
]  # fmt: skip
"""(8 * 4 + 20 * 7.5) / 28 = 6.5 steps an episode."""
TIMES: list[Row] = [
    {"collect": 30.0, "score": 6.0, "update": 60.0},
    {"collect": 60.0, "score": 12.0, "update": 30.0},
]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "webshop"


def cells(suite: Path, variant: str = "grpo") -> dict[str, str]:
    loaded = load_suite(suite)
    table = cost_table([arm_row(loaded, variant)], loaded, "two cores")
    return dict(zip(table.columns, table.rows[0], strict=True))


def long_form(suite: Path) -> dict[str, dict[str, str]]:
    loaded = load_suite(suite)
    return {
        row["quantity"]: row
        for row in csv.DictReader(cost_csv([arm_row(loaded, "grpo")], loaded).splitlines())
    }


def test_quantities_are_added_up_over_iterations_and_steps_weighed_by_finished_episodes(suite: Path) -> None:
    add(suite, 0, FULL, TIMES, 240.0)
    assert list(cells(suite).values()) == [
        "GRPO", "30", "6.50", "2,500", "800", "5", "1.5", "0.3", "1.5", "4.0", "1/1, n=1",
    ]  # fmt: skip


def test_several_seeds_show_mean_and_sample_sd_and_the_csv_every_seed_in_seconds(suite: Path) -> None:
    add(suite, 0, FULL, TIMES, 240.0)
    add(suite, 1, FULL, TIMES, 360.0)
    assert cells(suite)["wall time (min)"] == "5.0 ± 1.4"
    assert cells(suite)["episodes"] == "30 ± 0"
    wall = long_form(suite)["wall time"]
    assert (wall["unit"], wall["mean"], wall["sd_over_seeds"]) == ("seconds", "300", "84.852814")
    assert (wall["seeds"], wall["planned_seeds"], wall["per_seed"]) == ("2", "2", "240 360")


def test_what_a_run_did_not_record_is_a_dash_and_a_seed_without_it_is_counted(suite: Path) -> None:
    bare: list[Row] = [{"sampled_tokens_total": 10}, {"sampled_tokens_total": 30}]
    add(suite, 0, bare, None, None)
    found = cells(suite)
    assert found["sampled tokens"] == "30"
    assert {found[name] for name in ("episodes", "steps per episode", "trained tokens", "updates (min)")} == {
        "—"
    }
    assert long_form(suite)["episodes"]["mean"] == ""
    add(suite, 1, FULL, TIMES, 60.0)
    assert cells(suite)["wall time (min)"] == "1.0 (1/2 seeds)"
    assert cells(suite)["sampled tokens"] == "1,265 ± 1,747"


def test_one_unrecorded_iteration_makes_a_total_unknown_but_a_skipped_update_trains_on_nothing(
    suite: Path,
) -> None:
    add(suite, 0, [FULL[0], FULL[1] | {"train_tokens": None, "optimizer_steps": 0}], TIMES, 1.0)
    assert cells(suite)["trained tokens"] == "300"
    add(suite, 0, [FULL[0], FULL[1] | {"train_tokens": None}], [TIMES[0], {"collect": 1.0}], 1.0, "dapo")
    assert cells(suite, "dapo")["trained tokens"] == "—"
    assert cells(suite, "dapo")["scoring (min)"] == "—"
    assert cells(suite, "dapo")["rollouts (min)"] == "0.5"


def test_episodes_that_all_failed_have_no_number_of_steps(suite: Path) -> None:
    failed = {"episodes": 4, "episodes_errored": 4, "steps_per_episode": None, "optimizer_steps": 0}
    add(suite, 0, [failed, failed], TIMES, 1.0)
    assert cells(suite)["steps per episode"] == "—"
    add(suite, 0, [failed, FULL[1]], TIMES, 1.0, "dapo")
    assert cells(suite, "dapo")["steps per episode"] == "7.50"


def test_the_hardware_and_what_the_numbers_mean_stand_below(suite: Path) -> None:
    add(suite, 0, FULL, TIMES, 240.0)
    loaded = load_suite(suite)
    note = cost_table([arm_row(loaded, "grpo")], loaded, "two cores").note
    assert "Hardware: two cores." in note
    assert "also in episodes that were not trained on" in note


def test_a_variant_without_a_complete_run_is_a_row_of_dashes(suite: Path) -> None:
    add(suite, 0, FULL, TIMES, 240.0)
    add_run(suite, "dapo", 0, complete=False)
    assert list(cells(suite, "dapo").values())[1:] == ["—"] * 10
