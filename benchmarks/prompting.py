"""The prompts of a benchmark under the settings of a rollout, with worked examples where those are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from agents.prompts import Prompts, Shot, make_prompts
from agents.rollout import RolloutConfig
from benchmarks.seeding import Stream, generator
from benchmarks.warm_start.demonstrations import Demonstration, play
from envs.base import World

SEED = 0
"""Of the examples: they belong to the prompt, so every run of a suite shows the same."""
LONGEST = 10
"""Turns of an example; with the limit on observations this bounds the prompt."""
TRIES = 50
"""Train tasks among which examples are chosen."""


def prompts_of(world: World, config: RolloutConfig) -> Prompts:
    """What an agent in this world is told.

    Raises `KeyError` for a world without instructions, `ValueError` where there are fewer examples than asked for, and
    `EnvError` where playing one fails.
    """
    limit = None
    if config.prompt != "brief":
        with closing(world.make_env()) as env:
            limit = env.max_steps
    return make_prompts(
        world.name,
        config.prompt,
        max_steps=limit,
        shots=shots(world, config.shots),
        shot_observation_chars=config.shot_observation_chars,
    )


def shots(world: World, count: int) -> tuple[Shot, ...]:
    """Episodes of train tasks that the skilled demonstrator wins within `LONGEST` turns.

    Tasks are tried in an order of their own, named by `Stream.SHOTS`. Each example is the first of a kind of task that
    was not shown yet, or the first of all that are left. Asking for more only adds to the list. `ValueError` where
    there are too few.
    """
    if count == 0:
        return ()
    tasks = world.panel("train").task_ids
    order = [int(at) for at in generator(SEED, Stream.SHOTS).permutation(len(tasks))[:TRIES]]
    chosen: list[Demonstration] = []
    with closing(world.make_env()) as env:
        candidates = _Candidates(play(world, env, tasks[at], (SEED, Stream.SHOTS, at), 0, {}) for at in order)
        while len(chosen) < count:
            kinds = {shown.task_type for shown in chosen}
            best = next((one for one in candidates if one.task_type not in kinds), None)
            best = best or next((one for one in candidates if one not in chosen), None)
            if best is None:
                raise ValueError(
                    f"rollout.shots is {count}, but only {len(chosen)} of {len(order)} train tasks of "
                    f"{world.name} were won within {LONGEST} turns; expected at most so many"
                )
            chosen.append(best)
    return tuple(Shot(shown.observations, shown.decisions) for shown in chosen)


class _Candidates:
    """Examples that may be shown, played when they are first looked at."""

    def __init__(self, played: Iterator[Demonstration]) -> None:
        self._played, self._kept = played, list[Demonstration]()

    def __iter__(self) -> Iterator[Demonstration]:
        yield from self._kept
        for shown in self._played:
            if shown.success and len(shown.decisions) <= LONGEST:
                self._kept.append(shown)
                yield shown
