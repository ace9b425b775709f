"""Peak memory of one pass over sampled tokens, in a process of its own: `python -m benchmarks.bench_memory`.

Two forms of the same: the one of `empg.scores`, whose logits exist for a chunk of tokens at a time, and the naive one,
with [batch, length, vocabulary] logits, their log-softmax and its entropy. A peak that a process has reached once
never falls again, so two passes cannot share a process.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.bench_tools import peak_bytes, resident_bytes, run_apart

if TYPE_CHECKING:
    import torch

    from empg.scores import LanguageModel
    from empg.update import Scored

Kind = Literal["scoring", "training"]
Form = Literal["chunked", "naive"]
QWEN_VOCABULARY = 151_936
"""Of Qwen2.5 up to 3B; the larger models' output layers are a little wider."""
TOLERANCE = 1e-4
"""Relative difference of what the two forms find: sums over a vocabulary in float32, in another order."""
_CLEAR_PEAK = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Pass:
    """What is done and at which size; with a hidden size this small nearly all memory is logits."""

    kind: Kind
    """Log-probabilities and entropies without gradient, or the gradient of the whole loss."""
    form: Form
    rows: int = 4
    tokens: int = 128
    """Sampled tokens of each row, after one that was not."""
    chunk: int = 32
    """Tokens whose logits exist at a time, in the chunked form."""
    vocabulary: int = QWEN_VOCABULARY
    hidden: int = 16


@dataclass(frozen=True)
class Peak:
    """What a pass took and found."""

    bytes: int
    """Memory that it added at its peak."""
    numbers: dict[str, float]
    """The same for both forms, to `TOLERANCE`."""


def measure_apart(size: Pass) -> Peak:
    """Measure a pass in a new process.

    glibc is told to hand large blocks back when they are freed: the peak is then what the pass asks for, not
    what the allocator happened to keep. Raises `RuntimeError` with the child's last words when it fails.
    """
    done = run_apart(
        "benchmarks.bench_memory",
        [f"--{name}={value}" for name, value in asdict(size).items()],
        f"the {size.form} {size.kind} pass",
        {"MALLOC_MMAP_THRESHOLD_": str(2**20)},
    )
    return Peak(**done)


def check_same(one: Peak, other: Peak) -> None:
    """Raises `RuntimeError` where two passes did not find the same."""
    for name, value in one.numbers.items():
        if not math.isclose(value, other.numbers[name], rel_tol=TOLERANCE, abs_tol=1e-6):
            raise RuntimeError(
                f"{name} is {value} in one form of the pass and {other.numbers[name]} in the other"
            )


def measure_here(size: Pass) -> Peak:
    """Measure a pass in this process, which must be new."""
    work = _scoring if size.kind == "scoring" else _training
    lm = _model(size)
    work(lm, _scored(size, rows=1, tokens=2), size)  # what is loaded on first use
    lm.model.zero_grad(set_to_none=True)
    scored = _scored(size, size.rows, size.tokens)
    before = _start_of_peak()
    summary = work(lm, scored, size)
    return Peak(peak_bytes() - before, summary())


def _scoring(lm: LanguageModel, scored: Scored, size: Pass) -> Callable[[], dict[str, float]]:
    """One pass without gradient; returns what sums its result up, after the peak was read."""
    import torch

    from empg.scores import score

    if size.form == "chunked":
        budget = scored.batch.token_ids.numel()
        found = score(lm, scored.batch, temperature=1.0, token_budget=budget, chunk=size.chunk)
        logprob, entropy = found.logprob[:, 1:], found.entropy[:, 1:]
    else:
        with torch.no_grad():
            logprob, entropy = _naive(lm, scored)
    return lambda: {
        "log-probability": float(logprob.mean()),
        "its square": float(logprob.square().mean()),
        "entropy": float(entropy.mean()),
    }


def _training(lm: LanguageModel, scored: Scored, size: Pass) -> Callable[[], dict[str, float]]:
    """One gradient of the loss; returns what sums it up, after the peak was read."""
    import torch

    from empg.config import BatchConfig, LearnerConfig
    from empg.losses import LossConfig
    from empg.update import TokenTargets, accumulate_gradient, weighted_loss

    loss = LossConfig(aggregation="token-mean")
    if size.form == "chunked":
        sizes = BatchConfig(token_budget=scored.batch.token_ids.numel(), chunk=size.chunk)
        everyone = torch.arange(scored.batch.num_trajectories)
        config = LearnerConfig(loss=loss, batch=sizes)
        stats = accumulate_gradient(lm, scored, scored.raw_advantage, everyone, config)
    else:
        logprob, entropy = (each.flatten() for each in _naive(lm, scored))
        old, reference, engine = (
            table[:, 1:].flatten()
            for table in (scored.old_logprob, scored.reference_logprob, scored.batch.sampled_logprobs)
        )
        advantage = scored.raw_advantage[scored.batch.step_of_token[:, 1:].flatten()]
        weight = torch.full_like(logprob, 1 / logprob.numel())
        targets = TokenTargets(advantage, weight, old, reference, engine)
        total, stats = weighted_loss(logprob, entropy, targets, loss)
        total.backward()  # type: ignore[no-untyped-call]
    return lambda: {
        "loss": stats.loss,
        "KL": stats.kl,
        **{
            f"gradient of {n}": float(p.grad.norm())
            for n, p in lm.model.named_parameters()
            if p.grad is not None
        },
    }


def _naive(lm: LanguageModel, scored: Scored) -> tuple[torch.Tensor, torch.Tensor]:
    """[B, T - 1] log-probabilities and entropies by way of [B, T - 1, V] logits, as the definitions read."""
    import torch

    token_ids = scored.batch.token_ids
    logits = lm.model(input_ids=token_ids[:, :-1], use_cache=False).logits.float()
    logp = torch.log_softmax(logits, dim=-1)
    entropy = -(logp.exp() * logp).sum(dim=-1)
    return logp.gather(-1, token_ids[:, 1:, None]).squeeze(-1), entropy


def _model(size: Pass) -> LanguageModel:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from empg.scores import open_model

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=size.hidden,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=size.tokens + 1,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    return open_model(LlamaForCausalLM(config).eval())


def _scored(size: Pass, rows: int, tokens: int) -> Scored:
    """Rows of one step each; the log-probabilities beside them are arbitrary, and near those of the model."""
    import torch

    from empg.batch import Batch
    from empg.update import Scored

    generator = torch.Generator().manual_seed(rows)
    owner = torch.arange(rows)
    marks = owner[:, None].repeat(1, tokens + 1)
    marks[:, 0] = -1  # the first token has no predecessor to be scored by
    old, reference = (-12 + torch.rand((rows, tokens + 1), generator=generator) for _ in range(2))
    batch = Batch(
        token_ids=torch.randint(size.vocabulary, (rows, tokens + 1), generator=generator),
        lengths=torch.full((rows,), tokens + 1),
        step_of_token=marks,
        sampled_logprobs=old,
        trajectory_of_row=owner,
        trajectory_of_step=owner,
        next_step=torch.full((rows,), -1),
        reward=torch.zeros(rows, dtype=torch.float64),
        success=torch.zeros(rows, dtype=torch.bool),
        group=torch.zeros(rows, dtype=torch.int64),
    )
    advantage = torch.randn(rows, generator=generator)
    return Scored(batch, advantage, torch.ones(rows), old, reference, torch.ones_like(old))


def _start_of_peak() -> int:
    """Memory in use now, after forgetting earlier peaks where the system can; else the peak so far."""
    try:
        _CLEAR_PEAK.write_text("5")
    except OSError:
        return peak_bytes()
    return resident_bytes() or peak_bytes()


def main() -> None:
    """Measure one pass and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    for field in fields(Pass):
        parser.add_argument(f"--{field.name}", type=int if field.type == "int" else str, required=True)
    given: dict[str, Any] = vars(parser.parse_args())
    print(json.dumps(asdict(measure_here(Pass(**given)))))


if __name__ == "__main__":
    main()
