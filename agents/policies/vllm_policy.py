"""Sampling by vLLM: continuous batching, a prefix cache across turns, the trainer's weights before every rollout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from agents.chat import ChatFormat
from agents.policies.base import Answer, Failure, Generation, Sampling, Turn
from agents.policies.vllm_engine import Engine, Request, Weights, Written
from agents.trajectory import StopReason

CHECK_TOKENS = 48
"""Tokens of the self-check, half of them written by the engine."""


class SyncError(RuntimeError):
    """The engine's probabilities are not the trainer's."""


class VllmPolicy:
    """A model under training, sampled by an engine that holds a copy of its weights.

    The engine takes the weights over when a session is opened after `update`, once for any number of updates, and
    forgets its cached prefixes then. After the first time its log-probabilities of a short conversation are compared
    with those of the model's own forward pass; `SyncError` if they differ by more than `tolerance`.

    model: the trained Hugging Face model, evaluated for the check alone. template: further arguments of the chat
    template. weights: names and values as Hugging Face
    knows them. sleeps: whether the engine gives up its GPU memory between sessions; its weights are lost by that.
    tolerance: nats; by default 2e-3 where both are float32, and 0.3 where one is not, as rounding to 8 bits of
    mantissa moves single log-probabilities of deep models by a few hundredths to tenths.
    """

    def __init__(
        self,
        engine: Engine,
        model: Any,
        tokenizer: Any,
        *,
        max_context: int,
        weights: Callable[[], Weights],
        template: Mapping[str, Any] | None = None,
        sleeps: bool = False,
        tolerance: float | None = None,
        engine_dtype: torch.dtype = torch.float32,
    ) -> None:
        self.chat = ChatFormat(tokenizer, template)
        self.max_context = max_context
        self.engine, self.model = engine, model
        both_exact = model.dtype == engine_dtype == torch.float32
        self.tolerance = (2e-3 if both_exact else 0.3) if tolerance is None else tolerance
        self.gap: float | None = None
        """Largest difference that the self-check found, in nats; None before the first session."""
        self._weights, self._sleeps = weights, sleeps
        self._stale, self._asleep = True, False
        self._sessions = 0

    def update(self) -> None:
        """Note that the weights changed; the next session brings them over."""
        self._stale = True

    def open(self, episodes: int, sampling: Sampling) -> VllmSession:
        """A session with the present weights; `ValueError` for greedy choice at another temperature than 1."""
        if sampling.greedy and sampling.temperature != 1:
            raise ValueError(
                f"greedy at temperature {sampling.temperature}; vLLM gives log-probabilities of the greedy choice "
                "at temperature 1 alone"
            )
        self._wake()
        self._sessions += 1
        return VllmSession(self, sampling, f"{self._sessions}")

    def rest(self) -> None:
        """What follows a session: the GPU's memory goes to the trainer, if the two share one."""
        if self._sleeps and not self._asleep:
            self.engine.sleep()
            self._asleep, self._stale = True, True

    def _wake(self) -> None:
        """Bring the engine up to date: weights first, then the cache."""
        if self._asleep:
            self.engine.wake("weights")
        if self._stale:
            self.engine.load(self._weights)
        if self._asleep:
            self.engine.wake("kv_cache")
        self._stale = self._asleep = False
        if self.gap is None:
            self.gap = self._check()

    def _check(self) -> float:
        """Compare the engine with the trainer on a few tokens; returns the largest difference in nats."""
        half = min(CHECK_TOKENS, self.max_context) // 2
        vocabulary = int(self.model.get_input_embeddings().weight.shape[0])
        prompt = tuple(int(token) for token in np.random.default_rng(0).integers(0, vocabulary, half))
        self.engine.add(Request("check", prompt, half, 0, Sampling(), ()))
        written: list[Written] = []
        while not written:
            written = self.engine.step()
        ids = written[0].token_ids
        own = self._own_logprobs(prompt, ids)
        gap = float((own - torch.tensor(written[0].logprobs)).abs().max())
        if not gap <= self.tolerance:
            raise SyncError(
                f"after the weights were handed over, vLLM's log-probabilities differ from the trainer's by "
                f"{gap:.3g} nats; expected at most {self.tolerance:g}"
            )
        return gap

    def _own_logprobs(self, prompt: Sequence[int], written: Sequence[int]) -> torch.Tensor:
        training = self.model.training
        self.model.eval()
        with torch.inference_mode():
            ids = torch.tensor([[*prompt, *written]], device=self.model.device)
            logits = self.model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1]
        self.model.train(training)
        table = torch.log_softmax(logits.float(), -1).cpu()
        return table.gather(1, torch.tensor(written)[:, None])[:, 0]


class VllmSession:
    """Conversations of a `VllmPolicy`; each request is answered as soon as it is written."""

    def __init__(self, policy: VllmPolicy, sampling: Sampling, name: str) -> None:
        self._policy, self._sampling, self._name = policy, sampling, name
        self._held: dict[int, tuple[int, ...]] = {}
        self._asked: dict[str, int] = {}
        self._turns = 0

    def submit(self, turns: Sequence[Turn]) -> None:
        """Queue a request for each turn; `ValueError` if one might outgrow the context."""
        for turn in turns:
            if turn.episode in self._asked.values():
                raise ValueError(f"episode {turn.episode} has a turn that is not answered yet")
            prompt = self._prompt(turn)
            need = len(prompt) + turn.max_new_tokens
            if need > self._policy.max_context:
                raise ValueError(
                    f"episode {turn.episode} may reach {need} tokens, "
                    f"the context holds {self._policy.max_context}"
                )
            self._held[turn.episode] = prompt
            self._turns += 1
            name = f"{self._name}-{turn.episode}-{self._turns}"
            self._asked[name] = turn.episode
            self._policy.engine.add(
                Request(
                    name, prompt, turn.max_new_tokens, turn.seed, self._sampling, self._policy.chat.stop_ids
                )
            )

    def collect(self) -> list[Answer]:
        """Step the engine until a request has ended."""
        answers: list[Answer] = []
        while self._asked and not answers:
            for written in self._policy.engine.step():
                episode = self._asked.pop(written.name, None)
                if episode is None:
                    continue
                if written.reason not in ("stop", "length") or not written.token_ids:
                    answers.append((episode, Failure("error", f"vLLM ended the request: {written.reason}")))
                    continue
                self._held[episode] += written.token_ids
                stop: StopReason = "stop" if written.token_ids[-1] in self._policy.chat.stop_ids else "length"
                answers.append((episode, Generation(written.token_ids, written.logprobs, stop)))
        return answers

    def close_episode(self, episode: int) -> None:
        """Forget a conversation; the engine may still reuse its beginning."""
        self._held.pop(episode, None)
        self._abort([name for name, asked in self._asked.items() if asked == episode])

    def close(self) -> None:
        """Drop what is unanswered, and let the engine rest."""
        self._abort(list(self._asked))
        self._held.clear()
        self._policy.rest()

    def _prompt(self, turn: Turn) -> tuple[int, ...]:
        if turn.restart:
            return turn.new_ids
        if turn.episode not in self._held:
            raise ValueError(f"episode {turn.episode} has no conversation to continue")
        return self._held[turn.episode] + turn.new_ids

    def _abort(self, names: Sequence[str]) -> None:
        if names:
            self._policy.engine.abort(names)
        for name in names:
            del self._asked[name]
