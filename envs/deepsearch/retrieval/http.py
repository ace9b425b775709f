"""A retriever behind a server that speaks Search-R1's protocol.

`POST <url>/retrieve` with `{"queries": [...], "topk": k, "return_scores": true}` is answered by
`{"result": [[{"document": {"id", "contents"}, "score"}, ...], ...]}`, one list for each query; a server may also give
the documents alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from envs.client import Exhausted, JsonClient, Patience, Refused
from envs.deepsearch.corpus import CorpusError, passage_of
from envs.deepsearch.retrieval.base import Hit, QueryFailed, RetrieverDown

PATH = "/retrieve"
BATCH = 64
"""Most queries in one request."""
READY_S = 300.0
"""A server may take minutes to load its index."""
POLL_S = 2.0
HELP = "start it (`empg-bench serve`, or Search-R1's retrieval server) and run the same command again: the run goes on"


class HttpRetriever:
    """Asks a server; what fails for one query is told apart from a server that is down."""

    def __init__(
        self,
        url: str,
        patience: Patience | None = None,
        *,
        ready_s: float = READY_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wait until the server answers, `RetrieverDown` if it does not within about `ready_s` seconds."""
        self.url = url.rstrip("/").removesuffix(PATH) + PATH
        self._client = JsonClient(self.url, patience, sleep=sleep)
        self._sleep = sleep
        self.wait_ready(ready_s)

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """At most `k` passages for each query, in the server's order."""
        found: list[tuple[Hit, ...]] = []
        for start in range(0, len(queries), BATCH):
            found += self._ask(queries[start : start + BATCH], k)
        return found

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record; which index the server holds, it does not say."""
        return {"name": "http", "url": self.url}

    def counts(self) -> Mapping[str, int]:
        """How many requests were made, how many again, and why."""
        return dict(self._client.counts)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def wait_ready(self, limit_s: float) -> None:
        """Return as soon as the server answers a search; `RetrieverDown` after `limit_s` seconds of waiting."""
        waited = 0.0
        while True:
            began = time.monotonic()
            if (problem := self._problem()) is None:
                return
            waited += time.monotonic() - began  # a server that hangs costs a timeout each time
            if waited >= limit_s:
                raise RetrieverDown(f"the retriever is not ready after {waited:.0f} s: {problem}; {HELP}")
            self._sleep(POLL_S)
            waited += POLL_S

    def _problem(self) -> str | None:
        """Why the server does not answer a simple search; None where it does."""
        try:
            self._client.post(_body(["ready"], 1), lambda answer: _hits(answer, 1, 1), tries=1)
        except Exhausted as error:
            return str(error)
        except Refused as error:
            raise RetrieverDown(f"{error}; expected a server of Search-R1's protocol") from error
        return None

    def _ask(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        try:
            return self._client.post(_body(queries, k), lambda answer: _hits(answer, len(queries), k))
        except Refused as error:
            raise RetrieverDown(f"{error}; expected a server of Search-R1's protocol") from error
        except Exhausted as error:
            if (problem := self._problem()) is not None:
                raise RetrieverDown(f"the retriever is down: {problem}; {HELP}") from error
            # The queries of a batch are asked one by one afterwards, and most of them are answered.
            self._client.count("failed_queries" if len(queries) == 1 else "failed_batches")
            raise QueryFailed(
                f"{error}, while other queries are answered; queries: {list(queries)!r:.200}"
            ) from error


def _body(queries: Sequence[str], k: int) -> dict[str, Any]:
    return {"queries": list(queries), "topk": k, "return_scores": True}


def _hits(answer: Any, queries: int, k: int) -> list[tuple[Hit, ...]]:
    """The first `k` of each list of an answer; `ValueError` where it is none."""
    lists = answer.get("result") if isinstance(answer, Mapping) else None
    if (
        not isinstance(lists, list)
        or len(lists) != queries
        or not all(isinstance(one, list) for one in lists)
    ):
        raise ValueError(f"{str(answer)[:200]!r}, expected `result` with {queries} lists")
    return [tuple(_hit(found, place) for place, found in enumerate(one[:k])) for one in lists]


def _hit(found: Any, place: int) -> Hit:
    """A document with its score, or alone; then its rank stands for the score."""
    scored = isinstance(found, Mapping) and "document" in found
    document, score = (found["document"], found.get("score")) if scored else (found, -float(place))
    try:
        passage = passage_of(document, "a document of the answer")
    except CorpusError as error:
        raise ValueError(str(error)) from error
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise ValueError(f"score is {score!r}, expected a finite number")
    return Hit(passage.id, passage.title, passage.text, float(score))
