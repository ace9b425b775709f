"""From a suite to named runs: the names come from what differs, so equal names mean equal experiments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.config import ConfigError, RunConfig, Suite
from benchmarks.overrides import NOTHING, Overrides
from benchmarks.records import safe_name


@dataclass(frozen=True)
class Run:
    """One run to be made: its name, its place on disk and everything that decides its numbers."""

    name: str
    suite: str
    """Name of the suite's folder, which tells scale and data apart."""
    scale: str
    folder: Path
    config: RunConfig
    data: Path | None
    """Folder of official files; None for generated data."""
    variants: tuple[str, ...] = ()
    """All variants of the suite, for the rows of its table."""
    overrides: Overrides = NOTHING
    """What its own process must be told, beside suite and scale."""


def plan(suite: Suite, seeds: Sequence[int], data: Path | None, results: Path) -> tuple[Run, ...]:
    """Every run of a suite: the baselines and the demonstrator, then the variants for each seed.

    Raises `ConfigError` for repeated or negative seeds, and for variants whose folders would have the same name.
    """
    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 0:
        raise ConfigError(f"seeds must be different numbers from 0 up, got {list(seeds)}")
    runs = [_run(suite, data, results, baseline, None) for baseline in (*suite.baselines, EXPERT)]
    runs += [_run(suite, data, results, variant, seed) for seed in seeds for variant in suite.variants]
    if len({run.name for run in runs}) < len(runs):
        raise ConfigError(
            f"{suite.name}.variants: two of {', '.join(suite.variants)} would share a folder, "
            "expected names that differ in letters or digits"
        )
    return tuple(runs)


def find(suite: Suite, name: str, data: Path | None, results: Path) -> Run:
    """The run of that name; raises `ConfigError` with the names there are."""
    seed = re.fullmatch(r".*-s(\d+)", name)
    runs = plan(suite, [int(seed[1]) if seed else 0], data, results)
    for run in runs:
        if run.name == name:
            return run
    raise ConfigError(
        f"no run {name!r} in {suite.name}, expected one of: {', '.join(run.name for run in runs)}"
    )


def suite_folder(suite: Suite, data: Path | None, results: Path) -> Path:
    """Where a suite's runs and its report lie: `webshop`, `webshop-smoke`, `webshop-<model>-<data folder>`."""
    parts = [suite.name, *suite.told]
    if suite.scale != "default":
        parts.append(suite.scale)
    if data is not None:
        parts.append(_safe(data.resolve().name))
    return results / "runs" / "-".join(parts)


EXPERT = "expert"
UNTRAINED = {"warm-start": "warm_start", "zero-shot": "base", "few-shot": "base", EXPERT: "expert"}
"""Runs that only evaluate, with their kinds: where training begins, and the ceiling."""


def _run(suite: Suite, data: Path | None, results: Path, variant: str, seed: int | None) -> Run:
    folder = suite_folder(suite, data, results)
    parts = [suite.benchmark, _safe(variant)] + ([] if seed is None else [f"s{seed}"])
    name = "-".join(parts)
    changes: dict[str, Any] = {"kind": UNTRAINED.get(variant, "train"), "variant": variant, "seed": seed or 0}
    if variant in suite.learners:
        learner = replace(suite.learners[variant], seed=changes["seed"])
        changes |= {"iterations": suite.iterations, "learner": learner}
    if variant in suite.baselines:
        changes["rollout"] = suite.baselines[variant]
    config = suite.base.model_copy(update=changes)
    return Run(name, folder.name, suite.scale, folder / name, config, data, suite.variants, suite.overrides)


def _safe(name: str) -> str:
    return safe_name(name) or "data"
