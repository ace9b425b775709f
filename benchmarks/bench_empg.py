"""EMPG of a whole batch in two forms with equal results: as this project computes it, and in plain loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from empg.advantages import EmpgConfig, modulate, step_entropy, token_values


@dataclass(frozen=True)
class StepBatch:
    """A batch of equally long trajectories, for both forms of the method."""

    advantage: torch.Tensor
    """[S]"""
    next_step: torch.Tensor
    """[S]"""
    token_entropy: torch.Tensor
    """[N, T] nats."""
    step_of_token: torch.Tensor
    """[N, T]"""


def step_batch(steps: int, tokens_per_step: int, steps_per_row: int = 5) -> StepBatch:
    """Random entropies and advantages; each step is followed by an observation token that counts for none."""
    generator = torch.Generator().manual_seed(0)
    rows = math.ceil(steps / steps_per_row)
    steps = rows * steps_per_row
    numbers = torch.arange(steps).reshape(rows, steps_per_row, 1)
    of_token = torch.cat([numbers.expand(-1, -1, tokens_per_step), torch.full_like(numbers, -1)], dim=-1)
    following = torch.arange(1, steps + 1)
    following[steps_per_row - 1 :: steps_per_row] = -1
    return StepBatch(
        advantage=torch.randn(rows, generator=generator).repeat_interleave(steps_per_row),
        next_step=following,
        token_entropy=torch.rand(rows, steps_per_row * (tokens_per_step + 1), generator=generator),
        step_of_token=of_token.reshape(rows, -1),
    )


def vectorised(batch: StepBatch, config: EmpgConfig) -> torch.Tensor:
    """Token advantages [N, T] as this project computes them."""
    entropy = step_entropy(batch.token_entropy, batch.step_of_token, len(batch.advantage))
    return token_values(modulate(batch.advantage, entropy, batch.next_step, config), batch.step_of_token)


def looped(
    advantage: Sequence[float],
    next_step: Sequence[int],
    token_entropy: Sequence[Sequence[float]],
    step_of_token: Sequence[Sequence[int]],
    config: EmpgConfig,
) -> list[list[float]]:
    """The same numbers with a loop over every token and step, as published implementations have it."""
    total, count = [0.0] * len(advantage), [0] * len(advantage)
    for entropies, marks in zip(token_entropy, step_of_token, strict=True):
        for value, step in zip(entropies, marks, strict=True):
            if step >= 0:
                total[step] += value
                count[step] += 1
    entropy = [value / number for value, number in zip(total, count, strict=True)]
    low, high = min(entropy), max(entropy)
    normalised = [(value - low) / (high - low + 1e-8) for value in entropy]
    weight = [math.exp(-config.k * value) for value in normalised]
    mean_weight = sum(weight) / len(weight)
    modulated = []
    for step, raw in enumerate(advantage):
        value = raw * weight[step] / mean_weight
        if next_step[step] >= 0:
            value += config.zeta * math.exp(-config.k_f * normalised[next_step[step]])
        modulated.append(value)
    centre = sum(modulated) / len(modulated)
    return [[modulated[step] - centre if step >= 0 else 0.0 for step in marks] for marks in step_of_token]
