"""Judging a warm start before reinforcement learning: accuracy and entropy by kind of decision, then success.

Decisions are judged where the skilled demonstrator stands on held-out tasks: does the policy, reading the
same history, decide likewise, and how much doubt is left for reinforcement learning to work with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from agents.policies.base import Sampling, Turn
from agents.policies.torch_policy import TorchPolicy
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from agents.trajectory import Trajectory
from benchmarks.progress import Status
from benchmarks.seeding import Stream
from benchmarks.warm_start.demonstrations import DemonstrationConfig, Progress, collect, silent
from benchmarks.warm_start.examples import Example, Span, make_examples
from envs.base import Split, World

ALL = "all"
"""Name of the row over all kinds of decision."""


@dataclass(frozen=True)
class MeasureConfig:
    """How much is measured, on which split."""

    split: Split = "dev"
    decision_tasks: int = 60
    """Tasks on which the skilled demonstrator's decisions are compared."""
    episode_tasks: int = 200
    """Tasks the policy plays, once sampled and once greedily."""

    def __post_init__(self) -> None:
        for name in ("decision_tasks", "episode_tasks"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")


@dataclass(frozen=True)
class DecisionFigures:
    """One kind of decision. Entropies are of the full next-token distribution at temperature 1, in nats."""

    decisions: int
    action_accuracy: float | None
    """Share in which the greedily written action equals the demonstrator's."""
    response_accuracy: float | None
    """Share in which thought and action do, word for word."""
    entropy_per_token: float
    """Along the demonstrated responses."""
    entropy_per_decision: float
    surprisal_per_decision: float | None
    """Minus the log-probability of the whole demonstrated response."""


@dataclass(frozen=True, eq=False)
class _Judged:
    kind: str
    action: bool
    response: bool
    tokens: int
    entropy: float
    surprisal: float


def measure(
    model: Any,
    tokenizer: Any,
    world: World,
    rollout_config: RolloutConfig,
    config: MeasureConfig,
    *,
    prompts: Prompts,
    max_context: int,
    seed: int,
    progress: Progress = silent,
) -> dict[str, Any]:
    """All figures, JSON-ready: `decisions` by kind, `success` by mode, the demonstrator's as `ceiling`."""
    policy = TorchPolicy(model, tokenizer, max_context=max_context)
    skilled = collect(world, DemonstrationConfig(tasks=config.decision_tasks), split=config.split, seed=seed)
    examples = make_examples(skilled, tokenizer, rollout_config, prompts=prompts, max_context=max_context)
    decisions = measure_decisions(policy, examples, rollout_config, prompts, progress=progress)
    ceiling = collect(world, DemonstrationConfig(tasks=config.episode_tasks), split=config.split, seed=seed)
    modes = {"sampled": Sampling(), "greedy": Sampling(greedy=True)}
    success = {
        mode: _play(
            policy, world, replace(rollout_config, sampling=sampling), config, prompts, seed, mode, progress
        )
        for mode, sampling in modes.items()
    }
    return {
        "split": config.split,
        "decisions": {kind: asdict(figures) for kind, figures in decisions.items()},
        "success": success,
        "ceiling": {"episodes": len(ceiling), "success": _mean([float(d.success) for d in ceiling])},
    }


def measure_decisions(
    policy: TorchPolicy,
    examples: Sequence[Example],
    config: RolloutConfig,
    prompts: Prompts,
    *,
    progress: Progress = silent,
) -> dict[str, DecisionFigures]:
    """Figures of each kind of decision in the examples, and of all together under `ALL`."""
    judged: list[_Judged] = []
    for start in range(0, len(examples), config.parallel):
        part = examples[start : start + config.parallel]
        written = _greedy_texts(policy, part, config.max_new_tokens)
        for example, texts in zip(part, written, strict=True):
            judged += _judge(policy, example, texts, prompts)
        progress(Status("judging decisions", start + len(part), len(examples)))
    kinds = sorted({one.kind for one in judged})
    return {kind: _figures([one for one in judged if kind in (one.kind, ALL)]) for kind in (*kinds, ALL)}


def _greedy_texts(policy: TorchPolicy, examples: Sequence[Example], max_new_tokens: int) -> list[list[str]]:
    """What the policy writes at each span when everything before it is as demonstrated."""
    session = policy.open(len(examples), Sampling(greedy=True))
    texts: list[list[str]] = [[] for _ in examples]
    unused = np.zeros(max_new_tokens)
    for number in range(max(len(example.spans) for example in examples)):
        asked = [row for row, example in enumerate(examples) if number < len(example.spans)]
        turns = [
            Turn(
                episode=row,
                new_ids=tuple(examples[row].ids[: examples[row].spans[number].start].tolist()),
                restart=True,
                max_new_tokens=max_new_tokens,
                uniforms=unused,
            )
            for row in asked
        ]
        for row, generation in zip(asked, session.generate(turns), strict=True):
            texts[row].append(policy.chat.text_of(generation.token_ids))
    return texts


@torch.no_grad()
def _judge(policy: TorchPolicy, example: Example, texts: Sequence[str], prompts: Prompts) -> list[_Judged]:
    """Compare what was written with the demonstration, and measure the doubt along the demonstration."""
    ids = torch.from_numpy(example.ids).to(policy.device)
    logits = policy.model(input_ids=ids[None], use_cache=False).logits[0].float()
    logprobs = torch.log_softmax(logits, dim=-1)
    entropy = -(logprobs.exp() * logprobs).sum(-1)
    surprisal = -logprobs[:-1].gather(1, ids[1:, None])[:, 0]
    return [
        _judge_span(span, text, example, policy, prompts, entropy, surprisal)
        for span, text in zip(example.spans, texts, strict=True)
    ]


def _judge_span(
    span: Span,
    text: str,
    example: Example,
    policy: TorchPolicy,
    prompts: Prompts,
    entropy: torch.Tensor,
    surprisal: torch.Tensor,
) -> _Judged:
    before = slice(span.start - 1, span.stop - 1)  # position i predicts token i + 1
    demonstrated = policy.chat.text_of(example.ids[span.start : span.stop].tolist())
    return _Judged(
        kind=span.decision.kind,
        action=prompts.parse(text).action == prompts.parse(demonstrated).action,
        response=text == demonstrated,
        tokens=span.stop - span.start,
        entropy=float(entropy[before].sum()),
        surprisal=float(surprisal[before].sum()),
    )


def _figures(judged: Sequence[_Judged]) -> DecisionFigures:
    entropy = sum(one.entropy for one in judged)
    return DecisionFigures(
        decisions=len(judged),
        action_accuracy=_mean([float(one.action) for one in judged]),
        response_accuracy=_mean([float(one.response) for one in judged]),
        entropy_per_token=round(entropy / sum(one.tokens for one in judged), 4),
        entropy_per_decision=round(entropy / len(judged), 4),
        surprisal_per_decision=_mean([one.surprisal for one in judged]),
    )


def _play(
    policy: TorchPolicy,
    world: World,
    rollout_config: RolloutConfig,
    config: MeasureConfig,
    prompts: Prompts,
    seed: int,
    mode: str,
    progress: Progress,
) -> dict[str, Any]:
    """Success and form of the policy's own episodes."""
    panel = world.panel(config.split, config.episode_tasks)
    episodes = [
        Episode(task_id, group=task, sample=0, place=(int(Stream.EVALUATE), task))
        for task, task_id in enumerate(panel.task_ids)
    ]
    done: list[Trajectory] = []

    def note(trajectory: Trajectory) -> None:
        done.append(trajectory)
        rate = sum(one.success for one in done) / len(done)
        progress(Status(f"playing {mode}", len(done), len(episodes), f"success {rate:.2f}"))

    played = rollout(
        policy, world.make_env, episodes, rollout_config, prompts=prompts, seed=seed, on_done=note
    )
    usable = [trajectory for trajectory in played if trajectory.usable]
    steps = [step for trajectory in usable for step in trajectory.steps]
    return {
        "episodes": len(played),
        "errored": len(played) - len(usable),
        "success": _mean([float(one.success) for one in usable]),
        "score": _mean([one.score for one in usable]),
        "steps": _mean([float(len(one.steps)) for one in usable]),
        "unfinished": _mean([float(one.end in ("truncated", "context")) for one in usable]),
        "well_formed": _mean([float(step.well_formed) for step in steps]),
        "action_valid": _mean([float(step.action_valid) for step in steps]),
    }


def _mean(values: Sequence[float]) -> float | None:
    """None for nothing: a rate over no episodes is not 0."""
    return round(sum(values) / len(values), 4) if values else None
