"""The records of a run as reports read them: strict models, and files that must be whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

EVALUATED_SPLIT = "test"

LAST = "last checkpoint"
"""What is evaluated by default."""

Mode = Literal["sampled", "greedy"]
Model = TypeVar("Model", bound=BaseModel)


class RecordError(ValueError):
    """A record is unreadable, or runs cannot be compared; the message names the file and the problem."""


class Record(BaseModel):
    """Part of a record that reports rely on; further keys are the writer's business."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


class Panel(Record):
    """Which tasks a run saw."""

    digest: str = Field(min_length=1)
    size: int = Field(ge=1)


class EmpgSettings(Record):
    """How strongly a run modulated its advantages."""

    zeta: float
    k: float
    k_f: float


class _Learner(Record):
    empg: EmpgSettings | None = None


class _Evaluation(Record):
    checkpoint: Literal["last", "best-on-dev"] = "last"


class _Policy(Record):
    model: str | None = None


class _Rollout(Record):
    shots: int = 0


class _Config(Record):
    benchmark: str
    kind: str | None = None
    variant: str | None = None
    seed: int | None = None
    iterations: int | None = None
    learner: _Learner | None = None
    evaluation: _Evaluation = _Evaluation()
    policy: _Policy = _Policy()
    rollout: _Rollout = _Rollout()


class _TaskTypes(Record):
    task_types: dict[str, Literal["id", "ood"]] = {}


class RunInfo(Record):
    """`run.json`: what was run and where."""

    suite: str
    run: str
    kind: Literal["train", "warm_start", "base", "expert", "served"]
    variant: str
    seed: int
    scale: str
    digest: str = Field(min_length=1)
    commit: str | None
    dirty: bool | None
    device: Any = None
    machine: dict[str, Any] = {}
    versions: dict[str, str] = {}
    """Of Python and the packages that decide results."""
    world: dict[str, Any]
    panels: dict[str, Panel]
    policy: dict[str, Any] | None = None
    variants: tuple[str, ...] = ()
    """All variants that the suite trains."""
    config: _Config

    @property
    def benchmark(self) -> str:
        """Which benchmark was played: `webshop`."""
        return self.config.benchmark

    @property
    def judged(self) -> str:
        """Which weights were evaluated, in words."""
        if self.config.evaluation.checkpoint == "last":
            return LAST
        dev = self.panels.get("dev")
        return f"checkpoint with most sampled success on {'the' if dev is None else dev.size} dev tasks"

    @property
    def empg(self) -> EmpgSettings | None:
        """None where EMPG was off or nothing was trained."""
        return None if self.config.learner is None else self.config.learner.empg

    @property
    def task_types(self) -> Mapping[str, str]:
        """Kind of task -> its domain, where the world states them."""
        return parse(_TaskTypes, json.dumps(self.world).encode(), f"run {self.run}: world").task_types


class IterationRecord(Record):
    """A row that belongs to one iteration of training."""

    iteration: int = Field(ge=0)


class IterationRow(IterationRecord):
    """The columns of `metrics.jsonl` that are drawn or added up; None where a value is not defined."""

    sampled_tokens_total: int | None = None
    success: float | None
    kl_loss: float | None
    episodes: int | None = None
    episodes_errored: int | None = None
    steps_per_episode: float | None = None
    train_tokens: int | None = None
    optimizer_steps: int | None = None


class TimingRow(Record):
    """Seconds of an iteration, as `timing.jsonl` has them; None where a part did not take place."""

    collect: float | None = None
    score: float | None = None
    update: float | None = None


class VarianceRow(IterationRecord):
    """A row of `gradients.jsonl`: the step gradients of one probed iteration, plain and scaled by g."""

    steps: int = Field(ge=1)
    plain_variance: float | None
    """Trace of the sample covariance over steps, 0 up to rounding where they are equal; None for a single step."""
    plain_mean_sq: float
    """Squared norm of the mean over steps."""
    scaled_variance: float | None
    scaled_mean_sq: float


class EpisodeRow(Record):
    """One evaluated episode of `eval.jsonl`."""

    iteration: int
    split: str
    mode: Mode
    task_id: str
    task_type: str = ""
    sample: int
    success: bool
    score: float
    end: str
    error: str | None = None


class Totals(Record):
    """Counts of one split and mode."""

    n: int
    errored: int
    successes: int


class Summary(Record):
    """`summary.json`: totals by split and mode."""

    iterations: int
    eval: dict[str, dict[str, Totals]]
    panels: dict[str, str] = {}
    """The digest of each panel that was evaluated, by split."""
    wall_seconds: float | None = None
    """Of all iterations and the evaluation."""
    loading_seconds: float | None = None
    """Of opening data and policy, by the process that ended the run."""
    evaluation_seconds: float | None = None
    service: dict[str, int] = {}
    """What was asked of servers, and what failed, by kind."""


class Version(Record):
    """Which form `run.json` has."""

    format: int


def read(path: Path) -> bytes:
    """The content of a file of a run."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error


def rows(model: type[Model], path: Path) -> list[Model]:
    """Every line of a JSON Lines file; one that is cut off is an error."""
    lines = read(path).split(b"\n")
    if lines[-1]:
        raise RecordError(
            f"{path}: line {len(lines)} is cut off; expected every line of a complete run to be whole"
        )
    return [parse(model, line, f"{path}: line {number}") for number, line in enumerate(lines[:-1], start=1)]


def parse(model: type[Model], content: bytes, where: str) -> Model:
    """A checked record; the error says `where` and which key."""
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
