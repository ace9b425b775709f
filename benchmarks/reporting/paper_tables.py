"""Our sampled results beside the paper's, and what EMPG added in each."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.reporting.cells import MISSING, mean_cell, points
from benchmarks.reporting.columns import Columns, of_type
from benchmarks.reporting.load import Suite
from benchmarks.reporting.outcomes import ArmRow, Comparison, label
from benchmarks.reporting.paper import BASES, METHODS, PaperRow
from benchmarks.reporting.tables import Table

BASE_METHODS = ("grpo", "dapo")


def paper_table(
    rows: Sequence[ArmRow], found: Sequence[Comparison], paper: Sequence[PaperRow], size: str, suite: Suite
) -> Table:
    """A row per method with the sources side by side; with task types, a row per method and source."""
    columns = suite.columns
    lines = _lines(rows, found, paper, columns)
    sources = (f"ours ({size})", *(f"paper ({base.removesuffix('-Instruct')})" for base in BASES))
    if columns.types:
        header = ("method, source", *columns.types.values(), "All")
        body = [
            (f"{name}, {source}", *cells)
            for name, of_source in lines
            for source, cells in zip(sources, of_source, strict=True)
        ]
    else:
        header = ("method", *(f"{source}: {what}" for source in sources for what in columns.measures))
        body = [(name, *(cell for cells in of_source for cell in cells)) for name, of_source in lines]
    on = f" on {suite.panel}" if columns.splits else ""
    gains = (
        " The interval of what EMPG adds on all tasks is in the table of differences."
        if columns.types
        else ""
    )
    return Table(
        title=f"Beside the paper's {columns.title} results (%); mind the model sizes",
        columns=header,
        rows=tuple(body),
        note=(
            f"Ours: sampled at temperature 1{on}. The paper: Table 1, mean ± std over 3 seeds; it does not say "
            f"{columns.not_stated}. The levels are not comparable: model, data and training length differ.{gains}"
        ),
        wide=bool(columns.types),
    )


def _lines(
    rows: Sequence[ArmRow], found: Sequence[Comparison], paper: Sequence[PaperRow], columns: Columns
) -> list[tuple[str, list[list[str]]]]:
    """(name, cells of each source), for every method and then for what EMPG adds; ours is the first source."""
    shown = [*map(of_type, columns.types), *columns.measures]
    ours = {row.variant: row for row in rows}
    theirs = {(row.base, row.method): row for row in paper}
    lines = []
    for method in METHODS:
        own = ours.get(method)
        cells = [[MISSING if own is None else mean_cell(own.measures["sampled", name]) for name in shown]]
        cells += [[theirs[base, method].numbers[name].cell for name in shown] for base in BASES]
        lines.append((label(method), cells))
    added = {(one.treated, one.reference): one.by_mode.get("sampled") for one in found}
    for method in BASE_METHODS:
        with_it = f"{method}+empg"
        gain = added.get((with_it, method))
        cells = [[points(None if gain is None else gain.estimate(name)) for name in shown]]
        for base in BASES:
            more, less = theirs[base, with_it].numbers, theirs[base, method].numbers
            cells.append([f"{more[name].mean - less[name].mean:+.1f}" for name in shown])
        lines.append((f"EMPG adds to {label(method)}", cells))
    return lines
