"""The native ALFWorld engine against the official one, game by game; a stopped run goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.config import ConfigError
from benchmarks.prepare import one_line
from benchmarks.progress import Status, display
from envs.alfworld.games import GameRef, find_tree, list_games, read_game
from envs.alfworld.official import check_installed
from envs.alfworld.parity import compare, quick_oracle
from envs.alfworld.problem import GameError
from envs.alfworld.tasks import PARTS
from envs.base import EnvError


@dataclass(frozen=True)
class Shard:
    """Every `of`-th game, beginning with number `number`, counted from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `2/4`; `ConfigError` for another form."""
        number, slash, of = text.partition("/")
        if slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
            return cls(int(number), int(of))
        raise ConfigError(f"shard: {text!r}, expected i/n with 1 <= i <= n, such as 1/2")


def replay_alfworld(
    data: Path | None,
    out: Path,
    console: Console,
    *,
    games: int | None = None,
    seed: int = 0,
    shard: Shard | None = None,
) -> int:
    """Compare the engines on official games, print games, steps and differences, and return how many games differ.

    games: how many, evenly spaced over all parts and types; None takes all. Each result is a line of the file `out`,
    which is read first: games that are in it are not played again.

    Raises `ConfigError`: no official games, no official engine, a file `out` of another run.
    """
    shard = shard or Shard(1, 1)
    try:
        check_installed()
        tree = find_tree(data)
        chosen = spread([ref for part in PARTS for ref in list_games(tree, part)], games)
    except (EnvError, GameError) as error:
        raise ConfigError(one_line(error)) from error
    mine = chosen[shard.number - 1 :: shard.of]
    known = read_results(out, seed)
    out.parent.mkdir(parents=True, exist_ok=True)
    with display(console) as shown, quick_oracle(), out.open("a", encoding="utf-8") as file:
        for number, ref in enumerate(mine, 1):
            if ref.task_id not in known:
                known[ref.task_id] = result = play(ref, seed)
                file.write(json.dumps(result) + "\n")
                file.flush()
            shown.update("parity", Status("games", number, len(mine), note(known.values())))
    found = [known[ref.task_id] for ref in mine]
    for line in summary(found, out):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return sum(result["difference"] is not None for result in found)


def spread(refs: Sequence[GameRef], count: int | None) -> list[GameRef]:
    """`count` games, evenly spaced over the sorted ones of all parts."""
    if count is None or count >= len(refs):
        return list(refs)
    return [refs[number * len(refs) // count] for number in range(count)]


def play(ref: GameRef, seed: int) -> dict[str, Any]:
    """One game's line."""
    try:
        found = compare(read_game(ref.path), seed)
    except (GameError, EnvError) as error:
        raise ConfigError(f"{ref.task_id}: {one_line(error)}") from error
    difference = None if found.difference is None else list(found.difference.lines())
    return {
        "task": ref.task_id,
        "part": ref.part,
        "seed": seed,
        "steps": found.steps,
        "difference": difference,
    }


def read_results(path: Path, seed: int) -> dict[str, dict[str, Any]]:
    """Results of an earlier run; a last line that was cut off is removed from the file."""
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    results = {}
    for line in whole.splitlines():
        try:
            result = json.loads(line)
            results[result["task"]] = result
            other = result["seed"]
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path} has a line that is no result: {line[:80]!r}") from error
        if other != seed:
            raise ConfigError(f"{path} holds results of seed {other}, not {seed}; give another file")
    return results


def note(results: Any) -> str:
    """`no difference`, or how many games differ."""
    differing = sum(result["difference"] is not None for result in results)
    return f"{differing} differ" if differing else "no difference"


def summary(results: Sequence[Mapping[str, Any]], path: Path) -> Iterator[str]:
    """Totals, and the first difference in full."""
    steps = sum(result["steps"] for result in results)
    differing = [result for result in results if result["difference"] is not None]
    yield f"{len(results):,} games, {steps:,} commands, {len(differing)} games differ; results in {path}"
    if differing:
        yield f"first difference, in {differing[0]['task']}:"
        yield from differing[0]["difference"]
