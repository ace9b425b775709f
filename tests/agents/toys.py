"""A toy text world, tokenizers with the templates that matter, and tiny random models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from agents.chat import ChatFormat
from agents.policies.scripted import byte_tokenizer
from envs.base import EnvError, StepInfo, TextEnv


@dataclass(frozen=True)
class Faults:
    """Where a corridor's engine fails."""

    making: bool = False
    reset_of: frozenset[str] = frozenset()
    step_of: frozenset[tuple[str, int]] = frozenset()
    """(task, number of the step from 0)."""


class Corridor(TextEnv):
    """Walk a corridor of eight cells to the cell that the task id names, and take what lies there.

    Graded score: half for standing on the right cell at the end, one for taking it. `take` ends the episode.
    """

    def __init__(self, max_steps: int = 6, faults: Faults | None = None) -> None:
        self.max_steps = max_steps
        self.observation_space = gymnasium.spaces.Text(1000)
        self.action_space = gymnasium.spaces.Text(1000)
        self.faults = faults or Faults()
        self.seeds: list[int | None] = []
        self.closed = False
        self._over = True
        if self.faults.making:
            raise EnvError("no engine")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.seeds.append(seed)
        task = (options or {})["task"]
        if not task.isdigit():
            raise KeyError(task)
        if task in self.faults.reset_of:
            raise EnvError(f"cannot open {task}")
        self._task, self._cell, self._steps, self._over = task, 0, 0, False
        return f"Take the stone in cell {task}. You are in cell 0.", dict(self._info(True))

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._over:
            raise RuntimeError("the episode is over; call reset")
        if (self._task, self._steps) in self.faults.step_of:
            raise EnvError(f"lost {self._task}")
        self._steps += 1
        moves = {"left": -1, "right": 1, "take": 0}
        self._cell = min(7, max(0, self._cell + moves.get(action, 0)))
        taken = action == "take"
        truncated = not taken and self._steps >= self.max_steps
        self._over = taken or truncated
        info = self._info(action in moves, taken=taken, over=self._over)
        text = f"You are in cell {self._cell}." if action in moves else f"Nothing happens by {action!r}."
        return text, info["score"], taken, truncated, dict(info)

    def close(self) -> None:
        self.closed = True

    def _info(self, valid: bool, *, taken: bool = False, over: bool = False) -> StepInfo:
        there = str(self._cell) == self._task
        return StepInfo(
            task_id=self._task,
            task_type="even" if int(self._task) % 2 == 0 else "odd",
            success=taken and there,
            score=(1.0 if taken else 0.5) if there and over else 0.0,
            admissible=("left", "right", "take"),
            action_valid=valid,
        )


def walk(observation: str, info: StepInfo) -> str:
    """A perfect response of a corridor player that reads only the observation and the task id."""
    cell = int(observation.rpartition("cell ")[2].rstrip("."))
    action = "take" if cell == int(info["task_id"]) else "right"
    return f"Thought: I am in cell {cell}.\nAction: {action}"


STRIPS_THOUGHTS = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}"
    "{% if m['role'] == 'assistant' and '</think>' in m['content'] %}"
    "{{ m['content'].split('</think>')[-1].lstrip('\n') }}"
    "{% else %}{{ m['content'] }}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] | trim + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
IGNORES_SYSTEM = (
    "{% for m in messages %}{% if m['role'] != 'system' %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
NUMBERS_TURNS = (
    "{% for m in messages %}{{ m['role'] + (messages|length)|string + ':' + m['content'] + '<|im_end|>' }}"
    "{% endfor %}"
)
DROPS_ASSISTANT = (
    "{% for m in messages %}{% if m['role'] != 'assistant' %}{{ m['content'] + '<|im_end|>' }}{% endif %}"
    "{% endfor %}"
)


def decoded(chat: ChatFormat, ids: tuple[int, ...]) -> str:
    """Tokens as text, special ones by name."""
    return str(chat._tokenizer.decode(list(ids)))


def merging_tokenizer() -> PreTrainedTokenizerFast:
    """Bytes plus the merge `he` + `llo`: sampled `[h, e, ...]` would come back as other ids if re-encoded."""
    plain = byte_tokenizer().backend_tokenizer
    vocabulary = {token: number for token, number in plain.get_vocab().items() if number < 256}
    merges = [("h", "e"), ("l", "l"), ("ll", "o"), ("he", "llo")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", additional_special_tokens=["<|im_start|>"]
    )
    tokenizer.chat_template = byte_tokenizer().chat_template
    return tokenizer


def tiny_model(
    kind: str = "llama", *, seed: int = 0, dtype: torch.dtype = torch.float32, **changes: Any
) -> Any:
    """A random causal language model over 264 tokens, far enough from uniform that attention matters."""
    shape = {
        "vocab_size": 264,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "initializer_range": 0.25,
    } | changes
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if kind == "llama":
            return LlamaForCausalLM(LlamaConfig(**shape)).to(dtype).eval()
        if kind == "qwen2":
            return Qwen2ForCausalLM(Qwen2Config(**shape)).to(dtype).eval()
        config = GPT2Config(
            vocab_size=264,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=1024,
            initializer_range=0.25,
            bos_token_id=None,
            eos_token_id=None,
        )
        return GPT2LMHeadModel(config).to(dtype).eval()
