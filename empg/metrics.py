"""What an iteration reports: deterministic numbers only; None where a number is not defined."""

from __future__ import annotations

from collections.abc import Sequence

from agents.trajectory import Trajectory
from empg.advantages import Modulation
from empg.collection import Collection
from empg.losses import k3, limited_ratio
from empg.update import Scored, UpdateStats

Metrics = dict[str, float | int | None]


TRAINED = (
    "train_tokens",
    "loss",
    "policy_loss",
    "kl_loss",
    "entropy",
    "entropy_min",
    "entropy_max",
    "surprisal",
    "ratio_mean",
    "ratio_max",
    "clip_low_share",
    "clip_high_share",
    "grad_norm",
    "lr",
    "g_min",
    "g_max",
    "bonus_mean",
    "advantage_abs_mean",
    "rollout_logprob_gap",
    "rollout_logprob_gap_max",
    "rollout_kl",
    "rollout_ratio_mean",
    "rollout_truncated_share",
)
"""Metrics that an iteration without an update leaves undefined."""


def collection_metrics(iteration: int, collection: Collection) -> Metrics:
    """What was sampled: rates over all usable episodes, beside the success of those that are trained on.

    `uniform_group_share` is the share of groups with a usable member whose raw rewards are all equal; such a
    group has advantage 0, and without dynamic sampling still feels the KL term and receives the EMPG bonus.
    """
    everyone = [member for group in collection.groups for member in group.members]
    usable = [member for member in everyone if member.usable]
    kept = [member for _, member in collection.training]
    steps = [step for member in usable for step in member.steps]
    comparable = [group for group in collection.groups if group.usable]
    return {
        "iteration": iteration,
        "attempts": collection.attempts,
        "episodes": len(everyone),
        "episodes_kept": len(kept),
        "episodes_errored": len(everyone) - len(usable),
        "groups": len(collection.groups),
        "groups_kept": len(collection.kept),
        "uniform_group_share": _mean([group.uniform for group in comparable]),
        "success": _mean([member.success for member in usable]),
        "success_kept": _mean([member.success for member in kept]),
        "score": _mean([member.score for member in usable]),
        "reward": _mean([member.reward for member in usable]),
        "truncated_share": _mean([member.end == "truncated" for member in usable]),
        "context_share": _mean([member.end == "context" for member in usable]),
        "well_formed_share": _mean([step.well_formed for step in steps]),
        "action_valid_share": _mean([step.action_valid for step in steps]),
        "steps_per_episode": _mean([len(member.steps) for member in usable]),
        "sampled_tokens": sum(map(sampled_tokens, everyone)),
    }


def sampled_tokens(trajectory: Trajectory) -> int:
    """Tokens that the policy wrote in an episode."""
    return sum(len(step.action_ids) for step in trajectory.steps)


TRUNCATION = 2.0
"""Importance weight beyond which tokens are counted where the loss corrects none."""


def score_metrics(scored: Scored, importance_cap: float | None = None) -> Metrics:
    """What the scoring pass found: entropies over steps, surprisal and rollout mismatch over sampled tokens.

    The mismatch compares the trainer's log-probabilities with those of what sampled the tokens: mean and largest
    difference (nats), the k3 estimate of KL(sampled || trainer), the mean ratio, and the share of tokens whose ratio
    exceeds `importance_cap`, or `TRUNCATION` without one. All are taken whether or not the loss corrects for it.
    """
    sampled = scored.batch.step_of_token >= 0
    old = scored.old_logprob[sampled].double()
    engine = scored.batch.sampled_logprobs[sampled].double()
    gap = (old - engine).abs()
    ratio = limited_ratio(old, engine)
    return {
        "train_tokens": int(sampled.sum()),
        "entropy": float(scored.entropy.double().mean()),
        "entropy_min": float(scored.entropy.min()),
        "entropy_max": float(scored.entropy.max()),
        "surprisal": float(-old.mean()),
        "rollout_logprob_gap": float(gap.mean()),
        "rollout_logprob_gap_max": float(gap.max()),
        "rollout_kl": float(k3(engine, old).mean()),
        "rollout_ratio_mean": float(ratio.mean()),
        "rollout_truncated_share": float((ratio > (importance_cap or TRUNCATION)).double().mean()),
    }


def modulation_metrics(modulated: Modulation, zeta: float) -> Metrics:
    """Spread of g, mean of zeta f before centring, mean size of the final advantage; all over steps."""
    return {
        "g_min": float(modulated.g.min()),
        "g_max": float(modulated.g.max()),
        "bonus_mean": zeta * float(modulated.f.double().mean()),
        "advantage_abs_mean": float(modulated.advantage.double().abs().mean()),
    }


def update_metrics(updates: Sequence[UpdateStats], grad_norms: Sequence[float], lr: float) -> Metrics:
    """Losses and gradient norm as means over optimiser steps; ratio, KL and clip shares over their tokens."""
    tokens = sum(update.tokens for update in updates)
    return {
        "loss": _mean([update.loss for update in updates]),
        "policy_loss": _mean([update.policy_loss for update in updates]),
        "kl_loss": sum(update.kl * update.tokens for update in updates) / tokens,
        "ratio_mean": sum(update.ratio_sum for update in updates) / tokens,
        "ratio_max": max(update.ratio_max for update in updates),
        "clip_low_share": sum(update.clipped_low for update in updates) / tokens,
        "clip_high_share": sum(update.clipped_high for update in updates) / tokens,
        "grad_norm": _mean(grad_norms),
        "lr": lr,
        "optimizer_steps": len(updates),
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
