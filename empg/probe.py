"""Gradients of single agent steps: Proposition 1 in practice, and how much the scale g quiets them.

For one token with logits z and policy pi, the gradient of log pi(a) with respect to z has the squared norm
1 - 2 pi_a + sum_j pi_j^2; over a ~ pi its mean is 1 - exp(-H2), with H2 the Renyi-2 entropy (arXiv 2509.09265,
Proposition 1). What the proposition does not promise, and is measured here beside it, is the norm of the gradient
with respect to the parameters. Steps are differentiated under the policy that sampled them, before its update, so
the expectation is over the very distribution that the sampled tokens came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from empg.modes import differentiating
from empg.scores import LanguageModel, predictions
from empg.update import Scored

_PROBE = 1 << 16
"""Names the draw of the steps; no epoch has this number."""


class Variance(NamedTuple):
    """How step gradients x scatter."""

    trace: float | None
    """Trace of their sample covariance; None for a single step."""
    mean_sq: float
    """Squared norm of their mean."""


@dataclass(frozen=True)
class Gradients:
    """What was measured on some steps; tensors are [n], in the order of `steps`."""

    steps: Tensor
    """Rows of the step table, rising."""
    renyi2: Tensor
    """Mean over the step's tokens of the Renyi-2 entropy (nats)."""
    logit_sq: Tensor
    """Mean over the step's tokens of the squared norm of the gradient of log pi(a) with respect to the logits."""
    logit_expected: Tensor
    """Mean over the step's tokens of 1 - exp(-H2): the expectation of the above."""
    norm: Tensor
    """L2 norm over all parameters of the gradient of the step's mean log-probability."""
    g: Tensor
    """Entropy scale of each step."""
    plain: Variance
    """Of advantage times gradient."""
    scaled: Variance
    """Of advantage times g times gradient."""

    def variances(self) -> dict[str, float | int | None]:
        """The two variances as a flat row, with the number of steps behind them."""
        return {
            "steps": len(self.steps),
            "plain_variance": self.plain.trace,
            "plain_mean_sq": self.plain.mean_sq,
            "scaled_variance": self.scaled.trace,
            "scaled_mean_sq": self.scaled.mean_sq,
        }


def draw_steps(steps: int, wanted: int, *, seed: int, iteration: int) -> Tensor:
    """`wanted` of the batch's steps without replacement, or all; a pure function of (seed, iteration)."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(iteration, _PROBE)))
    return torch.from_numpy(np.sort(generator.permutation(steps)[:wanted]))


def probe(
    lm: LanguageModel,
    scored: Scored,
    steps: Tensor,
    g: Tensor,
    parameters: Sequence[nn.Parameter],
    *,
    temperature: float,
) -> Gradients:
    """Differentiate steps one by one.

    steps: [n] rows of the step table, at least one; g: [S]. The logits are those that the sampling distribution
    was made of, divided by the temperature. Memory: two more copies of the gradient, and the logits of one step.
    Leaves the parameters' `.grad` alone.
    """
    measured: dict[int, Tensor] = {}
    plain, scaled = (_Scatter(parameters) for _ in range(2))
    chosen = set(steps.tolist())
    with differentiating(lm.model):
        for row, inside in _rows_of(scored, chosen):
            found = predictions(lm, scored.batch, torch.tensor([row]))
            owner = scored.batch.step_of_token[row]
            owner = owner[owner >= 0].to(found.states.device)
            for number in inside:
                own = owner == number
                logits = found.logits_of(found.states[own]).float() / temperature
                logp = torch.log_softmax(logits, dim=-1)
                taken = logp.gather(-1, found.targets[own][:, None]).squeeze(-1)
                gradient = torch.autograd.grad(
                    taken.mean(), parameters, retain_graph=True, allow_unused=True, materialize_grads=True
                )
                norm = float(torch.stack([part.double().square().sum() for part in gradient]).sum().sqrt())
                weight = float(scored.raw_advantage[number])
                plain.add(gradient, norm, weight)
                scaled.add(gradient, norm, weight * float(g[number]))
                measured[number] = torch.tensor([*_of_logits(logp.detach(), taken.detach()), norm])
    renyi2, logit_sq, logit_expected, norms = torch.stack([measured[n] for n in steps.tolist()]).unbind(1)
    return Gradients(
        steps, renyi2, logit_sq, logit_expected, norms, g[steps], plain.variance(), scaled.variance()
    )


def _rows_of(scored: Scored, chosen: set[int]) -> list[tuple[int, list[int]]]:
    """The batch's rows that hold chosen steps, with those steps."""
    found = []
    for row, owners in enumerate(scored.batch.step_of_token):
        inside = [number for number in torch.unique(owners).tolist() if number in chosen]
        if inside:
            found.append((row, inside))
    return found


def _of_logits(logp: Tensor, taken: Tensor) -> tuple[float, float, float]:
    """Means over a step's tokens of H2, the squared logit gradient and its expectation; logp is [n, V]."""
    collision = logp.double().exp().square().sum(dim=-1)
    squared = 1 - 2 * taken.double().exp() + collision
    return float(-collision.log().mean()), float(squared.mean()), float(1 - collision.mean())


class _Scatter:
    """Running sums over weighted gradients."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self._sum = [torch.zeros_like(parameter, dtype=torch.float32) for parameter in parameters]
        self._squares = 0.0
        self._count = 0

    def add(self, gradient: Sequence[Tensor], norm: float, weight: float) -> None:
        for total, part in zip(self._sum, gradient, strict=True):
            total.add_(part, alpha=weight)
        self._squares += (weight * norm) ** 2
        self._count += 1

    def variance(self) -> Variance:
        n = self._count
        mean_sq = sum(float(total.double().square().sum()) for total in self._sum) / n**2
        return Variance((self._squares - n * mean_sq) / (n - 1) if n > 1 else None, mean_sq)
