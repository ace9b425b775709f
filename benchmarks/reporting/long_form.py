"""All numbers of the tables as CSV, one value a line, with interval, unit and n."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.reporting.columns import Columns, of_type
from benchmarks.reporting.outcomes import ArmRow, Comparison, Difference
from benchmarks.reporting.paper import PaperRow
from benchmarks.reporting.stats import Interval
from benchmarks.reporting.tables import csv_text, one_line

CSV_COLUMNS = (
    "source", "model", "method", "mode", "measure", "mean", "sd_over_seeds", "low", "high", "interval",
    "unit", "tasks", "seeds", "planned_seeds", "episodes", "errored", "per_seed", "remark",
)  # fmt: skip
DIFFERENCE_COLUMNS = (
    "treated", "reference", "mode", "measure", "difference", "low", "high", "interval", "unit", "tasks",
    "seeds", "test", "p", "holm_p", "verdict",
)  # fmt: skip


def main_csv(rows: Sequence[ArmRow], paper: Sequence[PaperRow], size: str) -> str:
    """Long form, values in [0, 1]: ours by variant, mode and measure, then the paper's; empty if missing."""
    return csv_text(CSV_COLUMNS, [*our_lines(rows, size), *paper_lines(paper)])


def our_lines(rows: Sequence[ArmRow], size: str) -> list[Sequence[object]]:
    """Our results as lines of `CSV_COLUMNS`."""
    lines: list[Sequence[object]] = []
    for row in rows:
        for (mode, name), measure in row.measures.items():
            numbers: list[object] = [""] * 7
            if measure is not None:
                one, interval = measure.spread, measure.interval
                sd = "" if one.sd is None else _exact(one.sd)
                numbers = [_exact(one.mean), sd, *_interval_cells(interval), interval.n]
            per_seed = "" if measure is None else " ".join(map(_exact, measure.spread.values))
            head = ("ours", size, one_line(row.variant), mode, name)
            behind = row.parts.get(name, row)
            # All of a type's tasks may have failed under one seed; its other seeds still count.
            seeds = len(measure.spread.values) if measure is not None and name in row.parts else row.seeds
            tail = (seeds, row.planned, behind.episodes, behind.errored, per_seed, "")
            lines.append((*head, *numbers, *tail))
    return lines


def paper_lines(rows: Sequence[PaperRow]) -> list[Sequence[object]]:
    """The paper's results as lines of `CSV_COLUMNS`, each with what is wrong with it."""
    lines: list[Sequence[object]] = []
    for row in rows:
        for name, number in row.numbers.items():
            source = ("paper", row.base, row.method, "not stated", name)
            std = "" if number.std is None else _exact(number.std / 100)
            counted = ("", "") if number.std is None else (row.runs, row.runs)  # seeds, planned
            remark = " ".join(filter(None, (number.remark, row.remark)))
            lines.append((*source, _exact(number.mean / 100), std, *[""] * 5, *counted, "", "", "", remark))
    return lines


def difference_csv(found: Sequence[Comparison], columns: Columns) -> str:
    """Long form of the comparisons, values in [-1, 1]."""
    lines: list[Sequence[object]] = []
    for one in found:
        for mode, difference in one.by_mode.items():
            intervals = {what: difference.of(what) for what in columns.measures} | {
                of_type(group): interval for group, interval in difference.groups.items() if interval
            }
            for what, interval in intervals.items():
                tested = _test_cells(difference) if what == "success" else ("",) * 4
                numbers = (
                    _exact(interval.estimate),
                    *_interval_cells(interval),
                    interval.n,
                    len(difference.seeds),
                )
                lines.append((one.treated, one.reference, mode, what, *numbers, *tested))
    return csv_text(DIFFERENCE_COLUMNS, lines)


def _test_cells(difference: Difference) -> tuple[str, str, str, str]:
    tested = difference.p_value
    return tested.test, f"{tested.value:.4g}", f"{difference.holm:.4g}", difference.verdict


def _interval_cells(interval: Interval) -> tuple[str, str, str, str]:
    return _exact(interval.low), _exact(interval.high), interval.method, interval.unit


def _exact(value: float) -> str:
    return f"{value:.6f}"
