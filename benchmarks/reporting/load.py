"""Run records as checked, typed data. Anything that cannot be trusted is an error that names its file.

A report compares runs, so a suite is loaded as a whole: runs that saw other tasks, other data or another
scale are refused. What is not there yet is not an error: it is listed, and shown as missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.reporting.stats import Array

FORMAT = 1
REPORT_FOLDER = "report"
EVALUATED_SPLIT = "test"
MODES = ("sampled", "greedy")
STEP_COLUMNS = ("iteration", "entropy", "entropy_after")

Mode = Literal["sampled", "greedy"]
Model = TypeVar("Model", bound=BaseModel)


class RecordError(ValueError):
    """A record is unreadable, or runs cannot be compared; the message names the file and the problem."""


class _Record(BaseModel):
    """Part of a record that reports rely on; further keys are the writer's business."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


class Panel(_Record):
    """Which tasks a run saw."""

    digest: str = Field(min_length=1)
    size: int = Field(ge=1)


class _Config(_Record):
    benchmark: str


class RunInfo(_Record):
    """`run.json`: what was run and where."""

    suite: str
    run: str
    kind: Literal["train", "warm_start", "expert"]
    variant: str
    seed: int
    scale: str
    digest: str = Field(min_length=1)
    commit: str | None
    dirty: bool | None
    device: Any = None
    machine: dict[str, Any] = {}
    world: dict[str, Any]
    panels: dict[str, Panel]
    policy: dict[str, Any] | None = None
    config: _Config

    @property
    def benchmark(self) -> str:
        """Which benchmark was played: `webshop`."""
        return self.config.benchmark


class IterationRow(_Record):
    """The columns of `metrics.jsonl` that are drawn; None where a value is not defined."""

    iteration: int = Field(ge=0)
    sampled_tokens_total: int | None = None
    success: float | None
    kl_loss: float | None


class EpisodeRow(_Record):
    """One evaluated episode of `eval.jsonl`."""

    iteration: int
    split: str
    mode: Mode
    task_id: str
    sample: int
    success: bool
    score: float
    end: str
    error: str | None = None


class _Totals(_Record):
    n: int
    errored: int
    successes: int


class _Summary(_Record):
    iterations: int
    eval: dict[str, dict[str, _Totals]]


@dataclass(frozen=True)
class Evaluation:
    """Outcomes of one policy in one mode on the pinned panel, tasks in sorted order."""

    task_ids: tuple[str, ...]
    success: Array
    """[tasks, samples], 1 or 0; NaN where the environment failed, which says nothing about the policy."""
    score: Array
    """[tasks, samples] in [0, 1]; NaN where the environment failed."""
    errors: tuple[str, ...]
    """What went wrong, once per errored episode, in the environment's own words."""

    @property
    def usable(self) -> NDArray[np.bool_]:
        """[tasks]: whether a task was finished at least once."""
        return np.asarray(np.isfinite(self.success).any(axis=1))

    def rates(self, what: Literal["success", "score"]) -> Array:
        """[tasks]: mean over the samples of each task; NaN where none finished."""
        values = self.success if what == "success" else self.score
        count = np.isfinite(values).sum(axis=1)
        total = np.nansum(values, axis=1)
        return np.asarray(np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0))


@dataclass(frozen=True)
class Run:
    """A complete run."""

    folder: Path
    info: RunInfo
    iterations: int
    metrics: tuple[IterationRow, ...]
    evaluations: dict[str, Evaluation]
    """By mode, for the last evaluated iteration."""

    @property
    def step_file(self) -> Path:
        """The table of agent steps; absent for policies that were not trained."""
        return self.folder / "steps.parquet"


@dataclass(frozen=True)
class Suite:
    """All runs of one suite folder, known to be comparable."""

    name: str
    runs: tuple[Run, ...]
    """Complete ones, by variant and seed."""
    incomplete: tuple[RunInfo, ...]
    """Started but without `summary.json`."""
    strangers: tuple[str, ...]
    """Sub-folders without `run.json`."""
    planned_seeds: tuple[int, ...]

    def of(self, variant: str) -> tuple[Run, ...]:
        """The complete runs of a variant, by seed."""
        return tuple(run for run in self.runs if run.info.variant == variant)


def load_suite(folder: Path, planned_seeds: Sequence[int] | None = None) -> Suite:
    """Read and check every run below `folder`.

    `planned_seeds`: the seeds each trained variant should have; by default all that any was started with.
    Raises `RecordError`.
    """
    if not folder.is_dir():
        raise RecordError(f"{folder}: no such suite folder; expected a folder of run folders")
    places = sorted(path for path in folder.iterdir() if path.is_dir() and _may_be_run(path))
    records = {path: load_info(path) for path in places if (path / "run.json").exists()}
    if not records:
        raise RecordError(f"{folder}: holds no runs; expected sub-folders with run.json")
    check_comparable(records)
    runs = [load_run(path, info) for path, info in records.items() if (path / "summary.json").exists()]
    runs.sort(key=lambda run: (run.info.variant, run.info.seed))
    _check_same_tasks(runs)
    started = sorted({info.seed for info in records.values() if info.kind == "train"})
    return Suite(
        name=folder.name,
        runs=tuple(runs),
        incomplete=tuple(info for path, info in records.items() if not (path / "summary.json").exists()),
        strangers=tuple(path.name for path in places if path not in records),
        planned_seeds=tuple(started if planned_seeds is None else planned_seeds),
    )


def _may_be_run(path: Path) -> bool:
    return path.name != REPORT_FOLDER and not path.name.startswith(".")


def load_info(folder: Path) -> RunInfo:
    """The checked `run.json` of a run folder; a record of another format version is refused."""
    path = folder / "run.json"
    version = _parse(_Version, _read(path), str(path)).format
    if version != FORMAT:
        raise RecordError(f"{path}: record format {version}; this report reads format {FORMAT}")
    return _parse(RunInfo, _read(path), str(path))


class _Version(_Record):
    format: int


def check_comparable(records: dict[Path, RunInfo]) -> None:
    """Refuse runs of unequal panels, data, scale or suite, and two runs of the same variant and seed."""
    (first_path, first), *others = records.items()
    seen = {(first.variant, first.seed): first_path}
    panels = {split: (first_path, panel) for split, panel in first.panels.items()}
    for path, info in others:
        twin = seen.setdefault((info.variant, info.seed), path)
        if twin != path:
            raise RecordError(
                f"{path} and {twin} are both {info.variant} with seed {info.seed}; expected one of each"
            )
        for split, panel in info.panels.items():
            known_path, known = panels.setdefault(split, (path, panel))
            if panel != known:
                raise RecordError(
                    f"{path} saw another {split} panel than {known_path}: "
                    f"{panel.digest} ({panel.size} tasks) "
                    f"against {known.digest} ({known.size} tasks); such runs are not compared"
                )
        for name in ("suite", "scale"):
            _refuse_unequal(name, getattr(info, name), getattr(first, name), path, first_path)
        for name in sorted(info.world.keys() | first.world.keys()):
            _refuse_unequal(f"world.{name}", info.world.get(name), first.world.get(name), path, first_path)


def _refuse_unequal(name: str, found: object, known: object, path: Path, known_path: Path) -> None:
    if found != known:
        raise RecordError(
            f"{path} has {name} = {found!r} but {known_path} has {known!r}; such runs are not compared"
        )


def load_run(folder: Path, info: RunInfo) -> Run:
    """A complete run with its metrics and its last evaluation."""
    summary_path = folder / "summary.json"
    summary = _parse(_Summary, _read(summary_path), str(summary_path))
    if EVALUATED_SPLIT not in info.panels:
        raise RecordError(
            f"{folder / 'run.json'}: panels has no {EVALUATED_SPLIT!r}; got {sorted(info.panels)}"
        )
    evaluations = _evaluations(folder / "eval.jsonl", info.panels[EVALUATED_SPLIT])
    for mode, totals in summary.eval.get(EVALUATED_SPLIT, {}).items():
        _check_totals(summary_path, mode, totals, evaluations.get(mode))
    metrics = _metrics(folder / "metrics.jsonl") if info.kind == "train" else ()
    return Run(folder, info, summary.iterations, metrics, evaluations)


def _metrics(path: Path) -> tuple[IterationRow, ...]:
    rows = tuple(_rows(IterationRow, path))
    for before, after in pairwise(rows):
        if after.iteration <= before.iteration:
            raise RecordError(
                f"{path}: iteration {after.iteration} after {before.iteration}; expected rising numbers"
            )
    return rows


def _evaluations(path: Path, panel: Panel) -> dict[str, Evaluation]:
    rows = [row for row in _rows(EpisodeRow, path) if row.split == EVALUATED_SPLIT]
    if not rows:
        raise RecordError(f"{path}: no episodes of the {EVALUATED_SPLIT} split; expected {panel.size} tasks")
    last = max(row.iteration for row in rows)
    found = {}
    for mode in MODES:
        played = [row for row in rows if row.iteration == last and row.mode == mode]
        if played:
            found[mode] = _evaluation(path, mode, played, panel)
    return found


def _evaluation(path: Path, mode: str, rows: Sequence[EpisodeRow], panel: Panel) -> Evaluation:
    tasks = sorted({row.task_id for row in rows})
    samples = sorted({row.sample for row in rows})
    if len(tasks) != panel.size:
        raise RecordError(f"{path}: {len(tasks)} tasks played {mode}; expected the panel's {panel.size}")
    played = {(row.task_id, row.sample) for row in rows}
    if not len(rows) == len(played) == len(tasks) * len(samples):
        raise RecordError(
            f"{path}: {len(rows)} {mode} episodes; expected {len(samples)} of each of {len(tasks)} tasks"
        )
    row_of = {task: place for place, task in enumerate(tasks)}
    column_of = {sample: place for place, sample in enumerate(samples)}
    success, score = (np.full((len(tasks), len(samples)), np.nan) for _ in range(2))
    for row in rows:
        if row.end != "error":
            place = row_of[row.task_id], column_of[row.sample]
            success[place], score[place] = row.success, row.score
    errors = tuple(row.error or "no message" for row in rows if row.end == "error")
    return Evaluation(tuple(tasks), success, score, errors)


def _check_totals(path: Path, mode: str, totals: _Totals, found: Evaluation | None) -> None:
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


def _check_same_tasks(runs: Sequence[Run]) -> None:
    """Equal hashes promise equal tasks; the episodes must keep the promise."""
    known: tuple[Path, tuple[str, ...]] | None = None
    for run in runs:
        for evaluation in run.evaluations.values():
            known = known or (run.folder, evaluation.task_ids)
            if evaluation.task_ids != known[1]:
                strange = sorted(set(evaluation.task_ids) ^ set(known[1]))[0]
                raise RecordError(
                    f"{run.folder} and {known[0]} evaluated different tasks, such as {strange!r}"
                )


def load_steps(path: Path) -> dict[str, NDArray[np.float64]]:
    """`STEP_COLUMNS` of a step table as float arrays, all equally long; NaN where a value is absent."""
    try:
        table = pq.read_table(path, columns=list(STEP_COLUMNS))
    except (OSError, ValueError) as error:  # pyarrow's own errors are both
        raise RecordError(f"{path}: not a readable step table: {error}") from error
    if missing := sorted(set(STEP_COLUMNS) - set(table.column_names)):
        raise RecordError(f"{path}: lacks the columns {missing}; expected {list(STEP_COLUMNS)}")
    return {name: np.asarray(table.column(name).to_pandas(), dtype=np.float64) for name in STEP_COLUMNS}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error


def _rows(model: type[Model], path: Path) -> list[Model]:
    lines = _read(path).split(b"\n")
    if lines[-1]:
        raise RecordError(
            f"{path}: line {len(lines)} is cut off; expected every line of a complete run to be whole"
        )
    return [_parse(model, line, f"{path}: line {number}") for number, line in enumerate(lines[:-1], start=1)]


def _parse(model: type[Model], content: bytes, where: str) -> Model:
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in problem["loc"])
        said = (
            problem["msg"]
            if problem["type"] == "missing"
            else f"{problem['msg']}, got {problem['input']!r:.80}"
        )
        raise RecordError(f"{where}: {place + ': ' if place else ''}{said}") from None
