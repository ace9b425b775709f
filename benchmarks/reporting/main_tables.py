"""Our own results: a row per variant, overall or by task type, and a row per comparison."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.reporting.cells import (
    MISSING,
    difference_cell,
    errored_cell,
    p_cell,
    part_cell,
    seeds_cell,
    whole_cell,
)
from benchmarks.reporting.columns import Columns, What
from benchmarks.reporting.evaluations import MODES
from benchmarks.reporting.load import Suite
from benchmarks.reporting.outcomes import SIGNIFICANCE, ArmRow, Comparison
from benchmarks.reporting.stats import FEW
from benchmarks.reporting.tables import VERDICT, Table

ONE_SEED = "They do not cover the chance of training: one seed (n=1) says nothing about another. "
INTERVALS = (
    "95% intervals, each for its difference alone. One seed: paired bootstrap over tasks (adjusted Wald where all "
    f"tasks but {FEW - 1} or fewer differ equally); it speaks about these two policies, not about the methods. Several "
    "seeds: Student t with tasks and training seeds as chance."
)
"""How the intervals of differences are made."""
ERRORED = "Errored episodes failed in the environment and are left out of every rate."
P_VALUE = "Holm p"


def main_table(rows: Sequence[ArmRow], suite: Suite) -> Table:
    """One row per variant: results with intervals, errors, seeds."""
    return _by_type(rows, suite) if suite.columns.types else _overall(rows, suite)


def _overall(rows: Sequence[ArmRow], suite: Suite) -> Table:
    """Success and score."""
    tasks = max(row.tasks for row in rows)
    return Table(
        title=f"{suite.name}: success and score on the pinned test panel (%)",
        columns=(
            "method",
            "success, sampled",
            "success, greedy",
            "score, sampled",
            "errored",
            "seeds",
        ),
        rows=tuple(_overall_row(row) for row in rows),
        note=(
            f"{suite.judged.capitalize()}, {tasks} tasks. Sampled: temperature 1, no truncation of the distribution. "
            "Success: mean over seeds (± sd over seeds where there are several) and Wilson 95% interval; "
            "score: the same with a 95% bootstrap interval. Unit of both intervals: tasks. "
            f"{ONE_SEED}{ERRORED}{_served(suite)}"
        ),
    )


def _served(suite: Suite) -> str:
    """What is not known of models behind a server."""
    if not suite.served:
        return ""
    verb = "is sampled by its server" if len(suite.served) == 1 else "are sampled by their servers"
    return f" {', '.join(suite.served)} {verb}, whose own settings may truncate the distribution."


def _overall_row(row: ArmRow) -> tuple[str, ...]:
    shown: tuple[tuple[str, What], ...] = (
        ("sampled", "success"),
        ("greedy", "success"),
        ("sampled", "score"),
    )
    cells = [whole_cell(row, mode, what) for mode, what in shown]
    return (row.label, *cells, errored_cell(row), seeds_cell(row))


def _by_type(rows: Sequence[ArmRow], suite: Suite) -> Table:
    """Success on each task type and on all tasks."""
    parts = suite.columns.parts.values()
    counts = {name: len(suite.tasks_of(name)) for name in suite.columns.types}
    grouped = f" and {', '.join(suite.columns.groups)}" if suite.columns.groups else ""
    return Table(
        title=f"{suite.name}: success by task type on {suite.panel or 'no panel'} (%)",
        columns=(
            "method",
            *(f"{part.heading} (n={sum(counts[name] for name in part.types)})" for part in parts),
            "All, sampled",
            "All, greedy",
            "errored",
            "seeds",
        ),
        rows=tuple(_type_row(row) for row in rows),
        note=(
            f"{suite.judged.capitalize()}; {suite.panel or 'no panel'}{_sum(list(counts.values()), suite)}. "
            f"Task types{grouped}: sampled. Sampled: temperature 1, no truncation of the distribution. "
            "Each cell: success, mean over seeds (± sd over seeds where there are several) and Wilson 95% "
            "interval. Unit of the intervals: tasks, so that of a type with few tasks is wide. "
            f"{ONE_SEED}{ERRORED}{_served(suite)}"
        ),
        wide=True,
    )


def _type_row(row: ArmRow) -> tuple[str, ...]:
    whole = row.measures["sampled", "success"]
    cells = [part_cell(row.measures["sampled", name], whole) for name in row.parts]
    cells += [whole_cell(row, mode, "success") for mode in MODES]
    return (row.label, *cells, errored_cell(row), seeds_cell(row))


def _sum(counts: Sequence[int], suite: Suite) -> str:
    """`, by type 24 + 18 = 42`, and how many tasks no type is known of; nothing before a run is complete."""
    if not suite.task_ids:
        return ""
    said = f", by type {' + '.join(map(str, counts))} = {sum(counts)}"
    if unknown := len(suite.tasks_of("")):
        said += f", and {unknown} of unknown type, which failed in the environment every time"
    return said


def difference_table(found: Sequence[Comparison], shown: Columns) -> Table:
    """One row per comparison and evaluation mode, with the verdict in words."""
    differences = [difference for comparison in found for difference in comparison.by_mode.values()]
    tests = " and ".join(sorted({one.p_value.test for one in differences})) or "none"
    return Table(
        title="Differences on the same tasks (percentage points)",
        columns=(
            "comparison",
            "mode",
            *shown.measures,
            *shown.groups,
            P_VALUE,
            "tasks × seeds",
            VERDICT,
        ),
        rows=tuple(row for comparison in found for row in _difference_rows(comparison, shown)),
        note=(
            f"{INTERVALS} {P_VALUE}: two-sided test of equal success ({tests}), corrected by Holm's method for all "
            f"{len(differences)} tests of this table, sampled and greedy, as one family. Significant: "
            f"{P_VALUE} < {SIGNIFICANCE} and the interval leaves out 0. An interval alone may leave out 0 "
            "where the difference is not significant among so many."
        ),
    )


def _difference_rows(found: Comparison, shown: Columns) -> list[tuple[str, ...]]:
    if not found.by_mode:
        return [(found.title, *[MISSING] * (4 + len(shown.measures) + len(shown.groups)))]
    return [
        (
            found.title,
            mode,
            *(difference_cell(one.of(what)) for what in shown.measures),
            *(difference_cell(one.groups[name]) for name in shown.groups),
            p_cell(one.holm),
            f"{one.success.n} × {len(one.seeds)}",
            one.verdict,
        )
        for mode, one in found.by_mode.items()
    ]
