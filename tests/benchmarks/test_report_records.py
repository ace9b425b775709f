"""What the report refuses to believe: unreadable, partial, foreign and incomparable records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import records
from benchmarks.reporting.load import RecordError, load_suite
from tests.benchmarks.report_runs import PANEL, add_run, full_suite


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "webshop"


def test_runs_of_unequal_panels_are_refused_with_both_hashes(suite: Path) -> None:
    add_run(suite, "grpo")
    add_run(suite, "dapo", panels={"test": {"digest": "f" * 64, "size": 20}})
    with pytest.raises(RecordError, match="another test panel") as refusal:
        load_suite(suite)
    assert PANEL in str(refusal.value)
    assert "f" * 64 in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"world": {"name": "webshop", "products": 100_000}}, "world.goal_source"),
        (
            {"world": {"name": "webshop", "products": 500, "goals": 690, "goal_source": "synthetic"}},
            r"world.products = \d+",
        ),
        ({"scale": "smoke"}, "scale = "),
        (
            {"panels": {"test": {"digest": PANEL, "size": 20}, "train": {"digest": "9" * 64, "size": 9}}},
            "train panel",
        ),
    ],
)
def test_runs_on_other_data_or_scale_are_not_mixed(suite: Path, changes: dict[str, Any], named: str) -> None:
    add_run(suite, "grpo")
    add_run(suite, "dapo", **changes)
    with pytest.raises(RecordError, match=named):
        load_suite(suite)


def test_a_run_of_another_suite_in_the_folder_is_refused(suite: Path) -> None:
    add_run(suite, "grpo")
    folder = add_run(suite, "dapo")
    record = json.loads((folder / "run.json").read_text())
    records.write_json(folder / "run.json", record | {"suite": "webshop-other"})
    with pytest.raises(RecordError, match="suite = 'webshop"):
        load_suite(suite)


def test_the_same_variant_and_seed_twice_is_refused(suite: Path) -> None:
    add_run(suite, "grpo", 0)
    folder = add_run(suite, "grpo", 1)
    record = json.loads((folder / "run.json").read_text())
    records.write_json(folder / "run.json", record | {"seed": 0})
    with pytest.raises(RecordError, match="both grpo with seed 0"):
        load_suite(suite)


def test_a_record_of_a_future_format_is_refused_by_number(suite: Path) -> None:
    add_run(suite, "grpo", format=2)
    with pytest.raises(RecordError, match=r"run\.json: record format 2; this report reads format 1"):
        load_suite(suite)


@pytest.mark.parametrize("key", ["digest", "panels", "variant", "format", "config"])
def test_a_run_record_without_a_required_key_is_an_error_that_names_file_and_key(
    suite: Path, key: str
) -> None:
    folder = add_run(suite, "grpo")
    record = json.loads((folder / "run.json").read_text())
    del record[key]
    records.write_json(folder / "run.json", record)
    with pytest.raises(RecordError, match=rf"run\.json: {key}: Field required"):
        load_suite(suite)


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("metrics.jsonl", b'{"iteration": 5, "kl_loss": NaN, "success": 0.1}\n', r"line 6: kl_loss.*finite"),
        ("metrics.jsonl", b'{"iteration": 5, "kl_loss": "0.1", "success": 0.1}\n', "line 6: kl_loss"),
        ("metrics.jsonl", b'{"iteration": 5, "success": 0.1}\n', "line 6: kl_loss: Field required"),
        ("metrics.jsonl", b'{"iteration": 4, "kl_loss": 0.1, "success": 0.1}\n', "iteration 4 after 4"),
        ("metrics.jsonl", b'{"iteration": 5, "kl', "line 6 is cut off"),
        ("eval.jsonl", b"not json\n", "line 41"),
    ],
)
def test_a_bad_line_is_an_error_that_names_file_and_line(
    suite: Path, name: str, line: bytes, said: str
) -> None:
    folder = add_run(suite, "grpo")
    with (folder / name).open("ab") as file:
        file.write(line)
    with pytest.raises(RecordError, match=said) as refusal:
        load_suite(suite)
    assert str(folder / name) in str(refusal.value)


def test_a_summary_that_disagrees_with_the_episodes_is_refused(suite: Path) -> None:
    folder = add_run(suite, "grpo", solved=range(8))
    summary = json.loads((folder / "summary.json").read_text())
    summary["eval"]["test"]["greedy"]["successes"] = 9
    records.write_json(folder / "summary.json", summary)
    with pytest.raises(
        RecordError, match=r"summary\.json: greedy .*\(20, 0, 9\) but eval\.jsonl holds \(20, 0, 8\)"
    ):
        load_suite(suite)


def test_an_evaluation_of_part_of_the_panel_is_refused(suite: Path) -> None:
    folder = add_run(suite, "grpo")
    records.keep_rows(folder / "eval.jsonl", lambda row: row["task_id"] != "synthetic-3")
    with pytest.raises(RecordError, match="19 tasks played sampled; expected the panel's 20"):
        load_suite(suite)


def test_a_repeated_episode_is_refused(suite: Path) -> None:
    folder = add_run(suite, "grpo")
    records.append_jsonl(folder / "eval.jsonl", records.read_jsonl(folder / "eval.jsonl")[:1])
    with pytest.raises(RecordError, match="21 sampled episodes; expected 1 of each of 20 tasks"):
        load_suite(suite)


def test_equal_hashes_over_different_tasks_are_found_out(suite: Path) -> None:
    add_run(suite, "grpo")
    folder = add_run(suite, "dapo")
    rows = records.read_jsonl(folder / "eval.jsonl")
    records.write_jsonl(folder / "eval.jsonl", [row | {"task_id": row["task_id"] + "x"} for row in rows])
    with pytest.raises(RecordError, match="evaluated different tasks"):
        load_suite(suite)


def test_only_the_last_evaluation_of_the_test_split_counts(suite: Path) -> None:
    folder = add_run(suite, "grpo", solved=range(8))
    rows = records.read_jsonl(folder / "eval.jsonl")
    earlier = [row | {"iteration": 2, "success": True} for row in rows]
    on_dev = [row | {"split": "dev", "success": True} for row in rows]
    records.write_jsonl(folder / "eval.jsonl", earlier + rows + on_dev)
    (run,) = load_suite(suite).runs
    assert run.evaluations["sampled"].success.sum() == 8


def test_folders_that_are_no_runs_are_listed_not_read(suite: Path) -> None:
    full_suite(suite)
    (suite / "notes").mkdir()
    (suite / ".cache").mkdir()
    assert load_suite(suite).strangers == ("notes",)


def test_a_folder_without_runs_and_a_missing_folder_are_errors(suite: Path) -> None:
    with pytest.raises(RecordError, match="no such suite folder"):
        load_suite(suite)
    suite.mkdir()
    with pytest.raises(RecordError, match="holds no runs"):
        load_suite(suite)
