"""The learner: trajectories in, a better policy and an account of the update out.

One iteration: collect (with dynamic sampling), shape rewards, group advantages, score under the old policy
and the reference, step entropies, EMPG, optimiser steps over mini-batches of trajectories, metrics.

A group of equal rewards has advantage 0. Under GRPO it stays in the batch: it counts in the loss's
denominators, feels the KL and entropy terms and receives the EMPG bonus, as in the paper;
`uniform_group_share` says how many there were. Dynamic sampling (DAPO) drops such groups before anything else
sees them.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from agents.policies.adapters import base_weights, has_adapters
from empg import checkpoint
from empg.advantages import (
    EmpgConfig,
    Modulation,
    entropy_scale,
    group_advantage,
    outcome_advantage,
    step_entropy,
)
from empg.batch import Batch, make_batch
from empg.collection import Collect, Collected, Collection, gather
from empg.config import (
    BatchConfig,
    DynamicSamplingConfig,
    LearnerConfig,
    OptimizerConfig,
    due,
)
from empg.losses import DAPO, GRPO, LOSSES, LossConfig, OverlongConfig, overlong_penalty
from empg.metrics import (
    TRAINED,
    Metrics,
    collection_metrics,
    modulation_metrics,
    sampled_tokens,
    score_metrics,
    update_metrics,
)
from empg.parallel import ALONE, Processes
from empg.probe import Gradients, draw_steps, probe
from empg.reference import Reference
from empg.scores import Scores, open_model, score
from empg.sharding import full_weights, shard
from empg.tables import (
    GradientTable,
    StepTable,
    TokenTable,
    gradient_table,
    places,
    step_table,
    token_table,
)
from empg.update import Scored, UpdateStats, accumulate_gradient, minibatches, modulate_parts

__all__ = [
    "DAPO",
    "GRPO",
    "LOSSES",
    "BatchConfig",
    "Collect",
    "Collected",
    "DynamicSamplingConfig",
    "IterationOutcome",
    "Learner",
    "LearnerConfig",
    "LossConfig",
    "NonFiniteError",
    "OptimizerConfig",
    "OverlongConfig",
    "Records",
]


logger = logging.getLogger(__name__)


class NonFiniteError(FloatingPointError):
    """A probability, loss or gradient was not finite; the weights are those from before that step."""


@dataclass(frozen=True)
class Records:
    """The trained batch, as far as the configuration asks to keep it."""

    steps: StepTable
    tokens: TokenTable | None
    gradients: GradientTable | None
    variances: Metrics | None
    """Of the probed steps' gradients, plain and scaled by g; see `empg.probe`."""


@dataclass(frozen=True)
class IterationOutcome:
    """What one iteration sampled and learned."""

    metrics: Metrics
    """Deterministic numbers, the same keys every time; None where a number is not defined."""
    collected: tuple[Collected, ...]
    """Every sampled trajectory, in order of attempt and group."""
    records: Records | None
    """The trained batch; None if the update was skipped."""
    seconds: Mapping[str, float]
    """Wall time of `collect`, `score` (probing included) and `update` (re-scoring included)."""


class Learner:
    """A policy under training, its frozen reference and its optimiser. Changes the given model in place."""

    def __init__(
        self,
        model: nn.Module,
        config: LearnerConfig,
        *,
        pad_id: int,
        reference: nn.Module | None = None,
        processes: Processes = ALONE,
    ) -> None:
        """Start from the model's present weights.

        pad_id fills the ends of rows and may equal any token. Without a reference, the model with its adapters off is
        it, or where it has none a frozen copy of the model as it is now. A run that will be resumed must be given the
        same reference, or the same initial model, again. Of several processes each has a learner with the same model
        and configuration, and all call the same methods in the same order; what `collect` returns must be the same on
        each.
        """
        self.config = config
        self.model = model
        self.next_iteration = 0
        self._pad_id = pad_id
        self._processes = processes
        self._sampled_tokens_total = 0
        self._lm = open_model(model, config.precision)
        self.reference = Reference(self._lm, reference)
        if processes.shards:
            if config.probe is not None:
                logger.warning("no gradients of single steps are measured where weights are sharded")
            self._lm = shard(self._lm, processes)
            self.reference.divide(self._lm, processes)
        self._trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not self._trained:
            raise ValueError("the model has no parameter that requires a gradient")
        _warn_of_rounding(self._trained)
        rates = config.optimizer
        self._optimizer = torch.optim.AdamW(
            self._trained.values(),
            lr=rates.lr,
            betas=rates.betas,
            eps=rates.eps,
            weight_decay=rates.weight_decay,
        )

    def iterate(self, iteration: int, collect: Collect) -> IterationOutcome:
        """Run one iteration.

        raises ValueError if it is not the next one, `NonFiniteError` for a number that is not finite;
        whatever `collect` raises passes through. After an error the learner must be restored from a
        checkpoint.
        """
        if iteration != self.next_iteration:
            raise ValueError(f"iteration {iteration} asked for, but {self.next_iteration} comes next")
        clock = [time.perf_counter()]
        collection = gather(iteration, collect, self.config.batch, self.config.sampling)
        collected = collection.listed()
        self._sampled_tokens_total += sum(sampled_tokens(each.trajectory) for each in collected)
        clock.append(time.perf_counter())
        metrics = collection_metrics(iteration, collection)
        metrics["sampled_tokens_total"] = self._sampled_tokens_total
        records = None
        if collection.kept:
            scored = self._score(iteration, collection)
            probed = self._probe(iteration, scored)
            clock.append(time.perf_counter())
            learned, modulated = self._improve(iteration, scored)
            records = self._records(iteration, collection, scored, modulated, probed)
            metrics |= score_metrics(scored, self.config.loss.importance_cap) | learned | {"skipped": 0}
        else:
            clock.append(clock[-1])
            metrics |= dict.fromkeys(TRAINED) | {"optimizer_steps": 0, "skipped": 1}
        clock.append(time.perf_counter())
        self.next_iteration = iteration + 1
        passed = [end - start for start, end in itertools.pairwise(clock)]
        seconds = dict(zip(("collect", "score", "update"), passed, strict=True))
        return IterationOutcome(metrics, collected, records, seconds)

    def save(self, folder: Path) -> None:
        """Write a checkpoint; the previous one stays until this one is complete.

        With adapters it holds what is trained and the digest of the other weights; `state.json` says so.
        """
        names: dict[Tensor, str] = {parameter: name for name, parameter in self._trained.items()}
        keep = self._processes.is_main
        scalars = {
            "sampled_tokens_total": self._sampled_tokens_total,
            "reference": self.reference.sha256(),
        }
        if (base := self._base_sha256()) is not None:
            scalars |= {"holds": "adapters", "base": base}
        saved = checkpoint.Checkpoint(
            next_iteration=self.next_iteration,
            model=checkpoint.gathered(checkpoint.learned_tensors(self.model), keep=keep),
            optimizer=checkpoint.gathered(checkpoint.optimizer_tensors(self._optimizer, names), keep=keep),
            scalars=scalars,
        )
        if keep:
            checkpoint.write(folder, saved)
        self._processes.barrier()

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """What checkpoints hold of the model, whole; all processes must walk through it alike."""
        return full_weights(self.model)

    def restore(self, folder: Path) -> int:
        """Go back to the newest checkpoint in the folder; returns the iteration that comes next.

        raises `CheckpointError` if there is none, it is damaged, or it was made with another model, reference or
        base of adapters.
        """
        saved = checkpoint.read(folder)
        for what, own in (("reference", self.reference.sha256()), ("base", self._base_sha256())):
            if (theirs := saved.scalars.get(what)) != own:
                raise checkpoint.CheckpointError(
                    f"{folder} was made with {what} {_short(theirs)}, but this learner's is {_short(own)}"
                )
        checkpoint.load_tensors(self.model, saved.model)
        checkpoint.load_optimizer(self._optimizer, saved.optimizer, self._trained)
        self._sampled_tokens_total = saved.scalars["sampled_tokens_total"]
        self.next_iteration = saved.next_iteration
        return self.next_iteration

    def _score(self, iteration: int, collection: Collection) -> Scored:
        batch = make_batch(collection.renumbered(), self._pad_id)
        old = self._scores(batch)
        reference = self.reference.logprob(batch, self.config, self._processes)
        for name, values in (
            ("log-probability", old.logprob),
            ("reference log-probability", reference),
        ):
            if not bool(torch.isfinite(values).all()):
                raise NonFiniteError(f"iteration {iteration}: a {name} of a sampled token is not finite")
        entropy = step_entropy(old.entropy, batch.step_of_token, batch.num_steps)
        raw = self._raw_advantage(batch)[batch.trajectory_of_step]
        return Scored(batch, raw, entropy, old.logprob, reference, old.entropy)

    def _raw_advantage(self, batch: Batch) -> Tensor:
        """[M] float32."""
        if self.config.advantage == "outcome":
            return outcome_advantage(batch.success)
        reward = batch.reward
        if self.config.overlong is not None:
            per_step = torch.bincount(
                batch.step_of_token[batch.step_of_token >= 0], minlength=batch.num_steps
            )
            tokens = per_step.new_zeros(batch.num_trajectories).index_add(
                0, batch.trajectory_of_step, per_step
            )
            reward = reward + overlong_penalty(tokens.double(), self.config.overlong)
        return group_advantage(reward, batch.group).float()

    def _improve(self, iteration: int, scored: Scored) -> tuple[Metrics, Modulation]:
        config = self.config
        lr = config.optimizer.lr_at(iteration)
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        updates: list[UpdateStats] = []
        norms: list[float] = []
        first: Modulation | None = None
        for epoch in range(config.batch.epochs):
            parts = minibatches(
                scored.batch.num_trajectories,
                config.batch,
                seed=config.seed,
                iteration=iteration,
                epoch=epoch,
            )
            modulated = modulate_parts(scored, parts, config.empg)
            first = first or modulated
            for part in parts:
                stats, norm = self._step(iteration, len(updates), scored, modulated.advantage, part)
                updates.append(stats)
                norms.append(norm)
        assert first is not None  # epochs is at least 1
        zeta = config.empg.zeta if config.empg else 0.0
        return update_metrics(updates, norms, lr) | modulation_metrics(first, zeta), first

    def _step(
        self, iteration: int, number: int, scored: Scored, advantage: Tensor, part: Tensor
    ) -> tuple[UpdateStats, float]:
        """One optimiser step; refuses to move the weights along anything that is not finite."""
        self._optimizer.zero_grad(set_to_none=True)
        stats = accumulate_gradient(self._lm, scored, advantage, part, self.config, self._processes)
        self._processes.sum_gradients(self._trained.values())
        clip_norm = self.config.optimizer.clip_norm
        total = nn.utils.clip_grad_norm_(self._trained.values(), clip_norm, foreach=None)
        norm = float(checkpoint.whole(total))
        for name, value in (("loss", stats.loss), ("KL", stats.kl), ("gradient norm", norm)):
            if not math.isfinite(value):
                raise NonFiniteError(f"iteration {iteration}, optimiser step {number}: the {name} is {value}")
        self._optimizer.step()
        return stats, norm

    def _probe(self, iteration: int, scored: Scored) -> Gradients | None:
        config = self.config
        if config.probe is None or self._processes.shards or not due(iteration, config.probe.every):
            return None
        steps = draw_steps(scored.batch.num_steps, config.probe.steps, seed=config.seed, iteration=iteration)
        g = entropy_scale(scored.entropy, config.empg or EmpgConfig())
        parameters = list(self._trained.values())
        return probe(self._lm, scored, steps, g, parameters, temperature=config.temperature)

    def _records(
        self,
        iteration: int,
        collection: Collection,
        scored: Scored,
        modulated: Modulation,
        probed: Gradients | None,
    ) -> Records:
        batch, listed = scored.batch, places(collection)
        after = self._scores(batch) if due(iteration, self.config.rescore_every) else None
        entropy_after = (
            None if after is None else step_entropy(after.entropy, batch.step_of_token, batch.num_steps)
        )
        return Records(
            steps=step_table(listed, scored, modulated, entropy_after),
            tokens=token_table(listed, self.config.token_groups, scored, after),
            gradients=None if probed is None else gradient_table(listed, scored, probed),
            variances=None if probed is None else {"iteration": iteration, **probed.variances()},
        )

    def _scores(self, batch: Batch) -> Scores:
        sizes = self.config.batch
        return score(
            self._lm,
            batch,
            temperature=self.config.temperature,
            token_budget=sizes.token_budget,
            chunk=sizes.chunk,
            processes=self._processes,
        )

    def _base_sha256(self) -> str | None:
        """Of the weights that checkpoints leave out, because adapters are trained instead; None where none are."""
        if not has_adapters(self.model):
            return None
        if self.reference.shares:
            return self.reference.sha256()
        return checkpoint.digest({n: one for n, one in base_weights(self.model) if not one.requires_grad})


def _short(digest: str | None) -> str:
    return "none (no adapters)" if digest is None else digest[:12]


def _warn_of_rounding(trained: Mapping[str, Tensor]) -> None:
    """Half precision has 8 or 11 binary digits: steps below a 512th or a 4096th of a weight leave it as it is."""
    half = {str(one.dtype) for one in trained.values() if one.dtype.itemsize < 4}
    if half:
        logger.warning(
            "trained weights are %s, in which small steps are rounded away; expected float32 weights, "
            "with precision 'bfloat16' where the passes should be fast",
            ", ".join(sorted(half)),
        )
