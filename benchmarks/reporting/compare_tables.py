"""The numbers of a comparison as tables and as CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.reporting.cells import MISSING, difference_cell, p_cell, percent, points, spread_cell
from benchmarks.reporting.columns import of_type
from benchmarks.reporting.compare import Comparison, Outcome, Pair, Rates, TaskResult
from benchmarks.reporting.compare_words import significance
from benchmarks.reporting.load import judged
from benchmarks.reporting.main_tables import INTERVALS
from benchmarks.reporting.tables import Table, csv_text, one_line

P_VALUE, HOLM = "p", "Holm p"
SHOWN_TASKS = 15
CSV_COLUMNS = (
    "variant_a", "variant_b", "mode", "measure", "a", "a_sd_over_seeds", "b", "b_sd_over_seeds", "difference", "low",
    "high", "interval", "unit", "tasks", "seeds", "test", "p", "holm_p", "tests", "significance",
)  # fmt: skip
NOT_TESTED = ("",) * 5
TASK_COLUMNS = (
    "variant_a", "variant_b", "mode", "task", "type", "a_success", "b_success", "change", "a_score", "b_score",
    "a_errored", "b_errored", "compared",
)  # fmt: skip


def difference_table(found: Comparison) -> Table:
    """Both sides and their difference: a row per pair, mode and measure."""
    rows = []
    for pair, outcome in found.outcomes:
        for what, rates in outcome.measures.items():
            tested = what == "success"
            tests = [p_cell(p) if tested else MISSING for p in (outcome.p_value.value, outcome.holm)]
            counted = f"{rates.difference.n} × {rates.difference.seeds}"
            named = f"{pair.title}, {outcome.mode}, {what}"
            rows.append((named, *_rates_cells(rates), *tests, counted))
    named = " or ".join(sorted({outcome.p_value.test for _, outcome in found.outcomes})) or "none"
    return Table(
        title="The same tasks: both sides (%), and B−A (percentage points)",
        columns=("comparison", "A", "B", "B−A", P_VALUE, HOLM, "tasks × seeds"),
        rows=tuple(rows),
        note=(
            f"{judged((found.a.suite, found.b.suite)).capitalize()}, mean over seeds (± sd over seeds where there are "
            f"several), over the tasks that every compared run finished. {INTERVALS} {P_VALUE}: two-sided test of "
            f"equal success ({named}). {HOLM}: corrected by Holm's method for the {found.tests} "
            "tests shown, as one family."
        ),
        wide=True,
    )


def type_table(pair: Pair) -> Table | None:
    """Success and its difference by type of task; None where the tasks are of one type."""
    headings = list(dict.fromkeys(heading for outcome in pair.outcomes for heading in outcome.parts))
    if not headings:
        return None
    rows = []
    for heading in headings:
        parts = [outcome.parts[heading] for outcome in pair.outcomes]
        tasks = max((part.difference.n for part in parts if part is not None), default=0)
        rows.append((f"{heading} (n={tasks})", *(cell for part in parts for cell in _rates_cells(part))))
    return Table(
        title=f"{pair.title}: success by type of task (%), and B−A (percentage points)",
        columns=(
            "type",
            *(f"{name}, {outcome.mode}" for outcome in pair.outcomes for name in ("A", "B", "B−A")),
        ),
        rows=tuple(rows),
        note=(
            f"{INTERVALS} A type with few tasks has a wide interval; these are not corrected for their number and "
            "suggest where to look."
        ),
        wide=True,
    )


def flip_table(pair: Pair, outcome: Outcome) -> Table | None:
    """The tasks that changed most, each way; None where none did."""
    rows = [_flip_row(task) for tasks in (outcome.won, outcome.lost) for task in tasks[:SHOWN_TASKS]]
    if not rows:
        return None
    hidden = sum(max(0, len(tasks) - SHOWN_TASKS) for tasks in (outcome.won, outcome.lost))
    return Table(
        title=f"{pair.title}, {outcome.mode}: tasks that changed hands",
        columns=("task", "A", "B", "B−A"),
        rows=tuple(rows),
        note=(
            "Success of each task (%), mean over seeds and samples: first those that B solves more often, then those "
            f"that A does, the largest change first. {hidden} further in tasks.csv."
        ),
    )


def _flip_row(task: TaskResult) -> tuple[str, ...]:
    named = f"{task.task_id} ({task.task_type})" if task.task_type else task.task_id
    return (named, *map(percent, task.success), points(task.change))


def _rates_cells(rates: Rates | None) -> tuple[str, str, str]:
    if rates is None:
        return (MISSING, MISSING, MISSING)
    return spread_cell(rates.a), spread_cell(rates.b), difference_cell(rates.difference)


def main_csv(found: Comparison) -> str:
    """Long form, values in [-1, 1]: a line per pair, mode and measure, types of tasks included."""
    lines: list[Sequence[object]] = []
    for pair, outcome in found.outcomes:
        head = (*map(one_line, pair.variants), outcome.mode)
        for what, rates in outcome.measures.items():
            judged = _judged(outcome, found.tests) if what == "success" else NOT_TESTED
            lines.append((*head, what, *_rates_numbers(rates), *judged))
        lines += [
            (*head, one_line(of_type(heading)), *_rates_numbers(rates), *NOT_TESTED)
            for heading, rates in outcome.parts.items()
            if rates is not None
        ]
    return csv_text(CSV_COLUMNS, lines)


def _judged(outcome: Outcome, tests: int) -> tuple[str, ...]:
    tested = outcome.p_value
    return (
        tested.test, f"{tested.value:.4g}", f"{outcome.holm:.4g}", str(tests), significance(outcome, tests),
    )  # fmt: skip


def _rates_numbers(rates: Rates) -> tuple[object, ...]:
    interval = rates.difference
    sides = (rates.a.mean, rates.a.sd, rates.b.mean, rates.b.sd)
    difference = (interval.estimate, interval.low, interval.high)
    return (*map(_number, (*sides, *difference)), interval.method, interval.unit, interval.n, interval.seeds)


def task_csv(found: Comparison) -> str:
    """Every task of the panel in every pair and mode, values in [-1, 1]; empty where the task is not compared."""
    lines: list[Sequence[object]] = [
        (
            *map(one_line, pair.variants), outcome.mode, one_line(task.task_id), one_line(task.task_type),
            *map(_number, (*task.success, task.change, *task.score)),
            *task.errored, "yes" if task.compared else "no",
        )
        for pair, outcome in found.outcomes
        for task in outcome.tasks
    ]  # fmt: skip
    return csv_text(TASK_COLUMNS, lines)


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.6f}"
