"""What a comparison comes to in sentences, and what it could not compare.

Sentences may quote names from records; they are escaped where they are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.reporting.cells import points
from benchmarks.reporting.compare import Comparison, Outcome, Pair
from benchmarks.reporting.compare_sides import Setting
from benchmarks.reporting.evaluations import MODES
from benchmarks.reporting.outcomes import EXPERT, SIGNIFICANCE, label


def sides(found: Comparison) -> Iterator[str]:
    """`A is webshop grpo: GRPO (seeds 0, 1).`"""
    for letter, side, runs in zip("AB", (found.a, found.b), found.compared, strict=True):
        seeds: dict[str, list[str]] = {}
        for run in runs:
            seeds.setdefault(label(run.info.variant), []).append(str(run.info.seed))
        named = "; ".join(
            f"{name} ({_plural('seed', len(of))} {', '.join(of)})" for name, of in seeds.items()
        )
        yield f"{letter} is {side.name}: {named}."


def verdicts(found: Comparison) -> Iterator[str]:
    """For every pair and mode: how much B differs, and whether that is significant."""
    for pair in found.pairs:
        for outcome in pair.outcomes:
            yield f"{pair.title}, {outcome.mode}: {verdict(outcome, found.tests)}."


def verdict(outcome: Outcome, tests: int) -> str:
    """`B solves 5.5 points more of the 200 tasks than A [+0.2, +10.8]; significant at 5%`."""
    found = outcome.success.difference
    size = f"{abs(100 * found.estimate):.1f}"
    if size == "0.0":
        said = f"A and B solve equally many of the {found.n} tasks"
    else:
        said = f"B solves {size} points {'more' if found.estimate > 0 else 'fewer'} of the {found.n} tasks than A"
    seeds = f" over {found.seeds} seeds" if found.seeds > 1 else ""
    return f"{said}{seeds} [{points(found.low)}, {points(found.high)}]; {significance(outcome, tests)}"


def significance(outcome: Outcome, tests: int) -> str:
    """Significant only where the interval, the test and its correction over all `tests` say so."""
    if outcome.success.difference.contains_zero:
        return "not significant: the interval contains 0"
    if outcome.p_value.value >= SIGNIFICANCE:
        return f"not significant: {outcome.p_value.test} p = {outcome.p_value.value:.3f}"
    corrected = f"after Holm's correction for {tests} tests"
    if outcome.holm >= SIGNIFICANCE:
        return f"not significant {corrected}: p = {outcome.holm:.3f}, alone {outcome.p_value.value:.3f}"
    return f"significant at {100 * SIGNIFICANCE:g}%" + (f", also {corrected}" if tests > 1 else "")


def flips(pair: Pair, outcome: Outcome) -> str:
    """How many tasks changed hands, each way."""
    won, lost = len(outcome.won), len(outcome.lost)
    alike = f"alike on {outcome.success.difference.n - won - lost}"
    if outcome.played_once:
        said = f"B alone solves {_tasks(won)}, A alone {lost}"
    else:
        said = f"B solves {_tasks(won)} more often than A, {lost} less often"
    return f"{pair.title}, {outcome.mode}: {said}; {alike}."


def cautions(found: Comparison, settings: Sequence[Setting]) -> Iterator[str]:
    """What was not compared, what failed, and what else than the variant sets the sides apart."""
    for place, (letter, side) in enumerate((("A", found.a), ("B", found.b))):
        compared = {pair.variants[place] for pair in found.pairs}
        if left := [label(name) for name in side.variants if name not in compared and name != EXPERT]:
            yield f"Not compared, as only {letter} has runs of it: {', '.join(left)}."
    for pair in found.pairs:
        yield from _of_pair(pair)
    if models := [each for each in settings if each.name == "policy" or each.name.startswith("policy.")]:
        said = "; ".join(f"{each.name}: A {each.a}, B {each.b}" for each in models)
        yield f"The sides play with different models, so a difference is not that of the method alone: {said}."


def _of_pair(pair: Pair) -> Iterator[str]:
    both = ", ".join(str(run.info.seed) for run in pair.a)
    for letter, other, seeds in zip("AB", "BA", pair.alone, strict=True):
        if seeds:
            yield (
                f"{pair.title}: {letter} has {_plural('seed', len(seeds))} {', '.join(map(str, seeds))}, which {other} "
                f"lacks; compared: {_plural('seed', len(pair.a))} {both}."
            )
    played = {outcome.mode for outcome in pair.outcomes}
    for mode in (mode for mode in MODES if mode not in played):
        yield f"{pair.title}: not compared {mode}; some run has no such episodes, or no task is left that all finished."
    for outcome in pair.outcomes:
        if any(outcome.errored):
            a, b = outcome.errored
            yield (
                f"{pair.title}, {outcome.mode}: {a} episodes of A and {b} of B failed in the environment; "
                f"{_tasks(outcome.left_out)} that some run never finished are left out of both sides."
            )


def _tasks(count: int) -> str:
    return f"{count} {_plural('task', count)}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
