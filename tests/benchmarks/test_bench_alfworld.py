"""The ALFWorld measurement: on what, of what, and how it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import bench_alfworld
from benchmarks.bench_alfworld import (
    Cost,
    Costs,
    choose_games,
    commands_of,
    measure,
    measure_both,
    rows,
    show_costs,
)
from envs.alfworld.engine import Moment
from envs.alfworld.games import GameContent
from envs.base import EnvError
from tests.envs.alfworlds import write_tree

BOTH = Costs(Cost(5.0, 1.0, 0.1), Cost(900.0, 850.0, 90.0), "", "6 official games")


def test_ratios_are_official_over_native() -> None:
    assert rows(BOTH) == [
        ("load, CPU ms", "5", "900", "180×"),
        ("reset, CPU ms", "1", "850", "850×"),
        ("load + reset, CPU ms", "6", "1,750", "292×"),
        ("step, CPU ms", "0.1", "90", "900×"),
    ]


def test_without_the_official_engine_the_table_says_why() -> None:
    console = Console(record=True, width=120)
    show_costs(console, Costs(BOTH.native, None, "alfworld is not installed", "6 generated games"))
    said = console.export_text()
    assert "alfworld is not installed" in said
    assert "6 generated games" in said
    assert "×" not in said


class Clock:
    """An engine each of whose calls takes a known time."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock
        clock[0] += 5.0

    def reset(self) -> Moment:
        self._clock[0] += 2.0
        return Moment("", ("look",), False, True)

    def step(self, command: str) -> Moment:
        self._clock[0] += 0.5
        return Moment("", ("look",), False, True)

    def close(self) -> None:
        self._clock[0] += 100.0


def test_each_call_is_timed_apart_and_closing_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(bench_alfworld.time, "process_time", lambda: clock[0])
    games = choose_games(2)[1]
    assert measure(lambda _: Clock(clock), games, 4, 3) == Cost(5000.0, 2000.0, 500.0)


def test_the_commands_are_the_walkthrough_and_then_admissible_ones() -> None:
    content = choose_games(1)[1][0]
    commands = commands_of(content, len(content.walkthrough) + 5)
    assert tuple(commands[: len(content.walkthrough)]) == content.walkthrough
    assert commands == commands_of(content, len(content.walkthrough) + 5)


def test_official_games_are_taken_where_the_variable_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(write_tree(tmp_path)))
    named, games = choose_games(3)
    assert named == "3 official games"
    assert all(isinstance(game, GameContent) and game.grammar for game in games)
    monkeypatch.delenv("ALFWORLD_DATA")
    assert choose_games(2)[0] == "2 generated games"


def test_the_native_engine_is_measured_where_the_official_one_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> None:
        raise EnvError("not here")

    monkeypatch.setattr(bench_alfworld, "check_installed", missing)
    found = measure_both(1, 3, 1)
    assert (found.official, found.missing) == (None, "not here")
    assert found.native.step > 0
