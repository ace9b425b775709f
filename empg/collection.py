"""From collected trajectories to those that are trained on: dynamic sampling on raw rewards."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agents.trajectory import Trajectory
from empg.config import BatchConfig, DynamicSamplingConfig

logger = logging.getLogger(__name__)

Collect = Callable[[int, int], Sequence[Trajectory]]
"""(iteration, attempt) -> the trajectories of `groups_per_batch` groups of `group_size`, or fewer."""


@dataclass(frozen=True)
class Collected:
    """One trajectory that was sampled for an iteration."""

    trajectory: Trajectory
    attempt: int
    kept: bool
    """Whether it is trained on; errored ones, filtered groups and surplus groups are not."""


@dataclass(frozen=True)
class Group:
    """The trajectories of one task in one attempt."""

    attempt: int
    members: tuple[Trajectory, ...]

    @property
    def usable(self) -> tuple[Trajectory, ...]:
        """Members that did not end in an error."""
        return tuple(member for member in self.members if member.usable)

    @property
    def uniform(self) -> bool:
        """Whether the usable members' raw rewards are all equal, as in a group of one: nothing to compare."""
        return len({member.reward for member in self.usable}) <= 1


@dataclass(frozen=True)
class Collection:
    """All groups of an iteration in the order they were sampled, and which of them are trained on."""

    attempts: int
    groups: tuple[Group, ...]
    kept: tuple[Group, ...]

    @property
    def training(self) -> tuple[tuple[Group, Trajectory], ...]:
        """The trajectories to train on, each with its group."""
        return tuple((group, member) for group in self.kept for member in group.usable)

    def renumbered(self) -> tuple[Trajectory, ...]:
        """The trajectories to train on, groups numbered anew: different attempts may use the same numbers."""
        return tuple(
            replace(member, group=number) for number, group in enumerate(self.kept) for member in group.usable
        )

    def listed(self) -> tuple[Collected, ...]:
        """Every trajectory with its fate."""
        kept = {id(group) for group in self.kept}
        return tuple(
            Collected(member, group.attempt, id(group) in kept and member.usable)
            for group in self.groups
            for member in group.members
        )


def gather(
    iteration: int, collect: Collect, batch: BatchConfig, sampling: DynamicSamplingConfig | None
) -> Collection:
    """Collect an iteration's groups.

    Without dynamic sampling: one attempt, and every group with a usable member is kept, also one of equal
    rewards. With it: groups of equal raw rewards are dropped, and `collect` is asked again until
    `groups_per_batch` groups are there or the attempts are used up; then what there is is kept, possibly
    nothing, and a warning says so.
    """
    groups: list[Group] = []
    kept: list[Group] = []
    attempts = 0
    while attempts < (sampling.max_attempts if sampling else 1) and len(kept) < batch.groups_per_batch:
        fresh = _grouped(collect(iteration, attempts), attempts, batch.group_size)
        groups += fresh
        kept += [group for group in fresh if group.usable and not (sampling and group.uniform)]
        attempts += 1
    if sampling and len(kept) < batch.groups_per_batch:
        logger.warning(
            "iteration %d: %d of %d groups have unequal rewards after %d attempts; %s",
            iteration,
            len(kept),
            batch.groups_per_batch,
            attempts,
            "training on those" if kept else "the update is skipped",
        )
    return Collection(
        attempts, tuple(groups), tuple(kept[: batch.groups_per_batch]) if sampling else tuple(kept)
    )


def _grouped(trajectories: Sequence[Trajectory], attempt: int, group_size: int) -> list[Group]:
    members: dict[int, list[Trajectory]] = {}
    for trajectory in trajectories:
        members.setdefault(trajectory.group, []).append(trajectory)
    for number, each in members.items():
        if len(each) > group_size:
            raise ValueError(f"group {number} holds {len(each)} trajectories, expected at most {group_size}")
    return [Group(attempt, tuple(each)) for each in members.values()]
