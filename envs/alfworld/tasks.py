"""The six kinds of ALFWorld tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

TaskType = Literal["pick", "look", "clean", "heat", "cool", "pick2"]
"""As the columns of the paper's Table 1."""

OFFICIAL_TYPES: Mapping[str, TaskType] = {
    "pick_and_place_simple": "pick",
    "look_at_obj_in_light": "look",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "pick_two_obj_and_place": "pick2",
}
"""By the names of the official files."""

Part = Literal["train", "seen", "unseen"]
"""The official splits: train, valid_seen (rooms of train games) and valid_unseen (other rooms)."""
PARTS: tuple[Part, ...] = ("train", "seen", "unseen")


class Task(NamedTuple):
    """One task as panels and environments know it."""

    task_id: str
    task_type: TaskType
    text: str
    """The sentence behind `Your task is to: `."""
