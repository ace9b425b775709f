"""A view of a run while it trains: the numbers of `metrics.jsonl` in TensorBoard or in Weights & Biases.

The records stay the source. What is shown are rows that they hold, each at its own iteration, so that a run which goes
on after a stop shows no point twice and none elsewhere. Both packages are extras, imported only when asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from benchmarks import records
from benchmarks.config import ConfigError

SHOWN = "wandb.json"


class Board(Protocol):
    """Where numbers are shown; opened for one run folder."""

    def add(self, iteration: int, numbers: Mapping[str, float]) -> None:
        """Show numbers at an iteration, at once."""
        ...


class Live:
    """Shows the rows of one run on some boards."""

    def __init__(self, boards: Sequence[Callable[[Path], Board]] = ()) -> None:
        """`boards`: each opens a board for a run folder."""
        self._open = boards
        self._boards: list[Board] | None = None
        self._last = -1

    def follow(self, metrics: Path) -> None:
        """Show what `metrics.jsonl` holds and the boards do not yet; the first call opens them, before any training."""
        if self._boards is None:
            self._boards = [board(metrics.parent) for board in self._open]
        if not self._boards:
            return
        for row in records.read_jsonl(metrics):
            if row["iteration"] > self._last:
                self._last = row["iteration"]
                for board in self._boards:
                    board.add(row["iteration"], numbers_of(row))


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row by name; what is not defined in an iteration is no point of its curve."""
    return {
        name: float(value)
        for name, value in row.items()
        if name != "iteration" and isinstance(value, int | float) and not isinstance(value, bool)
    }


class TensorBoard:
    """Event files in the run's folder `tensorboard`, written anew by every process that works on the run."""

    def __init__(self, run: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = run / "tensorboard"
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self._writer: Any = SummaryWriter(str(folder))

    def add(self, iteration: int, numbers: Mapping[str, float]) -> None:
        """One point for each number."""
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, iteration)
        self._writer.flush()


class WeightsAndBiases:
    """A run of Weights & Biases of the same name; its account, project and mode are set by its own variables.

    What was sent cannot be taken back: `wandb.json` in the run's folder says how far that is, and earlier rows are not
    sent again. On a GPU, where an iteration that is done again may come out otherwise, its first outcome is shown.
    """

    def __init__(self, run: Path) -> None:
        import wandb

        record = records.read_json(run / "run.json")
        started = {name: record[name] for name in ("digest", "created")}
        try:
            self._run: Any = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "empg-bench"),
                id=records.digest(started)[:16],
                name=record["run"],
                group=record["suite"],
                config=record["config"],
                dir=str(run),
                resume="allow",
            )
        except wandb.Error as error:
            raise ConfigError(f"--wandb: {error}") from error
        self._shown = run / SHOWN
        self._last = records.read_json(self._shown)["iteration"] if self._shown.exists() else -1

    def add(self, iteration: int, numbers: Mapping[str, float]) -> None:
        """One row of its history, at the iteration as its step."""
        if iteration > self._last:
            self._run.log(dict(numbers), step=iteration)
            records.write_json(self._shown, {"iteration": iteration})


BOARDS: Mapping[str, Callable[[Path], Board]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}
"""By the option that asks for one, which is also the name of its package and of the extra that installs it."""


def live_view(names: Sequence[str]) -> Live:
    """The view that some options ask for; `ConfigError` where the package of one is not installed."""
    for name in names:
        if find_spec(name) is None:
            raise ConfigError(
                f"--{name}: the package {name} is not installed, expected `pip install 'empg-bench[{name}]'`"
            )
    return Live([BOARDS[name] for name in names])
