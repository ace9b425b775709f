"""The plan of a suite or a collection: its runs, and what each part needs of memory, GPUs, tokens and disk."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks import estimate, machine, records
from benchmarks.collection import Collection, Part
from benchmarks.config import RunConfig
from benchmarks.estimate import Disk, Habits, Memory, Tokens
from benchmarks.plan import Run, plan, suite_folder
from benchmarks.progress import read_status
from benchmarks.shapes import Shape, shape_of
from empg.config import LearnerConfig

METRICS, RUN = "metrics.jsonl", "run.json"
ASSUMED = Path(__file__).parent / "assumptions.toml"


@dataclass(frozen=True)
class PartPlan:
    """A part of a collection, with all that is estimated of it."""

    part: Part
    runs: tuple[Run, ...]
    states: tuple[str, ...]
    """How far each run is."""
    shape: Shape | None
    """None where the model's size is not known on this machine."""
    habits: Habits
    measured: tuple[str, ...]
    """Which of the habits were measured on complete runs of the suite."""

    @property
    def trained(self) -> tuple[Run, ...]:
        """The runs that train."""
        return tuple(run for run in self.runs if run.config.kind == "train")

    @property
    def config(self) -> RunConfig:
        """What all runs share."""
        return self.part.suite.base

    @property
    def learner(self) -> LearnerConfig:
        """That of the variant whose update takes most memory; the others are like it."""
        learners = self.part.suite.learners.values()
        return max(learners, key=lambda one: (one.batch.token_budget, one.loss.entropy_coef))

    def memory(self, processes: int = 1, *, sharded: bool = False) -> Memory | None:
        """Of one process; None where the model is unknown."""
        if self.shape is None:
            return None
        return estimate.memory(self.shape, self.config, self.learner, self.habits, processes, sharded=sharded)

    def gpus(self, card: int, *, sharded: bool) -> int | None:
        """How many GPUs of so many bytes a run needs; None where no number would do."""
        assert self.shape is not None
        return estimate.gpus(self.shape, self.config, self.learner, self.habits, card, sharded=sharded)

    @cached_property
    def tokens(self) -> tuple[Tokens, ...]:
        """Of each run; the demonstrator has none."""
        return tuple(
            Tokens() if run.config.kind == "expert" else estimate.tokens(run.config, self.habits)
            for run in self.runs
        )

    @cached_property
    def disk(self) -> tuple[Disk, ...]:
        """Of each run that trains."""
        if self.shape is None:
            return ()
        return tuple(
            estimate.disk(self.shape, run.config, found, self.habits)
            for run, found in zip(self.runs, self.tokens, strict=True)
            if run.config.kind == "train"
        )

    def needed_here(self, here: machine.Gpus) -> int | None:
        """How many of this machine's GPUs a run needs; None where no number would do, or nothing is known."""
        if self.shape is None or not here.bytes:
            return None
        counts = (self.gpus(min(here.bytes), sharded=one) for one in (False, True))
        return min((one for one in counts if one is not None), default=None)

    def missing_gpus(self, here: machine.Gpus) -> list[str]:
        """What of GPUs this machine lacks; a small policy needs none."""
        whole = self.memory()
        if whole is None or self.config.policy.model is None:
            return []
        return machine.missing_gpus(self.needed_here(here), whole.peak, here)

    def missing_parts(self, here: machine.Gpus) -> list[str]:
        """What else this machine lacks, but for disk."""
        return [
            *machine.missing_packages(self.config, self.needed_here(here) or 1),
            *machine.missing_model(self.config.policy.model),
            *machine.missing_data(self.config, self.part.data),
        ]


def plans(collection: Collection, seeds: Sequence[int], results: Path) -> tuple[PartPlan, ...]:
    """Each part's plan; `ConfigError` for seeds or variants that no run can have."""
    return tuple(_plan(part, seeds, results) for part in collection.parts)


def _plan(part: Part, seeds: Sequence[int], results: Path) -> PartPlan:
    runs = plan(part.suite, seeds, part.data, results)
    habits, measured = habits_of(part, suite_folder(part.suite, part.data, results))
    return PartPlan(part, runs, tuple(map(state, runs)), shape_of(part.suite.base), habits, measured)


def state(run: Run) -> str:
    """How far a run is, from its records."""
    if (run.folder / "summary.json").exists():
        return "complete"
    if not (run.folder / "run.json").exists():
        return "not begun"
    status = read_status(run.folder)
    return status.stage if status else "begun"


def habits_of(part: Part, folder: Path) -> tuple[Habits, tuple[str, ...]]:
    """What episodes are taken to be, and which of it was measured on complete runs in the suite's folder."""
    table = tomllib.loads(ASSUMED.read_text(encoding="utf-8"))
    assumed = Habits(**table[part.suite.benchmark], **table["dynamic_sampling"])
    rows, filtered = list[dict[str, Any]](), list[int]()
    for summary in sorted(folder.glob("*/summary.json")):
        run = summary.parent
        found = [row for row in records.read_jsonl(run / METRICS) if row["steps_per_episode"]]
        rows += found
        if found and records.read_json(run / RUN)["config"]["learner"]["sampling"]:
            filtered += [row["attempts"] for row in found]
    if not rows:
        return assumed, ()
    episodes = sum(row["episodes"] for row in rows)
    turns = sum(row["steps_per_episode"] * row["episodes"] for row in rows) / episodes
    written = sum(row["sampled_tokens"] for row in rows) / (episodes * turns)
    attempts = sum(filtered) / len(filtered) if filtered else assumed.attempts
    measured = replace(assumed, turns=turns, response_tokens=written, attempts=attempts)
    return measured, ("turns", "response_tokens", *(["attempts"] if filtered else []))
