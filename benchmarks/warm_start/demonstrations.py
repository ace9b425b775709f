"""Episodes of a world's scripted demonstrator, skilled and careless players mixed in fixed shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from benchmarks.progress import Status
from benchmarks.seeding import Stream, generator
from envs.base import Decision, Split, TextEnv, World

Progress = Callable[[Status], None]
Elsewhere = Callable[[int], World]
"""Another world by its number, from 0: generated like the one at hand, with other contents."""


def silent(status: Status) -> None:
    """Report progress to nobody."""


@dataclass(frozen=True)
class Player:
    """One kind of demonstrator in a mixture."""

    share: float
    """How many of the episodes it plays, relative to the other players."""
    carelessness: dict[str, float] = field(default_factory=dict)
    """Chance of a careless decision by kind of decision; empty for a skilled player."""

    def __post_init__(self) -> None:
        if self.share <= 0:
            raise ValueError(f"share must be positive, got {self.share}")
        for kind, chance in self.carelessness.items():
            if not 0 <= chance <= 1:
                raise ValueError(f"carelessness.{kind} must lie in [0, 1], got {chance}")


SKILLED = Player(share=1.0)


@dataclass(frozen=True)
class DemonstrationConfig:
    """Which demonstrations are played."""

    tasks: int | None = None
    """The first so many tasks of the train split; None: all."""
    samples: int = 1
    """Episodes of each task."""
    max_steps: int | None = None
    """Longer episodes are cut after so many decisions; None: never."""
    worlds: int | None = None
    """Play in so many other worlds, in each the `tasks` of its own train split; None: in the world at hand. What is
    true in one of them is not in the next, so nothing can be learned by heart and everything has to be read."""
    players: tuple[Player, ...] = (SKILLED,)

    def __post_init__(self) -> None:
        for name in ("tasks", "samples", "max_steps", "worlds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be positive, got {value}")
        if not self.players:
            raise ValueError("players is empty, expected at least one")


@dataclass(frozen=True)
class Demonstration:
    """One played episode, as far as the player saw it: `decisions[i]` answers `observations[i]`."""

    task_id: str
    observations: tuple[str, ...]
    admissible: tuple[tuple[str, ...], ...]
    """Actions on offer at each observation."""
    decisions: tuple[Decision, ...]
    success: bool
    player: int
    """Which player of the mixture played."""
    task_type: str = ""
    """Kind of the task, as the environment names it."""


def collect_everywhere(
    world: World,
    config: DemonstrationConfig,
    *,
    seed: int,
    elsewhere: Elsewhere | None,
    progress: Progress = silent,
) -> list[Demonstration]:
    """Play the demonstrations in the world at hand or, with `config.worlds`, in others, one after another.

    Raises `ValueError` where other worlds are asked for and there are none.
    """
    if config.worlds is None:
        return collect(world, config, seed=seed, progress=progress)
    if elsewhere is None:
        raise ValueError(
            f"demonstrations.worlds is {config.worlds}, but only generated data has other worlds"
        )
    played: list[Demonstration] = []
    for number in range(config.worlds):
        played += collect(elsewhere(number), config, seed=seed, where=(number,))
        wins = sum(demonstration.success for demonstration in played) / len(played)
        progress(Status("worlds of demonstrations", number + 1, config.worlds, f"success {wins:.2f}"))
    return played


def collect(
    world: World,
    config: DemonstrationConfig,
    *,
    split: Split = "train",
    seed: int,
    where: tuple[int, ...] = (),
    progress: Progress = silent,
) -> list[Demonstration]:
    """Play the demonstrations in one world, task by task.

    Which player plays an episode and what it does depend on (seed, where, task, sample) only: asking for more tasks
    adds to the list and changes none of it.
    """
    panel = world.panel(split, config.tasks)
    env = world.make_env()
    total = len(panel) * config.samples
    played: list[Demonstration] = []
    try:
        for task, task_id in enumerate(panel.task_ids):
            for sample in range(config.samples):
                place = (int(Stream.DEMONSTRATE), *where, task, sample)
                player = _choose(config.players, float(generator(seed, *place).random()))
                carelessness = config.players[player].carelessness
                shown = play(world, env, task_id, (seed, *place), player, carelessness)
                played.append(_cut(shown, config.max_steps))
            wins = sum(demonstration.success for demonstration in played)
            progress(Status("demonstrations", len(played), total, f"success {wins / len(played):.2f}"))
    finally:
        env.close()
    return played


def _cut(shown: Demonstration, steps: int | None) -> Demonstration:
    """The first decisions of a demonstration; whether it succeeded stays as it was played."""
    return replace(
        shown,
        observations=shown.observations[:steps],
        admissible=shown.admissible[:steps],
        decisions=shown.decisions[:steps],
    )


def _choose(players: tuple[Player, ...], uniform: float) -> int:
    """The player whose part of [0, total share) a uniform number in [0, 1) falls into."""
    rest = uniform * sum(player.share for player in players)
    for place, player in enumerate(players):
        if rest < player.share:
            return place
        rest -= player.share
    return len(players) - 1


def play(
    world: World,
    env: TextEnv,
    task_id: str,
    place: tuple[int, ...],
    player: int,
    carelessness: Mapping[str, float],
) -> Demonstration:
    """One episode of the demonstrator whose randomness `place` names; `player` is only noted."""
    demonstrator = world.demonstrator(place, carelessness)
    observations, admissible, decisions = [], [], []
    observation, info = env.reset(options={"task": task_id})
    over = False
    while not over:
        decision = demonstrator.decide(observation, info)  # type: ignore[arg-type]  # gymnasium types info as dict
        observations.append(observation)
        admissible.append(tuple(info["admissible"]))
        decisions.append(decision)
        observation, _, terminated, truncated, info = env.step(decision.action)
        over = terminated or truncated
    return Demonstration(
        task_id=task_id,
        observations=tuple(observations),
        admissible=tuple(admissible),
        decisions=tuple(decisions),
        success=bool(info["success"]),
        player=player,
        task_type=info["task_type"],
    )
