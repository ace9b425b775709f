"""What training took: episodes, tokens, optimiser steps and time of every trained variant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.reporting import stats
from benchmarks.reporting.cells import MISSING, seeds_cell
from benchmarks.reporting.load import Run, Suite
from benchmarks.reporting.outcomes import EXPERT, WARM_START, ArmRow
from benchmarks.reporting.tables import Table, csv_text, one_line

COLUMNS = ("method", "quantity", "unit", "mean", "sd_over_seeds", "seeds", "planned_seeds", "per_seed")


@dataclass(frozen=True)
class Quantity:
    """Something that a run uses up."""

    name: str
    unit: str
    of: Callable[[Run], float | None]
    """None where the run did not record it."""
    digits: int = 0
    per: float = 1.0
    """How many units a table counts as one: 60 seconds are a minute."""


def _total(values: Iterable[float | None]) -> float | None:
    """None where any part is unknown, and where there is none."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if known and len(known) == len(found) else None


def _sampled_tokens(run: Run) -> float | None:
    return run.metrics[-1].sampled_tokens_total if run.metrics else None


def _trained_tokens(run: Run) -> float | None:
    """An iteration whose update was skipped trained on none."""
    return _total(0 if row.optimizer_steps == 0 else row.train_tokens for row in run.metrics)


def _steps_per_episode(run: Run) -> float | None:
    """Over all episodes that the environment did not fail in."""
    usable = [
        None if row.episodes is None else row.episodes - (row.episodes_errored or 0) for row in run.metrics
    ]
    steps = _total(
        0 if count == 0 else None if count is None or row.steps_per_episode is None
        else count * row.steps_per_episode
        for count, row in zip(usable, run.metrics, strict=True)
    )  # fmt: skip
    episodes = _total(usable)
    return None if steps is None or not episodes else steps / episodes


QUANTITIES = (
    Quantity("episodes", "episodes", lambda run: _total(row.episodes for row in run.metrics)),
    Quantity("steps per episode", "agent steps", _steps_per_episode, digits=2),
    Quantity("sampled tokens", "tokens", _sampled_tokens),
    Quantity("trained tokens", "tokens", _trained_tokens),
    Quantity("optimiser steps", "steps", lambda run: _total(row.optimizer_steps for row in run.metrics)),
    Quantity("rollouts (min)", "seconds", lambda run: _total(row.collect for row in run.timing), 1, 60),
    Quantity("scoring (min)", "seconds", lambda run: _total(row.score for row in run.timing), 1, 60),
    Quantity("updates (min)", "seconds", lambda run: _total(row.update for row in run.timing), 1, 60),
    Quantity("wall time (min)", "seconds", lambda run: run.wall_seconds, 1, 60),
)


def cost_table(rows: Sequence[ArmRow], suite: Suite, hardware: str) -> Table:
    """A row per trained variant."""
    trained = _trained(rows)
    return Table(
        title=f"{suite.name}: what training took",
        columns=("method", *(quantity.name for quantity in QUANTITIES), "seeds"),
        rows=tuple((row.label, *_cells(suite.of(row.variant)), seeds_cell(row)) for row in trained),
        note=(
            "Each run from its start to its evaluation, mean over seeds (± sd over seeds where there are several). "
            "Sampled tokens: all that the policy wrote in training, also in episodes that were not trained on. "
            "Steps per episode: of the agent, in training. Wall time: by the clock, with the evaluation; what else "
            f"the machine did counts in. Hardware: {hardware}."
        ),
        wide=True,
    )


def cost_csv(rows: Sequence[ArmRow], suite: Suite) -> str:
    """Long form, one quantity of one variant a line; empty where it was not recorded."""
    lines: list[Sequence[object]] = []
    for row in _trained(rows):
        for quantity in QUANTITIES:
            known = _known(suite.of(row.variant), quantity)
            spread = stats.spread(known) if known else None
            numbers = ("", "") if spread is None else (_exact(spread.mean), _exact(spread.sd))
            name = quantity.name.removesuffix(" (min)")
            head = (one_line(row.variant), name, quantity.unit)
            lines.append((*head, *numbers, len(known), row.planned, " ".join(map(_exact, known))))
    return csv_text(COLUMNS, lines)


def _trained(rows: Sequence[ArmRow]) -> list[ArmRow]:
    return [row for row in rows if row.variant not in (WARM_START, EXPERT)]


def _cells(runs: Sequence[Run]) -> list[str]:
    return [_cell(quantity, _known(runs, quantity), len(runs)) for quantity in QUANTITIES]


def _cell(quantity: Quantity, known: Sequence[float], runs: int) -> str:
    """`55,996 ± 1,200`, and `(1/2 seeds)` after it where some run did not record it."""
    if not known:
        return MISSING
    spread = stats.spread([value / quantity.per for value in known])
    shown = [f"{value:,.{quantity.digits}f}" for value in (spread.mean, spread.sd) if value is not None]
    return " ± ".join(shown) + ("" if len(known) == runs else f" ({len(known)}/{runs} seeds)")


def _known(runs: Sequence[Run], quantity: Quantity) -> list[float]:
    return [value for run in runs if (value := quantity.of(run)) is not None]


def _exact(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")
