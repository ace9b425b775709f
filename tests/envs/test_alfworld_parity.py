"""The native engine answers every command as the official engine does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.parity_alfworld import spread
from envs.alfworld.engine import Engine, Moment, Play
from envs.alfworld.games import GameContent, GameRef, list_games, parse_game, read_game
from envs.alfworld.generate import plan, write
from envs.alfworld.parity import compare, quick_oracle
from envs.alfworld.tasks import PARTS

pytestmark = pytest.mark.usefixtures("official_engine")
GAMES = 42
"""Official games that are compared here; `make parity-alfworld` compares all."""


@pytest.fixture(scope="module")
def refs(official_tree: Path) -> list[GameRef]:
    """As many of each part, evenly spaced over its sorted games."""
    return [ref for part in PARTS for ref in spread(list_games(official_tree, part), GAMES // len(PARTS))]


@pytest.fixture
def oracle() -> Iterator[None]:
    with quick_oracle():
        yield


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.usefixtures("oracle")
def test_official_games_of_all_types_and_parts_are_played_alike_to_the_last_letter(
    refs: list[GameRef],
) -> None:
    """Walkthrough, 30 random commands and 10 invalid ones each, with the texts from the file and the built-in ones."""
    types = Counter(ref.task_id.split("-")[0] for ref in refs)
    assert len(refs) == GAMES
    assert len(types) == 6
    for ref in refs:
        content = read_game(ref.path)
        found = compare(content, seed=0)
        assert found.difference is None, "\n".join([ref.task_id, *found.difference.lines()])
        assert found.steps == len(content.walkthrough) + 40


@pytest.mark.shared
@pytest.mark.slow
def test_the_oracle_answers_the_same_whether_or_not_it_is_quick(refs: list[GameRef]) -> None:
    """Else the comparison above would be with something else than the official engine."""
    for ref in (refs[0], refs[-1]):
        content = read_game(ref.path)
        assert compare(content, seed=1).difference is None
        with quick_oracle():
            assert compare(content, seed=1).difference is None


class Sabotaged:
    """The native engine but for one thing."""

    def __init__(self, content: GameContent, change: str) -> None:
        self._play, self._change = Play(parse_game(content)), change

    def _spoil(self, moment: Moment, command: str) -> Moment:
        if command.startswith(self._change):
            return moment._replace(feedback=moment.feedback + " ")
        if self._change == "admissible":
            return moment._replace(admissible=moment.admissible[:-1])
        if self._change == "won" and moment.won:
            return moment._replace(won=False)
        return moment

    def reset(self) -> Moment:
        return self._play.reset()

    def step(self, command: str) -> Moment:
        return self._spoil(self._play.step(command), command)

    def close(self) -> None:
        self._play.close()


@pytest.mark.usefixtures("oracle")
@pytest.mark.parametrize("change", ["take", "admissible", "won"])
def test_one_space_too_many_a_missing_command_and_a_missed_win_are_found_and_shown(change: str) -> None:
    content = write(plan(0, "unseen", 0, 12))

    def sabotaged(content: GameContent) -> Engine:
        return Sabotaged(content, change)

    found = compare(content, 0, random_steps=0, invalid_steps=0, native=sabotaged)
    assert found.difference is not None
    said = "\n".join(found.difference.lines())
    name = {"take": "feedback"}.get(change, change)
    assert f"  {name} official: " in said
    assert f"  {name} native:   " in said
    assert found.difference.commands == content.walkthrough[: found.steps]
