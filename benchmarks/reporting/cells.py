"""Numbers as the cells of tables show them."""

from __future__ import annotations

from benchmarks.reporting.columns import What
from benchmarks.reporting.outcomes import ArmRow, Measure
from benchmarks.reporting.stats import Interval, Spread

MISSING = "—"


def percent(value: float) -> str:
    """`41.5`."""
    return f"{100 * value:.1f}"


def points(value: float | None) -> str:
    """`+2.6`, in percentage points; what rounds to nothing is `+0.0`."""
    return MISSING if value is None else f"{100 * value:+z.1f}"


def spread_cell(spread: Spread) -> str:
    """`41.5`, with `± 2.1` after it when there is more than one seed."""
    return percent(spread.mean) + ("" if spread.sd is None else f" ± {percent(spread.sd)}")


def mean_cell(measure: Measure | None) -> str:
    """The same of a measure."""
    return MISSING if measure is None else spread_cell(measure.spread)


def bounds_cell(interval: Interval) -> str:
    """`[34.9, 48.4]`."""
    return f"[{percent(interval.low)}, {percent(interval.high)}]"


def interval_cell(interval: Interval | None) -> str:
    """`41.5 [34.9, 48.4]`."""
    return MISSING if interval is None else f"{percent(interval.estimate)} {bounds_cell(interval)}"


def p_cell(p_value: float) -> str:
    """`0.031`, `< 0.001`."""
    return f"{p_value:.3f}" if p_value >= 0.001 else "< 0.001"


def measure_cell(measure: Measure | None) -> str:
    """`41.5 [34.9, 48.4]`, with `± 2.1` after the mean when there is more than one seed."""
    if measure is None:
        return MISSING
    return f"{mean_cell(measure)} {bounds_cell(measure.interval)}"


def part_cell(measure: Measure | None, whole: Measure | None) -> str:
    """The same for a part of the tasks, which says `(1/2 seeds)` where some seed has a result for the whole only."""
    if measure is None or whole is None:
        return MISSING
    return _of_seeds(measure, len(whole.spread.values))


def whole_cell(row: ArmRow, mode: str, what: What) -> str:
    """The same of all tasks, which says `(1/2 seeds)` where a complete run has no result but errors."""
    measure = row.measures[mode, what]
    return MISSING if measure is None else _of_seeds(measure, row.seeds)


def _of_seeds(measure: Measure, seeds: int) -> str:
    there = len(measure.spread.values)
    return measure_cell(measure) + ("" if there == seeds else f" ({there}/{seeds} seeds)")


def difference_cell(interval: Interval | None) -> str:
    """`+2.6 [-1.0, +6.2]`, in percentage points."""
    if interval is None:
        return MISSING
    return f"{points(interval.estimate)} [{points(interval.low)}, {points(interval.high)}]"


def errored_cell(row: ArmRow) -> str:
    """`4/40`: episodes that failed in the environment, of all."""
    return f"{row.errored}/{row.episodes}" if row.episodes else MISSING


def seeds_cell(row: ArmRow) -> str:
    """`3/3`; `(2/3 seeds)` when some are missing; a single seed says `n=1`."""
    return seed_count(row.seeds, row.planned)


def seed_count(seeds: int, planned: int) -> str:
    """The same of two numbers."""
    if seeds == 0:
        return MISSING if planned <= 1 else f"(0/{planned} seeds)"
    single = ", n=1" if seeds == 1 else ""
    if seeds < planned:
        return f"({seeds}/{planned} seeds{single})"
    return f"{seeds}/{max(planned, seeds)}{single}"
