"""The trained variants of a suite as the figures show them, and which of their runs recorded what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.reporting.figures.style import Look, listed, looks
from benchmarks.reporting.load import Run, Suite
from benchmarks.reporting.outcomes import label, trained_variants
from benchmarks.reporting.tables import one_line


@dataclass(frozen=True)
class Arm:
    """The complete runs of one trained variant."""

    variant: str
    label: str
    """The name a reader knows it by, on one line."""
    runs: tuple[Run, ...]
    """By seed; at least one."""
    planned: int
    """Seeds it should have."""
    look: Look

    @property
    def seeds(self) -> tuple[int, ...]:
        """In the order of the runs."""
        return tuple(run.info.seed for run in self.runs)

    @property
    def name(self) -> str:
        """`GRPO (n=3 seeds)`, `GRPO (2/3 seeds)` where one is missing."""
        seeds = len(self.runs)
        if seeds < self.planned:
            return f"{self.label} ({seeds}/{self.planned} seeds)"
        return f"{self.label} (n={seeds} {'seed' if seeds == 1 else 'seeds'})"


def arms_of(suite: Suite) -> tuple[Arm, ...]:
    """The trained variants with a complete run, in the order of the tables."""
    trained = trained_variants(suite)
    look = looks(trained)
    planned = len(suite.planned_seeds)
    found = ((name, suite.of(name)) for name in trained)
    return tuple(Arm(name, one_line(label(name)), runs, planned, look[name]) for name, runs in found if runs)


def subject(suite: Suite) -> str:
    """What the figures of a suite speak of: its name, the size of its policy, and the variants that are missing."""
    absent = [one_line(label(name)) for name in trained_variants(suite) if not suite.of(name)]
    missing = f" No complete run of {', '.join(absent)}." if absent else ""
    return f"Suite {suite.name}, {suite.model_size}.{missing}"


def lacking(what: str, runs: Iterable[Run]) -> str:
    """`Token level not recorded: GRPO seed 0, DAPO seeds 0, 1.`; nothing where no run lacks it."""
    seeds: dict[str, list[int]] = {}
    for run in runs:
        seeds.setdefault(run.info.variant, []).append(run.info.seed)
    if not seeds:
        return ""
    named = "; ".join(f"{one_line(label(variant))} {_seeds(of)}" for variant, of in seeds.items())
    return f"{what} not recorded: {named}."


def _seeds(seeds: Sequence[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {listed(seeds)}"
