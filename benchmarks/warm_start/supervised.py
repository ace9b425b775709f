"""Supervised learning on demonstrations: next-token prediction over whole episodes on a CPU.

Responses count fully, what the environment says counts a little: the same pass teaches the language of the
pages, which a policy that copies from them needs, and the decisions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.progress import Status, duration
from benchmarks.seeding import generator
from benchmarks.warm_start.demonstrations import Progress, silent
from benchmarks.warm_start.examples import Example

IGNORED = -100
_ORDER, _OBSERVED = 0, 1  # places of the random streams: order of the rows, choice of observation tokens


@dataclass(frozen=True)
class SupervisedConfig:
    """How the policy is taught."""

    epochs: int = 4
    """Passes over the demonstrations in one cycle."""
    cycles: int = 1
    """How often the learning rate rises and falls; each begins with a new optimiser and takes the same batches."""
    batch_tokens: int = 8192
    """Most tokens of a batch, padding included; a longer row is a batch of its own."""
    learning_rate: float = 3e-3
    """After the warm-up; a cosine takes it down to a twentieth."""
    warmup_share: float = 0.05
    """Part of all steps over which the learning rate rises from 0."""
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    observation_weight: float = 0.2
    """Weight of a token that the environment wrote, against 1 for one of a response; 0 leaves them out."""
    observation_share: float = 0.25
    """Part of those tokens that is drawn in each epoch, with its weight raised to match; fewer is faster."""

    def __post_init__(self) -> None:
        for name in ("epochs", "cycles", "batch_tokens", "learning_rate", "max_grad_norm"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("weight_decay", "observation_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if not 0 < self.observation_share <= 1:
            raise ValueError(f"observation_share must lie in (0, 1], got {self.observation_share}")
        if not 0 <= self.warmup_share < 1:
            raise ValueError(f"warmup_share must lie in [0, 1), got {self.warmup_share}")


@dataclass(frozen=True)
class SupervisedRecord:
    """What a training run did. Losses are nats per token over the last tenth of the steps."""

    steps: int
    tokens: int
    """Tokens read, padding left out."""
    response_loss: float
    observation_loss: float | None
    """None when observations had no weight."""
    seconds: float
    tokens_per_second: float


@dataclass(frozen=True, eq=False)
class Batch:
    """Right-padded rows: causal attention never looks to the right, so padding needs no mask."""

    ids: Tensor
    """[N, T]"""
    targets: Tensor
    """[N, T] the following token where it counts, else `IGNORED`."""
    observed: Tensor
    """[N, T] whether the following token was written by the environment."""
    tokens: int


def train(
    model: Any,
    examples: Sequence[Example],
    config: SupervisedConfig,
    *,
    seed: int,
    pad_id: int,
    cycle: int = 0,
    progress: Progress = silent,
    log: Path | None = None,
) -> SupervisedRecord:
    """Teach `model` in place for one cycle; the same seed, examples and thread count give the same weights.

    `cycle`, from 0, is what progress says of `config.cycles`.
    `log` receives a line of figures about every hundredth of the way.
    """
    plan = [
        (epoch, rows) for epoch in range(config.epochs) for rows in plan_epoch(examples, config, seed, epoch)
    ]
    optimizer = _optimizer(model, config)
    meter = _Meter(len(plan), (cycle, config.cycles), progress, log)
    model.train()
    for step, (epoch, rows) in enumerate(plan):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, len(plan), config)
        batch = make_batch(examples, rows, config, seed=seed, epoch=epoch, pad_id=pad_id)
        response, observation = token_losses(model, batch)
        weight = config.observation_weight / config.observation_share
        total = response.sum() + weight * observation.sum()
        loss = total / (len(response) + weight * len(observation))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        meter.add(step, batch.tokens, response.detach(), observation.detach())
    model.eval()
    return meter.record()


def learning_rate(step: int, steps: int, config: SupervisedConfig) -> float:
    """Linear warm-up, then a cosine down to a twentieth of the peak at the last step."""
    warmup = max(1, round(config.warmup_share * steps))
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    done = (step - warmup) / max(1, steps - 1 - warmup)
    return config.learning_rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))


def plan_epoch(
    examples: Sequence[Example], config: SupervisedConfig, seed: int, epoch: int
) -> list[list[int]]:
    """Rows of each batch of an epoch: similar lengths together, in an order named by (seed, epoch)."""
    rng = generator(seed, _ORDER, epoch)
    shuffled = rng.permutation(len(examples))
    ordered = sorted(
        (int(row) for row in shuffled), key=lambda row: len(examples[row].ids)
    )  # stable: ties shuffled
    batches: list[list[int]] = [[]]
    for row in ordered:
        if batches[-1] and (len(batches[-1]) + 1) * len(examples[row].ids) > config.batch_tokens:
            batches.append([])
        batches[-1].append(row)
    return [batches[place] for place in rng.permutation(len(batches))]


def make_batch(
    examples: Sequence[Example],
    rows: Sequence[int],
    config: SupervisedConfig,
    *,
    seed: int,
    epoch: int,
    pad_id: int,
) -> Batch:
    """The rows as tensors, with this epoch's draw of observation tokens."""
    longest = max(len(examples[row].ids) for row in rows)
    ids = np.full((len(rows), longest), pad_id, dtype=np.int64)
    targets = np.full((len(rows), longest), IGNORED, dtype=np.int64)
    observed = np.zeros((len(rows), longest), dtype=bool)
    for place, row in enumerate(rows):
        example, length = examples[row], len(examples[row].ids)
        written = example.written[1:]
        ids[place, :length] = example.ids
        drawn = written | _draw(length - 1, config, generator(seed, _OBSERVED, epoch, row))
        targets[place, : length - 1] = np.where(drawn, example.ids[1:], IGNORED)
        observed[place, : length - 1] = ~written
    tokens = sum(len(examples[row].ids) for row in rows)
    return Batch(torch.from_numpy(ids), torch.from_numpy(targets), torch.from_numpy(observed), tokens)


def _draw(count: int, config: SupervisedConfig, rng: np.random.Generator) -> NDArray[np.bool_]:
    if config.observation_weight == 0:
        return np.zeros(count, dtype=bool)
    return rng.random(count) < config.observation_share


def token_losses(model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """Cross-entropy (nats) of each counted token: those of responses, those of observations.

    Logits are computed only where a token counts.
    """
    hidden = model.model(input_ids=batch.ids, use_cache=False).last_hidden_state
    counted = batch.targets != IGNORED
    logits = model.lm_head(hidden[counted])
    losses = torch.nn.functional.cross_entropy(logits.float(), batch.targets[counted], reduction="none")
    observed = batch.observed[counted]
    return losses[~observed], losses[observed]


def _optimizer(model: Any, config: SupervisedConfig) -> torch.optim.AdamW:
    """AdamW; vectors (the norms' scales) are not decayed."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.98))


class _Meter:
    """Adds up losses and speed, and reports them."""

    def __init__(self, steps: int, cycle: tuple[int, int], progress: Progress, log: Path | None) -> None:
        """`cycle`: its number from 0, and how many there are."""
        self._steps, self._progress, self._log = steps, progress, log
        self._before, self._all = cycle[0] * steps, cycle[1] * steps
        self._begun = time.monotonic()
        self._tokens = 0
        self._recent: list[tuple[float, int, float, int]] = []
        if log is not None:
            log.write_text("")

    def add(self, step: int, tokens: int, response: Tensor, observation: Tensor) -> None:
        self._tokens += tokens
        self._recent.append(
            (float(response.sum()), len(response), float(observation.sum()), len(observation))
        )
        done = step + 1
        every = max(1, self._steps // 100)
        if done % every and done != self._steps:
            return
        seconds = time.monotonic() - self._begun
        loss, seen = self._means(every)
        note = f"loss {loss:.3f}"
        self._progress(Status("teaching", self._before + done, self._all, note))
        if self._log is not None:
            rest = duration(seconds / done * (self._steps - done))
            seen_note = "" if seen is None else f"  observation loss {seen:.3f}"
            line = f"step {done}/{self._steps}  response {note}{seen_note}"
            with self._log.open("a") as file:
                file.write(f"{line}  {self._tokens / seconds:.0f} tokens/s  about {rest} left\n")

    def record(self) -> SupervisedRecord:
        seconds = time.monotonic() - self._begun
        response, observation = self._means(max(1, self._steps // 10))
        rate = self._tokens / seconds if seconds > 0 else 0.0
        return SupervisedRecord(
            self._steps, self._tokens, response, observation, round(seconds, 1), round(rate, 1)
        )

    def _means(self, last: int) -> tuple[float, float | None]:
        """Mean loss per token of responses and of observations over the last steps."""
        response, responses, observation, observations = (
            sum(part) for part in zip(*self._recent[-last:], strict=True)
        )
        return response / responses, (observation / observations if observations else None)
