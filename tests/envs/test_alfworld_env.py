"""The ALFWorld environment: endings, invalid commands, spellings, and independence of episodes from one another."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.alfworld import AlfworldEnv, AlfworldWorld
from envs.alfworld.games import GameContent
from envs.alfworld.generate import plan, write
from envs.alfworld.tasks import Part, Task
from envs.base import EnvError
from tests.envs.alfworlds import COUNTS, games, grammar, world

WORLD = world()
TASK = next(task for task in WORLD.tasks("test") if task.task_type == "pick").task_id


def opened(task: str = TASK, **settings: Any) -> AlfworldEnv:
    env = AlfworldEnv(WORLD, **settings)
    env.reset(options={"task": task})
    return env


def walkthrough(task: str = TASK) -> tuple[str, ...]:
    return games().content(task).walkthrough


@pytest.mark.parametrize("task", [task.task_id for task in WORLD.tasks("test")])
def test_the_walkthrough_pays_one_at_its_end_and_nothing_before(task: str) -> None:
    env = opened(task)
    answers = [env.step(command) for command in walkthrough(task)]
    assert [answer[1] for answer in answers] == [0.0] * (len(answers) - 1) + [1.0]
    _, _, terminated, truncated, info = answers[-1]
    assert (terminated, truncated) == (True, False)
    assert (info["won"], info["success"], info["score"]) == (True, True, 1.0)
    with pytest.raises(RuntimeError, match="the episode is over; call reset"):
        env.step("look")


def test_fifty_looks_end_the_episode_at_the_step_limit_without_success() -> None:
    env = opened()
    answers = [env.step("look") for _ in range(50)]
    assert not any(terminated or truncated for _, _, terminated, truncated, _ in answers[:-1])
    _, reward, terminated, truncated, info = answers[-1]
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["won"], info["success"], info["score"]) == (False, False, 0.0)


def test_a_win_with_the_last_step_is_a_success_and_no_truncation() -> None:
    commands = walkthrough()
    env = opened(max_steps=len(commands))
    _, reward, terminated, truncated, info = [env.step(command) for command in commands][-1]
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)


@pytest.mark.parametrize(
    "action", ["", "dance", "go to drawer 99", "GO TO DESK 1", "take", "\x1b[2J", "x" * 5000]
)
def test_a_command_that_is_not_admissible_costs_a_step_changes_nothing_and_is_no_crash(action: str) -> None:
    env = opened()
    before = env.step("look")
    observation, reward, terminated, truncated, info = env.step(action)
    assert (observation, reward, terminated, truncated) == ("Nothing happens.", 0.0, False, False)
    assert info["action_valid"] is False
    assert info["admissible"] == before[4]["admissible"]
    assert env.step("look")[:1] == before[:1]


def test_going_to_a_receptacle_that_shares_ones_place_is_not_admissible_and_has_no_effect() -> None:
    """Two drawers that are reached from one place: at the first, one cannot go to the second."""
    for part in ("train", "seen", "unseen"):
        for number in range(40):
            planned = plan(0, part, number, 35)  # type: ignore[arg-type]
            places = [stand.place for stand in planned.layout.stands]
            if len(set(places)) < len(places):
                break
    shared = next(place for place in places if places.count(place) > 1)
    one, other = [stand for stand in planned.layout.stands if stand.place == shared][:2]
    env = AlfworldWorld(One(planned.task, write(planned))).make_env()
    _, info = env.reset(options={"task": planned.task.task_id})
    numbers = [f"{kind.lower()} {n}" for kind in {one.kind, other.kind} for n in range(1, 28)]
    reachable = [name for name in numbers if f"go to {name}" in info["admissible"]]
    *_, after = env.step(f"go to {reachable[0]}")
    assert after["action_valid"]
    gone = {name for name in reachable if f"go to {name}" not in after["admissible"]}
    if len(gone) == 1:  # the first of this kind stands alone: go on to one that does not
        for name in reachable[1:]:
            *_, after = env.step(f"go to {name}")
            gone = {each for each in reachable if f"go to {each}" not in after["admissible"]}
            if len(gone) > 1:
                break
    assert len(gone) > 1
    observation, *_, info = env.step(f"go to {sorted(gone)[0]}")
    assert (observation, info["action_valid"]) == ("Nothing happens.", False)


class One:
    """A source of one game for every part, under three ids."""

    def __init__(self, task: Task, content: GameContent) -> None:
        self.task, self._content = task, content

    def tasks(self, part: Part) -> tuple[Task, ...]:
        return (self.task,) if part == "unseen" else (self.task._replace(task_id=part),)

    def content(self, task_id: str) -> GameContent:
        return self._content

    def describe(self) -> dict[str, Any]:
        return {"data": "one game"}


def put_world(put: str, **settings: Any) -> tuple[AlfworldWorld, str, tuple[str, ...]]:
    planned = plan(0, "unseen", 0, 14)
    content = write(planned)
    spelled = GameContent(content.problem, content.task, content.walkthrough, grammar(content.task, put))
    return AlfworldWorld(One(planned.task, spelled), **settings), planned.task.task_id, content.walkthrough


@pytest.mark.parametrize("put", ["move {o} to {r}", "put {o} in/on {r}"])
@pytest.mark.parametrize("said", ["move {o} to {r}", "put {o} in/on {r}", "put {o} in {r}", "put {o} on {r}"])
def test_with_aliases_either_spelling_of_putting_has_the_same_effect(put: str, said: str) -> None:
    made, task, commands = put_world(put, aliases=True)
    env = made.make_env()
    env.reset(options={"task": task})
    for command in commands[:-1]:
        env.step(command)
    _, o, r = commands[-1].replace("move ", "|").replace(" to ", "|").split("|")
    *_, terminated, _, info = env.step(said.format(o=o, r=r))
    assert (terminated, info["success"], info["action_valid"]) == (True, True, True)


def test_without_aliases_only_the_spelling_of_the_game_is_understood_and_the_admissible_list_says_which() -> (
    None
):
    made, task, commands = put_world("move {o} to {r}")
    env = made.make_env()
    env.reset(options={"task": task})
    for command in commands[:-1]:
        *_, info = env.step(command)
    assert commands[-1] in info["admissible"]
    other = commands[-1].replace("move", "put").replace(" to ", " in/on ")
    observation, *_, info = env.step(other)
    assert (observation, info["action_valid"]) == ("Nothing happens.", False)
    assert env.step(commands[-1])[4]["success"]


def test_a_task_reads_the_same_at_every_reset_whatever_the_seed_and_whatever_came_before() -> None:
    env = opened()
    first = env.reset(seed=7, options={"task": TASK})
    for command in walkthrough():
        env.step(command)
    assert env.reset(seed=8, options={"task": TASK}) == first
    assert opened().reset(options={"task": TASK}) == first


def test_first_observations_are_the_same_in_processes_with_other_hash_seeds() -> None:
    code = (
        "from tests.envs.alfworlds import world;"
        f"print(repr(world().make_env().reset(seed=7, options={{'task': {TASK!r}}})))"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1")
    ]
    assert found == [repr(opened().reset(seed=7, options={"task": TASK})) + "\n"] * 2


def transcript(task: str) -> list[Any]:
    env = WORLD.make_env()
    return [env.reset(options={"task": task}), *(env.step(command) for command in walkthrough(task))]


def test_sixteen_environments_in_eight_threads_play_as_one_after_the_other() -> None:
    tasks = [task.task_id for split in ("train", "dev", "test") for task in WORLD.tasks(split)][:16]  # type: ignore[arg-type]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(transcript, tasks)) == [transcript(task) for task in tasks]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**6), max_size=30), st.lists(st.integers(0, 10**6), max_size=30))
def test_two_environments_of_one_world_do_not_touch_each_other(left: list[int], right: list[int]) -> None:
    """Random admissible commands, taken in turns, give what they give when one plays alone."""

    def commands(numbers: list[int]) -> list[Any]:
        env = opened()
        moments = [env.step("look")]
        for number in numbers:
            if moments[-1][2] or moments[-1][3]:
                break
            admissible = moments[-1][4]["admissible"]
            moments.append(env.step(admissible[number % len(admissible)]))
        return moments

    alone = commands(left), commands(right)
    envs = opened(), opened()
    together = [env.step("look") for env in envs], []
    played: tuple[list[Any], list[Any]] = ([together[0][0]], [together[0][1]])
    for step in range(max(len(left), len(right))):
        for side, numbers in enumerate((left, right)):
            last = played[side][-1]
            if step < len(numbers) and not (last[2] or last[3]):
                admissible = last[4]["admissible"]
                played[side].append(envs[side].step(admissible[numbers[step] % len(admissible)]))
    assert played == alone


def test_the_environment_passes_gymnasiums_checker() -> None:
    env = gymnasium.make("EMPG/ALFWorld-v0", train_games=6, test_games=6, max_steps=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)


def test_without_a_task_the_seed_chooses_one_of_the_train_split() -> None:
    chosen = [WORLD.make_env().reset(seed=seed)[1]["task_id"] for seed in range(20)]
    assert chosen == [WORLD.make_env().reset(seed=seed)[1]["task_id"] for seed in range(20)]
    assert len(set(chosen)) > 3
    assert set(chosen) <= {task.task_id for task in WORLD.tasks("train")}


def test_bad_requests_say_what_was_given_and_what_is_expected() -> None:
    env = WORLD.make_env()
    with pytest.raises(RuntimeError, match="call reset before step"):
        env.step("look")
    with pytest.raises(KeyError, match="unknown task 'atlantis': this world has 24, such as"):
        env.reset(options={"task": "atlantis"})
    with pytest.raises(ValueError, match=r"unknown reset options \['game'\], expected 'task'"):
        env.reset(options={"game": TASK})
    with pytest.raises(ValueError, match="max_steps is 0, expected at least 1"):
        world(max_steps=0)
    with pytest.raises(ValueError, match="evaluate_on is 'train', expected 'unseen' or 'seen'"):
        world(evaluate_on="train")
    with pytest.raises(ValueError, match="backend is 'thor', expected 'native' or 'textworld'"):
        world(backend="thor")
    with pytest.raises(TypeError, match="action is 3, expected a string"):
        opened().step(3)  # type: ignore[arg-type]


def test_a_game_that_cannot_be_read_is_a_failure_of_the_environment_and_names_the_game() -> None:
    task = Task("a/b", "pick", "put a mug in desk.")
    broken = AlfworldWorld(One(task, GameContent("(define", task.text, ())))
    with pytest.raises(EnvError, match="game a/b: the PDDL problem has no section :objects"):
        broken.make_env().reset(options={"task": "a/b"})


def test_the_test_split_is_the_unseen_part_or_on_request_the_seen_one_and_the_record_says_which() -> None:
    for part, other in (("unseen", "seen"), ("seen", "unseen")):
        made = world(evaluate_on=part)
        facts = made.describe()
        assert facts["evaluated_on"] == part
        assert facts["splits"]["test"] == {"part": part, "tasks": COUNTS[part]}  # type: ignore[index]
        assert facts["splits"]["dev"]["part"] == other
        assert list(made.panel("test").task_ids) == [task.task_id for task in games().tasks(part)]  # type: ignore[arg-type]
        assert json.loads(json.dumps(facts)) == facts


def test_a_smaller_panel_is_spread_over_the_sorted_tasks() -> None:
    tasks = WORLD.tasks("train")
    assert WORLD.panel("train", 4).task_ids == tuple(tasks[number].task_id for number in (0, 3, 6, 9))
    assert WORLD.panel("train").task_texts == tuple(task.text for task in tasks)
    with pytest.raises(
        ValueError, match="a panel of 13 alfworld train tasks was asked for, but there are 12"
    ):
        WORLD.panel("train", 13)
    with pytest.raises(ValueError, match="unknown split 'valid', expected one of train, dev, test"):
        WORLD.panel("valid")  # type: ignore[arg-type]
