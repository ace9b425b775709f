"""Peak memory of one scoring pass, measured in a process of its own: `python -m benchmarks.bench_memory`.

A peak that a process has reached once never falls again, so two variants cannot share a process.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.bench_tools import peak_bytes, resident_bytes, run_apart

_CLEAR_PEAK = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class ScoringPass:
    """Size of the pass; with a hidden size this small nearly all memory is logits."""

    chunk: int
    """Tokens whose logits exist at a time; as many as there are means no chunks."""
    tokens: int = 512
    vocabulary: int = 150_000
    hidden: int = 16


def measure_apart(size: ScoringPass) -> int:
    """Bytes that a scoring pass adds at its peak, measured in a new process.

    glibc is told to hand large blocks back when they are freed: the peak is then what the pass asks for, not
    what the allocator happened to keep. Raises `RuntimeError` with the child's last words when it fails.
    """
    done = run_apart(
        "benchmarks.bench_memory",
        [f"--{name}={value}" for name, value in asdict(size).items()],
        f"the scoring pass with chunk {size.chunk}",
        {"MALLOC_MMAP_THRESHOLD_": str(2**20)},
    )
    return int(done["bytes"])


def measure_here(size: ScoringPass) -> int:
    """Bytes that a scoring pass adds to this process at its peak."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from empg.batch import Batch
    from empg.scores import open_model, score

    config = LlamaConfig(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=size.hidden,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=size.tokens + 1,
        tie_word_embeddings=True,
    )
    model = open_model(LlamaForCausalLM(config))

    def batch(tokens: int) -> Batch:
        marks = torch.zeros((1, tokens + 1), dtype=torch.int64)
        marks[0, 0] = -1  # the first token has no predecessor to be scored by
        zero = torch.zeros(1, dtype=torch.int64)
        return Batch(
            token_ids=torch.arange(tokens + 1)[None, :] % size.vocabulary,
            lengths=torch.tensor([tokens + 1]),
            step_of_token=marks,
            sampled_logprobs=torch.zeros((1, tokens + 1)),
            trajectory_of_row=zero,
            trajectory_of_step=zero,
            next_step=torch.tensor([-1]),
            reward=torch.zeros(1, dtype=torch.float64),
            success=torch.zeros(1, dtype=torch.bool),
            group=zero,
        )

    score(model, batch(1), temperature=1.0, token_budget=2, chunk=1)  # what is loaded on first use
    before = _start_of_peak()
    score(model, batch(size.tokens), temperature=1.0, token_budget=size.tokens + 1, chunk=size.chunk)
    return peak_bytes() - before


def _start_of_peak() -> int:
    """Memory in use now, after forgetting earlier peaks where the system can; else the peak so far."""
    try:
        _CLEAR_PEAK.write_text("5")
    except OSError:
        return peak_bytes()
    return resident_bytes() or peak_bytes()


def main() -> None:
    """Measure one pass and print its bytes as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ScoringPass.__dataclass_fields__:
        parser.add_argument(f"--{name}", type=int, required=True)
    print(json.dumps({"bytes": measure_here(ScoringPass(**vars(parser.parse_args())))}))


if __name__ == "__main__":
    main()
