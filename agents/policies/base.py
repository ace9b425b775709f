"""What a rollout asks of a policy: sessions that continue many conversations at once, token by token."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from agents.chat import Chat, Message
from agents.trajectory import StopReason
from envs.base import StepInfo


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; the whole vocabulary always takes part, so log-probabilities are exact."""

    temperature: float = 1.0
    greedy: bool = False
    """Take the likeliest token; log-probabilities are still those of the softmax at `temperature`."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise ValueError(
                f"temperature is {self.temperature}; expected a finite number above 0 "
                "(greedy=True takes the likeliest token)"
            )


@dataclass(frozen=True, eq=False)
class Turn:
    """A request to write one response."""

    episode: int
    """Names the conversation within its session."""
    new_ids: tuple[int, ...]
    """Tokens read now: appended to what the conversation holds, or all of it if `restart`."""
    restart: bool
    """Whether the conversation starts anew with `new_ids`."""
    max_new_tokens: int
    uniforms: NDArray[np.float64]
    """Numbers in [0, 1), one for each token that may be written: token i is the inverse CDF at number i."""
    observation: str = ""
    """What the environment showed, for policies that play by rule instead of reading tokens."""
    info: StepInfo | None = None
    """The environment's facts beside `observation`, for the same policies."""
    seed: int = 0
    """The turn's own seed below 2**63, for engines that draw by themselves; another one for every place."""
    messages: tuple[Message, ...] = ()
    """The whole prompt as messages, for policies that are not asked by token."""

    def __post_init__(self) -> None:
        if not self.new_ids:
            raise ValueError(f"turn of episode {self.episode} has no new tokens; expected at least one")
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {self.max_new_tokens}; expected at least 1")
        if len(self.uniforms) < self.max_new_tokens:
            raise ValueError(f"{len(self.uniforms)} uniforms for up to {self.max_new_tokens} tokens")


@dataclass(frozen=True)
class Generation:
    """One written response."""

    token_ids: tuple[int, ...]
    """All written tokens, at least one, with the end-of-turn token where it was sampled."""
    logprobs: tuple[float, ...]
    """Log-probability (nats) of each token under the softmax at the sampling temperature; NaN where unknown."""
    stop: StopReason
    text: str | None = None
    """What was written, where `chat.text_of(token_ids)` cannot tell."""


@dataclass(frozen=True)
class Failure:
    """A response that could not be written; it ends its episode."""

    end: Literal["context", "error"]
    """The conversation is full, or the engine or server failed."""
    message: str


Answer = tuple[int, Generation | Failure]
"""The number of an episode, and what was written in it."""


class Session(Protocol):
    """Conversations in progress; the policy's weights must not change while it lives."""

    def submit(self, turns: Sequence[Turn]) -> None:
        """Ask for a response to each turn; an episode has one unanswered turn at most."""
        ...

    def collect(self) -> list[Answer]:
        """Wait until at least one submitted turn is answered; all answers that are there, each given once.

        Nothing if nothing is submitted.
        """
        ...

    def close_episode(self, episode: int) -> None:
        """Forget a conversation; unknown numbers are ignored."""
        ...

    def close(self) -> None:
        """Free what the session holds; unanswered turns are dropped."""
        ...


class RoundSession(ABC):
    """A session that answers everything submitted in one round."""

    _submitted: tuple[Turn, ...] = ()

    @abstractmethod
    def generate(self, turns: Sequence[Turn]) -> list[Generation]:
        """Write one response for each turn, in their order; each names another episode."""

    @abstractmethod
    def close_episode(self, episode: int) -> None:
        """Forget a conversation; unknown numbers are ignored."""

    def submit(self, turns: Sequence[Turn]) -> None:
        """Ask for a response to each turn in the next round."""
        self._submitted += tuple(turns)

    def collect(self) -> list[Answer]:
        """Play the round: an answer for every submitted turn, in their order."""
        turns, self._submitted = self._submitted, ()
        if not turns:
            return []
        return [(turn.episode, one) for turn, one in zip(turns, self.generate(turns), strict=True)]

    def close(self) -> None:
        """Drop what was submitted."""
        self._submitted = ()


class Policy(Protocol):
    """Something that can write."""

    @property
    def chat(self) -> Chat:
        """How chats become tokens."""
        ...

    @property
    def max_context(self) -> int:
        """Most tokens one conversation may hold, read and written together."""
        ...

    def open(self, episodes: int, sampling: Sampling) -> Session:
        """A session for at most `episodes` conversations open at once.

        It sees the weights that the policy had at the last `update`, or when it was made.
        """
        ...

    def update(self) -> None:
        """Take over the weights of the model under training; called whenever they have changed."""
        ...
