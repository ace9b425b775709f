"""The paper's pseudocode (Algorithms 2 and 3) in loops over Python numbers, as slow as it is obvious."""

from __future__ import annotations

import math
from collections.abc import Sequence


def empg_pseudocode(
    advantages: Sequence[Sequence[float]],
    entropies: Sequence[Sequence[float]],
    steps: Sequence[Sequence[int]],
    *,
    k: float,
    k_f: float,
    zeta: float,
) -> list[list[float]]:
    """Modulated token advantages of a batch of responses.

    advantages: per response and token, the same value for all tokens of a response.
    entropies:  per response and token, of the old policy.
    steps:      per response and token, which step of that response the token belongs to; -1 for tokens of the
                environment, the template and padding.
    """
    segments: list[tuple[int, list[int]]] = []  # (response, its token positions), in order of appearance
    for response, marks in enumerate(steps):
        for number in sorted({mark for mark in marks if mark >= 0}):
            segments.append((response, [t for t, mark in enumerate(marks) if mark == number]))

    step_entropies = []
    for response, tokens in segments:
        step_entropies.append(sum(entropies[response][t] for t in tokens) / len(tokens))

    low, high = min(step_entropies), max(step_entropies)
    normalised = [(entropy - low) / (high - low + 1e-8) for entropy in step_entropies]
    weights = [math.exp(-k * value) for value in normalised]
    mean_weight = sum(weights) / len(weights)
    g = [weight / mean_weight for weight in weights]
    f = [math.exp(-k_f * value) for value in normalised]

    result = [[0.0] * len(row) for row in advantages]
    first_values = []
    for index, (response, tokens) in enumerate(segments):
        has_next = index + 1 < len(segments) and segments[index + 1][0] == response
        for t in tokens:
            result[response][t] = advantages[response][t] * g[index]
            if has_next:
                result[response][t] += zeta * f[index + 1]
        first_values.append(result[response][tokens[0]])

    mean = sum(first_values) / len(first_values)
    for response, marks in enumerate(steps):
        for t, mark in enumerate(marks):
            if mark >= 0:
                result[response][t] -= mean
    return result


def group_advantages(rewards: Sequence[float], groups: Sequence[int]) -> list[float]:
    """(r - mean) / (std + 1e-6) within each group, with the unbiased standard deviation."""
    result = []
    for reward, group in zip(rewards, groups, strict=True):
        members = [r for r, g in zip(rewards, groups, strict=True) if g == group]
        mean = sum(members) / len(members)
        if len(members) == 1 or all(r == members[0] for r in members):
            result.append(0.0)
            continue
        variance = sum((r - mean) ** 2 for r in members) / (len(members) - 1)
        result.append((reward - mean) / (math.sqrt(variance) + 1e-6))
    return result
