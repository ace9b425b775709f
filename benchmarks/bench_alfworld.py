"""What an ALFWorld game costs in the native engine and in the official one: CPU time of load, reset and step.

Measured in a process of its own (`python -m benchmarks.bench_alfworld`), on the same games and commands, one engine
after the other. The official engine is as it comes: the shortcuts of the parity runs are off.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.bench_tools import figure, run_apart
from envs.alfworld.engine import Engine, Play
from envs.alfworld.games import VARIABLE, GameContent, find_tree, list_games, parse_game, read_game
from envs.alfworld.official import OfficialGame, check_installed
from envs.alfworld.tasks import PARTS
from envs.base import EnvError

GAMES, COMMANDS, REPEATS = 6, 20, 50
Opened = Callable[[GameContent], Engine]


@dataclass(frozen=True)
class Cost:
    """CPU milliseconds of the process for one call, means over games and commands."""

    load: float
    reset: float
    step: float


@dataclass(frozen=True)
class Costs:
    """Both engines; without the official one, why it is not there."""

    native: Cost
    official: Cost | None
    missing: str
    games: str
    """Which games: `6 official games` or `6 generated games`."""


def choose_games(count: int) -> tuple[str, list[GameContent]]:
    """Games evenly spaced over the official ones where `ALFWORLD_DATA` names them, else generated ones."""
    if os.environ.get(VARIABLE):
        tree = find_tree()
        refs = [ref for part in PARTS for ref in list_games(tree, part)]
        chosen = [read_game(refs[number * len(refs) // count].path) for number in range(count)]
        return f"{count} official games", chosen
    from envs.alfworld.generate import plan, write

    return f"{count} generated games", [write(plan(0, "unseen", number)) for number in range(count)]


def commands_of(content: GameContent, count: int) -> list[str]:
    """The walkthrough, then random admissible commands."""
    rng = np.random.default_rng(0)
    play = Play(parse_game(content))
    moment, commands = play.reset(), list[str]()
    for number in range(count):
        walked = number < len(content.walkthrough)
        drawn = moment.admissible[int(rng.integers(len(moment.admissible)))]
        commands.append(content.walkthrough[number] if walked else drawn)
        moment = play.step(commands[-1])
    return commands


def measure(opened: Opened, games: Sequence[GameContent], commands: int, repeats: int) -> Cost:
    """Mean CPU time of each call; every game is played `repeats` times."""
    spent = {"load": 0.0, "reset": 0.0, "step": 0.0}
    for content in games:
        spoken = commands_of(content, commands)
        for _ in range(repeats):
            began = time.process_time()
            game = opened(content)
            loaded = time.process_time()
            game.reset()
            ready = time.process_time()
            for command in spoken:
                game.step(command)
            spent["step"] += time.process_time() - ready
            spent["reset"] += ready - loaded
            spent["load"] += loaded - began
            game.close()
    plays = len(games) * repeats
    return Cost(
        1000 * spent["load"] / plays,
        1000 * spent["reset"] / plays,
        1000 * spent["step"] / (plays * commands),
    )


def measure_both(count: int = GAMES, commands: int = COMMANDS, repeats: int = REPEATS) -> Costs:
    """Both engines in this process, where the official one is installed."""
    named, games = choose_games(count)
    native = measure(lambda content: Play(parse_game(content)), games, commands, repeats)
    try:
        check_installed()
    except EnvError as error:
        return Costs(native, None, str(error), named)
    OfficialGame(games[0]).close()  # imports
    return Costs(native, measure(OfficialGame, games, commands, 1), "", named)


def measure_apart(games: int = GAMES, commands: int = COMMANDS) -> Costs:
    """The same in a process of its own."""
    arguments = ["--games", str(games), "--commands", str(commands)]
    found: dict[str, Any] = run_apart("benchmarks.bench_alfworld", arguments, "the ALFWorld measurement")
    official = found["official"] and Cost(**found["official"])
    return Costs(Cost(**found["native"]), official, found["missing"], found["games"])


def rows(costs: Costs) -> list[tuple[str, str, str, str]]:
    """Cells of the table: call, here, official, ratio."""
    found = []
    for name, calls in (
        ("load", ("load",)),
        ("reset", ("reset",)),
        ("load + reset", ("load", "reset")),
        ("step", ("step",)),
    ):
        here = sum(getattr(costs.native, call) for call in calls)
        if costs.official is None:
            found.append((f"{name}, CPU ms", figure(here), "", ""))
            continue
        there = sum(getattr(costs.official, call) for call in calls)
        found.append((f"{name}, CPU ms", figure(here), figure(there), f"{figure(there / here)}×"))
    return found


def show_costs(console: Console, costs: Costs) -> None:
    """The native engine beside the official one."""
    table = Table(f"ALFWorld, {costs.games}", box=SIMPLE_HEAD, show_edge=False)
    for column in ("here", "official", "ratio"):
        table.add_column(column, justify="right")
    for row in rows(costs):
        table.add_row(*row)
    console.print(table)
    console.print(
        costs.missing or f"Process CPU time, means over the games and {COMMANDS} commands in each, one run.",
        markup=False,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--games", type=int, default=GAMES)
    parser.add_argument("--commands", type=int, default=COMMANDS)
    chosen = parser.parse_args()
    print(json.dumps(asdict(measure_both(chosen.games, chosen.commands))))
