"""Asking a server in JSON, patiently: timeouts, bounded retries with back-off, and counts of what went wrong."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar, runtime_checkable

import httpx

log = logging.getLogger(__name__)

SHOWN = 200
"""Characters of an answer that a message quotes."""
RETRIED = frozenset({408, 425, 429})
"""Client errors that pass."""

Read = TypeVar("Read")


class Refused(RuntimeError):
    """The server says that the request itself is wrong: no retry can help."""


class Exhausted(RuntimeError):
    """Every try failed; the message says how the last one did."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for an answer, and how often to ask again.

    By default the tries are spread over half a minute and more, so that a server may be restarted meanwhile.
    """

    timeout_s: float = 30.0
    """For an answer to begin, and again for all of it to come."""
    connect_s: float = 5.0
    tries: int = 8
    first_wait_s: float = 0.5
    """Before the second try; each wait is twice the last one, and up to a quarter longer by a place's own jitter."""
    longest_wait_s: float = 10.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not value > 0:
                raise ValueError(f"{each.name} is {value!r}, expected a number above 0")

    def wait_s(self, failed: int, place: bytes) -> float:
        """Seconds before the next try after `failed` ones; callers of other places wait a little longer or less."""
        wait = min(self.first_wait_s * 2.0 ** (failed - 1), self.longest_wait_s)
        jitter = hashlib.sha256(place + bytes([failed % 256])).digest()[0] / 255
        return wait * (1 + jitter / 4)


@runtime_checkable
class Counted(Protocol):
    """What counts its requests."""

    def counts(self) -> Mapping[str, int]:
        """How many requests were made, how many again, and why."""
        ...


class JsonClient:
    """Posts JSON to one URL."""

    def __init__(
        self,
        url: str,
        patience: Patience | None = None,
        headers: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url
        self.patience = patience or Patience()
        self.counts: Counter[str] = Counter()
        """`requests`, `retries`, and failed tries by kind: `timeouts`, `connections`, `server_errors`,
        `bad_answers`."""
        self._sleep = sleep
        timeout = httpx.Timeout(self.patience.timeout_s, connect=self.patience.connect_s)
        self._http = httpx.Client(timeout=timeout, headers=dict(headers or {}), trust_env=False)

    def post(self, body: Mapping[str, Any], read: Callable[[Any], Read], tries: int | None = None) -> Read:
        """The answer as `read` understands it; `read` raises `ValueError` for one that is not as expected.

        Raises `Refused` at once where the server calls the request wrong, `Exhausted` after the last try.
        """
        content = json.dumps(body).encode()
        most = self.patience.tries if tries is None else tries
        for failed in range(1, most + 1):
            self.counts["requests"] += 1
            try:
                return read(self._once(content))
            except (httpx.RequestError, _Failed, ValueError, RecursionError) as error:
                kind, said = _kind(error)
                self.counts[kind] += 1
                if failed == most:
                    raise Exhausted(f"{self.url}: {said} ({most} tries)") from error
                wait = max(self.patience.wait_s(failed, content), getattr(error, "wait_s", 0.0))
                log.warning("%s: %s; try %d of %d in %.1f s", self.url, said, failed + 1, most, wait)
                self.counts["retries"] += 1
                self._sleep(wait)
        raise AssertionError("unreachable: tries are at least 1")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _once(self, content: bytes) -> Any:
        header = {"content-type": "application/json"}
        with self._http.stream("POST", self.url, content=content, headers=header) as answer:
            found = self._receive(answer)
        if answer.is_success:
            return json.loads(found)
        said = f"{answer.status_code} {found[: 4 * SHOWN].decode(errors='replace')[:SHOWN]!r}"
        if answer.is_client_error and answer.status_code not in RETRIED:
            raise Refused(f"{self.url}: {said}")
        raise _Failed(said, self._asked_wait(answer))

    def _receive(self, answer: httpx.Response) -> bytes:
        """All of an answer; its parts may each come in time, and yet never end."""
        began, parts = time.monotonic(), list[bytes]()
        for part in answer.iter_bytes():
            parts.append(part)
            if time.monotonic() - began > self.patience.timeout_s:
                raise httpx.ReadTimeout("the answer does not end")
        return b"".join(parts)

    def _asked_wait(self, answer: httpx.Response) -> float:
        """Seconds that the server asks to wait, as far as patience goes."""
        asked = answer.headers.get("retry-after", "")
        return min(float(asked), 6 * self.patience.longest_wait_s) if asked.isdigit() else 0.0


class _Failed(Exception):
    """An answer that says that the server failed."""

    def __init__(self, said: str, wait_s: float) -> None:
        super().__init__(said)
        self.wait_s = wait_s


def _kind(error: Exception) -> tuple[str, str]:
    """Which count a failed try belongs to, and what to say of it."""
    if isinstance(error, httpx.TimeoutException):
        return "timeouts", f"no answer in time ({type(error).__name__})"
    if isinstance(error, httpx.TransportError):
        return "connections", f"{type(error).__name__}: {error}"
    if isinstance(error, _Failed):
        return "server_errors", str(error)
    return "bad_answers", f"not the expected answer: {error}"
