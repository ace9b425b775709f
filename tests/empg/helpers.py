"""Hand-made trajectories and tiny random models; no environment, no tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from agents.trajectory import EndReason, Step, Trajectory

VOCABULARY = 32
PAD = 0


def tiny_model(seed: int = 0, **changes: Any) -> LlamaForCausalLM:
    settings: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "initializer_range": 0.3,
        "tie_word_embeddings": True,
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(LlamaConfig(**(settings | changes)))


class Bigram(nn.Module):
    """A causal model whose logits depend on the present token alone: row `token` of a table."""

    def __init__(self, vocabulary: int = 20) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.table = nn.Parameter(torch.randn(vocabulary, vocabulary, generator=generator))

    def forward(self, input_ids, use_cache=False, attention_mask=None):
        return SimpleNamespace(logits=self.table[input_ids])


def make_step(
    prompt: Sequence[int],
    action: Sequence[int],
    *,
    continues: bool,
    logprobs: Sequence[float] | None = None,
    reward: float = 0.0,
) -> Step:
    return Step(
        prompt_ids=tuple(prompt),
        continues=continues,
        action_ids=tuple(action),
        action_logprobs=tuple(logprobs if logprobs is not None else [-1.0] * len(action)),
        stop="stop",
        thought="",
        action="look",
        well_formed=True,
        action_valid=True,
        observation="",
        reward=reward,
    )


def trajectory(
    steps: Sequence[Step],
    *,
    group: int = 0,
    sample: int = 0,
    reward: float = 0.0,
    task_id: str | None = None,
    end: EndReason = "terminated",
) -> Trajectory:
    return Trajectory(
        task_id=task_id or f"task-{group}",
        task_type="toy",
        group=group,
        sample=sample,
        steps=tuple(steps),
        reward=reward,
        success=reward == 1.0,
        score=reward,
        end=end,
        error="broken" if end == "error" else None,
    )


def random_trajectory(
    rng: np.random.Generator,
    *,
    group: int = 0,
    sample: int = 0,
    reward: float | None = None,
    turns: int | None = None,
    window: bool = False,
) -> Trajectory:
    """1 to 4 steps of random tokens; in the window layout every step has a prompt of its own."""
    steps = []
    for index in range(turns or int(rng.integers(1, 5))):
        continues = index > 0 and not window
        read = rng.integers(1, VOCABULARY, size=int(rng.integers(1, 6))).tolist()
        written = rng.integers(1, VOCABULARY, size=int(rng.integers(1, 8))).tolist()
        steps.append(make_step(read, written, continues=continues))
    paid = float(rng.integers(0, 2)) if reward is None else reward
    return trajectory(steps, group=group, sample=sample, reward=paid)


def random_collect(groups: int, size: int, seed: int = 0) -> Any:
    """A collect function whose trajectories are a pure function of (seed, iteration, attempt)."""

    def collect(iteration: int, attempt: int) -> list[Trajectory]:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(iteration, attempt)))
        return [
            random_trajectory(rng, group=group, sample=sample, reward=float(sample % 2))
            for group in range(groups)
            for sample in range(size)
        ]

    return collect
