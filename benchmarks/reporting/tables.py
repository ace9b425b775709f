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
from typing import get_args

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from benchmarks.launch import printable
from benchmarks.reporting.outcomes import SIGNIFICANCE, ArmRow, Comparison, Measure, What, label
from benchmarks.reporting.paper import BASES, METHODS, PaperRow
from benchmarks.reporting.stats import Interval

MISSING = "—"
VERDICT = "success difference is"
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


@dataclass(frozen=True)
class Table:
    """Cells as strings; the first column names the row and is the only one that may hold foreign text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    """What the numbers mean: unit, n, how the interval was made."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"a row of {len(row)} cells in a table of {len(self.columns)} columns: {row}"
                )


def percent(value: float) -> str:
    """`41.5`."""
    return f"{100 * value:.1f}"


def measure_cell(measure: Measure | None) -> str:
    """`41.5 [34.9, 48.4]`, with `± 2.1` after the mean when there is more than one seed."""
    if measure is None:
        return MISSING
    sd = "" if measure.spread.sd is None else f" ± {percent(measure.spread.sd)}"
    return f"{percent(measure.spread.mean)}{sd} {_bounds(measure.interval)}"


def difference_cell(interval: Interval | None) -> str:
    """`+2.6 [-1.0, +6.2]`, in percentage points."""
    if interval is None:
        return MISSING
    low, high = (f"{100 * bound:+.1f}" for bound in (interval.low, interval.high))
    return f"{100 * interval.estimate:+.1f} [{low}, {high}]"


def _bounds(interval: Interval) -> str:
    return f"[{percent(interval.low)}, {percent(interval.high)}]"


def seeds_cell(row: ArmRow) -> str:
    """`3/3`; `(2/3 seeds)` when some are missing; a single seed says `n=1`."""
    if row.seeds == 0:
        return MISSING if row.planned <= 1 else f"(0/{row.planned} seeds)"
    single = ", n=1" if row.seeds == 1 else ""
    if row.seeds < row.planned:
        return f"({row.seeds}/{row.planned} seeds{single})"
    return f"{row.seeds}/{max(row.planned, row.seeds)}{single}"


def main_table(rows: Sequence[ArmRow], benchmark: str) -> Table:
    """One row per variant: success and score with intervals, seeds, errors."""
    tasks = max(row.tasks for row in rows)
    return Table(
        title=f"{benchmark}: success and score on the pinned test panel (%)",
        columns=(
            "method",
            "success, sampled",
            "success, greedy",
            "score, sampled",
            "errored",
            "seeds",
        ),
        rows=tuple(_main_row(row) for row in rows),
        note=(
            f"Last checkpoint, {tasks} tasks. Sampled: temperature 1, no truncation of the distribution. "
            "Success: mean over seeds (± sd over seeds where there are several) and Wilson 95% interval; "
            "score: the same with a 95% bootstrap interval. Unit of both intervals: tasks. They do not cover "
            "the chance of training: one seed (n=1) says nothing about another. Errored episodes failed in "
            "the environment and are left out of every rate."
        ),
    )


def _main_row(row: ArmRow) -> tuple[str, ...]:
    shown: tuple[tuple[str, What], ...] = (
        ("sampled", "success"),
        ("greedy", "success"),
        ("sampled", "score"),
    )
    cells = [measure_cell(row.measures[key]) for key in shown]
    errored = f"{row.errored}/{row.episodes}" if row.episodes else MISSING
    return (row.label, *cells, errored, seeds_cell(row))


def difference_table(found: Sequence[Comparison]) -> Table:
    """One row per comparison and evaluation mode, with the verdict in words."""
    differences = [difference for comparison in found for difference in comparison.by_mode.values()]
    columns = ["comparison", "mode", "success", "score", "McNemar p", "tasks × seeds", VERDICT]
    rows = [list(row) for comparison in found for row in _difference_rows(comparison)]
    test, doubt = "McNemar: exact, two-sided, one pair of runs. ", f" or McNemar p ≥ {SIGNIFICANCE}"
    if all(difference.p_value is None for difference in differences):
        for row in (columns, *rows):
            del row[4]
        test = doubt = ""
    return Table(
        title="Differences on the same tasks (percentage points)",
        columns=tuple(columns),
        rows=tuple(tuple(row) for row in rows),
        note=(
            "95% intervals. One seed: paired bootstrap over tasks; it speaks about these two policies, not "
            "about the methods, and has no width where every task differs equally. Several seeds: Student t "
            "with tasks and training seeds as chance. "
            f"{test}Not significant: the interval contains 0{doubt}. "
            f"Not corrected for {len(differences)} comparisons."
        ),
    )


def _difference_rows(found: Comparison) -> list[tuple[str, ...]]:
    if not found.by_mode:
        return [(found.title, *[MISSING] * 6)]
    return [
        (
            found.title,
            mode,
            difference_cell(one.success),
            difference_cell(one.score),
            MISSING if one.p_value is None else f"{one.p_value:.3f}" if one.p_value >= 0.001 else "< 0.001",
            f"{one.success.n} × {len(one.seeds)}",
            one.verdict,
        )
        for mode, one in found.by_mode.items()
    ]


def paper_table(
    rows: Sequence[ArmRow], found: Sequence[Comparison], paper: Sequence[PaperRow], size: str
) -> Table:
    """Our sampled results beside the paper's, each with its model size; and what EMPG added in each."""
    ours = {row.variant: row for row in rows}
    added = {(one.treated, one.reference): one.by_mode.get("sampled") for one in found}
    theirs = {(row.base, row.method): row for row in paper}
    body = []
    for method in METHODS:
        cells = [_own_mean(ours.get(method), what) for what in get_args(What)]
        for base in BASES:
            row = theirs[base, method]
            cells += [f"{row.success:.1f} ± {row.success_std:.1f}", f"{row.score:.1f} ± {row.score_std:.1f}"]
        body.append((label(method), *cells))
    for base_method in ("grpo", "dapo"):
        difference = added.get((f"{base_method}+empg", base_method))
        cells = [MISSING] * 2
        if difference is not None:
            cells = [f"{100 * part.estimate:+.1f}" for part in (difference.success, difference.score)]
        for base in BASES:
            with_it, without = theirs[base, f"{base_method}+empg"], theirs[base, base_method]
            cells += [f"{with_it.success - without.success:+.1f}", f"{with_it.score - without.score:+.1f}"]
        body.append((f"EMPG adds to {label(base_method)}", *cells))
    names = (f"ours ({size})", *(f"paper ({base.removesuffix('-Instruct')})" for base in BASES))
    return Table(
        title="Beside the paper's WebShop results (%); mind the model sizes",
        columns=("method", *(f"{name}: {what}" for name in names for what in ("success", "score"))),
        rows=tuple(body),
        note=(
            "Ours: sampled at temperature 1. The paper: Table 1, mean ± std over 3 seeds; it does not say at "
            "which temperature nor on how many episodes it evaluated. The levels are not comparable: model, "
            "data and training length differ."
        ),
    )


def _own_mean(row: ArmRow | None, what: What) -> str:
    measure = None if row is None else row.measures["sampled", what]
    if measure is None:
        return MISSING
    sd = "" if measure.spread.sd is None else f" ± {percent(measure.spread.sd)}"
    return percent(measure.spread.mean) + sd


def markdown_escape(text: str) -> str:
    """Foreign text as Markdown shows it literally, on one line."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def one_line(text: str) -> str:
    """Foreign text without line breaks and control characters."""
    return printable(" ".join(text.split()))


def to_markdown(tables: Iterable[Table], facts: Mapping[str, str]) -> str:
    """A document: each table with its note, then the facts about where the numbers come from."""
    parts = []
    for table in tables:
        rows = [(markdown_escape(name), *cells) for name, *cells in table.rows]
        lines = [_line(table.columns), "|" + "---|" * len(table.columns), *map(_line, rows)]
        parts.append(f"## {markdown_escape(table.title)}\n\n" + "\n".join(lines) + f"\n\n{table.note}\n")
    listed = "\n".join(f"- {name}: {markdown_escape(value)}" for name, value in facts.items())
    return "\n".join(parts) + f"\n## Where these numbers come from\n\n{listed}\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def print_tables(console: Console, tables: Iterable[Table], facts: Mapping[str, str]) -> None:
    """The same on a terminal; `Text` keeps foreign text from being read as markup."""
    for table in tables:
        console.print(Text(one_line(table.title), style="bold"))
        shown = RichTable(box=SIMPLE_HEAD, show_edge=False, padding=0)
        for place, column in enumerate(table.columns):
            words = Text(one_line(column).replace(" ", "\n").replace("-", "-\n"))
            first = place == 0
            shown.add_column(
                words,
                justify="left" if first else "right",
                vertical="bottom",
                no_wrap=not first and column != VERDICT,
                overflow="fold",
                min_width=11 if first or column == VERDICT else None,
            )
        for name, *cells in table.rows:
            # The interval goes below its estimate, so that the table fits a narrow terminal.
            shown.add_row(
                Text(one_line(name)), *(Text(one_line(cell).replace(" [", "\n[")) for cell in cells)
            )
        console.print(shown)
        console.print(Text(table.note, style="dim"))
        console.print()
    for name, value in facts.items():
        console.print(Text(f"{name}: {one_line(value)}"), soft_wrap=True)


CSV_COLUMNS = (
    "source", "model", "method", "mode", "measure", "mean", "sd_over_seeds", "low", "high", "interval",
    "unit", "tasks", "seeds", "planned_seeds", "episodes", "errored", "per_seed",
)  # fmt: skip
DIFFERENCE_COLUMNS = (
    "treated", "reference", "mode", "measure", "difference", "low", "high", "interval", "unit", "tasks",
    "seeds", "mcnemar_p", "verdict",
)  # fmt: skip


def main_csv(rows: Sequence[ArmRow], paper: Sequence[PaperRow], size: str) -> str:
    """Long form, values in [0, 1]: ours by variant, mode and measure, then the paper's; empty if missing."""
    lines: list[Sequence[object]] = []
    for row in rows:
        for (mode, what), measure in row.measures.items():
            numbers: list[object] = [""] * 7
            if measure is not None:
                one, interval = measure.spread, measure.interval
                sd = "" if one.sd is None else _exact(one.sd)
                numbers = [_exact(one.mean), sd, *_interval_cells(interval), interval.n]
            per_seed = "" if measure is None else " ".join(map(_exact, measure.spread.values))
            head = ("ours", size, one_line(row.variant), mode, what)
            lines.append((*head, *numbers, row.seeds, row.planned, row.episodes, row.errored, per_seed))
    for theirs in paper:
        for name, mean, std in (
            ("success", theirs.success, theirs.success_std),
            ("score", theirs.score, theirs.score_std),
        ):
            source = ("paper", theirs.base, theirs.method, "not stated", name)
            lines.append((*source, _exact(mean / 100), _exact(std / 100), *[""] * 5, 3, 3, "", "", ""))
    return csv_text(CSV_COLUMNS, lines)


def difference_csv(found: Sequence[Comparison]) -> str:
    """Long form of the comparisons, values in [-1, 1]."""
    lines: list[Sequence[object]] = []
    for one in found:
        for mode, difference in one.by_mode.items():
            for what, interval in (("success", difference.success), ("score", difference.score)):
                p_value = (
                    "" if difference.p_value is None or what != "success" else _exact(difference.p_value)
                )
                verdict = difference.verdict if what == "success" else ""
                numbers = (
                    _exact(interval.estimate),
                    *_interval_cells(interval),
                    interval.n,
                    len(difference.seeds),
                )
                lines.append((one.treated, one.reference, mode, what, *numbers, p_value, verdict))
    return csv_text(DIFFERENCE_COLUMNS, lines)


def _interval_cells(interval: Interval) -> tuple[str, str, str, str]:
    return _exact(interval.low), _exact(interval.high), interval.method, interval.unit


def _exact(value: float) -> str:
    return f"{value:.6f}"


def csv_text(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """CSV with Unix line ends, the same bytes everywhere."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    return out.getvalue()
