"""How far a run is: a small file that it writes, and how the launcher shows it on a terminal or in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks import records

FILE = "progress.json"


@dataclass(frozen=True)
class Status:
    """One moment of a run."""

    stage: str
    """What it does now, for people: `iteration 3/40`."""
    done: float
    """Work done, in episodes."""
    total: float
    note: str = ""
    """The latest figure worth showing: `success 0.31`."""


class Reporter:
    """Writes a run's status, at most once in `interval` seconds unless it must be seen."""

    def __init__(self, folder: Path, interval: float = 0.5) -> None:
        self._path = folder / FILE
        self._interval = interval
        self._last = -interval

    def __call__(self, status: Status, *, now: bool = False) -> None:
        """Write the status, unless the last one is younger than the interval; `now` writes in any case."""
        if now or time.monotonic() - self._last >= self._interval:
            records.write_json(self._path, asdict(status))
            self._last = time.monotonic()


def read_status(folder: Path) -> Status | None:
    """What a run last said, or None before it said anything."""
    path = folder / FILE
    if not path.exists():
        return None
    return Status(**records.read_json(path))


class Display(Protocol):
    """Shows several runs at once; a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, run: str, status: Status) -> None:
        """A run got on."""
        ...

    def say(self, message: str) -> None:
        """A line for people that stays on the screen."""
        ...


def display(console: Console) -> Display:
    """Live bars on a terminal, plain lines elsewhere."""
    return Bars(console) if console.is_terminal else Lines(console)


class Bars:
    """One live bar with an estimate of the remaining time for each run."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            console=console,
            speed_estimate_period=120,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def update(self, run: str, status: Status) -> None:
        """Move the run's bar."""
        if run not in self._tasks:
            self._tasks[run] = self._progress.add_task(run, total=status.total, text="")
        text = f"{status.stage}  {status.note}".strip()
        self._progress.update(self._tasks[run], completed=status.done, total=status.total, text=text)

    def say(self, message: str) -> None:
        """Print above the bars."""
        self._progress.console.print(escape(message), highlight=False)


class Lines:
    """A line for each new kind of stage and each tenth of a run's work, at most one in `interval` seconds."""

    def __init__(
        self, console: Console, clock: Callable[[], float] = time.monotonic, interval: float = 5.0
    ) -> None:
        self._console = console
        self._clock = clock
        self._interval = interval
        self._begun: dict[tuple[str, str], tuple[float, float]] = {}
        """When a stage of a run was first heard of, and how much was done then: each has a pace of its own."""
        self._shown: dict[str, tuple[str, int, float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def update(self, run: str, status: Status) -> None:
        """Print a line when there is news."""
        share = status.done / status.total if status.total else 0.0
        now, stage = self._clock(), status.stage.split(" ")[0]
        begun, before = self._begun.setdefault((run, stage), (now, status.done))
        last_stage, last_tenth, last_time = self._shown.get(run, ("", -1, -self._interval))
        if stage == last_stage and (int(10 * share) == last_tenth or now - last_time < self._interval):
            return
        self._shown[run] = (stage, int(10 * share), now)
        left = ""
        if before < status.done < status.total:
            seconds = (now - begun) * (status.total - status.done) / (status.done - before)
            left = f"about {duration(seconds)} left"
        parts = [f"{run}:", f"{share:4.0%}", status.stage, status.note, left]
        self.say("  ".join(part for part in parts if part))

    def say(self, message: str) -> None:
        """Print a line."""
        self._console.print(escape(message), highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """`45 s`, `3 min 20 s` or `1 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
