"""Configuration of the learner: standard-library dataclasses, checked when built."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from empg.advantages import EmpgConfig
from empg.losses import GRPO, LossConfig, OverlongConfig
from empg.modes import Precision


def due(iteration: int, every: int) -> bool:
    """Whether something that happens every so many iterations happens in this one; with 0 it never does."""
    return every > 0 and (iteration + 1) % every == 0


def _positive(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a finite number above 0, got {value!r}")


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW, gradient clipping and the learning-rate schedule."""

    lr: float = 1e-6
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """What the rate does after the warm-up; linear and cosine fall to `final_fraction` at
    `total_iterations`."""
    warmup_iterations: int = 0
    """Iterations over which the rate rises linearly; the schedule counts iterations, not optimiser steps."""
    total_iterations: int | None = None
    """Length of the run; needed by linear and cosine."""
    final_fraction: float = 0.0
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    clip_norm: float = 1.0
    """Largest norm of the whole gradient."""

    def __post_init__(self) -> None:
        _positive(self, "lr", "eps", "clip_norm")
        if self.schedule not in ("constant", "linear", "cosine"):
            raise ValueError(f"schedule must be 'constant', 'linear' or 'cosine', got {self.schedule!r}")
        if self.warmup_iterations < 0:
            raise ValueError(f"warmup_iterations must be at least 0, got {self.warmup_iterations}")
        if self.schedule != "constant" and self.total_iterations is None:
            raise ValueError(f"schedule {self.schedule!r} needs total_iterations")
        if self.total_iterations is not None and self.total_iterations <= self.warmup_iterations:
            raise ValueError(
                f"total_iterations must exceed warmup_iterations={self.warmup_iterations}, "
                f"got {self.total_iterations}"
            )
        if not 0 <= self.final_fraction <= 1:
            raise ValueError(f"final_fraction must lie in [0, 1], got {self.final_fraction!r}")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ValueError(f"weight_decay must be a finite number of at least 0, got {self.weight_decay!r}")

    def lr_at(self, iteration: int) -> float:
        """Learning rate of an iteration counted from 0; a pure function, so resuming needs no state."""
        if iteration < self.warmup_iterations:
            return self.lr * (iteration + 1) / self.warmup_iterations
        if self.schedule == "constant" or self.total_iterations is None:
            return self.lr
        passed = (iteration - self.warmup_iterations) / (self.total_iterations - self.warmup_iterations)
        passed = min(passed, 1.0)
        left = 1 - passed if self.schedule == "linear" else (1 + math.cos(math.pi * passed)) / 2
        return self.lr * (self.final_fraction + (1 - self.final_fraction) * left)


@dataclass(frozen=True)
class DynamicSamplingConfig:
    """DAPO's dynamic sampling: groups of equal raw rewards are dropped and others sampled in their place."""

    max_attempts: int = 3
    """Calls of `collect` in one iteration, the first one included; then the update uses what there is."""

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts must be at least 1, got {self.max_attempts}")


@dataclass(frozen=True)
class BatchConfig:
    """How much is collected and how it is split; the last two affect speed and memory, not the result."""

    groups_per_batch: int = 16
    """Groups (tasks) that one update learns from."""
    group_size: int = 8
    """Trajectories that share a baseline."""
    minibatch_trajectories: int | None = None
    """Trajectories of one optimiser step, at most; the whole batch by default. Turns play no part."""
    epochs: int = 1
    """Passes over the batch."""
    token_budget: int = 4096
    """Tokens of one forward pass, padding included."""
    chunk: int = 1024
    """Tokens whose logits exist at the same time."""

    def __post_init__(self) -> None:
        _positive(self, "groups_per_batch", "group_size", "epochs", "token_budget", "chunk")
        if self.minibatch_trajectories is not None:
            _positive(self, "minibatch_trajectories")


@dataclass(frozen=True)
class ProbeConfig:
    """Gradients of single steps, measured before an update; see `empg.probe`."""

    every: int
    """Every so many iterations."""
    steps: int = 96
    """Steps of the batch that are drawn; each costs a backward pass."""

    def __post_init__(self) -> None:
        _positive(self, "every", "steps")


@dataclass(frozen=True)
class LearnerConfig:
    """Everything that decides an update, apart from the model and the trajectories."""

    loss: LossConfig = GRPO
    empg: EmpgConfig | None = None
    """None trains on the raw advantage."""
    advantage: Literal["group", "outcome"] = "group"
    """Raw advantage: relative to the group's rewards, or +1 and -1 by success, where no reward enters."""
    sampling: DynamicSamplingConfig | None = None
    """None trains on whatever one `collect` brings."""
    overlong: OverlongConfig | None = None
    """Length penalty on the reward that advantages are taken from; raw rewards decide filtering and
    metrics."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    temperature: float = 1.0
    """The temperature that the trajectories were sampled at; every probability and entropy is taken at it."""
    precision: Precision = "float32"
    """What all passes calculate in. bfloat16: matrix products are (autocast), over weights that stay as they are;
    float32: no autocast, so the passes are in the type of the weights. Probabilities and losses are float32."""
    rescore_every: int = 0
    """Every so many iterations entropies are measured again after the update (the paper's Figure 3); 0:
    never."""
    token_groups: int = 0
    """Groups of each batch whose tokens are recorded one by one; they cost disk, not time."""
    probe: ProbeConfig | None = None
    """None measures no gradients of single steps; nor are any measured where weights are sharded."""
    seed: int = 0
    """Names the mini-batch order, together with iteration and epoch, and the steps that are probed."""

    def __post_init__(self) -> None:
        _positive(self, "temperature")
        if self.advantage not in ("group", "outcome"):
            raise ValueError(f"advantage must be 'group' or 'outcome', got {self.advantage!r}")
        if self.precision not in ("float32", "bfloat16"):
            raise ValueError(f"precision must be 'float32' or 'bfloat16', got {self.precision!r}")
        if self.overlong is not None and self.advantage == "outcome":
            raise ValueError("an overlong penalty shapes rewards, which advantage='outcome' does not use")
        for name in ("rescore_every", "token_groups", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
