"""One optimiser step's gradient, accumulated over micro-batches; how a batch is split into such steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from empg.advantages import EmpgConfig, Modulation, modulation, token_values
from empg.batch import Batch, passes
from empg.config import BatchConfig, LearnerConfig
from empg.losses import LossConfig, importance_weight, k3, limited_ratio, surrogate, token_weights
from empg.modes import differentiating
from empg.parallel import ALONE, Processes
from empg.scores import LanguageModel, token_scores


@dataclass(frozen=True)
class Scored:
    """A batch with everything an update needs that does not change during it."""

    batch: Batch
    raw_advantage: Tensor
    """[S] the advantage of each step's trajectory, before EMPG."""
    entropy: Tensor
    """[S] step entropies (nats) of the policy that sampled."""
    old_logprob: Tensor
    """[N, T] under the policy before the update."""
    reference_logprob: Tensor
    """[N, T]"""
    token_entropy: Tensor
    """[N, T] entropies (nats) of the policy before the update."""


@dataclass(frozen=True)
class UpdateStats:
    """What one optimiser step saw, before it moved the weights."""

    loss: float
    policy_loss: float
    kl: float
    """k3 to the reference, mean over sampled tokens whatever the loss's aggregation."""
    tokens: int
    ratio_sum: float
    ratio_max: float
    clipped_low: int
    """Tokens held back by the lower clip: negative advantage and ratio below 1 - clip_low."""
    clipped_high: int
    """Tokens held back by the upper clip: positive advantage and ratio above 1 + clip_high."""


def minibatches(
    trajectories: int, config: BatchConfig, *, seed: int, iteration: int, epoch: int
) -> list[Tensor]:
    """Split a batch into optimiser steps by trajectory, in random order.

    The number of steps depends on the number of trajectories alone. Sizes differ by at most one, so no step
    is left with a remnant. The order is a pure function of (seed, iteration, epoch).
    """
    size = config.minibatch_trajectories or trajectories
    order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(iteration, epoch))).permutation(
        trajectories
    )
    parts = np.array_split(order, -(-trajectories // size))
    return [torch.from_numpy(np.sort(part)) for part in parts]


def modulate_parts(scored: Scored, parts: Sequence[Tensor], config: EmpgConfig | None) -> Modulation:
    """EMPG over the whole batch, or within each part where the scope is the mini-batch.

    parts: trajectory indices of the mini-batches, together the whole batch. Returns tables over all S steps.
    Without EMPG the advantage is the raw one.
    """
    config = config or EmpgConfig(scaling=False, bonus=False)
    batch = scored.batch
    if config.scope == "batch":
        return modulation(scored.raw_advantage, scored.entropy, batch.next_step, config)
    tables = torch.zeros(len(Modulation._fields), batch.num_steps)
    for part in parts:
        steps = torch.nonzero(torch.isin(batch.trajectory_of_step, part)).flatten()
        local = torch.full((batch.num_steps,), -1).index_put((steps,), torch.arange(len(steps)))
        following = batch.next_step[steps]
        next_step = torch.where(following >= 0, local[following.clamp(min=0)], -1)
        tables[:, steps] = torch.stack(
            modulation(scored.raw_advantage[steps], scored.entropy[steps], next_step, config)
        )
    return Modulation(*tables)


def accumulate_gradient(
    lm: LanguageModel,
    scored: Scored,
    advantage: Tensor,
    trajectories: Tensor,
    config: LearnerConfig,
    processes: Processes = ALONE,
) -> UpdateStats:
    """Add the gradient of one optimiser step's loss to the parameters' `.grad`.

    The loss is a weighted sum over the sampled tokens of these trajectories, with weights fixed before the
    rows are split, so neither it nor its gradient depends on the token budget or the number of processes (beyond
    rounding). Each process adds the gradient of its share, and all return what all saw.

    advantage: [S]; trajectories: indices of the mini-batch.
    """
    batch = scored.batch
    rows = torch.nonzero(torch.isin(batch.trajectory_of_row, trajectories)).flatten()
    weights = token_weights(batch.step_of_token[rows], batch.trajectory_of_row[rows], config.loss.aggregation)
    parts = []
    with differentiating(lm.model):
        budget = config.batch.token_budget
        for local, counts in passes(batch.lengths[rows], budget, processes.rank, processes.count):
            chosen = rows[local]
            sampled = batch.step_of_token[chosen] >= 0
            current = token_scores(
                lm,
                batch,
                chosen,
                temperature=config.temperature,
                chunk=config.batch.chunk,
                entropy=config.loss.entropy_coef > 0,
            )
            tokens = TokenTargets(
                advantage=token_values(advantage, batch.step_of_token[chosen])[sampled].to(lm.device),
                weight=(weights[local][sampled] * counts).to(lm.device),
                old=scored.old_logprob[chosen][sampled].to(lm.device),
                reference=scored.reference_logprob[chosen][sampled].to(lm.device),
                engine=batch.sampled_logprobs[chosen][sampled].to(lm.device),
            )
            loss, stats = weighted_loss(current.logprob, current.entropy, tokens, config.loss)
            loss.backward()  # type: ignore[no-untyped-call]
            if counts:
                parts.append(stats)
    return _total(processes.gather_objects(_total(parts)))


@dataclass(frozen=True)
class TokenTargets:
    """What the loss knows about each sampled token; all [n]."""

    advantage: Tensor
    weight: Tensor
    old: Tensor
    reference: Tensor
    engine: Tensor
    """Log-probability (nats) by what sampled the token; read where its gap to `old` is corrected."""


def weighted_loss(
    logprob: Tensor, entropy: Tensor | None, tokens: TokenTargets, config: LossConfig
) -> tuple[Tensor, UpdateStats]:
    """Surrogate, KL and entropy terms of sampled tokens, as their share of the mini-batch's loss.

    logprob and entropy: [n], with gradient; entropy may be None where its coefficient is 0.
    """
    ratio = limited_ratio(logprob, tokens.old)
    objective = surrogate(ratio, tokens.advantage, config)
    if config.importance_cap is not None:
        objective = objective * importance_weight(tokens.old, tokens.engine, config.importance_cap)
    policy_loss = -(tokens.weight * objective).sum()
    kl = k3(logprob, tokens.reference)
    loss = policy_loss
    if config.kl_coef > 0:
        loss = loss + config.kl_coef * (tokens.weight * kl).sum()
    if config.entropy_coef > 0 and entropy is not None:
        loss = loss - config.entropy_coef * (tokens.weight * entropy).sum()
    count = logprob.numel()
    low = (tokens.advantage < 0) & (ratio < 1 - config.clip_low)
    high = (tokens.advantage > 0) & (ratio > 1 + config.clip_high)
    stats = UpdateStats(
        loss=float(loss.detach()),
        policy_loss=float(policy_loss.detach()),
        kl=float(kl.detach().double().mean()) if count else 0.0,
        tokens=count,
        ratio_sum=float(ratio.detach().double().sum()),
        ratio_max=float(ratio.detach().max()) if count else 0.0,
        clipped_low=int(low.sum()),
        clipped_high=int(high.sum()),
    )
    return loss, stats


def _total(parts: Sequence[UpdateStats]) -> UpdateStats:
    tokens = sum(part.tokens for part in parts)
    return UpdateStats(
        loss=sum(part.loss for part in parts),
        policy_loss=sum(part.policy_loss for part in parts),
        kl=sum(part.kl * part.tokens for part in parts) / max(tokens, 1),
        tokens=tokens,
        ratio_sum=sum(part.ratio_sum for part in parts),
        ratio_max=max((part.ratio_max for part in parts), default=0.0),
        clipped_low=sum(part.clipped_low for part in parts),
        clipped_high=sum(part.clipped_high for part in parts),
    )
