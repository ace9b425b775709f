"""The games that all environments of a process share: official ones from a folder, or generated ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from envs.alfworld.engine import Engine, Game, Play
from envs.alfworld.env import MAX_STEPS, AlfworldEnv
from envs.alfworld.games import MEMO, GameContent, OfficialGames, find_tree, parse_game
from envs.alfworld.generate import COUNTS, GeneratedGames
from envs.alfworld.scenes import MOST
from envs.alfworld.tasks import Part, Task
from envs.base import Demonstrator, EnvError, Progress, Split, TaskPanel, silent

NAME = "alfworld"
Backend = Literal["native", "textworld"]
EvaluatedPart = Literal["unseen", "seen"]
HELD_GAMES = 256
"""Parsed games that a process keeps."""


class GameSource(Protocol):
    """Where games come from; equal sources list equal tasks in the same order."""

    def tasks(self, part: Part) -> Sequence[Task]:
        """The tasks of a part, sorted by id."""
        ...

    def content(self, task_id: str) -> GameContent:
        """A game; `GameError` where it cannot be read."""
        ...

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts: where the games come from and what identifies their content."""
        ...


class AlfworldWorld:
    """Games of one source; built once, never changed, shared by its environments.

    The test split is the `unseen` part, or the `seen` one with `evaluate_on="seen"`; dev is the other.
    """

    name = NAME

    def __init__(
        self,
        source: GameSource,
        *,
        evaluate_on: EvaluatedPart = "unseen",
        backend: Backend = "native",
        max_steps: int = MAX_STEPS,
        aliases: bool = False,
    ) -> None:
        if evaluate_on not in ("unseen", "seen"):
            raise ValueError(f"evaluate_on is {evaluate_on!r}, expected 'unseen' or 'seen'")
        if backend not in ("native", "textworld"):
            raise ValueError(f"backend is {backend!r}, expected 'native' or 'textworld'")
        if backend == "textworld":
            from envs.alfworld.official import check_installed

            check_installed()
        self._source = source
        self._parts: Mapping[Split, Part] = {
            "train": "train",
            "dev": "seen" if evaluate_on == "unseen" else "unseen",
            "test": evaluate_on,
        }
        self._settings: dict[str, Any] = {"max_steps": max_steps, "aliases": aliases}
        self._backend: Backend = backend
        self._game = lru_cache(maxsize=HELD_GAMES)(self._parse)
        self._by_id: dict[str, Task] = {}
        for split in self._parts:
            for task in self.tasks(split):
                if self._by_id.setdefault(task.task_id, task) is not task:
                    raise ValueError(f"task {task.task_id} is in two splits, expected each in one")
        self.make_env()  # checks the settings of the environments before any work starts

    def make_env(self) -> AlfworldEnv:
        """A fresh environment over the shared games."""
        return AlfworldEnv(self, **self._settings)

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, sorted by id; `ValueError` for a split that does not exist."""
        if split not in self._parts:
            raise ValueError(f"unknown split {split!r}, expected one of {', '.join(self._parts)}")
        return self._source.tasks(self._parts[split])

    def task(self, task_id: str) -> Task:
        """A task by its id; `KeyError` says how many there are."""
        try:
            return self._by_id[task_id]
        except (KeyError, TypeError):
            raise KeyError(
                f"unknown task {task_id!r}: this world has {len(self._by_id)}, such as {next(iter(self._by_id))}"
            ) from None

    def open(self, task_id: str) -> Engine:
        """An engine with this game in it; `EnvError` where it cannot be opened."""
        try:
            if self._backend == "native":
                return Play(self._game(task_id))
            from envs.alfworld.official import OfficialGame

            return OfficialGame(self._source.content(task_id))
        except (ValueError, LookupError, OSError) as error:
            raise EnvError(f"game {task_id}: {error}") from error

    def check(self, task_id: str) -> None:
        """Walk through a game as its file says; `EnvError` where that does not win it.

        It fails where files of different versions are mixed: then every command is answered by `Nothing happens.`
        """
        engine = self.open(task_id)
        won = False
        try:
            engine.reset()
            for command in self._source.content(task_id).walkthrough:
                won = engine.step(command).won
        finally:
            engine.close()
        if not won:
            raise EnvError(
                f"game {task_id}: its walkthrough does not win it, so its files do not belong together; "
                "expected those of one official download"
            )

    def panel(self, split: Split, size: int | None = None) -> TaskPanel:
        """`size` tasks of a split, evenly spaced over the sorted ids, so that all task types are in it."""
        tasks = self.tasks(split)
        if size is not None and not 0 < size <= len(tasks):
            raise ValueError(
                f"a panel of {size} {NAME} {split} tasks was asked for, but there are {len(tasks)}"
            )
        count = len(tasks) if size is None else size
        chosen = [tasks[number * len(tasks) // count] for number in range(count)]
        return TaskPanel(
            NAME, split, tuple(task.task_id for task in chosen), tuple(task.text for task in chosen)
        )

    def demonstrator(
        self, seed: Sequence[int], carelessness: Mapping[str, float] | None = None
    ) -> Demonstrator:
        """A scripted player for one episode; its draws depend on `seed` alone."""
        from envs.alfworld.expert import AlfworldDemonstrator

        return AlfworldDemonstrator(
            np.random.default_rng(np.random.SeedSequence(list(seed))), carelessness or {}
        )

    def counts(self) -> Mapping[str, int]:
        """Nothing is asked of servers."""
        return {}

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record."""
        counts = {split: len(self.tasks(split)) for split in self._parts}
        return {
            "name": NAME,
            **self._source.describe(),
            "evaluated_on": self._parts["test"],
            "splits": {split: {"part": self._parts[split], "tasks": counts[split]} for split in self._parts},
            "backend": self._backend,
            **self._settings,
        }

    def _parse(self, task_id: str) -> Game:
        return parse_game(self._source.content(task_id))


def load_world(
    data: Path | str | None = None,
    *,
    seed: int = 0,
    train_games: int = COUNTS["train"],
    test_games: int = COUNTS["unseen"],
    most_receptacles: int = MOST,
    evaluate_on: EvaluatedPart = "unseen",
    backend: Backend = "native",
    max_steps: int = MAX_STEPS,
    aliases: bool = False,
    cache: Path | str | None = None,
    progress: Progress = silent,
) -> AlfworldWorld:
    """The world of the official games in a folder, or of generated ones.

    `seed`, `train_games`, `test_games` and `most_receptacles` concern generated games only. Which games there are is
    remembered in the folder `cache`, so that later processes need not find it out again. Raises `GameError` (one
    line) for a tree that is missing, partial or malformed, `EnvError` for one
    whose first test game is not won by its walkthrough, and `ValueError` for a setting that does not exist.
    """
    source: GameSource
    if data is None:
        counts: Mapping[Part, int] = {"train": train_games, "seen": test_games, "unseen": test_games}
        kept = None if cache is None else Path(cache)
        source = GeneratedGames(seed, counts=counts, most_receptacles=most_receptacles, cache=kept)
    else:
        memo = None if cache is None else Path(cache) / MEMO
        source = OfficialGames(find_tree(data), memo=memo, progress=progress)
    world = AlfworldWorld(
        source, evaluate_on=evaluate_on, backend=backend, max_steps=max_steps, aliases=aliases
    )
    world.check(world.tasks("test")[0].task_id)
    return world
