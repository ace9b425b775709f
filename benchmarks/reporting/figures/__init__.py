"""Figures of a suite and the data they show: computed first, written as CSV, drawn exactly as written.

A figure whose record no run has is not made; where some runs lack it, its note names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.reporting import paper
from benchmarks.reporting.figures import bars, credit, curves, entropy, gradient_norm, gradient_variance
from benchmarks.reporting.figures.arms import Arm, arms_of, subject
from benchmarks.reporting.figures.style import Chart
from benchmarks.reporting.load import Run, Suite
from benchmarks.reporting.outcomes import WARM_START, start

NAMES = (
    "learning_curve", "learning_curve_tokens", "kl_loss", "entropy_change", "credit", "gradient_norm",
    "gradient_variance",
)  # fmt: skip
ENDINGS = ("csv", "png", "svg")
FILES = tuple(f"{name}.{ending}" for name in NAMES for ending in ENDINGS)
"""All that `build` can make of a suite."""
OVERVIEW_FILES = tuple(f"figure1.{ending}" for ending in ENDINGS)


def build(suite: Suite) -> dict[str, bytes]:
    """The files of every figure of a suite, by name. Raises `RecordError` for a record that cannot be trusted."""
    return files(charts(suite))


def build_overview(suites: Sequence[Suite]) -> dict[str, bytes]:
    """The files of the figure over all benchmarks (the paper's Figure 1)."""
    return files([bars.chart(suites)])


def files(found: Iterable[Chart]) -> dict[str, bytes]:
    """Data, PNG and SVG of every figure."""
    return {name: content for chart in found for name, content in chart.files().items()}


def charts(suite: Suite) -> tuple[Chart, ...]:
    """The figures of a suite in the order of `NAMES`, computed but not drawn; none without a trained run."""
    arms, about = arms_of(suite), subject(suite)
    if not arms:
        return ()
    found = (
        curves.learning_chart(arms, about),
        curves.token_chart(arms, about),
        curves.kl_chart(arms, about, "warm start" if start(suite) == WARM_START else "given model"),
        *_of_steps(arms, about),
        gradient_norm.chart([gradient_norm.probed(arm) for arm in arms], about),
        gradient_variance.chart(arms, about),
    )
    return tuple(chart for chart in found if chart is not None)


def _of_steps(arms: Sequence[Arm], about: str) -> tuple[Chart | None, Chart | None]:
    """Entropy change and credit; the steps of one variant at a time are in memory."""
    changes: list[entropy.Change] = []
    credits: list[credit.Credit] = []
    unrecorded: list[Run] = []
    for arm in arms:
        steps = credit.steps_of(arm)
        unrecorded += steps.lacking
        if (found := credit.credit(steps)) is not None:
            credits.append(found)
        del steps
        changes += [entropy.step_change(arm), entropy.token_change(arm)]
    return entropy.chart(changes, paper.entropy_change(), about), credit.chart(credits, unrecorded, about)
