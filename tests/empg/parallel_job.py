"""What one process makes of some batches, alone or with others; run by `test_parallel.py`, also under a launcher.

`python -m tests.empg.parallel_job FOLDER` writes `FOLDER/<kind>-<rank>.safetensors` and `.json`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from agents.policies.adapters import add_lora
from empg import EmpgConfig, checkpoint
from empg.batch import make_batch
from empg.config import BatchConfig, LearnerConfig, OptimizerConfig
from empg.losses import DAPO, GRPO, LossConfig
from empg.parallel import Launched, Processes
from empg.scores import LanguageModel, open_model, score
from empg.sharding import full_weights, shard
from empg.trainer import Learner
from empg.update import Scored, accumulate_gradient
from tests.empg.helpers import PAD, random_collect, random_trajectory, tiny_model

TERMS = {"kl_coef": 0.1, "entropy_coef": 0.05}
LOSSES: dict[str, LossConfig] = {"grpo": replace(GRPO, **TERMS), "dapo": replace(DAPO, **TERMS)}
ROWS = {"odd": 7, "even": 6, "alone": 1}
"""Trajectories of a batch; of one row, the second process has nothing to do."""
SCOPES = ("batch", "minibatch")
LEARNER = LearnerConfig(
    batch=BatchConfig(groups_per_batch=3, group_size=3, token_budget=64, chunk=16, minibatch_trajectories=5),
    optimizer=OptimizerConfig(lr=1e-3),
)
UPDATES = 2


def learner(loss: str, scope: Any, processes: Processes, **changes: Any) -> Learner:
    empg = EmpgConfig(zeta=0.1, scope=scope)
    config = replace(LEARNER, loss=LOSSES[loss], empg=empg, **changes)
    return Learner(tiny_model(num_hidden_layers=2), config, pad_id=PAD, processes=processes)


def gradients(rows: int, loss: LossConfig, processes: Processes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Of one optimiser step on trajectories of unequal lengths, some in several rows; every term is at work."""
    model, rng = tiny_model(num_hidden_layers=2), np.random.default_rng(rows)
    batch = make_batch(
        [random_trajectory(rng, sample=i, window=rows > 1 and i % 2 == 1) for i in range(rows)], PAD
    )
    lm: LanguageModel = open_model(model)
    if processes.shards:
        lm = shard(lm, processes)
    own = score(lm, batch, temperature=0.7, token_budget=40, chunk=5, processes=processes)
    generator = torch.Generator().manual_seed(rows)
    moved = [
        own.logprob + 0.3 * torch.randn(own.logprob.shape, generator=generator) * (batch.step_of_token >= 0)
        for _ in range(2)
    ]
    advantage = torch.randn(batch.num_steps, generator=generator)
    scored = Scored(batch, advantage, torch.rand(batch.num_steps), *moved, own.entropy)
    config = LearnerConfig(loss=loss, temperature=0.7, batch=BatchConfig(token_budget=40, chunk=5))
    stats = accumulate_gradient(lm, scored, advantage, torch.arange(rows), config, processes)
    processes.sum_gradients(model.parameters())
    found = {name: checkpoint.whole(p.grad).clone() for name, p in model.named_parameters()}
    return found | {"score/logprob": own.logprob, "score/entropy": own.entropy}, asdict(stats)


def results(processes: Processes, folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Everything that must not depend on the number of processes."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for name, loss in LOSSES.items():
        for size, rows in ROWS.items():
            found, stats = gradients(rows, loss, processes)
            tensors |= {f"{name}/{size}/{key}": value for key, value in found.items()}
            numbers[f"{name}/{size}"] = stats
        for scope in SCOPES:
            one = learner(name, scope, processes, rescore_every=1)
            for iteration in range(UPDATES):
                outcome = one.iterate(iteration, random_collect(3, 3))
                assert outcome.records is not None
                numbers[f"{name}/{scope}/{iteration}"] = outcome.metrics
                numbers[f"{name}/{scope}/{iteration}/steps"] = outcome.records.steps.columns()
            weights = {key: value.clone() for key, value in one.weights()}
            tensors |= {f"{name}/{scope}/weights/{key}": value for key, value in weights.items()}
    one.save(folder / "checkpoint")
    one.iterate(UPDATES, random_collect(3, 3))
    tensors |= {f"after/{key}": value.clone() for key, value in one.weights()}
    tensors |= {f"adapters/{key}": value.clone() for key, value in adapted(processes).weights()}
    return tensors, numbers


def adapted(processes: Processes) -> Learner:
    """A learner of adapters alone, after an update; the weights around them are of another type."""
    model = tiny_model(num_hidden_layers=2).double()
    add_lora(model, rank=2, alpha=4)
    one = Learner(model, LEARNER, pad_id=PAD, processes=processes)
    one.iterate(0, random_collect(3, 3))
    return one


def half_precision(processes: Processes) -> dict[str, Tensor]:
    """Scores and gradients where sharded layers calculate in bfloat16."""
    model = tiny_model(num_hidden_layers=2)
    lm = shard(open_model(model, "bfloat16"), processes)
    batch = make_batch([random_trajectory(np.random.default_rng(i), sample=i) for i in range(4)], PAD)
    own = score(lm, batch, temperature=1.0, token_budget=40, chunk=5, processes=processes)
    advantage = torch.ones(batch.num_steps)
    scored = Scored(batch, advantage, advantage, own.logprob, own.logprob, own.entropy)
    accumulate_gradient(lm, scored, advantage, torch.arange(4), LearnerConfig(loss=LOSSES["grpo"]), processes)
    found = {f"half/{name}": checkpoint.whole(p.grad).clone() for name, p in model.named_parameters()}
    return found | {"half/logprob": own.logprob}


def resumed(processes: Processes, folder: Path) -> dict[str, Tensor]:
    """A checkpoint, restored, written again and trained on."""
    one = learner("dapo", "minibatch", processes)
    one.restore(folder / "checkpoint")
    one.save(folder / f"again-{processes.count}-{'fsdp2' if processes.shards else 'ddp'}")
    one.iterate(UPDATES, random_collect(3, 3))
    return {f"resumed/{key}": value.clone() for key, value in full_weights(one.model)}


def main(folder: Path) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    for kind in ("ddp", "fsdp2"):
        processes = Launched(accelerator, kind)
        tensors, numbers = results(processes, folder / kind)
        tensors |= resumed(processes, folder / "alone")
        if processes.shards:
            tensors |= half_precision(processes)
        save_file(tensors, folder / f"{kind}-{processes.rank}.safetensors")
        (folder / f"{kind}-{processes.rank}.json").write_text(json.dumps(numbers))
    accelerator.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
