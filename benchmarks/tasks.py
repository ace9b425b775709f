"""Which tasks an iteration trains on: a pure function of data seed and place, so a resume needs no state."""

from __future__ import annotations

from itertools import combinations

from agents.rollout import Episode
from benchmarks.config import ConfigError
from benchmarks.seeding import Stream, generator
from envs.base import TaskPanel


def train_tasks(
    panel: TaskPanel, data_seed: int, iteration: int, attempt: int, groups: int
) -> tuple[str, ...]:
    """The tasks of one attempt, walking through the panel in a new order each epoch.

    Each attempt of dynamic sampling walks in an order of its own, so the first attempts of two runs with
    equal data seeds see the same tasks, however many attempts either made before.
    """
    chosen: list[str] = []
    position = iteration * groups
    order, epoch_of_order = None, -1
    while len(chosen) < groups:
        epoch, place = divmod(position, len(panel))
        if order is None or epoch != epoch_of_order:
            order = generator(data_seed, Stream.TASKS, attempt, epoch).permutation(len(panel))
            epoch_of_order = epoch
        chosen.append(panel.task_ids[order[place]])
        position += 1
    return tuple(chosen)


def train_episodes(
    panel: TaskPanel, data_seed: int, iteration: int, attempt: int, *, groups: int, group_size: int
) -> list[Episode]:
    """`group_size` episodes of each task; groups are numbered uniquely within the iteration."""
    tasks = train_tasks(panel, data_seed, iteration, attempt, groups)
    return [
        Episode(
            task_id=task,
            group=attempt * groups + index,
            sample=sample,
            place=(Stream.TRAIN, iteration, attempt, index, sample),
        )
        for index, task in enumerate(tasks)
        for sample in range(group_size)
    ]


def check_disjoint(*panels: TaskPanel) -> None:
    """Raises `ConfigError` when two panels share a task, such as one that is trained on and tested."""
    for one, other in combinations(panels, 2):
        if both := sorted(set(one.task_ids) & set(other.task_ids)):
            raise ConfigError(
                f"{len(both)} tasks are in both the {one.split} and the {other.split} panel of {one.env}, "
                f"such as {both[0]!r}; expected none"
            )
