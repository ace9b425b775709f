"""Several runs at a time, each in a process of its own, so that one failure or kill touches no other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.progress import Display, duration, read_status

LOG = "log.txt"
TAIL_LINES = 12
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Job:
    """One process to run; its output goes to `log.txt` in `folder`."""

    name: str
    folder: Path
    command: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """A job that ended badly."""

    name: str
    exit_code: int
    log: Path
    tail: tuple[str, ...]
    """Its last words, with control characters made visible."""


@dataclass(frozen=True)
class _Child:
    job: Job
    process: subprocess.Popen[bytes]
    started: float


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_cores(jobs: int | None, runs: int, available: int) -> tuple[int, int]:
    """(runs at a time, threads of each): one run a core unless told otherwise; no core is promised twice."""
    parallel = max(1, min(jobs or available, runs))
    return parallel, max(1, available // parallel)


def launch(jobs: Sequence[Job], *, parallel: int, threads: int, display: Display) -> list[Failure]:
    """Run all jobs, `parallel` at a time; the others go on when one fails.

    The children end when this process does, however it ends: each watches the pipe at its standard input.
    """
    waiting, running, failures = deque(jobs), list[_Child](), list[Failure]()
    environment = _environment(threads)
    try:
        while waiting or running:
            while waiting and len(running) < parallel:
                running.append(_start(waiting.popleft(), environment))
            time.sleep(POLL_SECONDS)
            for child in list(running):
                if status := read_status(child.job.folder):
                    display.update(child.job.name, status)
                code = child.process.poll()
                if code is None:
                    continue
                running.remove(child)
                if code:
                    failures.append(_failure(child.job, code))
                    display.say(
                        f"{child.job.name}: FAILED with exit code {code}, see {child.job.folder / LOG}"
                    )
                else:
                    display.say(f"{child.job.name}: done in {duration(time.monotonic() - child.started)}")
    finally:
        _stop(running)
    return failures


def _environment(threads: int) -> Mapping[str, str]:
    """Numeric libraries read these when they load, so they must stand in the environment from the start."""
    return os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _start(job: Job, environment: Mapping[str, str]) -> _Child:
    job.folder.mkdir(parents=True, exist_ok=True)
    with (job.folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            job.command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches this process only; it stops the children in order
        )
    return _Child(job, process, time.monotonic())


def _stop(children: Sequence[_Child]) -> None:
    for child in children:
        child.process.terminate()
    for child in children:
        try:
            child.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()


def _failure(job: Job, code: int) -> Failure:
    log = job.folder / LOG
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return Failure(job.name, code, log, tuple(map(printable, lines[-TAIL_LINES:])))


def printable(text: str) -> str:
    """The text with control characters spelled out, so that a log cannot steer the terminal."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in text)


def tie_to_launcher() -> None:
    """End this process when its standard input closes: the launcher is gone.

    Ending without clean-up is safe, because every record is written whole or not at all.
    """
    stdin = sys.stdin.fileno()  # unbuffered: a thread inside a buffered read aborts the interpreter's exit

    def watch() -> None:
        while os.read(stdin, 1):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
