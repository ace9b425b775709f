"""One clipped surrogate with a configuration; GRPO and DAPO are two sets of values, not two losses.

All functions are elementwise over sampled tokens, so their arguments may have any common shape.

The KL term is the k3 estimator, exp(d) - d - 1 with d = log pi_ref - log pi (verl's `low_var_kl`), used as a
loss as in the paper. Its value is an unbiased, non-negative estimate of the reverse KL(pi || pi_ref). Its
gradient is not that of the reverse KL: differentiated at sampled tokens it is, in expectation, the gradient
of the forward KL(pi_ref || pi). The two agree where the policies do, and both pull towards the reference. The
KL that is logged uses the same estimator in every variant, so KL curves can be compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

MAX_LOG_RATIO = 20.0
"""Log-ratios are limited before exp, never after: exp(200) is inf, and its gradient times 0 is NaN."""

Aggregation = Literal["token-mean", "sequence-mean"]


@dataclass(frozen=True)
class LossConfig:
    """The clipped surrogate, its regularisers and how token losses become one number."""

    clip_low: float = 0.2
    """The ratio is clipped below at 1 - clip_low."""
    clip_high: float = 0.2
    """The ratio is clipped above at 1 + clip_high."""
    kl_coef: float = 0.01
    """Weight of the k3 KL to the frozen reference; at 0 the KL is still measured."""
    entropy_coef: float = 0.001
    """Weight of the entropy bonus."""
    aggregation: Aggregation = "token-mean"
    """`token-mean`: over all sampled tokens of the mini-batch. `sequence-mean`: over each trajectory's
    sampled tokens, then over trajectories. The mini-batch is what one optimiser step sees, however it is
    accumulated."""
    importance_cap: float | None = None
    """Largest importance weight for the gap between sampling engine and trainer; see `importance_weight`. None:
    no correction."""

    def __post_init__(self) -> None:
        if not 0 <= self.clip_low < 1:
            raise ValueError(f"clip_low must lie in [0, 1), got {self.clip_low!r}")
        for name in ("clip_high", "kl_coef", "entropy_coef"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
        cap = self.importance_cap
        if cap is not None and not (math.isfinite(cap) and cap > 0):
            raise ValueError(f"importance_cap must be a finite number above 0, got {cap!r}")
        if self.aggregation not in ("token-mean", "sequence-mean"):
            raise ValueError(f"aggregation must be 'token-mean' or 'sequence-mean', got {self.aggregation!r}")


GRPO = LossConfig(clip_low=0.2, clip_high=0.2, aggregation="sequence-mean")
"""GRPO as published: mean over each trajectory's tokens; clip and coefficients as in the EMPG paper."""

DAPO = LossConfig(clip_low=0.2, clip_high=0.28, aggregation="token-mean")
"""DAPO's loss: clip-higher and token mean; its KL coefficient is the EMPG paper's (DAPO as published has
none)."""

LOSSES: dict[str, LossConfig] = {"grpo": GRPO, "dapo": DAPO}


def limited_ratio(logprob: Tensor, old_logprob: Tensor) -> Tensor:
    """Pi / pi_old of each token, between exp(-20) and exp(20)."""
    return torch.exp((logprob - old_logprob).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO))


def surrogate(ratio: Tensor, advantage: Tensor, config: LossConfig) -> Tensor:
    """The clipped objective of each token: min(ratio A, clip(ratio) A). To be maximised."""
    clipped = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    return torch.minimum(ratio * advantage, clipped * advantage)


def importance_weight(old_logprob: Tensor, sampled_logprob: Tensor, cap: float) -> Tensor:
    """min(pi_old / pi_engine, cap) of each token, a constant of the loss.

    Both are the policy before the update: pi_old by the trainer's pass, pi_engine by what sampled. Other kernels or
    another precision make them differ, so the samples are slightly off-policy before the first step. This is
    truncated importance sampling (Ionides 2008) by token, as Yao et al. (2025, "Your Efficient RL Framework Secretly
    Brings You Off-Policy RL Training") use it; it multiplies the surrogate, whose clipped ratio stays pi / pi_old.
    """
    return limited_ratio(old_logprob, sampled_logprob).clamp(max=cap).detach()


def k3(logprob: Tensor, reference_logprob: Tensor) -> Tensor:
    """exp(d) - d - 1 of each token, d = log pi_ref - log pi limited to 20; value and gradient are finite."""
    difference = (reference_logprob - logprob).clamp(max=MAX_LOG_RATIO)
    return torch.expm1(difference) - difference


def token_weights(step_of_token: Tensor, trajectory_of_row: Tensor, aggregation: Aggregation) -> Tensor:
    """Weight of each sampled token in the loss; the weights of a mini-batch sum to 1, and to 0 if nothing was
    sampled.

    A sum of weighted token losses does not depend on how the mini-batch is split for gradient accumulation. A
    trajectory without sampled tokens counts in no denominator.

    step_of_token: [N, T], -1 where not sampled; trajectory_of_row: [N]; returns [N, T] float32, 0 where not
    sampled.
    """
    sampled = step_of_token >= 0
    if aggregation == "token-mean":
        return sampled.float() / sampled.sum().clamp(min=1)
    _, owner = torch.unique(trajectory_of_row, return_inverse=True)
    per_row = sampled.sum(dim=1)
    tokens = per_row.new_zeros(int(owner.max()) + 1 if owner.numel() else 0).index_add(0, owner, per_row)
    trajectories = (tokens > 0).sum().clamp(min=1)
    return sampled.float() / (tokens.clamp(min=1)[owner] * trajectories)[:, None]


@dataclass(frozen=True)
class OverlongConfig:
    """DAPO's soft overlong penalty, by sampled tokens of a whole trajectory."""

    max_tokens: int
    """From here on the penalty is 1."""
    cache_tokens: int
    """Length of the ramp that ends at `max_tokens`."""

    def __post_init__(self) -> None:
        if not 0 < self.cache_tokens <= self.max_tokens:
            raise ValueError(
                f"cache_tokens must lie in 1..max_tokens={self.max_tokens}, got {self.cache_tokens}"
            )


def overlong_penalty(tokens: Tensor, config: OverlongConfig) -> Tensor:
    """Addition to the reward of a trajectory with this many tokens: 0, then a ramp down to -1. [M] -> [M]."""
    allowed = config.max_tokens - config.cache_tokens
    return -((tokens - allowed) / config.cache_tokens).clamp(0, 1)
