"""The scripted player: it answers from what it was shown, and each careless habit does what it says."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pytest

from envs.base import Decision, StepInfo
from envs.deepsearch import DeepSearchWorld, load_world
from envs.deepsearch.expert import CARELESS_KINDS
from envs.deepsearch.questions import Question
from tests.envs.libraries import world as library


@lru_cache(maxsize=1)
def world() -> DeepSearchWorld:
    return load_world(passages=1500, train_questions=200, test_questions=20)


def played(
    task: str, carelessness: Mapping[str, float] | None = None, there: DeepSearchWorld | None = None
) -> tuple[list[Decision], dict[str, Any]]:
    there = there or world()
    env, player = there.make_env(), there.demonstrator((1, 2), carelessness)
    observation, info = env.reset(options={"task": task})
    decisions, over = [], False
    facts: Any = info
    while not over:
        decisions.append(player.decide(observation, facts))
        observation, _, terminated, truncated, facts = env.step(decisions[-1].action)
        over = terminated or truncated
    return decisions, facts


def rate(split: str, carelessness: Mapping[str, float] | None = None, size: int | None = None) -> float:
    panel = world().panel(split, size)  # type: ignore[arg-type]
    return sum(played(task, carelessness)[1]["success"] for task in panel.task_ids) / len(panel)


def test_it_answers_at_least_nineteen_of_twenty_questions_of_every_split_and_form() -> None:
    for split in ("train", "dev", "test"):
        assert rate(split) >= 0.95
    by_form: dict[str, list[bool]] = {}
    for task in world().panel("test").task_ids:
        by_form.setdefault(world().question(task).dataset, []).append(played(task)[1]["success"])
    assert set(by_form) == {
        "bridge",
        "comparison",
        "same",
        "pair",
        "bridge3",
        "bridge4",
        "intersection",
        "gap",
    }
    assert all(sum(found) >= len(found) - 1 for found in by_form.values())


def test_it_reads_only_what_is_shown() -> None:
    """A player that is handed another episode's observations answers that episode's question."""
    first, second = world().panel("test").task_ids[:2]
    env, player = world().make_env(), world().demonstrator((0,))
    observation, info = env.reset(options={"task": first})
    facts: Any = {**info, "task_id": second, "task_type": "?", "success": True, "score": 1.0}
    over = False
    while not over:
        move = player.decide(observation, facts)
        observation, _, terminated, truncated, info = env.step(move.action)
        facts = {"shown": info["shown"], "action_valid": info["action_valid"]}
        over = terminated or truncated
    assert info["success"]


def test_a_skilled_player_searches_for_one_thing_at_a_time_and_carries_what_it_found() -> None:
    decisions, _ = played(
        next(t for t in world().panel("test").task_ids if world().question(t).dataset == "bridge3")
    )
    assert [move.action.partition("[")[0] for move in decisions[-4:]] == ["search"] * 3 + ["answer"]
    value = decisions[-1].action.removeprefix("answer[").removesuffix("]")
    assert decisions[-1].thought.endswith(f": {value}")
    assert not any(move.careless for move in decisions)


def test_careless_queries_cost_steps_but_can_be_made_good() -> None:
    tasks = world().panel("train", 20).task_ids
    careful, careless = ([len(played(task, habits)[0]) for task in tasks] for habits in ({}, {"query": 1.0}))
    assert sum(careless) > 1.3 * sum(careful)
    assert any(move.careless and move.kind == "query" for move in played(tasks[0], {"query": 1.0})[0])


@pytest.mark.parametrize("kind", ["read", "hop"])
def test_each_careless_habit_is_marked_and_lowers_success(kind: str) -> None:
    tasks = world().panel("train", 40).task_ids
    games = [played(task, {kind: 1.0}) for task in tasks]
    assert any(move.careless for decisions, _ in games for move in decisions)
    assert sum(info["success"] for _, info in games) / len(games) < 0.75


def test_a_slip_is_not_understood_costs_a_step_and_is_made_good() -> None:
    task = world().panel("test").task_ids[0]
    skilled, _ = played(task)
    decisions, info = played(task, {"slip": 1.0})
    assert [move.kind == "slip" for move in decisions] == [True, False] * len(skilled)
    assert info["success"]


def test_a_question_outside_the_grammar_is_searched_and_guessed() -> None:
    asked = (
        Question("a", "Has Ana Moor won prizes?", ("yes",), "whether", "id"),
        Question("b", "What did Ana Moor direct in 1950?", ("Red Kite",), "what", "id"),
        Question("c", "Xyzzy?", ("x",), "nothing", "id"),
    )
    there = library(test=asked)
    for question, answer in zip(asked, ("yes", "Red Kite", "unknown"), strict=True):
        decisions, info = played(question.id, there=there)
        assert [move.action for move in decisions] == [f"search[{question.text}]", f"answer[{answer}]"]
        assert info["success"] == (answer in question.golds)


def test_an_unknown_habit_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"unknown kinds of decision \['take'\], expected any of"):
        world().demonstrator((0,), {"take": 0.5})
    assert CARELESS_KINDS == ("query", "read", "hop", "slip")


def test_draws_depend_on_the_seed_alone() -> None:
    habits = {"query": 0.5, "read": 0.5, "hop": 0.5, "slip": 0.2}
    task = world().panel("train", 1).task_ids[0]
    assert played(task, habits)[0] == played(task, habits)[0]


def test_the_player_is_a_demonstrator_of_the_contract() -> None:
    info: StepInfo = world().make_env().reset(options={"task": world().panel("test").task_ids[0]})[1]
    assert world().demonstrator((0,)).decide("Question: Who?", info).action == "search[Who?]"
