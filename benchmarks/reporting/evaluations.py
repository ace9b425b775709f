"""The evaluated episodes of a run as arrays, checked against its panel and its summary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.reporting.columns import What
from benchmarks.reporting.schema import EVALUATED_SPLIT, EpisodeRow, Panel, RecordError, Totals, rows
from benchmarks.reporting.stats import Array

MODES = ("sampled", "greedy")


@dataclass(frozen=True)
class Evaluation:
    """Outcomes of one policy in one mode on the pinned panel, tasks in sorted order."""

    task_ids: tuple[str, ...]
    success: Array
    """[tasks, samples], 1 or 0; NaN where the environment failed, which says nothing about the policy."""
    score: Array
    """[tasks, samples] in [0, 1]; NaN where the environment failed."""
    errors: tuple[tuple[str, str], ...]
    """(task, what went wrong in the environment's own words), once per errored episode."""

    @property
    def usable(self) -> NDArray[np.bool_]:
        """[tasks]: whether a task was finished at least once."""
        return np.asarray(np.isfinite(self.success).any(axis=1))

    def rates(self, what: What) -> Array:
        """[tasks]: mean over the samples of each task; NaN where none finished."""
        values = self.success if what == "success" else self.score
        count = np.isfinite(values).sum(axis=1)
        total = np.nansum(values, axis=1)
        return np.asarray(np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0))

    def only(self, tasks: Collection[str]) -> Evaluation:
        """The outcomes on some of the tasks; what is not on the panel is ignored."""
        kept = np.array([task in tasks for task in self.task_ids], dtype=bool)
        return Evaluation(
            tuple(task for task in self.task_ids if task in tasks),
            self.success[kept],
            self.score[kept],
            tuple((task, words) for task, words in self.errors if task in tasks),
        )


def evaluated_rows(path: Path, panel: Panel) -> list[EpisodeRow]:
    """The episodes of the test split."""
    found = [row for row in rows(EpisodeRow, path) if row.split == EVALUATED_SPLIT]
    if not found:
        raise RecordError(f"{path}: no episodes of the {EVALUATED_SPLIT} split; expected {panel.size} tasks")
    return found


def evaluations(path: Path, episodes: Sequence[EpisodeRow], panel: Panel) -> dict[str, Evaluation]:
    """The last evaluation, by mode; `path` is where the episodes were read."""
    last = max(row.iteration for row in episodes)
    found = {}
    for mode in MODES:
        played = [row for row in episodes if row.iteration == last and row.mode == mode]
        if played:
            found[mode] = _evaluation(path, mode, played, panel)
    return found


def _evaluation(path: Path, mode: str, episodes: Sequence[EpisodeRow], panel: Panel) -> Evaluation:
    tasks = sorted({row.task_id for row in episodes})
    samples = sorted({row.sample for row in episodes})
    if len(tasks) != panel.size:
        raise RecordError(f"{path}: {len(tasks)} tasks played {mode}; expected the panel's {panel.size}")
    played = {(row.task_id, row.sample) for row in episodes}
    if not len(episodes) == len(played) == len(tasks) * len(samples):
        raise RecordError(
            f"{path}: {len(episodes)} {mode} episodes; expected {len(samples)} of each of {len(tasks)} tasks"
        )
    row_of = {task: place for place, task in enumerate(tasks)}
    column_of = {sample: place for place, sample in enumerate(samples)}
    success, score = (np.full((len(tasks), len(samples)), np.nan) for _ in range(2))
    for row in episodes:
        if row.end != "error":
            place = row_of[row.task_id], column_of[row.sample]
            success[place], score[place] = row.success, row.score
    errors = tuple((row.task_id, row.error or "no message") for row in episodes if row.end == "error")
    return Evaluation(tuple(tasks), success, score, errors)


def check_totals(path: Path, mode: str, totals: Totals, found: Evaluation | None) -> None:
    """The table must show the same numbers as the run's own summary."""
    if found is None:
        raise RecordError(f"{path}: totals of mode {mode!r} but no such episodes in eval.jsonl")
    counted = (int(np.isfinite(found.success).sum()), len(found.errors), int(np.nansum(found.success)))
    stated = (totals.n, totals.errored, totals.successes)
    if stated != counted:
        raise RecordError(
            f"{path}: {mode} states n, errored, successes = {stated} but eval.jsonl holds {counted}; "
            "one of the files was changed"
        )
