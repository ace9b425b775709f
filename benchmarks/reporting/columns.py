"""What the tables show of each benchmark, and which numbers of the paper stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from envs.alfworld.games import FOLDERS, OFFICIAL_COUNTS
from envs.alfworld.tasks import TaskType

What = Literal["success", "score"]


@dataclass(frozen=True)
class OfficialSplit:
    """A split of a benchmark's official data."""

    name: str
    tasks: int


@dataclass(frozen=True)
class Columns:
    """The columns of one benchmark's tables."""

    title: str
    """Its name as the paper writes it."""
    measures: tuple[What, ...] = ("success", "score")
    types: Mapping[str, str] = field(default_factory=dict)
    """Task type -> heading, in the paper's order; empty where results are not split by type."""
    paper: Mapping[str, str] = field(default_factory=dict)
    """Measure -> column of `table1.csv`; empty where the paper has no results."""
    not_stated: str = "at which temperature nor on how many episodes it evaluated"
    """What the paper does not say of its evaluation."""
    splits: Mapping[str, OfficialSplit] = field(default_factory=dict)
    """What `world.evaluated_on` may be; empty where the test split needs no further name."""


def of_type(task_type: str) -> str:
    """The measure that is success on the tasks of one type: `success:pick`."""
    return f"success:{task_type}"


_ALFWORLD_TYPES: Mapping[str, str] = {name: name.capitalize() for name in get_args(TaskType)}

COLUMNS: Mapping[str, Columns] = {
    "webshop": Columns("WebShop", paper={"success": "webshop_success", "score": "webshop_score"}),
    "alfworld": Columns(
        "ALFWorld",
        measures=("success",),  # its score is its success
        types=_ALFWORLD_TYPES,
        paper={"success": "alfworld_all"} | {of_type(name): name for name in _ALFWORLD_TYPES},
        not_stated=(
            "at which temperature, on which split (valid_seen or valid_unseen) nor on how many episodes it "
            "evaluated"
        ),
        splits={part: OfficialSplit(FOLDERS[part], OFFICIAL_COUNTS[part]) for part in ("unseen", "seen")},
    ),
}


def columns_of(benchmark: str) -> Columns:
    """Success and score without the paper's numbers for a benchmark that is not listed."""
    return COLUMNS.get(benchmark, Columns(benchmark))
