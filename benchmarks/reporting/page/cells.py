"""Table cells as the page shows and sorts them: an estimate, what stands behind it, and the number it sorts by."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from benchmarks.reporting.cells import MISSING
from benchmarks.reporting.tables import Table, one_line

_NUMBER = re.compile(
    r"\(?(?P<bound>[<>]?) *(?P<number>[+\-−]?\d[\d,]*(?:\.\d+)?)(?:/(?P<whole>\d[\d,]*))?"
    r"(?=$|[ %,;:)*†‡\u02b0-\u02b8\u1d2c-\u1d6a\u2070-\u207f])"  # superscripts mark footnotes
)
_DETAIL = re.compile(r" (?=[\[(±])")


@dataclass(frozen=True)
class Cell:
    """`41.5 [34.9, 48.4]` as its estimate `41.5`, its detail `[34.9, 48.4]` and its value 41.5."""

    text: str
    detail: str
    value: float | None
    """None for words and for what is missing."""

    @property
    def missing(self) -> bool:
        """Whether there is nothing to sort by: shown last in either direction."""
        return self.text in ("", MISSING)


@dataclass(frozen=True)
class Column:
    """A heading and whether its cells sort by value."""

    heading: str
    numeric: bool


@dataclass(frozen=True)
class Grid:
    """A table that can be sorted: `rows` hold a `Cell` for each of `columns`."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str


def grid(table: Table) -> Grid:
    """A table with the values that its cells sort by.

    A column is numeric if all its cells are numbers or missing; the first one names the rows and is text.
    """
    rows = tuple((_name(name), *map(_cell, cells)) for name, *cells in table.rows)
    columns = tuple(
        Column(one_line(heading), _numeric([row[place] for row in rows]))
        for place, heading in enumerate(table.columns)
    )
    return Grid(one_line(table.title), columns, rows, table.note)


def sort_value(cell: str) -> float | None:
    """The number that a cell begins with, or its share where it is a fraction such as `4/40`; None without one.

    A bound sorts beside its number: `< 0.001` just below 0.001.
    """
    found = _NUMBER.match(cell)
    if found is None:
        return None
    value = _number(found["number"])
    if found["whole"] is not None:
        whole = _number(found["whole"])
        return value / whole if whole else None
    if found["bound"]:
        return math.nextafter(value, -math.inf if found["bound"] == "<" else math.inf)
    return value


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def _name(text: str) -> Cell:
    return Cell(one_line(text), "", None)


def _cell(text: str) -> Cell:
    shown = one_line(text)
    estimate, *rest = _DETAIL.split(shown, maxsplit=1)
    return Cell(estimate, "".join(rest), sort_value(shown))


def _numeric(cells: list[Cell]) -> bool:
    there = [cell for cell in cells if not cell.missing]
    return bool(there) and all(cell.value is not None for cell in there)
