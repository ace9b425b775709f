"""ALFWorld run folders made by hand, on the fabricated runs of `report_runs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import records
from benchmarks.evaluate import totals
from tests.benchmarks.report_runs import PANEL, add_run

TYPES = ("pick", "look", "clean", "heat", "cool", "pick2")
UNSEEN = {"pick": 24, "look": 18, "clean": 31, "heat": 23, "cool": 21, "pick2": 17}
"""How many games of each type the official valid_unseen has."""


def world(part: str = "unseen", tasks: int = 134, **changes: Any) -> dict[str, Any]:
    """The facts that `AlfworldWorld.describe` gives for the official data."""
    other = "seen" if part == "unseen" else "unseen"
    return {
        "name": "alfworld",
        "data": "official",
        "data_digest": "f" * 64,
        "games": 3827,
        "evaluated_on": part,
        "splits": {
            "train": {"part": "train", "tasks": 3553},
            "dev": {"part": other, "tasks": 140},
            "test": {"part": part, "tasks": tasks},
        },
        "backend": "native",
        "max_steps": 50,
        "aliases": False,
    } | changes


def add_alfworld(
    suite: Path,
    variant: str,
    seed: int = 0,
    *,
    counts: Mapping[str, int] = UNSEEN,
    solved: Mapping[str, int] | None = None,
    errored: Mapping[int, str] | None = None,
    untyped: Sequence[int] = (),
    **changes: Any,
) -> Path:
    """A run on a panel of `counts` tasks of each type, in the order of types; it solved the first `solved` of each.

    `untyped`: errored tasks whose episodes do not know their type.
    """
    types = [name for name in TYPES for _ in range(counts.get(name, 0))]
    first = {name: types.index(name) for name in set(types)}
    wins = [first[name] + place for name, number in (solved or {}).items() for place in range(number)]
    size = len(types)
    folder = add_run(
        suite,
        variant,
        seed,
        tasks=size,
        solved=wins,
        errored=errored,
        **{
            "config": {"benchmark": "alfworld"},
            "world": world(tasks=size),
            "panels": {"test": {"digest": PANEL, "size": size}},
        }
        | changes,
    )
    rewrite(folder, lambda task: "" if task in untyped else types[task])
    return folder


def rewrite(folder: Path, type_of: Any) -> None:
    """Give every episode the type of its task number, and its success as score."""
    rows = records.read_jsonl(folder / "eval.jsonl")
    for row in rows:
        row["task_type"] = type_of(int(row["task_id"].removeprefix("synthetic-")))
        row["score"] = float(row["success"])
    records.write_jsonl(folder / "eval.jsonl", rows)
    if (folder / "summary.json").exists():
        summary = records.read_json(folder / "summary.json")
        records.write_json(folder / "summary.json", summary | {"eval": totals(rows)})


def alfworld_suite(suite: Path, seeds: Sequence[int] = (0,), **changes: Any) -> Path:
    """All six rows; each further variant and seed solves one more task of every type."""
    add_alfworld(suite, "warm-start", solved=dict.fromkeys(TYPES, 3), **changes)
    for place, variant in enumerate(("grpo", "grpo+empg", "dapo", "dapo+empg")):
        for seed in seeds:
            add_alfworld(suite, variant, seed, solved=dict.fromkeys(TYPES, 8 + place + seed), **changes)
    add_alfworld(suite, "expert", solved={name: number - 1 for name, number in UNSEEN.items()}, **changes)
    return suite
