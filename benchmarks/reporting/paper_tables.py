"""Our sampled results beside the paper's, and what EMPG added in each."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.reporting.cells import MISSING, mean_cell, points
from benchmarks.reporting.load import Suite
from benchmarks.reporting.outcomes import ADDITIONS, EXPERT, LABELS, WARM_START, ArmRow, Comparison, label
from benchmarks.reporting.paper import TABLES, PaperRow
from benchmarks.reporting.tables import Table


def paper_table(
    rows: Sequence[ArmRow], found: Sequence[Comparison], paper: Sequence[PaperRow], size: str, suite: Suite
) -> Table:
    """A row per method with the sources side by side; with task types, a row per method and source."""
    columns, printed = suite.columns, TABLES[suite.columns.paper_table]
    lines = _lines(rows, found, paper, suite)
    sources = (f"ours ({size})", *(f"paper ({base.removesuffix('-Instruct')})" for base in printed.bases))
    if columns.types:
        header = ("method, source", *(part.heading for part in columns.parts.values()), "All")
        body = [
            (f"{name}, {source}", *cells)
            for name, of_source in lines
            for source, cells in zip(sources, of_source, strict=True)
            if any(cell != MISSING for cell in cells) or source == sources[0]
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
            f"Ours: sampled at temperature 1{on}. The paper: {printed.name}, {printed.says}; it does not say "
            f"{columns.not_stated}. The levels are not comparable: model, data and training length differ.{gains}"
        ),
        wide=bool(columns.types),
    )


def _lines(
    rows: Sequence[ArmRow], found: Sequence[Comparison], paper: Sequence[PaperRow], suite: Suite
) -> list[tuple[str, list[list[str]]]]:
    """(name, cells of each source), for every method and then for what was added to one; ours is the first source."""
    columns, printed = suite.columns, TABLES[suite.columns.paper_table]
    shown = [*columns.parts, *columns.measures]
    ours = {row.variant: row for row in rows if row.variant not in (WARM_START, EXPERT)}
    theirs = {(row.base, row.method): row.numbers for row in paper}
    methods = [name for name in LABELS if name in ours or name in printed.methods]
    lines = []
    for method in methods:
        own = ours.get(method)
        cells = [[MISSING if own is None else mean_cell(own.measures["sampled", name]) for name in shown]]
        for base in printed.bases:
            numbers = theirs.get((base, method), {})
            cells.append([numbers[name].cell if name in numbers else MISSING for name in shown])
        lines.append((label(method), cells))
    differences = {(one.treated, one.reference): one.by_mode.get("sampled") for one in found}
    for method, (plain, _, change) in ((name, name.partition("+")) for name in methods if "+" in name):
        gain = differences.get((method, plain))
        cells = [[points(None if gain is None else gain.estimate(name)) for name in shown]]
        for base in printed.bases:
            more, less = theirs.get((base, method), {}), theirs.get((base, plain), {})
            both = more.keys() & less.keys()
            cells.append(
                [f"{more[name].mean - less[name].mean:+.1f}" if name in both else MISSING for name in shown]
            )
        lines.append((f"{ADDITIONS[change]} adds to {label(plain)}", cells))
    return lines
