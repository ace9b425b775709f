"""Credit assignment: group-relative advantages and their entropy modulation (arXiv 2509.09265, section 3).

Symbols: N trajectories or rows, T tokens a row, S agent steps in the whole batch. Everything that EMPG
computes is indexed by step; `token_values` spreads a step's advantage over its tokens afterwards. Entropies
are in nats.

Departures from the paper: equation 9 prints the number of trajectories as the divisor of the batch mean; the
paper's own pseudocode, and this module, divide by the number of steps, over which the sum runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

LAST = -1
"""`next_step` of the last step of a trajectory."""

STD_EPSILON = 1e-6
RANGE_EPSILON = 1e-8


@dataclass(frozen=True)
class EmpgConfig:
    """Which parts of EMPG are on, and how strong they are. The defaults are those of ALFWorld and WebShop."""

    k: float = 1.0
    """Sharpness of the entropy scale g (equation 6)."""
    k_f: float = 1.0
    """Sharpness of the future-clarity bonus f (k' of equation 7)."""
    zeta: float = 0.05
    """Weight of the future-clarity bonus (equation 4); the paper's Deep Search uses 0.1."""
    scaling: bool = True
    """Whether the advantage is scaled by g: the paper's gradient-scaling ablation."""
    bonus: bool = True
    """Whether f of the following step is added: the paper's future-bonus ablation."""
    form: Literal["exp", "inverse"] = "exp"
    """Form of g: exp(-k Hn) as in the paper, or 1 / (Hn + delta), where k plays no part. f is always exp."""
    delta: float = 0.1
    """Offset of the inverse form."""
    scope: Literal["batch", "minibatch"] = "batch"
    """Steps over which entropies are normalised and means are taken; the learner decides what a mini-batch
    is."""
    centre: bool = True
    """Whether the mean over steps is subtracted (equation 9)."""
    range_floor: float = 0.0
    """Smallest max - min (nats) that is stretched to the whole of [0, 1]; 0 stretches any range, as in the
    paper."""

    def __post_init__(self) -> None:
        for name in ("k", "k_f", "zeta", "range_floor"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
        if not (math.isfinite(self.delta) and self.delta > 0):
            raise ValueError(f"delta must be a finite number above 0, got {self.delta!r}")
        if self.form not in ("exp", "inverse"):
            raise ValueError(f"form must be 'exp' or 'inverse', got {self.form!r}")
        if self.scope not in ("batch", "minibatch"):
            raise ValueError(f"scope must be 'batch' or 'minibatch', got {self.scope!r}")


class Modulation(NamedTuple):
    """What EMPG did to every step; all [S]."""

    normalised: Tensor
    """Hn, the min-max normalised step entropy."""
    g: Tensor
    """Entropy scale, 1 on average; 1 everywhere where scaling is off."""
    f: Tensor
    """Future-clarity bonus before its weight zeta; 0 at last steps, and everywhere where the bonus is off."""
    advantage: Tensor
    """A g(H_t) + zeta f(H_{t+1}), centred over the steps."""


def group_advantage(reward: Tensor, group: Tensor) -> Tensor:
    """Group-relative advantage of every trajectory: (r - mean) / (std + 1e-6) within its group.

    The standard deviation is unbiased (divisor n - 1). Statistics are taken in float64, since a float32 mean
    leaves a residue that the division would blow up. A group of one, or of exactly equal rewards, gives
    exactly 0.

    reward: [N] one a trajectory, never one a step.
    group:  [N] integers; equal ones share a baseline. Numbers need not be consecutive.
    returns [N] in reward's floating type.
    """
    if reward.ndim != 1 or reward.shape != group.shape:
        raise ValueError(f"reward and group must be [N], got {list(reward.shape)} and {list(group.shape)}")
    exact = reward.detach().to("cpu", torch.float64)
    if not bool(torch.isfinite(exact).all()):
        raise ValueError(f"rewards must be finite, got {exact.tolist()}")
    groups = group.to("cpu")
    advantage = torch.zeros_like(exact)
    for number in torch.unique(groups):
        members = groups == number
        rewards = exact[members]
        if rewards.numel() > 1 and bool(rewards.max() > rewards.min()):
            advantage[members] = (rewards - rewards.mean()) / (rewards.std(correction=1) + STD_EPSILON)
    return advantage.to(
        reward.device, reward.dtype if reward.is_floating_point() else torch.get_default_dtype()
    )


def outcome_advantage(success: Tensor) -> Tensor:
    """The raw advantage of some retellings: +1 for a success, -1 for a failure. [N] bool -> [N]."""
    if success.dtype != torch.bool:
        raise ValueError(f"success must hold booleans, got {success.dtype}")
    return torch.where(success, 1.0, -1.0)


def step_entropy(token_entropy: Tensor, step_of_token: Tensor, num_steps: int) -> Tensor:
    """H_t, equation 3: mean entropy of the tokens that a step sampled.

    token_entropy: [N, T] entropy of the full next-token distribution each token was sampled from.
    step_of_token: [N, T] the step's index in the batch, -1 for every token that was not sampled.
    returns        [S]
    raises         ValueError for a step without tokens, or an index outside 0..num_steps-1.
    """
    if token_entropy.shape != step_of_token.shape:
        raise ValueError(f"shapes differ: {list(token_entropy.shape)} and {list(step_of_token.shape)}")
    sampled = step_of_token >= 0
    steps = step_of_token[sampled]
    count = torch.bincount(steps, minlength=num_steps)
    if count.numel() > num_steps:
        raise ValueError(f"step {count.numel() - 1} is outside a batch of {num_steps} steps")
    if bool((count == 0).any()):
        raise ValueError(f"steps {torch.nonzero(count == 0).flatten().tolist()[:8]} have no sampled token")
    total = token_entropy.new_zeros(num_steps).index_add(0, steps, token_entropy[sampled])
    return total / count


def normalised_entropy(entropy: Tensor, range_floor: float = 0.0) -> Tensor:
    """Hn, equation 8: min-max normalisation over all given steps; equal entropies give 0. [S] -> [S]."""
    if entropy.numel() == 0:
        return entropy
    low, high = torch.aminmax(entropy)
    return (entropy - low) / ((high - low).clamp(min=range_floor) + RANGE_EPSILON)


def entropy_scale(entropy: Tensor, config: EmpgConfig) -> Tensor:
    """g(H_t), equations 5-6: large where the policy was sure, and 1 on average over the steps. [S] -> [S]."""
    normalised = normalised_entropy(entropy, config.range_floor)
    weight = torch.exp(-config.k * normalised) if config.form == "exp" else 1 / (normalised + config.delta)
    return weight / weight.mean()


def clarity_bonus(entropy: Tensor, next_step: Tensor, config: EmpgConfig) -> Tensor:
    """f(H_{t+1}), equation 7: large where the following step is sure; 0 at a last step. Both [S] -> [S]."""
    if entropy.numel() == 0:
        return entropy
    clarity = torch.exp(-config.k_f * normalised_entropy(entropy, config.range_floor))
    follows = next_step >= 0
    return torch.where(follows, clarity[next_step.clamp(min=0)], torch.zeros_like(clarity))


def modulation(advantage: Tensor, entropy: Tensor, next_step: Tensor, config: EmpgConfig) -> Modulation:
    """EMPG of every step with its parts (equations 4-9). Arguments as in `modulate`."""
    _check_steps(advantage, entropy, next_step)
    entropy = entropy.detach()
    normalised = normalised_entropy(entropy, config.range_floor)
    g = entropy_scale(entropy, config) if config.scaling else torch.ones_like(entropy)
    f = clarity_bonus(entropy, next_step, config) if config.bonus else torch.zeros_like(entropy)
    if not (config.scaling or config.bonus):
        return Modulation(normalised, g, f, advantage)
    modulated = advantage * g + config.zeta * f
    if config.centre:
        modulated = modulated - modulated.mean()
    return Modulation(normalised, g, f, modulated)


def modulate(advantage: Tensor, entropy: Tensor, next_step: Tensor, config: EmpgConfig) -> Tensor:
    """EMPG advantage of every step: A g(H_t) + zeta f(H_{t+1}), minus its mean over the steps.

    With both parts off this is the plain advantage, untouched. A step whose group has advantage 0 still
    receives the bonus and the centring; that is the paper's behaviour.

    advantage: [S] the trajectory's advantage, repeated for each of its steps.
    entropy:   [S] step entropies (nats) of the policy that sampled the steps; no gradient flows through them.
    next_step: [S] index of the step that follows in the same trajectory, -1 at the last one.
    returns    [S]
    raises     ValueError for unequal shapes, a non-finite entropy, or an index outside the batch.
    """
    return modulation(advantage, entropy, next_step, config).advantage


def token_values(step_values: Tensor, step_of_token: Tensor) -> Tensor:
    """Give each sampled token its step's value, and 0 to every other token. [S], [N, T] -> [N, T]."""
    if step_values.numel() == 0:
        return step_values.new_zeros(step_of_token.shape)
    spread = step_values[step_of_token.clamp(min=0)]
    return torch.where(step_of_token >= 0, spread, torch.zeros_like(spread))


def _check_steps(advantage: Tensor, entropy: Tensor, next_step: Tensor) -> None:
    if advantage.ndim != 1 or not (advantage.shape == entropy.shape == next_step.shape):
        shapes = [list(t.shape) for t in (advantage, entropy, next_step)]
        raise ValueError(f"advantage, entropy and next_step must all be [S], got {shapes}")
    if not bool(torch.isfinite(entropy).all()):
        raise ValueError(
            f"step entropies must be finite, got {entropy[~torch.isfinite(entropy)].tolist()[:8]}"
        )
    steps = entropy.numel()
    if bool(((next_step < LAST) | (next_step >= steps)).any()):
        raise ValueError(f"next_step must lie in -1..{steps - 1}, got {next_step.tolist()[:8]}")
