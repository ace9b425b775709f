"""A comparison as files and on a terminal. The same records give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from benchmarks.records import safe_name
from benchmarks.reporting import compare_words as words
from benchmarks.reporting import tables
from benchmarks.reporting.compare import Comparison, Side, check_sides, compare
from benchmarks.reporting.compare_figure import learning_chart
from benchmarks.reporting.compare_sides import Setting, differing_settings, task_types
from benchmarks.reporting.compare_tables import difference_table, flip_table, main_csv, task_csv, type_table
from benchmarks.reporting.figures.style import Chart
from benchmarks.reporting.files import write_report_files
from benchmarks.reporting.provenance import provenance
from benchmarks.reporting.tables import Table, markdown_escape, one_line

NAME_CHARACTERS = 60


@dataclass(frozen=True)
class Section:
    """Sentences under a heading; they may hold foreign text."""

    heading: str
    sentences: tuple[str, ...]


def write_comparison(a: Side, b: Side, folder: Path, console: Console | None = None) -> Comparison:
    """Compare two sides, write what was found into `folder`, and print it.

    Raises `RecordError` when a record is unreadable or the sides cannot be compared; nothing is written then.
    """
    check_sides(a, b)
    found = compare(a, b, task_types((a, b)))
    settings = differing_settings(found)
    write_report_files(folder, contents(found, settings))
    if console is not None:
        _show(console, found, settings)
    return found


def compared_name(a: Side, b: Side) -> str:
    """A folder for the two: nothing that a shell, a path or a terminal could read as more than a name."""
    return f"{_safe(a.name)}-vs-{_safe(b.name)}"


def _safe(name: str) -> str:
    return safe_name(name, NAME_CHARACTERS) or "side"


def contents(found: Comparison, settings: Sequence[Setting]) -> Mapping[str, bytes]:
    """The files of a comparison, by name; without a trained run there are no learning curves."""
    chart = learning_chart(found)
    return {
        "compare.md": _markdown(found, settings, chart).encode(),
        "compare.csv": main_csv(found).encode(),
        "tasks.csv": task_csv(found).encode(),
        **({} if chart is None else chart.files()),
    }


def _sections(found: Comparison, settings: Sequence[Setting]) -> list[Section]:
    """In the order in which they are read; without those that have nothing to say."""
    sections = [
        Section("A and B", tuple(words.sides(found))),
        Section("Is B different from A?", tuple(words.verdicts(found))),
        Section("Tasks that changed hands", tuple(words.flips(*each) for each in found.outcomes)),
        Section("To bear in mind", tuple(words.cautions(found, settings))),
        Section("What else the records of A and B state differently", tuple(map(_setting, settings))),
    ]
    return [section for section in sections if section.sentences]


def _setting(setting: Setting) -> str:
    return f"{setting.name}: {setting.a} in A, {setting.b} in B"


def _tables(found: Comparison) -> list[Table]:
    by_type = [type_table(pair) for pair in found.pairs]
    changed = [flip_table(*each) for each in found.outcomes]
    return [difference_table(found), *(table for table in (*by_type, *changed) if table is not None)]


def _facts(found: Comparison) -> dict[str, str]:
    """Where the numbers come from: once where both sides say the same."""
    a, b = provenance(found.a.suite), provenance(found.b.suite)
    return {
        name: a[name] if a.get(name) == b.get(name) else f"A: {a.get(name, 'none')}; B: {b.get(name, 'none')}"
        for name in dict.fromkeys((*a, *b))
    }


def _markdown(found: Comparison, settings: Sequence[Setting], chart: Chart | None) -> str:
    parts = [f"# B against A: {markdown_escape(found.b.name)} against {markdown_escape(found.a.name)}\n"]
    for section in _sections(found, settings):
        listed = "\n".join(f"- {markdown_escape(sentence)}" for sentence in section.sentences)
        parts.append(f"## {section.heading}\n\n{listed}\n")
    if chart is not None:
        parts.append(
            f"## {chart.title}\n\n![{chart.title}]({chart.name}.png)\n\n{markdown_escape(chart.note)}\n"
        )
    parts.append(tables.to_markdown(_tables(found), _facts(found)))
    return "\n".join(parts)


def _show(console: Console, found: Comparison, settings: Sequence[Setting]) -> None:
    """The same on a terminal; `Text` keeps foreign text from being read as markup."""
    for section in _sections(found, settings):
        console.print(Text(section.heading, style="bold"))
        for sentence in section.sentences:
            console.print(Text(f"- {one_line(sentence)}"), soft_wrap=True)
        console.print()
    tables.print_tables(console, _tables(found), _facts(found))
