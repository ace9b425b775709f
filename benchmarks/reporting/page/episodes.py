"""Training episodes with the credit of their steps and their tokens, an iteration at a time.

Three records of a run are joined by iteration, attempt, group, sample and the step's place in its episode:
`episodes.jsonl` (what was said), `steps.parquet` (credit; the trained batch only) and `tokens.parquet` (some
groups; absent where it was not recorded). Whatever does not fit together raises `RecordError`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow.compute as pc

from benchmarks.reporting.arrays import read_columns
from benchmarks.reporting.schema import Record, RecordError, parse

EPISODES, STEPS, TOKENS = "episodes.jsonl", "steps.parquet", "tokens.parquet"
CREDIT = ("entropy", "g", "f", "raw_advantage", "advantage", "entropy_after")
"""Columns of a step's credit, in the order in which the lens gets them."""
PLACE = ("attempt", "group", "sample", "step")
CREDIT_DECIMALS = 5
TOKEN_DECIMALS = 3

Value = TypeVar("Value")
Key = tuple[int, int, int]
"""(attempt, group, sample): an episode within its iteration."""
Fate = Literal["trained", "dropped", "errored", "skipped"]
"""What training did with an episode; `skipped`: it was kept, but its iteration made no update from it."""


class Turn(Record):
    """One think-act cycle of a recorded episode."""

    thought: str
    action: str
    observation: str
    well_formed: bool
    action_valid: bool
    tokens: int


class Episode(Record):
    """One line of `episodes.jsonl`."""

    iteration: int
    attempt: int
    kept: bool
    task_id: str
    task_type: str = ""
    group: int
    sample: int
    success: bool
    score: float
    reward: float
    end: str
    error: str | None = None
    opening: str | None = None
    """What the environment said first; None where it was not recorded."""
    sampled_tokens: int
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Tokens:
    """What the policy wrote in a step, token by token; all equally long."""

    text: tuple[str, ...]
    entropy: tuple[float, ...]
    """Nats."""
    logprob: tuple[float, ...]

    def fit(self, count: int) -> bool:
        """Whether there are so many of each, all finite."""
        return len(self.text) == len(self.entropy) == len(self.logprob) == count and all(
            map(math.isfinite, (*self.entropy, *self.logprob))
        )


@dataclass(frozen=True)
class Played:
    """An episode, and by the number of its turn the credit (`CREDIT`) and the tokens where they were recorded."""

    episode: Episode
    credit: Mapping[int, tuple[float | None, ...]]
    tokens: Mapping[int, Tokens]

    @property
    def fate(self) -> Fate:
        """What training did with it."""
        if self.episode.end == "error":
            return "errored"
        if not self.episode.kept:
            return "dropped"
        return "trained" if self.credit else "skipped"


def iterations(folder: Path) -> Iterator[tuple[int, tuple[Played, ...]]]:
    """Every recorded iteration of a run with its episodes in the order in which they were played.

    Nothing where the run recorded no episodes. One iteration is in memory at a time, beside the step tables.
    """
    path = folder / EPISODES
    if not path.exists():
        return
    credit = _table(folder / STEPS, CREDIT)
    tokens = _table(folder / TOKENS, ("text", "entropy", "logprob"))
    last = -1
    for iteration, lines in groupby(_episodes(path), key=lambda episode: episode.iteration):
        if iteration <= last:
            raise RecordError(f"{path}: iteration {iteration} after {last}; expected rising numbers")
        last = iteration
        yield iteration, _joined(folder, iteration, list(lines), credit, tokens)


def _episodes(path: Path) -> Iterator[Episode]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                raise RecordError(f"{path}: line {number} is cut off; expected a complete run to be whole")
            yield parse(Episode, line, f"{path}: line {number}")


def _table(path: Path, values: Sequence[str]) -> Any:
    """The columns of a table of steps; None where the file is absent."""
    if not path.exists():
        return None
    return read_columns(path, ("iteration", *PLACE, *values))


def _joined(
    folder: Path, iteration: int, episodes: Sequence[Episode], credit: Any, tokens: Any
) -> tuple[Played, ...]:
    known = {(one.attempt, one.group, one.sample): one for one in episodes}
    if len(known) != len(episodes):
        raise RecordError(
            f"{folder / EPISODES}: iteration {iteration} holds the same attempt, group and sample twice"
        )
    credits = _by_episode(folder / STEPS, iteration, _credit_rows(_of(credit, iteration)), known)
    written = _by_episode(folder / TOKENS, iteration, _token_rows(_of(tokens, iteration)), known)
    for key, episode in known.items():
        for step, tokens_of_step in written[key].items():
            _check_tokens(folder / TOKENS, episode, step, tokens_of_step)
    return tuple(Played(episode, credits[key], written[key]) for key, episode in known.items())


def _check_tokens(path: Path, episode: Episode, step: int, written: Tokens) -> None:
    expected = episode.turns[step].tokens
    if not written.fit(expected):
        raise RecordError(
            f"{_where(path, episode.iteration, (episode.attempt, episode.group, episode.sample), step)} has "
            f"{len(written.text)} texts, {len(written.entropy)} entropies and {len(written.logprob)} "
            f"log-probabilities; expected {expected} finite ones of each"
        )


def _by_episode(
    path: Path, iteration: int, rows: Iterable[tuple[Key, int, Value]], known: Mapping[Key, Episode]
) -> dict[Key, dict[int, Value]]:
    """Rows by episode and step; each must belong to a turn that was played, and no two to the same."""
    found: dict[Key, dict[int, Value]] = {key: {} for key in known}
    for key, step, row in rows:
        episode = known.get(key)
        if episode is None or not 0 <= step < len(episode.turns):
            raise RecordError(f"{_where(path, iteration, key, step)} is no turn of {EPISODES}")
        if step in found[key]:
            raise RecordError(f"{_where(path, iteration, key, step)} is there twice")
        found[key][step] = row
    return found


def _where(path: Path, iteration: int, key: Key, step: int) -> str:
    attempt, group, sample = key
    return f"{path}: iteration {iteration}, attempt {attempt}, group {group}, sample {sample}, step {step}"


def _of(table: Any, iteration: int) -> Any:
    """The rows of one iteration."""
    return None if table is None else table.filter(pc.equal(table.column("iteration"), iteration))


def _credit_rows(part: Any) -> Iterator[tuple[Key, int, tuple[float | None, ...]]]:
    if part is None:
        return
    columns = [
        [None if math.isnan(value) else value for value in _rounded(part.column(name), CREDIT_DECIMALS)]
        for name in CREDIT
    ]
    for *key, step, row in zip(*_places(part), zip(*columns, strict=True), strict=True):
        yield tuple(key), step, row


def _token_rows(part: Any) -> Iterator[tuple[Key, int, Tokens]]:
    if part is None:
        return
    columns = (part.column(name).to_pylist() for name in ("text", "entropy", "logprob"))
    for *key, step, text, entropy, logprob in zip(*_places(part), *columns, strict=True):
        rounded = (tuple(_rounded(values, TOKEN_DECIMALS)) for values in (entropy, logprob))
        yield tuple(key), step, Tokens(tuple(text), *rounded)


def _places(part: Any) -> list[list[int]]:
    """Attempts, groups, samples and steps."""
    return [part.column(name).to_pylist() for name in PLACE]


def _rounded(values: Any, decimals: int) -> list[float]:
    """Rounded for display, NaN for nulls; adding 0 turns -0.0 into 0.0."""
    rounded: list[float] = (np.round(np.asarray(values, dtype=np.float64), decimals) + 0.0).tolist()
    return rounded
