"""One suite folder in, its table, figures and their data out. The same records give the same bytes."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.reporting import figures, long_form, main_tables, paper, paper_tables, tables
from benchmarks.reporting.load import REPORT_FOLDER, Run, Suite, load_suite
from benchmarks.reporting.outcomes import ArmRow, Comparison, arm_row, comparisons, variants
from benchmarks.reporting.schema import EVALUATED_SPLIT

FILES = ("table.md", "table.csv", "differences.csv", *figures.FILES)
SHOWN_ERRORS = 5
_HASH = re.compile(r"[0-9a-f]{40,}")


@dataclass(frozen=True)
class Report:
    """What was found and where it was written."""

    folder: Path
    files: tuple[Path, ...]
    rows: tuple[ArmRow, ...]
    comparisons: tuple[Comparison, ...]
    facts: Mapping[str, str]
    """Where the numbers come from, and what is missing."""


def write_report(
    suite_folder: Path, console: Console | None = None, *, planned_seeds: Sequence[int] | None = None
) -> Report:
    """Write tables and figures of a suite into its `report` folder and print the tables.

    `planned_seeds`: which seeds every trained variant should have; by default all that any was started with.
    Raises `RecordError` when a record is unreadable or the runs cannot be compared; nothing is written then.
    """
    suite = load_suite(suite_folder, planned_seeds)
    rows = tuple(arm_row(suite, variant) for variant in variants(suite))
    found = comparisons(suite)
    facts = provenance(suite)
    columns = suite.columns
    papers = paper.rows_of(columns) if suite.runs and columns.paper else ()
    size = suite.model_size
    shown = [main_tables.main_table(rows, suite), main_tables.difference_table(found, columns)]
    if papers:
        shown.append(paper_tables.paper_table(rows, found, papers, size, suite))
    contents = {
        "table.md": tables.to_markdown(shown, facts).encode(),
        "table.csv": long_form.main_csv(rows, papers, size).encode(),
        "differences.csv": long_form.difference_csv(found, columns).encode(),
        **figures.build(suite),
    }
    folder = suite_folder / REPORT_FOLDER
    written = _write(folder, contents)
    if console is not None:
        tables.print_tables(console, shown, facts)
    return Report(folder, written, rows, found, facts)


def provenance(suite: Suite) -> dict[str, str]:
    """Model, data, panel, training length, code and machine, then what is missing or went wrong."""
    infos = [run.info for run in suite.runs] or list(suite.incomplete)
    panel = infos[0].panels.get(EVALUATED_SPLIT)
    trained = sorted({run.iterations for run in suite.runs if run.info.kind == "train"})
    facts = {
        "model": _distinct(_flat(info.policy) for info in infos if info.policy),
        "data": _flat(infos[0].world),
        "test panel": "none" if panel is None else f"{suite.panel}, sha256 {panel.digest[:12]}",
        "scale": infos[0].scale,
        "training": f"{', '.join(map(str, trained)) or 'no'} iterations; the last checkpoint is evaluated",
        "seeds": ", ".join(map(str, suite.planned_seeds)) or "none",
        "code": _distinct(
            f"commit {(info.commit or 'unknown')[:12]}{' with uncommitted changes' if info.dirty else ''}"
            for info in infos
        ),
        "hardware": _distinct(
            ", ".join(part for part in (_flat(info.device), _flat(info.machine)) if part) for info in infos
        ),
    }
    missing = [f"{info.run} (started, not complete)" for info in suite.incomplete]
    missing += [f"{name} (no run.json)" for name in suite.strangers]
    if missing:
        facts["left out"] = "; ".join(missing)
    if service := sum((Counter(run.service) for run in suite.runs), Counter[str]()):
        facts["servers"] = _flat(dict(service))
    if errors := _errors(suite.runs):
        facts["errors"] = errors
    return facts


def _errors(runs: Sequence[Run]) -> str:
    """The most frequent environment failures with their counts."""
    counted = Counter(
        error for run in runs for found in run.evaluations.values() for _, error in found.errors
    )
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{count} × {tables.one_line(error)[:200]}" for error, count in ranked[:SHOWN_ERRORS]]
    if len(ranked) > SHOWN_ERRORS:
        shown.append(f"{len(ranked) - SHOWN_ERRORS} further kinds")
    return "; ".join(shown)


def _distinct(values: Iterator[str]) -> str:
    return "; ".join(dict.fromkeys(values)) or "not recorded"


def _flat(value: Any, name: str = "") -> str:
    """A record's facts on one line: `products 1000, search.name bm25`; hashes are cut to twelve digits."""
    if isinstance(value, Mapping):
        parts = (_flat(value[key], f"{name}.{key}" if name else str(key)) for key in sorted(value))
        return ", ".join(part for part in parts if part)
    if value is None:
        return ""
    shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    if _HASH.fullmatch(shown):
        shown = shown[:12]
    return f"{name} {shown}".strip()


def _write(folder: Path, contents: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Each file whole or not at all; files of an earlier report that no longer apply are removed."""
    folder.mkdir(exist_ok=True)
    for name in FILES:
        if name not in contents:
            (folder / name).unlink(missing_ok=True)
    for name, content in contents.items():
        draft = folder / f".{name}.tmp"
        draft.write_bytes(content)
        os.replace(draft, folder / name)
    return tuple(folder / name for name in contents)
