"""Our sampled results beside the paper's, and what EMPG added in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.reporting.cells import MISSING, mean_cell, points
from benchmarks.reporting.load import Suite
from benchmarks.reporting.outcomes import ADDITIONS, UNTRAINED, ArmRow, Comparison, in_order, label
from benchmarks.reporting.paper import TABLES, PaperRow, footnotes, marks_of, source
from benchmarks.reporting.tables import Table

ADDS = "adds to"


@dataclass(frozen=True)
class _Cells:
    """What one source says of a method."""

    cells: list[str]
    mark: str = ""
    """Of a remark on all of them."""


@dataclass(frozen=True)
class _Line:
    """A method, or what was added to one, by source; ours is the first."""

    name: str
    sources: list[_Cells]


def paper_table(
    rows: Sequence[ArmRow], found: Sequence[Comparison], paper: Sequence[PaperRow], size: str, suite: Suite
) -> Table:
    """A row per method with the sources side by side; with task types, a row per method and source."""
    columns, printed = suite.columns, TABLES[suite.columns.paper_table]
    marks = marks_of(paper)
    lines = _lines(rows, found, paper, suite, marks)
    sources = (f"ours ({size})", *map(source, printed.bases))
    if columns.types:
        header = ("method, source", *(part.heading for part in columns.parts.values()), "All")
        body = [
            (f"{line.name}, {origin}{one.mark}", *one.cells)
            for line in lines
            for origin, one in zip(sources, line.sources, strict=True)
            if any(cell != MISSING for cell in one.cells) or origin == sources[0]
        ]
    else:
        header = ("method", *(f"{origin}: {what}" for origin in sources for what in columns.measures))
        body = [
            (line.name, *(cell + one.mark for one in line.sources for cell in one.cells)) for line in lines
        ]
    on = f" on {suite.panel}" if columns.splits else ""
    gains = (
        " The interval of what EMPG adds on all tasks is in the table of differences."
        if columns.types and any(ADDS in line.name for line in lines)
        else ""
    )
    return Table(
        title=f"Beside the paper's {columns.title} results (%); mind the model sizes",
        columns=header,
        rows=tuple(body),
        note=(
            f"Ours: sampled at temperature 1{on}. The paper: {printed.name}, {printed.says}; it does not say "
            f"{columns.not_stated}. The levels are not comparable: model, data and training length differ.{gains}"
            f"{footnotes(marks)}"
        ),
        wide=bool(columns.types),
    )


def _lines(
    rows: Sequence[ArmRow],
    found: Sequence[Comparison],
    paper: Sequence[PaperRow],
    suite: Suite,
    marks: Mapping[str, str],
) -> list[_Line]:
    """Every method, then what was added to one."""
    columns, printed = suite.columns, TABLES[suite.columns.paper_table]
    shown = [*columns.parts, *columns.measures]
    ours = {row.variant: row for row in rows if row.variant not in UNTRAINED}
    theirs = {(row.base, row.method): row for row in paper}
    methods = in_order((*(row.method for row in paper), *ours))
    lines = []
    for method in methods:
        own = ours.get(method)
        cells = [MISSING if own is None else mean_cell(own.measures["sampled", name]) for name in shown]
        beside = [_printed(theirs.get((base, method)), shown, marks) for base in printed.bases]
        lines.append(_Line(label(method), [_Cells(cells), *beside]))
    differences = {(one.treated, one.reference): one.by_mode.get("sampled") for one in found}
    for method, (plain, _, change) in ((name, name.partition("+")) for name in methods if "+" in name):
        if plain not in methods or change not in ADDITIONS:
            continue
        gain = differences.get((method, plain))
        cells = [points(None if gain is None else gain.estimate(name)) for name in shown]
        beside = [
            _gains(theirs.get((base, method)), theirs.get((base, plain)), shown, marks)
            for base in printed.bases
        ]
        lines.append(_Line(f"{ADDITIONS[change]} {ADDS} {label(plain)}", [_Cells(cells), *beside]))
    return lines


def _printed(row: PaperRow | None, shown: Sequence[str], marks: Mapping[str, str]) -> _Cells:
    """The numbers of a row of the paper, each marked where something is wrong with it."""
    if row is None:
        return _Cells([MISSING] * len(shown))
    found = row.marked(marks)
    return _Cells([found.get(name, MISSING) for name in shown], marks[row.remark])


def _gains(
    more: PaperRow | None, less: PaperRow | None, shown: Sequence[str], marks: Mapping[str, str]
) -> _Cells:
    """The paper's means of one row minus those of another; a mark of either stays."""
    if more is None or less is None:
        return _Cells([MISSING] * len(shown))
    found = {}
    for name in more.numbers.keys() & less.numbers.keys():
        one, other = more.numbers[name], less.numbers[name]
        mark = "".join(dict.fromkeys((marks[one.remark], marks[other.remark])))
        found[name] = f"{one.mean - other.mean:+z.1f}{mark}"
    return _Cells([found.get(name, MISSING) for name in shown])
