"""The credit lens as data files, each loaded when it is looked at: the runs, an index per run, a chunk per iteration.

The index tells enough to list and filter all episodes of a run; a chunk has what was said in one iteration,
with credit and tokens. The files are made one at a time, so that a suite of any size fits in memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.reporting.load import Run, Suite
from benchmarks.reporting.outcomes import label
from benchmarks.reporting.page.episodes import CREDIT, EPISODES, Played, Tokens, Turn, iterations
from benchmarks.reporting.page.script import data_script

FOLDER = "lens"
_UNSAFE = re.compile(r"[^a-z0-9]+")
KEY_LENGTH = 60


@dataclass
class Listing:
    """A run's episodes in columns, as they come."""

    tasks: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    columns: dict[str, list[int | float]] = field(default_factory=dict)

    def add(self, played: Played) -> None:
        """Append an episode."""
        episode = played.episode
        row = {
            "iteration": episode.iteration,
            "attempt": episode.attempt,
            "group": episode.group,
            "sample": episode.sample,
            "task": self.tasks.setdefault(episode.task_id, len(self.tasks)),
            "type": self.types.setdefault(episode.task_type, len(self.types)),
            "success": int(episode.success),
            "score": round(episode.score, 4),
            "steps": len(episode.turns),
            "fate": FATES.index(played.fate),
            "tokens": int(bool(played.tokens)),
        }
        for name, value in row.items():
            self.columns.setdefault(name, []).append(value)

    @property
    def size(self) -> int:
        """How many episodes were added."""
        return len(self.columns.get("iteration", ()))


FATES = ("trained", "dropped", "errored", "skipped")


def run_key(name: str) -> str:
    """A run's name as a file name that is safe everywhere; a changed name gets a digest, so that none collide."""
    slug = _UNSAFE.sub("-", name.lower()).strip("-")[:KEY_LENGTH]
    return slug if slug == name else f"{slug}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".strip("-")


def recorded(suite: Suite) -> bool:
    """Whether any run has the episodes that the lens shows."""
    return any((run.folder / EPISODES).exists() for run in suite.runs)


def of_lens(name: str) -> bool:
    """Whether a file of a report, named by its path, is the lens's."""
    return name.startswith(f"{FOLDER}/")


def files(suite: Suite) -> Iterator[tuple[str, bytes]]:
    """All data files by their path; the list of the runs that recorded episodes comes last."""
    catalogue = []
    for run in suite.runs:
        there = False
        for file in run_files(run):
            there = True
            yield file
        if there:
            catalogue.append(_entry(run))
    yield _file("runs", catalogue)


def run_files(run: Run) -> Iterator[tuple[str, bytes]]:
    """The chunks of a run's recorded episodes, then its index; nothing where it recorded none."""
    key, listing = run_key(run.info.run), Listing()
    for iteration, episodes in iterations(run.folder):
        for played in episodes:
            listing.add(played)
        chunk = {"credit": CREDIT, "episodes": [_episode(played) for played in episodes]}
        yield _file(f"{key}/{iteration}", chunk)
    if listing.size:
        yield _file(
            f"{key}/index",
            {
                "tasks": list(listing.tasks),
                "types": list(listing.types),
                "fates": FATES,
                "episodes": listing.columns,
            },
        )


def _entry(run: Run) -> dict[str, Any]:
    """What the lens says of a run before any of its data is loaded."""
    return {
        "key": run_key(run.info.run),
        "name": run.info.run,
        "label": label(run.info.variant),
        "seed": run.info.seed,
    }


def _file(name: str, value: Any) -> tuple[str, bytes]:
    return f"{FOLDER}/{name}.js", data_script(name, value)


def _episode(played: Played) -> dict[str, Any]:
    episode = played.episode
    return {
        "id": [episode.attempt, episode.group, episode.sample],
        "reward": episode.reward,
        "end": episode.end,
        "error": episode.error,
        "opening": episode.opening,
        "sampled_tokens": episode.sampled_tokens,
        "turns": [
            _turn(turn, played.credit.get(step), played.tokens.get(step))
            for step, turn in enumerate(episode.turns)
        ],
    }


def _turn(turn: Turn, credit: tuple[float | None, ...] | None, tokens: Tokens | None) -> dict[str, Any]:
    return turn.model_dump() | {
        "credit": credit,
        "written": None
        if tokens is None
        else {"text": tokens.text, "entropy": tokens.entropy, "logprob": tokens.logprob},
    }
