"""What a report by task type refuses: totals that do not sum, types that contradict, wrong denominators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import records
from benchmarks.reporting.load import load_suite
from benchmarks.reporting.schema import RecordError
from tests.benchmarks.alfworld_runs import TYPES, UNSEEN, add_alfworld, world
from tests.benchmarks.report_runs import PANEL, add_run

SMALL = {"pick": 4, "look": 2}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "alfworld"


def splits(part: str, tasks: int) -> dict[str, Any]:
    return {"test": {"part": part, "tasks": tasks}}


@pytest.mark.parametrize(
    ("size", "facts", "said"),
    [
        (140, world(), "a panel of 140 tasks, but the 'unseen' part has 134"),
        (140, world(tasks=140), "140 tasks of valid_unseen; the official split has 134"),
        (140, world("seen", 141), "141 tasks of valid_seen; the official split has 140"),
        (134, world(evaluated_on="test"), "world.evaluated_on is 'test'; expected unseen or seen"),
        (134, world(evaluated_on="seen"), "world.splits.test is not the 'seen' part"),
        (134, world(splits={}), "world.splits.test is not the 'unseen' part"),
        (
            134,
            world(splits=splits("unseen", 134) | {"dev": {"part": "seen"}}),
            "splits.dev.tasks: Field required",
        ),
        (134, {"name": "alfworld", "data": "official"}, "world: evaluated_on: Field required"),
    ],
)
def test_a_denominator_that_is_not_the_splits_is_refused(
    suite: Path, size: int, facts: dict[str, Any], said: str
) -> None:
    add_alfworld(suite, "expert", counts={"pick": size}, world=facts)
    with pytest.raises(RecordError, match=r"run\.json") as refusal:
        load_suite(suite)
    assert said in str(refusal.value)


def test_the_split_of_a_run_that_is_not_complete_is_checked_too(suite: Path) -> None:
    add_alfworld(suite, "grpo", counts={"pick": 140}, world=world(), complete=False)
    with pytest.raises(RecordError, match="a panel of 140 tasks"):
        load_suite(suite)


@pytest.mark.parametrize("nothing", ["", "unknown"])
def test_types_that_do_not_sum_to_the_finished_episodes_are_refused(suite: Path, nothing: str) -> None:
    folder = add_alfworld(suite, "expert")
    change(folder, 5, nothing)
    with pytest.raises(
        RecordError, match=r"eval\.jsonl: the task types sum to 266 of 268 finished episodes; 'synthetic-5'"
    ):
        load_suite(suite)


def test_a_type_that_the_table_has_no_column_for_is_refused(suite: Path) -> None:
    folder = add_alfworld(suite, "expert", counts=SMALL)
    change(folder, 5, "slice")
    with pytest.raises(RecordError, match=r"'synthetic-5' has type 'slice'; expected pick, look, clean"):
        load_suite(suite)


def test_a_task_under_two_types_is_refused_within_a_run_and_between_runs(suite: Path) -> None:
    folder = add_alfworld(suite / "one", "expert", counts=SMALL)
    change(folder, 5, "heat", mode="greedy")
    with pytest.raises(RecordError, match="task 'synthetic-5' is 'heat' here and 'look' elsewhere"):
        load_suite(suite / "one")
    add_alfworld(suite / "two", "expert", counts=SMALL)
    change(add_alfworld(suite / "two", "warm-start", counts=SMALL), 5, "heat")
    with pytest.raises(RecordError, match="task 'synthetic-5' is"):
        load_suite(suite / "two")


def test_runs_on_other_parts_and_of_other_benchmarks_are_not_mixed(suite: Path) -> None:
    add_alfworld(suite / "parts", "warm-start")
    add_alfworld(suite / "parts", "expert", world=world("seen", 140))
    with pytest.raises(RecordError, match=r"world\.evaluated_on = "):
        load_suite(suite / "parts")
    add_alfworld(suite / "mixed", "warm-start", counts=SMALL)
    add_run(suite / "mixed", "expert", tasks=6, world=world(tasks=6))
    with pytest.raises(RecordError, match="has benchmark = "):
        load_suite(suite / "mixed")


def test_an_episode_that_never_started_needs_no_type(suite: Path) -> None:
    add_alfworld(suite, "expert", counts=SMALL, errored={5: "down"}, untyped=(5,))
    found = load_suite(suite)
    assert {name: len(found.tasks_of(name)) for name in ("pick", "look", "")} == {"pick": 4, "look": 1, "": 1}


def test_types_of_a_benchmark_without_such_columns_are_not_read(suite: Path) -> None:
    add_run(suite, "expert", panels={"test": {"digest": PANEL, "size": 20}})
    assert load_suite(suite).task_types == {}


def test_the_made_up_panel_has_the_official_number_of_tasks() -> None:
    assert (tuple(UNSEEN), sum(UNSEEN.values())) == (TYPES, 134)


def change(folder: Path, task: int, task_type: str, mode: str | None = None) -> None:
    rows = records.read_jsonl(folder / "eval.jsonl")
    for row in rows:
        if row["task_id"] == f"synthetic-{task}" and mode in (None, row["mode"]):
            row["task_type"] = task_type
    records.write_jsonl(folder / "eval.jsonl", rows)
