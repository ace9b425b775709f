"""What training took: episodes, tokens, optimiser steps and time of every trained variant, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.reporting import stats
from benchmarks.reporting.cells import MISSING, seeds_cell
from benchmarks.reporting.load import Run, Suite
from benchmarks.reporting.outcomes import EXPERT, UNTRAINED, ArmRow
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
ENDS = (
    Quantity("loading (min)", "seconds", lambda run: run.loading_seconds, 1, 60),
    Quantity("evaluation (min)", "seconds", lambda run: run.evaluation_seconds, 1, 60),
)
"""Before and after training; shown where any run recorded them."""


def cost_table(rows: Sequence[ArmRow], suite: Suite, hardware: str) -> Table:
    """A row per trained variant, and per policy that was judged without training and recorded its time."""
    shown, quantities = _shown(rows, suite), _quantities(suite)
    ends = (
        "Loading (of data and policy, not in the wall time) and evaluation are parts of every run; what was judged "
        "without training has no others. "
    )
    return Table(
        title=f"{suite.name}: what training took",
        columns=("method", *(quantity.name for quantity in quantities), "seeds"),
        rows=tuple((row.label, *_cells(suite.of(row.variant), quantities), seeds_cell(row)) for row in shown),
        note=(
            "Each run from its start to its evaluation, mean over seeds (± sd over seeds where there are several). "
            "Sampled tokens: all that the policy wrote in training, also in episodes that were not trained on. "
            "Steps per episode: of the agent, in training. Wall time: by the clock, with the evaluation; what else "
            f"the machine did counts in. {ends if quantities != QUANTITIES else ''}Hardware: {hardware}."
        ),
        wide=True,
    )


def cost_csv(rows: Sequence[ArmRow], suite: Suite) -> str:
    """Long form, one quantity of one variant a line; empty where it was not recorded."""
    lines: list[Sequence[object]] = []
    for row in _shown(rows, suite):
        for quantity in _quantities(suite):
            known = _known(suite.of(row.variant), quantity)
            spread = stats.spread(known) if known else None
            numbers = ("", "") if spread is None else (_exact(spread.mean), _exact(spread.sd))
            name = quantity.name.removesuffix(" (min)")
            head = (one_line(row.variant), name, quantity.unit)
            lines.append((*head, *numbers, len(known), row.planned, " ".join(map(_exact, known))))
    return csv_text(COLUMNS, lines)


def _quantities(suite: Suite) -> tuple[Quantity, ...]:
    """Those that every run has, with its ends where any run recorded them."""
    recorded = any(quantity.of(run) is not None for run in suite.runs for quantity in ENDS)
    return (*QUANTITIES, *ENDS) if recorded else QUANTITIES


def _shown(rows: Sequence[ArmRow], suite: Suite) -> list[ArmRow]:
    """Trained variants, and policies without training whose time is known; the demonstrator is no policy."""
    return [
        row
        for row in rows
        if row.variant not in UNTRAINED
        or (row.variant != EXPERT and any(_known(suite.of(row.variant), quantity) for quantity in ENDS))
    ]


def _cells(runs: Sequence[Run], quantities: Sequence[Quantity]) -> list[str]:
    return [_cell(quantity, _known(runs, quantity), len(runs)) for quantity in quantities]


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
