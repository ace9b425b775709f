"""Which type each task of a panel is, and which split the panel is from: what a table by type stands on."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.reporting.columns import OfficialSplit, columns_of
from benchmarks.reporting.schema import EVALUATED_SPLIT, EpisodeRow, Record, RecordError, RunInfo, parse

UNKNOWN = ("", "unknown")
"""What an episode says whose environment failed before its task was known."""
OFFICIAL = "official"


def types_of_tasks(path: Path, rows: Sequence[EpisodeRow], declared: Collection[str]) -> dict[str, str]:
    """Task -> type, as far as the episodes of `path` know; nothing where a benchmark declares no types.

    Raises `RecordError` where the totals of the types would not sum to the total: a finished episode without a
    declared type, or a task under two types.
    """
    found: dict[str, str] = {}
    if not declared:
        return found
    for row in rows:
        if row.task_type in declared:
            _join(found, row.task_id, row.task_type, path)
        elif row.task_type not in UNKNOWN:
            raise RecordError(
                f"{path}: task {row.task_id!r} has type {row.task_type!r}; expected {', '.join(declared)}"
            )
    finished = [row for row in rows if row.end != "error"]
    if untyped := [row.task_id for row in finished if row.task_type in UNKNOWN]:
        raise RecordError(
            f"{path}: the task types sum to {len(finished) - len(untyped)} of {len(finished)} finished episodes; "
            f"{untyped[0]!r} was finished without a type"
        )
    return found


def join_types(found: Iterable[tuple[Path, Mapping[str, str]]]) -> dict[str, str]:
    """What all runs of a suite know together; `RecordError` where two disagree."""
    known: dict[str, str] = {}
    for path, types in found:
        for task, task_type in types.items():
            _join(known, task, task_type, path)
    return known


def _join(known: dict[str, str], task: str, task_type: str, path: Path) -> None:
    if known.setdefault(task, task_type) != task_type:
        raise RecordError(f"{path}: task {task!r} is {task_type!r} here and {known[task]!r} elsewhere")


class _Split(Record):
    part: str
    tasks: int


class _World(Record):
    data: Any = None
    evaluated_on: str
    splits: dict[str, _Split]


def panel_words(path: Path, info: RunInfo) -> str:
    """Which tasks were evaluated: `200 tasks`, or by the name of their split: `valid_unseen, 134 tasks`.

    Raises `RecordError` where the numbers cannot be those of that split. `path` is the run's record.
    """
    size = info.panels[EVALUATED_SPLIT].size
    splits = columns_of(info).splits
    if not splits:
        return f"{size} tasks"
    world = parse(_World, json.dumps(info.world).encode(), f"{path}: world")
    part = world.evaluated_on
    if part not in splits:
        raise RecordError(f"{path}: world.evaluated_on is {part!r}; expected {' or '.join(splits)}")
    if EVALUATED_SPLIT not in world.splits or world.splits[EVALUATED_SPLIT].part != part:
        raise RecordError(
            f"{path}: world.splits.{EVALUATED_SPLIT} is not the {part!r} part that was evaluated"
        )
    there = world.splits[EVALUATED_SPLIT].tasks
    if size > there:
        raise RecordError(f"{path}: a panel of {size} tasks, but the {part!r} part has {there}")
    if world.data == OFFICIAL:
        return _of_official(path, splits[part], size, there)
    return f"{part} part of the generated games, {_share(size, there)}"


def _of_official(path: Path, split: OfficialSplit, size: int, there: int) -> str:
    if there > split.tasks:
        raise RecordError(f"{path}: {there} tasks of {split.name}; the official split has {split.tasks}")
    return f"{split.name}, {_share(size, split.tasks)}"


def _share(size: int, whole: int) -> str:
    return f"{size} tasks" if size == whole else f"{size} of {whole} tasks"
