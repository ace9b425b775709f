"""What a rollout asks of a policy: sessions that continue many conversations at once, token by token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agents.chat import ChatFormat
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
    """Log-probability (nats) of each token under the softmax at the sampling temperature."""
    stop: StopReason


class Session(Protocol):
    """Conversations in progress; the policy's weights must not change while it lives."""

    def generate(self, turns: Sequence[Turn]) -> list[Generation]:
        """Write one response for each turn, in their order; each names another episode."""
        ...

    def close_episode(self, episode: int) -> None:
        """Forget a conversation; unknown numbers are ignored."""
        ...


class Policy(Protocol):
    """Something that can write."""

    chat: ChatFormat
    max_context: int
    """Most tokens one conversation may hold, read and written together."""

    def open(self, episodes: int, sampling: Sampling) -> Session:
        """A session for at most `episodes` conversations open at once; it sees the present weights."""
        ...
