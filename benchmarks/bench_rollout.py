"""Rollouts by vLLM against the torch policy: sampled tokens and episodes a second on WebShop, one model, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from transformers.utils.logging import disable_progress_bar

from agents.policies.base import Policy
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from benchmarks.bench import Ratio, show
from benchmarks.config import ConfigError, PolicySettings
from benchmarks.models import load_model
from benchmarks.prepare import choose_device, one_line, sampler
from benchmarks.prompting import prompts_of
from envs.base import World
from envs.webshop import load_world


@dataclass(frozen=True)
class Size:
    """What is played."""

    products: int = 1000
    parallel: tuple[int, ...] = (8, 32)
    """Episodes of one rollout, all played at once."""
    turns: int = 3
    new_tokens: int = 32
    observation_tokens: int = 128
    repeats: int = 2
    context: int = 2048


def run_bench(console: Console, model: str, cache: Path, size: Size | None = None) -> list[Ratio]:
    """Print the comparison; `ConfigError` where the model or vLLM is not to be had."""
    disable_progress_bar()
    size = size or Size()
    settings = PolicySettings(model=model, max_context=size.context)
    with console.status("opening") as status:
        loaded, tokenizer, origin = load_model(settings, cache, status.update)
        loaded = loaded.to(choose_device())
        world = load_world(products=size.products, max_steps=size.turns)
        try:
            engines = {
                name: sampler(
                    loaded, tokenizer, settings.model_copy(update={"rollout": name}), max(size.parallel)
                )
                for name in ("vllm", "torch")
            }
        except ValueError as error:
            raise ConfigError(f"bench-vllm: {one_line(error)}") from error
        ratios = [
            ratio
            for parallel in size.parallel
            for ratio in _compare(
                world, {name: one[0] for name, one in engines.items()}, parallel, size, status.update
            )
        ]
    facts = [f"{name}: {' '.join(one[1].values())}" for name, one in engines.items()]
    console.print(f"{origin['name']}; {'; '.join(facts)}", markup=False, highlight=False)
    show(console, ratios)
    return ratios


def _compare(
    world: World, policies: dict[str, Policy], parallel: int, size: Size, say: Callable[[str], Any]
) -> list[Ratio]:
    """Both rates of both policies at one number of episodes, in the orders AB, BA, ..."""
    config = RolloutConfig(
        max_new_tokens=size.new_tokens,
        max_observation_tokens=size.observation_tokens,
        parallel=parallel,
        prompt="react",
    )
    prompts = prompts_of(world, config)
    tasks = world.panel("train").task_ids
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in policies}
    for repeat in range(size.repeats):
        order = list(policies) if repeat % 2 == 0 else list(reversed(policies))
        for name in order:
            say(f"{name}, {parallel} episodes, {repeat + 1}/{size.repeats}")
            policies[name].update()  # no prefix of an earlier repeat is left
            episodes = [
                Episode(tasks[(repeat * parallel + number) % len(tasks)], number, 0, (repeat, number))
                for number in range(parallel)
            ]
            rates[name].append(_play(policies[name], world, episodes, config, prompts))
    ours, theirs = rates["vllm"], rates["torch"]
    return [
        Ratio(
            name=f"WebShop rollout, {parallel} episodes at once",
            unit=unit,
            first="vLLM",
            second="torch policy",
            pairs=tuple((a[place], b[place]) for a, b in zip(ours, theirs, strict=True)),
            more_is_better=True,
        )
        for place, unit in enumerate(("sampled tokens/s", "episodes/s"))
    ]


def _play(
    policy: Policy, world: World, episodes: Sequence[Episode], config: RolloutConfig, prompts: Prompts
) -> tuple[float, float]:
    policy.open(1, config.sampling).close()  # new weights go over before the clock starts
    begun = time.perf_counter()
    played = rollout(policy, world.make_env, episodes, config, prompts=prompts, seed=0)
    seconds = time.perf_counter() - begun
    tokens = sum(len(step.action_ids) for episode in played for step in episode.steps)
    return tokens / seconds, len(played) / seconds
