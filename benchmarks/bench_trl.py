"""The learner against TRL's GRPOTrainer: the same model, the same token rows, one optimiser step, in turns.

TRL has an environment of its own (`make bench-trl`). Both sides get finished episodes, so only scoring and the update
are timed. TRL's step scores the reference and trains. Ours also scores the policy that sampled: EMPG needs its
entropies before the loss. The second comparison gives TRL that pass, too, which an EMPG plug-in for it would make.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from rich.console import Console
from transformers.utils import logging
from transformers.utils.logging import disable_progress_bar

from agents.trajectory import Step, Trajectory
from benchmarks.bench import Ratio, in_pairs, show
from benchmarks.config import ConfigError
from benchmarks.models import find_model
from empg.advantages import EmpgConfig
from empg.config import BatchConfig, LearnerConfig, OptimizerConfig
from empg.losses import LossConfig
from empg.trainer import Learner

LR = 1e-6
KL = 0.01
PASSES = 2
"""Passes of one step: each side may hold half of the rows, padded, at a time."""


@dataclass(frozen=True)
class Shape:
    """What one optimiser step learns from."""

    name: str
    prompt: int
    """Tokens of the opening prompt."""
    turns: tuple[int, ...]
    """Turns of each trajectory."""
    written: int = 32
    """Tokens sampled in each turn."""
    read: int = 96
    """Tokens the environment answers between two turns."""

    @property
    def tokens(self) -> int:
        """Of all rows, without padding."""
        return sum(self.prompt + n * self.written + (n - 1) * self.read for n in self.turns)


SHAPES = (
    Shape("single turn, equal lengths", prompt=256, turns=(1,) * 8, written=256),
    Shape("agent episodes of 1 to 8 turns", prompt=256, turns=(1, 2, 3, 3, 4, 5, 6, 8)),
)


def trajectories(shape: Shape, vocabulary: int, seed: int = 0) -> list[Trajectory]:
    """Episodes of random tokens, all of one group, every second one a success."""
    draw = np.random.default_rng(seed)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(int(token) for token in draw.integers(4, vocabulary, count))

    prompt = ids(shape.prompt)

    def step(number: int) -> Step:
        return Step(
            prompt_ids=ids(shape.read) if number else prompt,
            continues=number > 0,
            action_ids=ids(shape.written),
            action_logprobs=(-1.0,) * shape.written,
            stop="length",
            thought="",
            action="",
            well_formed=True,
            action_valid=True,
            observation="",
            reward=0.0,
        )

    return [
        Trajectory(
            task_id="bench",
            task_type="bench",
            group=0,
            sample=sample,
            steps=tuple(step(number) for number in range(turns)),
            reward=float(sample % 2),
            success=bool(sample % 2),
            score=float(sample % 2),
            end="terminated",
        )
        for sample, turns in enumerate(shape.turns)
    ]


def our_side(model: Any, played: Sequence[Trajectory], token_budget: int) -> Callable[[], float]:
    """Seconds of one iteration of our learner, collecting excluded."""
    config = LearnerConfig(
        loss=LossConfig(kl_coef=KL, entropy_coef=0.0),
        empg=EmpgConfig(),
        batch=BatchConfig(groups_per_batch=1, group_size=len(played), token_budget=token_budget),
        optimizer=OptimizerConfig(lr=LR),
    )
    learner = Learner(model, config, pad_id=0)

    def measure() -> float:
        outcome = learner.iterate(learner.next_iteration, lambda iteration, attempt: played)
        return outcome.seconds["score"] + outcome.seconds["update"]

    return measure


def trl_side(folder: Path, played: Sequence[Trajectory], out: Path, old_pass: bool) -> Callable[[], float]:
    """Seconds of one optimiser step of TRL's trainer on the same rows.

    old_pass: whether it also scores the policy that sampled, as EMPG needs. Raises `ImportError` without trl.
    """
    from datasets import Dataset
    from transformers import AutoTokenizer

    rows = [_row(episode) for episode in played]

    def give_rows(prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        return {
            "prompt_ids": [row[0] for row in rows],
            "completion_ids": [row[1] for row in rows],
            "logprobs": [[-1.0] * len(row[1]) for row in rows],
            "env_mask": [row[2] for row in rows],
            "outcome": [episode.reward for episode in played],
        }

    clock = _clock()
    trainer = _trainer_class(old_pass)(
        model=str(folder),
        args=_arguments(len(played), max(len(row[1]) for row in rows), out),
        train_dataset=Dataset.from_dict({"prompt": ["bench"] * len(played)}),
        processing_class=AutoTokenizer.from_pretrained(folder),
        reward_funcs=lambda completions, outcome, **_: outcome,
        rollout_func=give_rows,
        callbacks=[clock],
    )

    def measure() -> float:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its metrics
            trainer.train()
        return float(clock.seconds)

    return measure


def _arguments(episodes: int, longest: int, out: Path) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(out),
        per_device_train_batch_size=episodes // PASSES,
        gradient_accumulation_steps=PASSES,
        num_generations=episodes,
        max_completion_length=longest,
        loss_type="grpo",
        beta=KL,
        learning_rate=LR,
        lr_scheduler_type="constant",
        max_steps=1,
        gradient_checkpointing=False,
        mask_truncated_completions=False,
        use_cpu=not torch.cuda.is_available(),
        bf16=False,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


def _clock() -> Any:
    """Times the optimiser step: scoring, loss and update; the rows are there at once."""
    from transformers import TrainerCallback

    class Clock(TrainerCallback):  # type: ignore[misc]
        begun = seconds = 0.0

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.begun = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.seconds = time.perf_counter() - self.begun

    return Clock()


def _trainer_class(old_pass: bool) -> Any:
    from trl import GRPOTrainer

    class WithOldPass(GRPOTrainer):  # type: ignore[misc]
        """Scores the entropies of the policy that sampled, as a plug-in for EMPG must."""

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            found = super()._generate_and_score_completions(inputs)
            ids = torch.cat([found["prompt_ids"], found["completion_ids"]], 1)
            mask = torch.cat([found["prompt_mask"], found["completion_mask"]], 1)
            width, size = found["completion_ids"].size(1), self.args.per_device_train_batch_size
            with torch.no_grad():
                self._get_per_token_logps_and_entropies(
                    self.model, ids, mask, width, batch_size=size, compute_entropy=True
                )
            return found

    return WithOldPass if old_pass else GRPOTrainer


def _row(episode: Trajectory) -> tuple[list[int], list[int], list[int]]:
    """Prompt, completion and which of its tokens were sampled."""
    completion: list[int] = []
    sampled: list[int] = []
    for number, step in enumerate(episode.steps):
        read = step.prompt_ids if number else ()
        completion += [*read, *step.action_ids]
        sampled += [0] * len(read) + [1] * len(step.action_ids)
    return list(episode.steps[0].prompt_ids), completion, sampled


def compare(folder: Path, out: Path, repeats: int, shapes: Sequence[Shape] = SHAPES) -> list[Ratio]:
    """Trainer tokens/s of both sides, each shape with and without a pass for the sampling policy on TRL's."""
    from transformers import AutoModelForCausalLM

    ratios = []
    for shape in shapes:
        for old_pass in (False, True):
            model = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True)
            played = trajectories(shape, int(model.config.vocab_size))
            widest = shape.prompt + max(shape.turns) * (shape.written + shape.read) - shape.read
            ours = our_side(model, played, token_budget=widest * (len(played) // PASSES))
            theirs = trl_side(folder, played, out, old_pass)
            ours(), theirs()  # what is set up on first use
            pairs = in_pairs(_rate(ours, shape), _rate(theirs, shape), repeats)
            what = "with a pass for old entropies" if old_pass else "as it is"
            ratios.append(
                Ratio(
                    name=f"training, {shape.name}; TRL {what}",
                    unit="tokens/s",
                    first="empg-bench",
                    second="TRL",
                    pairs=pairs,
                    more_is_better=True,
                )
            )
    return ratios


def run_bench(
    console: Console, model: str, cache: Path, repeats: int = 3, shapes: Sequence[Shape] = SHAPES
) -> None:
    """Print the comparison; `ConfigError` where the model or TRL is not to be had."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    disable_progress_bar()
    logging.set_verbosity_error()
    try:
        import trl
    except ImportError:
        raise ConfigError(
            "bench-trl: trl is not installed, expected the environment of `make bench-trl`"
        ) from None
    with console.status("opening") as status, TemporaryDirectory() as out:
        folder, origin = find_model(model, cache, status.update)
        console.print(f"TRL {trl.__version__}, {origin['name']}", markup=False, highlight=False)
        status.update("training")
        show(console, compare(folder, Path(out), repeats, shapes))


def _rate(seconds: Callable[[], float], shape: Shape) -> Callable[[], float]:
    return lambda: shape.tokens / seconds()
