from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Literal, get_args

import pytest

from agents.policies.scripted import ScriptedPolicy
from agents.prompts import Style, make_prompts
from agents.rollout import Episode, RolloutConfig, rollout
from benchmarks.config import ConfigError
from benchmarks.prepare import identity, open_tasks
from benchmarks.prompting import LONGEST, prompts_of, shots
from benchmarks.seeding import Stream
from envs import deepsearch, webshop
from envs.base import World
from tests.benchmarks.test_warm_start_lamps import LampWorld
from tests.benchmarks.tiny import planned
from tests.envs import alfworlds

STYLES: tuple[Style, ...] = get_args(Style)
LAYOUTS: tuple[Literal["conversation", "window"], ...] = ("conversation", "window")
MAKE = {
    "webshop": lambda: webshop.load_world(products=50),
    "alfworld": alfworlds.world,
    "deepsearch": lambda: deepsearch.load_world(passages=400, train_questions=20, test_questions=2),
}


@lru_cache(maxsize=len(MAKE))
def world_of(benchmark: str) -> World:
    return MAKE[benchmark]()


@pytest.mark.parametrize(("benchmark", "style", "layout"), [*product(MAKE, STYLES, LAYOUTS)])
def test_the_demonstrator_solves_the_same_tasks_in_every_style_and_layout(benchmark, style, layout):
    world = world_of(benchmark)
    config = RolloutConfig(max_new_tokens=400, layout=layout, prompt=style, shots=1)
    prompts = prompts_of(world, config)
    tasks = world.panel("train", 4).task_ids
    played = rollout(
        ScriptedPolicy(lambda episode: world.demonstrator((0, episode)).decide, prompts=prompts),
        world.make_env,
        [Episode(task, number, 0, (number,)) for number, task in enumerate(tasks)],
        config,
        prompts=prompts,
        seed=0,
    )
    assert [one.success for one in played] == [demonstrated(world, task, at) for at, task in enumerate(tasks)]
    assert sum(one.success for one in played) >= 3
    steps = [step for one in played for step in one.steps]
    assert all(step.well_formed and step.action_valid for step in steps)


def demonstrated(world: World, task: str, number: int) -> bool:
    """Whether the demonstrator solves a task without any prompt."""
    env, player = world.make_env(), world.demonstrator((0, number))
    observation, info = env.reset(options={"task": task})
    over = False
    while not over:
        observation, _, terminated, truncated, info = env.step(player.decide(observation, info).action)
        over = terminated or truncated
    return info["success"]


@pytest.mark.parametrize(("benchmark", "style", "layout"), [*product(MAKE, STYLES, LAYOUTS)])
def test_the_opening_observation_is_shown_verbatim_and_only_once_in_every_prompt(benchmark, style, layout):
    world = world_of(benchmark)
    config = RolloutConfig(max_new_tokens=400, layout=layout, prompt=style, shots=1, max_observation_tokens=5)
    prompts = prompts_of(world, config)
    asked = []

    class Listener(ScriptedPolicy):
        def open(self, episodes, sampling):
            session = super().open(episodes, sampling)
            submit = session.submit
            session.submit = lambda turns: (asked.extend(turns), submit(turns))
            return session

    player = world.demonstrator((0, 0)).decide
    (played,) = rollout(
        Listener(lambda _: player, prompts=prompts),
        world.make_env,
        [Episode(world.panel("train", 1).task_ids[0], 0, 0, (0,))],
        config,
        prompts=prompts,
        seed=0,
    )
    assert len(asked) == len(played.steps) > 1
    for turn in asked:
        shown = "".join(message.content for message in turn.messages)
        assert turn.messages[: len(prompts.head)] == prompts.head
        assert shown.count(played.opening) == 1


@pytest.mark.parametrize("benchmark", MAKE)
def test_the_limit_that_is_told_is_the_environments_and_the_brief_style_tells_none(benchmark):
    world = world_of(benchmark)
    limit = world.make_env().max_steps
    assert f"at most {limit} turns" in prompts_of(world, RolloutConfig(prompt="react")).system
    assert prompts_of(world, RolloutConfig()) == make_prompts(benchmark)


@pytest.mark.parametrize("benchmark", MAKE)
def test_examples_are_short_episodes_won_on_train_tasks_and_more_only_adds_to_them(benchmark):
    world = world_of(benchmark)
    found = shots(world, 3)
    assert found == shots(world, 3)
    assert shots(world, 1) == found[:1]
    assert len(set(found)) == 3
    tasks = world.panel("train")
    for shot in found:
        assert len(shot.decisions) <= LONGEST
        env = world.make_env()
        openings = {env.reset(options={"task": task})[0]: task for task in tasks.task_ids}
        env.reset(options={"task": openings[shot.observations[0]]})
        for decision in shot.decisions:
            _, _, terminated, _, info = env.step(decision.action)
        assert terminated
        assert info["success"]


def test_examples_show_another_kind_of_task_first():
    world = world_of("alfworld")
    env = world.make_env()
    kinds = {}
    for task in world.panel("train").task_ids:
        observation, info = env.reset(options={"task": task})
        kinds[observation] = info["task_type"]
    found = [kinds[shot.observations[0]] for shot in shots(world, 3)]
    assert len(set(found)) == 3


def test_too_many_examples_are_refused_with_how_many_there_are():
    with pytest.raises(ValueError, match=r"rollout.shots is 13, but only 12 of 12 train tasks of webshop"):
        shots(LampWorld(), 13)


def test_examples_stay_within_the_limit_on_observations():
    world = world_of("webshop")
    config = RolloutConfig(prompt="react", shots=2, shot_observation_chars=80)
    long = prompts_of(world, replace(config, shot_observation_chars=100_000)).examples
    short = prompts_of(world, config).examples
    assert max(len(message.content) for message in short[::2]) <= 80 + len(" [...] ")
    assert max(len(message.content) for message in long[::2]) > 200
    assert short[1::2] == long[1::2]


def test_a_run_record_holds_version_and_digest_of_what_its_agent_reads(tiny_suite, tmp_path):
    run = planned(tiny_suite, tmp_path)
    records = []
    for style, count in (("brief", 0), ("brief", 1), ("tags", 0)):
        rollout = replace(run.config.rollout, prompt=style, shots=count)
        world = {"products": 50, "max_steps": 15}
        config = run.config.model_copy(update={"rollout": rollout, "world": world})
        tasks = open_tasks(config, None)
        records.append(identity(replace(run, config=config), tasks, None)["prompt"])
        assert records[-1] == prompts_of(world_of("webshop"), rollout).record()
    assert records[0] == make_prompts("webshop").record()
    assert len({record["digest"] for record in records}) == 3


def test_examples_that_do_not_exist_are_one_line_before_any_work(tiny_suite, tmp_path):
    config = planned(tiny_suite, tmp_path).config  # two steps are too few to buy anything
    config = config.model_copy(update={"rollout": replace(config.rollout, shots=1)})
    with pytest.raises(ConfigError, match=r"^rollout.shots is 1, but only 0 of 50 train tasks"):
        open_tasks(config, None)


def test_the_stream_of_examples_is_its_own():
    assert len({int(stream) for stream in Stream}) == len(Stream)
