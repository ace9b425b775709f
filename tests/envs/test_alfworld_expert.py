"""The scripted player: wins from what it is shown alone, and makes good what it does carelessly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envs.alfworld import AlfworldWorld
from envs.alfworld.expert import CARELESS_KINDS, AlfworldDemonstrator, Request, read_request
from envs.alfworld.games import OfficialGames, find_tree
from envs.alfworld.generate import GeneratedGames
from envs.base import Decision, StepInfo
from tests.envs.alfworlds import COUNTS

SENTENCES = {
    "put a mug in desk.": Request("put", "mug", "desk"),
    "put some mug on desk.": Request("put", "mug", "desk"),
    "find two mug and put them in desk.": Request("two", "mug", "desk"),
    "put two mug on desk.": Request("two", "mug", "desk"),
    "put a clean mug in desk.": Request("clean", "mug", "desk"),
    "clean some mug and put it in desk.": Request("clean", "mug", "desk"),
    "put a hot mug in desk.": Request("heat", "mug", "desk"),
    "heat some mug and put it in desk.": Request("heat", "mug", "desk"),
    "put a cool mug in desk.": Request("cool", "mug", "desk"),
    "cool some mug and put it in desk.": Request("cool", "mug", "desk"),
    "examine the mug with the desklamp.": Request("look", "mug", "desklamp"),
    "look at mug under the desklamp.": Request("look", "mug", "desklamp"),
}


@lru_cache(maxsize=1)
def world() -> AlfworldWorld:
    return AlfworldWorld(GeneratedGames(0, counts={**COUNTS, "train": 60}))


def play(
    made: AlfworldWorld, task: str, carelessness: Mapping[str, float] | None = None, seed: int = 0
) -> tuple[bool, list[Decision]]:
    env = made.make_env()
    observation, info = env.reset(options={"task": task})
    player = AlfworldDemonstrator(np.random.default_rng(seed), carelessness)
    decisions, over = [], False
    while not over:
        decisions.append(player.decide(observation, info))
        observation, _, terminated, truncated, info = env.step(decisions[-1].action)
        assert info["action_valid"] is (decisions[-1].kind != "slip"), (decisions[-1], observation)
        over = terminated or truncated
    return info["success"], decisions


def tasks(made: AlfworldWorld) -> list[str]:
    return [task.task_id for task in made.tasks("train")]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_official_sentence_is_understood(sentence: str) -> None:
    assert read_request(f"You are in a room.\n\nYour task is to: {sentence}") == SENTENCES[sentence]


def test_another_sentence_is_refused_with_its_text() -> None:
    with pytest.raises(ValueError, match=r"task 'sing a song\.' is of none of the six types"):
        read_request("Your task is to: sing a song.")


def test_it_wins_generated_games_of_all_types_and_sizes_and_every_command_of_it_is_understood() -> None:
    assert [play(world(), task)[0] for task in tasks(world())] == [True] * 60


def test_its_thoughts_are_short() -> None:
    for task in tasks(world()):
        assert all(len(decision.thought.split()) <= 12 for decision in play(world(), task)[1])


class Blind(dict[str, Any]):
    """Info of which only the admissible commands and whether one was understood may be asked."""

    def __getitem__(self, key: str) -> Any:
        if key not in ("admissible", "action_valid"):
            pytest.fail(f"it asked for {key}")
        return super().__getitem__(key)


def test_it_decides_by_observations_and_admissible_commands_alone() -> None:
    for task in tasks(world())[:6]:
        env = world().make_env()
        observation, info = env.reset(options={"task": task})
        player = AlfworldDemonstrator(np.random.default_rng(0))
        actions, over = [], False
        while not over:
            seen: Any = Blind(info)
            actions.append(player.decide(observation, seen).action)
            observation, _, terminated, truncated, info = env.step(actions[-1])
            over = terminated or truncated
        assert actions == [decision.action for decision in play(world(), task)[1]]


@pytest.mark.parametrize("kind", CARELESS_KINDS)
def test_a_careless_habit_shows_is_marked_as_such_and_costs_steps(kind: str) -> None:
    skilled = {task: play(world(), task) for task in tasks(world())}
    careless = {task: play(world(), task, {kind: 0.5}, seed=3) for task in tasks(world())}
    marked = Counter(
        decision.kind for _, decisions in careless.values() for decision in decisions if decision.careless
    )
    if kind == "open":  # what is left out cannot be marked
        assert not marked
    else:
        assert set(marked) == {kind}
    assert not any(decision.careless for _, decisions in skilled.values() for decision in decisions)
    steps = [sum(len(decisions) for _, decisions in played.values()) for played in (skilled, careless)]
    assert steps[1] > steps[0]


def test_what_was_done_carelessly_can_be_made_good() -> None:
    for kind in CARELESS_KINDS:
        won = [play(world(), task, {kind: 0.3}, seed=1)[0] for task in tasks(world())]
        assert sum(won) >= 57, kind


def test_equal_seeds_play_alike_and_others_do_not() -> None:
    habits = dict.fromkeys(CARELESS_KINDS, 0.5)
    first = [play(world(), task, habits, seed=1) for task in tasks(world())[:10]]
    assert first == [play(world(), task, habits, seed=1) for task in tasks(world())[:10]]
    assert first != [play(world(), task, habits, seed=2) for task in tasks(world())[:10]]


def test_an_unknown_kind_of_carelessness_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"unknown kinds of decision \['buy'\], expected any of \['search'"):
        AlfworldDemonstrator(np.random.default_rng(0), {"buy": 1.0})


def test_a_command_that_was_not_understood_changes_nothing_of_what_it_knows() -> None:
    """As where someone else's action was carried out instead of its own."""
    env = world().make_env()
    observation, info = env.reset(options={"task": tasks(world())[0]})
    player = AlfworldDemonstrator(np.random.default_rng(0))
    first = player.decide(observation, info)
    observation, *_, info = env.step("dance")
    assert player.decide(observation, info) == first


@pytest.mark.shared
@pytest.mark.parametrize(("split", "games"), [("test", 134), ("dev", 140)])
def test_it_wins_at_least_95_per_cent_of_the_official_games_it_was_not_made_for(
    official_tree: Path, tmp_path_factory: pytest.TempPathFactory, split: Any, games: int
) -> None:
    memo = tmp_path_factory.getbasetemp() / "alfworld-games.json"
    made = AlfworldWorld(OfficialGames(find_tree(official_tree), memo=memo))
    won = Counter[str]()
    total = Counter[str]()
    for task in made.tasks(split):
        total[task.task_type] += 1
        won[task.task_type] += play(made, task.task_id)[0]
    assert sum(total.values()) == games
    assert sum(won.values()) >= 0.95 * games, (won, total)


def info_of(admissible: tuple[str, ...]) -> StepInfo:
    return StepInfo(
        task_id="", task_type="", success=False, score=0.0, admissible=admissible, action_valid=True
    )


def test_a_second_thing_is_not_taken_from_where_the_first_was_put() -> None:
    first = "you see a desk 1, and a shelf 1.\n\nYour task is to: put two pen in desk."
    player = AlfworldDemonstrator(np.random.default_rng(0))
    room = ("go to desk 1", "go to shelf 1")
    assert player.decide(first, info_of(room)).action == "go to desk 1"
    seen = "You arrive at desk 1. On the desk 1, you see a pen 1."
    decision = player.decide(seen, info_of(("take pen 1 from desk 1", "go to shelf 1")))
    assert decision.action == "go to shelf 1"
