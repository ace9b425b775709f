"""Tables as text: built once as plain cells, then shown on a terminal, in Markdown and as CSV.

Whatever an environment, a model or a configuration wrote is quoted on the way out: control characters are
spelled out, and characters that Markdown would act on are escaped.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from benchmarks.launch import printable

VERDICT = "success difference is"
NAME_WIDTH = 11
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


@dataclass(frozen=True)
class Table:
    """Cells as strings; only the first column, which names the row, and headings may hold foreign text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    """What the numbers mean: unit, n, how the interval was made; after a blank line each, its footnotes."""
    wide: bool = False
    """Whether a terminal may show the columns in blocks, each with the first column."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"a row of {len(row)} cells in a table of {len(self.columns)} columns: {row}"
                )


def markdown_escape(text: str) -> str:
    """Foreign text as Markdown shows it literally, on one line."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def one_line(text: str) -> str:
    """Foreign text without line breaks and control characters."""
    return printable(" ".join(text.split()))


def paragraphs(note: str) -> list[str]:
    """A note and its footnotes, each on one line."""
    return [one_line(each) for each in note.split("\n\n") if each.strip()]


def to_markdown(tables: Iterable[Table], facts: Mapping[str, str]) -> str:
    """A document: each table with its note, then the facts about where the numbers come from."""
    parts = []
    for table in tables:
        rows = [(markdown_escape(name), *cells) for name, *cells in table.rows]
        lines = [
            _line(tuple(map(markdown_escape, table.columns))),
            "|" + "---|" * len(table.columns),
            *map(_line, rows),
        ]
        note = "\n\n".join(map(markdown_escape, paragraphs(table.note)))
        parts.append(f"## {markdown_escape(table.title)}\n\n" + "\n".join(lines) + f"\n\n{note}\n")
    if facts:
        listed = "\n".join(f"- {name}: {markdown_escape(value)}" for name, value in facts.items())
        parts.append(f"## Where these numbers come from\n\n{listed}\n")
    return "\n".join(parts)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def print_tables(console: Console, tables: Iterable[Table], facts: Mapping[str, str]) -> None:
    """The same on a terminal; `Text` keeps foreign text from being read as markup."""
    for table in tables:
        console.print(Text(one_line(table.title), style="bold"))
        blocks = _blocks(table, console.width) if table.wide else [range(1, len(table.columns))]
        for number, block in enumerate(blocks):
            if number:
                console.print()
            console.print(_on_terminal(table, block))
        for note in paragraphs(table.note):
            console.print(Text(note, style="dim"))
        console.print()
    for name, value in facts.items():
        console.print(Text(f"{name}: {one_line(value)}"), soft_wrap=True)


def _on_terminal(table: Table, places: Sequence[int]) -> RichTable:
    """The first column and those at the given places."""
    shown = RichTable(box=SIMPLE_HEAD, show_edge=False, padding=0)
    for place in (0, *places):
        first, name = place == 0, table.columns[place]
        shown.add_column(
            Text(_heading_lines(name)),
            justify="left" if first else "right",
            vertical="bottom",
            no_wrap=not first and name != VERDICT,
            overflow="fold",
            min_width=NAME_WIDTH if first or name == VERDICT else None,
        )
    for row in table.rows:
        cells = (Text(_cell_lines(row[place], table.wide)) for place in places)
        shown.add_row(Text(one_line(row[0])), *cells)
    return shown


def _blocks(table: Table, width: int) -> list[list[int]]:
    """Places of columns that fit beside the first one, block by block; a column wider than that stands alone."""
    blocks: list[list[int]] = []
    left = 0
    for place in range(1, len(table.columns)):
        texts = [_heading_lines(table.columns[place])]
        texts += [_cell_lines(row[place], wide=True) for row in table.rows]
        needed = 1 + max(len(line) for text in texts for line in text.split("\n"))
        if not blocks or needed > left:
            blocks.append([])
            left = width - max(NAME_WIDTH, *(len(word) for row in table.rows for word in row[0].split()))
        blocks[-1].append(place)
        left -= needed
    return blocks


def _heading_lines(name: str) -> str:
    return one_line(name).replace(" ", "\n").replace("-", "-\n")


def _cell_lines(cell: str, wide: bool) -> str:
    """The interval goes below its estimate, so that the table fits a narrow terminal; in a wide table the spread does
    where there is no interval, and remarks do.
    """
    lines = one_line(cell).replace(" [", "\n[")
    if not wide:
        return lines
    return (lines if "[" in lines else lines.replace(" ±", "\n±")).replace(" (", "\n(")


def csv_text(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """CSV with Unix line ends, the same bytes everywhere."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    return out.getvalue()
