"""What the two sides of a comparison are: from names, folders and globs to checked runs, and what sets them apart."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.reporting.compare import Comparison, Side
from benchmarks.reporting.evaluations import evaluated_rows
from benchmarks.reporting.load import Run, Suite, load_info, load_runs, run_folders
from benchmarks.reporting.places import RUNS, records_of
from benchmarks.reporting.schema import EVALUATED_SPLIT, RecordError, read
from benchmarks.reporting.task_types import UNKNOWN, join_types

NOT_STATED = "not stated"
SHOWN_CHARACTERS = 120
SHOWN_PARTS = 3
SETTINGS = ("config", "policy", "prompt", "world", "commit", "dirty", "versions", "device", "machine")
"""Parts of `run.json` that may set two sides apart; the others name the run."""
_HASH = re.compile(r"\b[0-9a-f]{40,}\b")
OF_THE_RUN = ("config.variant", "config.seed", "config.learner.seed")
"""Settings that only say which run it is."""


@dataclass(frozen=True)
class Setting:
    """Something that the records of the two sides state differently."""

    name: str
    """Its place in `run.json`: `config.iterations`."""
    a: str
    """As JSON; all values where the runs of a side differ."""
    b: str


def open_sides(a: str, b: str, suite: Path, results: Path) -> tuple[Side, Side]:
    """A and B by what they were asked for.

    Each is a folder of one run or of a suite's runs, a glob of run folders, the name of a suite that has runs,
    or a variant of which `suite` has runs. Raises `RecordError` where it is none of these, where a record cannot be
    read, and where a run or a copy of it is on both sides.
    """
    sides = _open(a, suite, results), _open(b, suite, results)
    known = {read(run.folder / "run.json"): run.folder for run in sides[0].suite.runs}
    for run in sides[1].suite.runs:
        twin = known.get(read(run.folder / "run.json"))
        if twin is not None:
            same = twin.resolve() == run.folder.resolve()
            said = "is on both sides" if same else f"is a copy of {twin}"
            raise RecordError(f"{run.folder} {said}; a run is not compared with itself")
    return sides


def _open(asked: str, suite: Path, results: Path) -> Side:
    if asked and Path(asked).is_dir():
        return Side(_shown(asked), _of_folder(Path(asked)))
    if glob.has_magic(asked):
        found = [path for path in map(Path, sorted(glob.glob(asked))) if path.is_dir()]
        if not any((path / "run.json").exists() for path in found):
            raise RecordError(f"{asked}: no run folder is named so; expected a glob of folders with run.json")
        return Side(_shown(asked), load_runs(found[0].parent.name, found))
    if asked and (named := records_of(results, asked)) is not None:
        return Side(asked, load_runs(asked, run_folders(named)))
    return _of_variant(asked, suite)


def _of_folder(folder: Path) -> Suite:
    """One run, or all of a suite; those of a published one are in `runs`."""
    if (folder / "run.json").exists():
        return load_runs(folder.parent.name, [folder])
    return load_runs(folder.name, run_folders(folder / RUNS if (folder / RUNS).is_dir() else folder))


def _of_variant(variant: str, suite: Path) -> Side:
    places = [path for path in run_folders(suite) if (path / "run.json").exists()] if suite.is_dir() else []
    infos = {place: load_info(place) for place in places}
    chosen = [place for place, info in infos.items() if info.variant == variant]
    if not chosen:
        known = ", ".join(sorted({info.variant for info in infos.values()})) or "none"
        raise RecordError(
            f"{variant!r} is no folder, no suite with runs and no variant in {suite}, which has: {known}; "
            "expected a variant, a suite, a folder of runs or a glob of run folders"
        )
    return Side(f"{infos[chosen[0]].suite} {variant}", load_runs(suite.name, chosen))


def _shown(asked: str) -> str:
    """A path as it may be published: one from the root says where on a machine it lies, and is cut."""
    path = Path(asked)
    return str(Path(*path.parts[-SHOWN_PARTS:]) if path.is_absolute() else path)


def task_types(sides: Sequence[Side]) -> dict[str, str]:
    """Task -> type: the benchmark's types, else what the episodes say, such as a product's category.

    Raises `RecordError` where two runs disagree.
    """
    if sides[0].suite.columns.types:
        return join_types((Path(side.name), side.suite.task_types) for side in sides)
    return join_types(
        (path, {row.task_id: row.task_type})
        for side in sides
        for run in side.suite.runs
        for path in [run.folder / "eval.jsonl"]
        for row in evaluated_rows(path, run.info.panels[EVALUATED_SPLIT])
        if row.task_type not in UNKNOWN
    )


def differing_settings(found: Comparison) -> tuple[Setting, ...]:
    """What the compared runs of the two sides were made with that is not the same."""
    records = [[_settings(run) for run in side] for side in found.compared]
    return tuple(each for each in _differing("", *records) if each.name not in OF_THE_RUN)


def _settings(run: Run) -> dict[str, Any]:
    record = json.loads(read(run.folder / "run.json"))
    return {name: record[name] for name in SETTINGS if name in record}


def _differing(name: str, a: Sequence[Any], b: Sequence[Any]) -> Iterator[Setting]:
    """`a` and `b`: the value in each run of a side, `NOT_STATED` where it is absent."""
    if all(isinstance(value, dict) for value in (*a, *b)):
        for key in sorted({key for value in (*a, *b) for key in value}):
            under = f"{name}.{key}" if name else key
            yield from _differing(under, *([value.get(key, NOT_STATED) for value in side] for side in (a, b)))
    elif (first := _values(a)) != (second := _values(b)):
        yield Setting(name, _cut(first), _cut(second))


def _values(found: Sequence[Any]) -> str:
    texts = {
        value if value == NOT_STATED else json.dumps(value, sort_keys=True, ensure_ascii=False)
        for value in found
    }
    return ", ".join(sorted(texts))


def _cut(text: str) -> str:
    """Short enough to read: of a hash, twelve digits."""
    short = _HASH.sub(lambda found: found[0][:12], text)
    return short if len(short) <= SHOWN_CHARACTERS else f"{short[: SHOWN_CHARACTERS - 1]}…"
