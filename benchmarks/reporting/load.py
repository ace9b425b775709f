"""Run records as checked, typed data. Anything that cannot be trusted is an error that names its file.

A report compares runs, so a suite is loaded as a whole: runs that saw other tasks, other data or another
scale are refused. What is not there yet is not an error: it is listed, and shown as missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from benchmarks.reporting.columns import Columns, columns_of
from benchmarks.reporting.evaluations import Evaluation, check_totals, evaluated_rows, evaluations
from benchmarks.reporting.integrity import check_info, check_metrics, check_summary
from benchmarks.reporting.schema import (
    EVALUATED_SPLIT,
    LAST,
    IterationRecord,
    IterationRow,
    RecordError,
    RunInfo,
    Summary,
    TimingRow,
    Version,
    parse,
    read,
    rows,
)
from benchmarks.reporting.task_types import join_types, panel_words, types_of_tasks

FORMAT = 1
ByIteration = TypeVar("ByIteration", bound=IterationRecord)


@dataclass(frozen=True)
class Run:
    """A complete run."""

    folder: Path
    info: RunInfo
    iterations: int
    service: dict[str, int]
    """What was asked of servers, and what failed, by kind."""
    metrics: tuple[IterationRow, ...]
    evaluations: dict[str, Evaluation]
    """By mode, for the last evaluated iteration."""
    task_types: dict[str, str]
    """Of the tasks whose type the run knows; empty where the benchmark's tables show none."""
    timing: tuple[TimingRow, ...] = ()
    """Of each iteration; empty where it was not recorded."""
    wall_seconds: float | None = None
    """Of all iterations and the evaluation."""
    loading_seconds: float | None = None
    evaluation_seconds: float | None = None

    @property
    def step_file(self) -> Path:
        """The table of agent steps; absent for policies that were not trained."""
        return self.folder / "steps.parquet"

    @property
    def token_file(self) -> Path:
        """The tokens of some recorded groups of steps; absent where none were recorded."""
        return self.folder / "tokens.parquet"

    @property
    def gradient_file(self) -> Path:
        """The gradients of some steps, one by one; absent where none were probed."""
        return self.folder / "gradients.parquet"

    @property
    def variance_file(self) -> Path:
        """The spread of those gradients, by iteration; absent where none were probed."""
        return self.folder / "gradients.jsonl"


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
    columns: Columns
    """What the tables of the benchmark show."""
    variants: tuple[str, ...]
    """All that the suite trains, as far as its records say."""
    panel: str
    """The evaluated tasks in words; empty where no run names them."""
    task_types: dict[str, str]
    """Of the panel's tasks, as far as any run knows."""

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The tasks that were evaluated; empty without a complete run."""
        return next((found.task_ids for run in self.runs for found in run.evaluations.values()), ())

    @property
    def infos(self) -> tuple[RunInfo, ...]:
        """Of all runs, complete ones first."""
        return (*(run.info for run in self.runs), *self.incomplete)

    @property
    def served(self) -> tuple[str, ...]:
        """The variants that are models behind a server: played on the same tasks, never trained."""
        return tuple(sorted({info.variant for info in self.infos if info.kind == "served"}))

    @property
    def judged(self) -> str:
        """Which weights of the trained runs were evaluated: `last checkpoint`, or those that a dev panel chose."""
        return " or ".join(dict.fromkeys(info.judged for info in self.infos if info.kind == "train")) or LAST

    def tasks_of(self, *task_types: str) -> frozenset[str]:
        """The panel's tasks of some types; under an unknown type (`""`) those that always failed to start."""
        return frozenset(task for task in self.task_ids if self.task_types.get(task, "") in task_types)

    @property
    def model_size(self) -> str:
        """Parameters of the policies, such as `0.66M params` or `7.62B params`."""
        stated = {(run.info.policy or {}).get("parameters") for run in self.runs}
        counts = sorted(count for count in stated if isinstance(count, int))
        sizes = (f"{count / 1e6:.3g}M" if count < 999.5e6 else f"{count / 1e9:.3g}B" for count in counts)
        return " and ".join(f"{size} params" for size in sizes) or "model size not recorded"

    def of(self, variant: str) -> tuple[Run, ...]:
        """The complete runs of a variant, by seed."""
        return tuple(run for run in self.runs if run.info.variant == variant)


def judged(suites: Iterable[Suite]) -> str:
    """The same of several suites."""
    return " or ".join(dict.fromkeys(suite.judged for suite in suites)) or LAST


def load_suite(folder: Path, planned_seeds: Sequence[int] | None = None) -> Suite:
    """Read and check every run below `folder`.

    `planned_seeds`: the seeds each trained variant should have; by default all that any was started with.
    Raises `RecordError`.
    """
    return load_runs(folder.name, run_folders(folder), planned_seeds)


def run_folders(folder: Path) -> list[Path]:
    """What lies in a suite folder as a run or in the place of one; raises `RecordError` where nothing is a run."""
    if not folder.is_dir():
        raise RecordError(f"{folder}: no such suite folder; expected a folder of run folders")
    places = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not any((path / "run.json").exists() for path in places):
        raise RecordError(f"{folder}: holds no runs; expected sub-folders with run.json")
    return places


def load_runs(name: str, places: Sequence[Path], planned_seeds: Sequence[int] | None = None) -> Suite:
    """The same for run folders from anywhere, at least one of them with `run.json`."""
    records = {path: load_info(path) for path in places if (path / "run.json").exists()}
    check_comparable(records)
    runs = [load_run(path, info) for path, info in records.items() if (path / "summary.json").exists()]
    runs.sort(key=lambda run: (run.info.variant, run.info.seed))
    check_same_tasks(runs)
    words = [
        panel_words(path / "run.json", info)
        for path, info in records.items()
        if EVALUATED_SPLIT in info.panels
    ]
    started = sorted({info.seed for info in records.values() if info.kind == "train"})
    return Suite(
        name=name,
        runs=tuple(runs),
        incomplete=tuple(info for path, info in records.items() if not (path / "summary.json").exists()),
        strangers=tuple(path.name for path in places if path not in records),
        planned_seeds=tuple(started if planned_seeds is None else planned_seeds),
        columns=columns_of(next(iter(records.values()))),
        variants=tuple(dict.fromkeys(name for info in records.values() for name in info.variants)),
        panel=words[0] if words else "",
        task_types=join_types((run.folder / "eval.jsonl", run.task_types) for run in runs),
    )


def load_info(folder: Path) -> RunInfo:
    """The checked `run.json` of a run folder; a record of another format version is refused."""
    path = folder / "run.json"
    content = read(path)
    version = parse(Version, content, str(path)).format
    if version != FORMAT:
        raise RecordError(f"{path}: record format {version}; this report reads format {FORMAT}")
    info = parse(RunInfo, content, str(path))
    check_info(path, content, info)
    return info


def check_comparable(records: Mapping[Path, RunInfo]) -> None:
    """Refuse runs of unequal panels, data, scale or suite, and two runs of the same variant and seed."""
    (first_path, first), *others = records.items()
    seen = {(first.variant, first.seed): first_path}
    for path, info in others:
        twin = seen.setdefault((info.variant, info.seed), path)
        if twin != path:
            raise RecordError(
                f"{path} and {twin} are both {info.variant} with seed {info.seed}; expected one of each"
            )
        _refuse_unequal("suite", info.suite, first.suite, path, first_path)
    check_same_ground(records)


def check_same_ground(records: Mapping[Path, RunInfo], apart: Collection[str] = ()) -> None:
    """Refuse runs of unequal benchmark, scale, panels or world: its data, its step limit and all else that it states.

    apart: facts of the world that may differ.
    """
    (first_path, first), *others = records.items()
    panels = {split: (first_path, panel) for split, panel in first.panels.items()}
    for path, info in others:
        for name in ("benchmark", "scale"):
            _refuse_unequal(name, getattr(info, name), getattr(first, name), path, first_path)
        for split, panel in info.panels.items():
            known_path, known = panels.setdefault(split, (path, panel))
            if panel != known:
                raise RecordError(
                    f"{path} saw another {split} panel than {known_path}: "
                    f"{panel.digest} ({panel.size} tasks) "
                    f"against {known.digest} ({known.size} tasks); such runs are not compared"
                )
        for name in sorted((info.world.keys() | first.world.keys()) - set(apart)):
            _refuse_unequal(f"world.{name}", info.world.get(name), first.world.get(name), path, first_path)


def _refuse_unequal(name: str, found: object, known: object, path: Path, known_path: Path) -> None:
    if found != known:
        raise RecordError(
            f"{path} has {name} = {found!r} but {known_path} has {known!r}; such runs are not compared"
        )


def load_run(folder: Path, info: RunInfo) -> Run:
    """A complete run with its metrics and its last evaluation."""
    summary_path = folder / "summary.json"
    summary = parse(Summary, read(summary_path), str(summary_path))
    check_summary(summary_path, summary, info)
    if EVALUATED_SPLIT not in info.panels:
        raise RecordError(
            f"{folder / 'run.json'}: panels has no {EVALUATED_SPLIT!r}; got {sorted(info.panels)}"
        )
    path, panel = folder / "eval.jsonl", info.panels[EVALUATED_SPLIT]
    episodes = evaluated_rows(path, panel)
    found = evaluations(path, episodes, panel)
    for mode, totals in summary.eval.get(EVALUATED_SPLIT, {}).items():
        check_totals(summary_path, mode, totals, found.get(mode))
    metrics = rising(IterationRow, folder / "metrics.jsonl") if info.kind == "train" else ()
    check_metrics(folder / "metrics.jsonl", metrics, summary.iterations)
    types = types_of_tasks(path, episodes, columns_of(info).types)
    timing = folder / "timing.jsonl"
    return Run(
        folder,
        info,
        summary.iterations,
        summary.service,
        metrics,
        found,
        types,
        tuple(rows(TimingRow, timing)) if timing.exists() else (),
        summary.wall_seconds,
        summary.loading_seconds,
        summary.evaluation_seconds,
    )


def rising(model: type[ByIteration], path: Path) -> tuple[ByIteration, ...]:
    """The rows of a JSON Lines file with one row an iteration, in order; raises `RecordError` for any other."""
    logged = tuple(rows(model, path))
    for before, after in pairwise(logged):
        if after.iteration <= before.iteration:
            raise RecordError(
                f"{path}: iteration {after.iteration} after {before.iteration}; expected rising numbers"
            )
    return logged


def check_same_tasks(runs: Sequence[Run]) -> None:
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
