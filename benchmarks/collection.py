"""Collections: several suites, each at a scale and with a model, that make up a table of the paper.

A suite by itself is a collection of one part, so commands need not tell the two apart.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from benchmarks.config import Suite, load_suite, suite_names
from benchmarks.overrides import NOTHING, Overrides, model_name
from benchmarks.plan import suite_folder
from benchmarks.reporting.places import holds_runs
from benchmarks.strict import ConfigError, Strict, validate

COLLECTIONS = Path(__file__).parent / "collections"


class PartSettings(Strict):
    """A suite of a collection."""

    suite: str
    """Its name, or a TOML file, seen from the collection's own folder."""
    scale: str = "default"
    model: str | None = None
    """As in `[policy]`; None: the suite's own."""


class _CollectionFile(Strict):
    """A collection's file."""

    title: str
    seeds: int = Field(default=1, ge=1)
    """How many seeds are run unless the command line says another number."""
    table: Literal["table1", "table2"] | None = None
    """The joint table that is written when all parts are complete."""
    parts: tuple[PartSettings, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Part:
    """A suite that is ready to be run or planned."""

    suite: Suite
    source: str
    """The suite as a command line names it."""
    data: Path | None


@dataclass(frozen=True)
class Collection:
    """One suite, or several."""

    name: str
    title: str
    seeds: int
    table: Literal["table1", "table2"] | None
    parts: tuple[Part, ...]


def collection_names() -> tuple[str, ...]:
    """The collections that come with the package."""
    return tuple(sorted(path.stem for path in COLLECTIONS.glob("*.toml")))


def open_collection(
    name: str, scale: str = "default", data: Path | None = None, overrides: Overrides = NOTHING
) -> Collection:
    """A collection or a suite, by its name or as the path of a TOML file, with all its suites checked.

    scale: of all parts; `default` leaves each part its own. data: a suite's official files; for a collection the folder
    that holds such a folder for each benchmark, by its name. Overrides apply to every part; those that become alike
    are one.

    Raises `ConfigError`: no such name, an unknown key, or whatever is wrong with a suite of it.
    """
    table = _read(name)
    if table is None:
        suite = load_suite(name, scale, official=data is not None, overrides=overrides)
        return Collection(suite.name, suite.title, 1, None, (Part(suite, name, data),))
    stem = Path(name).stem
    file = validate(_CollectionFile, table, stem)
    wanted = dict.fromkeys(
        (
            _source(one.suite, name),
            one.scale if scale == "default" else scale,
            overrides if overrides.model is not None else replace(overrides, model=one.model),
        )
        for one in file.parts
    )
    parts = []
    for source, at, changes in wanted:
        suite = load_suite(source, at, official=data is not None, overrides=changes)
        parts.append(Part(suite, source, None if data is None else data / suite.benchmark))
    return Collection(stem, file.title, file.seeds, file.table, tuple(parts))


def _read(name: str) -> dict[str, Any] | None:
    """The file of a collection; None if the name is that of a suite."""
    path = Path(name) if name.endswith(".toml") else COLLECTIONS / f"{name}.toml"
    if not path.is_file():
        if name.endswith(".toml") or name in suite_names():
            return None  # whoever reads the suite says what is wrong with its path
        known = ", ".join((*suite_names(), *collection_names()))
        raise ConfigError(f"no suite {name!r}, expected one of: {known}, or a .toml file")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    return table if "parts" in table else None


def _source(suite: str, collection: str) -> str:
    """A suite's file is named from the folder of the collection that names it."""
    return str(Path(collection).parent / suite) if suite.endswith(".toml") else suite


def runs_of_models(
    name: str, suites: tuple[str, str], results: Path
) -> dict[str, tuple[str | None, str | None]]:
    """For each model of a collection the folders of the two suites' runs, on official data first; None without any."""
    found: dict[str, dict[str, str]] = {}
    for part in open_collection(name).parts:
        model = part.suite.base.policy.model
        folder = suite_folder(part.suite, None, results)
        on_data = sorted(folder.parent.glob(f"{folder.name}-*"))
        place = next(filter(holds_runs, [*on_data, folder]), None)
        if place is not None:
            found.setdefault(model_name(model or "warm start"), {})[part.suite.name] = place.name
    return {model: (given.get(suites[0]), given.get(suites[1])) for model, given in found.items()}
