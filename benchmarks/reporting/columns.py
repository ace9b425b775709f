"""What the tables show of each benchmark, and which numbers of the paper stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from benchmarks.reporting.schema import RunInfo
from benchmarks.reporting.settings import has_settings
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
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Heading -> task types whose tasks it takes together, such as all that are out of domain."""
    paper: Mapping[str, str] = field(default_factory=dict)
    """Measure -> column of the paper's table; empty where the paper has no results."""
    paper_table: Literal["table1", "table2", "table5"] = "table1"
    not_stated: str = "at which temperature nor on how many episodes it evaluated"
    """What the paper does not say of its evaluation."""
    splits: Mapping[str, OfficialSplit] = field(default_factory=dict)
    """What `world.evaluated_on` may be; empty where the test split needs no further name."""

    @property
    def parts(self) -> Mapping[str, Part]:
        """The measures of a part of the tasks, by name: every type, and every group behind its last type."""
        found = {}
        for name, heading in self.types.items():
            found[of_type(name)] = Part(heading, (name,))
            for group, types in self.groups.items():
                if types[-1] == name:
                    found[of_type(group)] = Part(group, types)
        return found


@dataclass(frozen=True)
class Part:
    """Some of the tasks: those of one or of several types."""

    heading: str
    types: tuple[str, ...]


def of_type(task_type: str) -> str:
    """The measure that is success on the tasks of one type or group: `success:pick`, `success:OOD`."""
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


DOMAINS = ("id", "ood")
_DATASETS: Mapping[str, tuple[str, str]] = {
    "webwalkerqa": ("WebWalker", "webwalker"),
    "hotpotqa": ("HotpotQA", "hotpotqa"),
    "2wikimultihopqa": ("2Wiki", "2wiki"),
    "musique": ("Musique", "musique"),
    "bamboogle": ("Bamboogle", "bamboogle"),
}
"""Heading, and column of the paper's Table 2."""
PAPER_DOMAINS: Mapping[str, str] = {
    "webwalkerqa": "id",
    "hotpotqa": "id",
    "2wikimultihopqa": "id",
    "musique": "ood",
    "bamboogle": "ood",
}
"""The data sets of the paper's Table 2, each with its domain."""


def columns_of(info: RunInfo) -> Columns:
    """What the tables of a run's benchmark show; success and score without the paper's numbers for an unlisted one.

    The kinds of questions of Deep Search are its data's: a run states them, each with its domain.
    """
    if info.benchmark == "deepsearch":
        return deep_search(info.task_types)
    found = COLUMNS.get(info.benchmark, Columns(info.benchmark))
    if info.benchmark == "alfworld" and any(map(has_settings, (info.variant, *info.variants))):
        return replace(found, paper_table="table5", paper={**found.paper, "success": "overall"})
    return found


def deep_search(domains: Mapping[str, str]) -> Columns:
    """What the tables of Deep Search show, in-domain types first; `domains` maps a type to its domain."""
    ordered = [name for domain in DOMAINS for name, own in domains.items() if own == domain]
    groups = {
        domain.upper(): tuple(name for name in ordered if domains[name] == domain)
        for domain in DOMAINS
        if domain in domains.values()
    }
    printed = {
        "success": "overall_printed",
        of_type("ID"): "id_avg_printed",
        of_type("OOD"): "ood_avg_printed",
    }
    return Columns(
        "Deep Search",
        measures=("success",),
        types={name: _DATASETS[name][0] if name in _DATASETS else _worded(name) for name in ordered},
        groups=groups,
        paper=printed | {of_type(name): _DATASETS[name][1] for name in ordered if name in _DATASETS},
        paper_table="table2",
        not_stated="by which judge or metric, at which temperature nor on how many questions it evaluated",
    )


def _worded(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").capitalize()


PAPER_BENCHMARKS: Mapping[str, Columns] = {
    "alfworld": COLUMNS["alfworld"],
    "webshop": COLUMNS["webshop"],
    "deepsearch": deep_search(PAPER_DOMAINS),
}
"""What the paper reports on, in its order."""
