"""Where records and reports lie in a folder of results."""

from __future__ import annotations

from pathlib import Path

RUNS, PUBLISHED = "runs", "published"
COMPARISONS = "compare"
"""Below `published`, beside the reports of suites."""


def published(results: Path, name: str) -> Path:
    """The folder of a suite's report."""
    return results / PUBLISHED / name


def suites_with_runs(results: Path) -> tuple[Path, ...]:
    """The suite folders below `runs` that hold a run, by name."""
    runs = results / RUNS
    return tuple(sorted(filter(holds_runs, runs.iterdir()))) if runs.is_dir() else ()


def records_of(results: Path, name: str) -> Path | None:
    """The folder of a suite's runs: those made here, else those published with its report; None without either."""
    places = (results / RUNS / name, published(results, name) / RUNS)
    return next(filter(holds_runs, places), None)


def holds_runs(folder: Path) -> bool:
    """Whether any sub-folder says that it is a run."""
    return next(folder.glob("*/run.json"), None) is not None
