"""One suite folder in, its tables, figures, their data and the page out. The same records give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from rich.console import Console

from benchmarks.reporting import cost, figures, long_form, main_tables, page, paper, paper_tables, tables
from benchmarks.reporting.files import write_report_files, written_before
from benchmarks.reporting.latex import to_latex
from benchmarks.reporting.load import Suite, load_suite
from benchmarks.reporting.outcomes import (
    ArmRow,
    Comparison,
    all_variants,
    arm_row,
    comparisons,
)
from benchmarks.reporting.provenance import provenance

IMAGES = (".png", ".svg")


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
    suite_folder: Path,
    folder: Path,
    console: Console | None = None,
    *,
    planned_seeds: Sequence[int] | None = None,
) -> Report:
    """Write the report of the runs in `suite_folder` into `folder`, whose name they take, and print its tables.

    `planned_seeds`: which seeds every trained variant should have; by default all that any was started with.
    Raises `RecordError` when a record is unreadable or the runs cannot be compared; nothing is written then.
    """
    suite = replace(load_suite(suite_folder, planned_seeds), name=folder.name)
    drawn = figures.build(suite)
    kept = _undrawable(suite, folder, drawn)
    rows = tuple(arm_row(suite, variant) for variant in all_variants(suite))
    found = comparisons(suite)
    facts = provenance(suite)
    if kept:
        facts["figures"] = (
            f"{', '.join(_names(kept))} as drawn before: the step tables are not with these records"
        )
    shown, data = _tables(suite, rows, found, facts)
    images = {**drawn, **{name: (folder / name).read_bytes() for name in kept}}
    lens = _unrecorded(suite, folder)
    written = write_report_files(
        folder,
        {**_texts(shown, facts), **data, **drawn},
        streamed=(
            (name, content) for name, content in page.build(suite, shown, images, facts) if name not in lens
        ),
        keep=[*kept, *lens],
    )
    if console is not None:
        tables.print_tables(console, shown, facts)
    return Report(folder, written, rows, found, facts)


def write_figures(suite_folder: Path, folder: Path) -> tuple[Path, ...]:
    """The figures of a report alone; its other files stay. Raises `RecordError` as `write_report` does."""
    suite = replace(load_suite(suite_folder), name=folder.name)
    drawn = figures.build(suite)
    keep = written_before(folder) - set(_earlier_figures(folder, drawn))
    return write_report_files(folder, drawn, keep={*keep, *_undrawable(suite, folder, drawn)})


def _tables(
    suite: Suite, rows: Sequence[ArmRow], found: Sequence[Comparison], facts: Mapping[str, str]
) -> tuple[list[tables.Table], dict[str, bytes]]:
    """The tables, and their data as CSV by file name."""
    columns, own = suite.columns, [row for row in rows if row.variant not in suite.served]
    papers = paper.rows_of(columns) if suite.runs and columns.paper else ()
    size = suite.model_size
    shown = [main_tables.main_table(rows, suite), main_tables.difference_table(found, columns)]
    if papers:
        shown.append(paper_tables.paper_table(own, found, papers, size, suite))
    shown.append(cost.cost_table(own, suite, facts["hardware"]))
    data = {
        "table.csv": long_form.main_csv(rows, papers, size),
        "differences.csv": long_form.difference_csv(found, columns),
        "cost.csv": cost.cost_csv(own, suite),
    }
    return shown, {name: text.encode() for name, text in data.items()}


def _texts(shown: Sequence[tables.Table], facts: Mapping[str, str]) -> dict[str, bytes]:
    """All tables as a page of Markdown and as LaTeX."""
    return {
        "table.md": tables.to_markdown(shown, facts).encode(),
        "table.tex": to_latex(shown).encode(),
    }


def _has_steps(suite: Suite) -> bool:
    """Published records come without step tables, which are large."""
    trained = [run for run in suite.runs if run.info.kind == "train"]
    return any(run.step_file.exists() for run in trained) or not trained


def _undrawable(suite: Suite, folder: Path, drawn: Mapping[str, bytes]) -> list[str]:
    """Files of an earlier report's figures that these records can neither draw nor rule out."""
    return [] if _has_steps(suite) else _earlier_figures(folder, drawn)


def _unrecorded(suite: Suite, folder: Path) -> frozenset[str]:
    """Files of an earlier report's credit lens, where these records come without the episodes that it shows."""
    return frozenset() if page.recorded(suite) else frozenset(filter(page.of_lens, written_before(folder)))


def _earlier_figures(folder: Path, drawn: Mapping[str, bytes]) -> list[str]:
    """Files of an earlier report's figures that are not drawn again."""
    before = written_before(folder) - drawn.keys()
    names = {PurePosixPath(name).stem for name in before if name.endswith(IMAGES)}
    return sorted(name for name in before if PurePosixPath(name).stem in names)


def _names(files: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(PurePosixPath(name).stem for name in files))
