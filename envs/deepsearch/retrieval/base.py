"""What every retriever promises, and how it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from envs.base import EnvError


@dataclass(frozen=True)
class Hit:
    """A passage that was found."""

    id: str
    title: str
    text: str
    score: float


class RetrieverDown(RuntimeError):
    """The retriever does not answer: the run stops, and goes on when it is started again.

    It is no `EnvError`: that one would end an episode, and the next one would fail in the same way.
    """


class QueryFailed(EnvError):
    """The retriever answers others, but not this query."""


class Retriever(Protocol):
    """A search engine over one corpus; equal queries have equal answers."""

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """At most `k` passages for each query, best first, equally good ones in the order of the corpus.

        Raises `QueryFailed` where at least one of the queries fails again and again, `RetrieverDown` where all do.
        """
        ...

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record: what decides the results."""
        ...

    def close(self) -> None:
        """Give back what the retriever holds."""
        ...


def best(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Positions of the `k` largest scores (`[passages]`), largest first, equal ones by position."""
    if len(scores) > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        found = np.flatnonzero(scores >= least)
    else:
        found = np.arange(len(scores))
    return found[np.argsort(-scores[found], kind="stable")[:k]]
