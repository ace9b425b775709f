"""The native engine against the official one: the same commands, everything compared."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np

from envs.alfworld.engine import Engine, Game, Moment, Play
from envs.alfworld.games import GameContent, parse_game
from envs.alfworld.official import OfficialGame

RANDOM, INVALID = 30, 10
"""Commands that are tried after the walkthrough, by default."""
GOING = 0.4
"""Share of random commands that may be any; the others do something else than go elsewhere, where they can."""
CACHED = 4096
"""Texts and queries that a quick oracle remembers; a game uses some hundreds."""
Opened = Callable[[GameContent], Engine]


@dataclass(frozen=True)
class Difference:
    """Where the engines first disagree."""

    commands: tuple[str, ...]
    """All commands so far; the last one is answered differently."""
    texts: str
    """Which texts the native engine had: `from the file` or `built in`."""
    official: Moment
    native: Moment

    def lines(self) -> Iterator[str]:
        """All of it for people; in ASCII, which cannot steer a terminal."""
        yield f"native engine with the texts {self.texts}, after {len(self.commands)} commands:"
        yield from (f"  > {command!a}" for command in self.commands)
        for name in Moment._fields:
            theirs, ours = getattr(self.official, name), getattr(self.native, name)
            if theirs == ours:
                continue
            if name == "admissible":
                theirs, ours = sorted({*theirs} - {*ours}) or theirs, sorted({*ours} - {*theirs}) or ours
            yield f"  {name} official: {theirs!a}"
            yield f"  {name} native:   {ours!a}"


@dataclass(frozen=True)
class Comparison:
    """One game played by both engines."""

    steps: int
    difference: Difference | None


def compare(
    content: GameContent,
    seed: int,
    *,
    random_steps: int = RANDOM,
    invalid_steps: int = INVALID,
    official: Opened = OfficialGame,
    native: Opened | None = None,
) -> Comparison:
    """Play a game's walkthrough, then random admissible commands with invalid ones among them, until a difference.

    Feedback, the list of admissible commands, whether the task is won and whether the command was understood are
    compared after reset and every command: with the texts from the file, and with the built-in ones. All draws depend
    on `seed` and the game alone.
    """
    rng = np.random.default_rng(np.random.SeedSequence((seed, zlib.crc32(content.problem.encode()))))
    games: dict[str, Engine] = {"from the file": (native or native_game)(content)}
    if content.grammar is not None and native is None:
        games["built in"] = Play(Game.parse(content.problem, task=content.task))
    commands: list[str] = []
    with closing(official(content)) as oracle:
        expected = oracle.reset()
        found = {texts: game.reset() for texts, game in games.items()}
        for command in _plan(content, rng, random_steps, invalid_steps):
            if (difference := _difference(commands, expected, found)) is not None:
                return Comparison(len(commands), difference)
            commands.append(command if command is not None else _random(expected.admissible, rng))
            expected = oracle.step(commands[-1])
            found = {texts: game.step(commands[-1]) for texts, game in games.items()}
        return Comparison(len(commands), _difference(commands, expected, found))


def native_game(content: GameContent) -> Play:
    """The native engine with the texts of the file, or the built-in ones where it has none."""
    return Play(parse_game(content))


def _difference(commands: Sequence[str], expected: Moment, found: dict[str, Moment]) -> Difference | None:
    for texts, moment in found.items():
        if moment != expected:
            return Difference(tuple(commands), texts, expected, moment)
    return None


def _plan(
    content: GameContent, rng: np.random.Generator, random_steps: int, invalid_steps: int
) -> list[str | None]:
    """The walkthrough, then random (None) and invalid commands in a drawn order."""
    wrong = [_INVALID[number % len(_INVALID)] for number in range(invalid_steps)]
    rest: list[str | None] = [*[None] * random_steps, *wrong]
    return [*content.walkthrough, *(rest[number] for number in rng.permutation(len(rest)))]


def _random(admissible: Sequence[str], rng: np.random.Generator) -> str:
    staying = [command for command in admissible if not command.startswith("go to ")]
    options = admissible if rng.random() < GOING or not staying else staying
    return options[int(rng.integers(len(options)))]


_INVALID = (
    "",
    "dance",
    "LOOK",
    "  look  ",
    "put mug 1 in/on desk 1",
    "go to drawer 99",
    "take nothing from nowhere",
    "examine",
    "gö to fridge 1",
    "look " * 50,
)
"""Commands that are not admissible as they stand; one of them is when its spaces are taken off."""


@contextmanager
def quick_oracle() -> Iterator[None]:
    """Let the official engine do nothing twice, for comparing many games: its answers stay the same.

    It parses texts and queries of the grammar anew at each use and copies all they may refer to, translates every game
    four times (two of them for the planner, which is never asked), and spells all commands anew after each step.
    """
    import fast_downward
    from textworld import logic
    from textworld.envs.pddl import textgen

    convert, translate, derive = (
        textgen._parse_and_convert,
        fast_downward.pddl2sas,
        textgen.ContextSensitiveGrammar.derive,
    )
    spelled: dict[Any, str] = {}
    last: list[Any] = [None, None]

    once = lru_cache(maxsize=CACHED)(convert)

    def parse_once(text: str, **settings: Any) -> Any:
        return deepcopy(once(text, **settings))

    def translate_once(domain: str, problem: str, **settings: Any) -> Any:
        if last[0] != (domain, problem):
            settings.pop("optimize", None)
            last[:] = (domain, problem), translate(domain, problem, **settings)
            spelled.clear()
        return last[1]

    def derive_once(self: Any, start: str, context: Any) -> str:
        if "#" in start or not start.startswith(_TEMPLATES):
            return str(derive(self, start, context))
        key = (start, *(variable.name for variable in context["mapping"].values()))
        if key not in spelled:
            spelled[key] = str(derive(self, start, context))
        return spelled[key]

    def copy_flat(context: Any) -> Any:
        return {
            **context,
            "variables": dict(context["variables"]),
            "mapping": dict(context["mapping"]),
        }

    with (
        patch.object(logic, "_parse_and_convert", lru_cache(maxsize=CACHED)(logic._parse_and_convert)),
        patch.object(textgen, "copy_context", copy_flat),
        patch.object(textgen, "_parse_and_convert", parse_once),
        patch.object(fast_downward, "pddl2sas", translate_once),
        patch.object(textgen.ContextSensitiveGrammar, "derive", derive_once),
    ):
        yield


_TEMPLATES = (
    "go to ", "open ", "close ", "take ", "move ", "put ", "examine ", "use ", "heat ", "clean ", "cool ", "slice ",
)  # fmt: skip
"""Beginnings of command templates; they ask only what never changes."""
