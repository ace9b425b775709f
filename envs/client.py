"""Asking a server in JSON, patiently: timeouts, bounded retries with back-off, and counts of what went wrong.

One client may be used by many threads.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar, runtime_checkable

import httpx

log = logging.getLogger(__name__)

SHOWN = 200
"""Characters of an answer that a message quotes."""
RETRIED = frozenset({408, 409, 425, 429})
"""Client errors that pass."""
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)

Read = TypeVar("Read")


class Refused(RuntimeError):
    """The server says that the request itself is wrong: no retry can help."""

    def __init__(self, message: str, status: int, content: str) -> None:
        super().__init__(message)
        self.status, self.content = status, content


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
    """Posts JSON to one URL.

    secrets: what no message and no log may show. final: whether an answer, by status and content, cannot pass though
    its status says so. connections: most that are open at once. environment: whether proxies and certificates are
    taken from environment variables.
    """

    def __init__(
        self,
        url: str,
        patience: Patience | None = None,
        headers: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        *,
        secrets: Sequence[str] = (),
        final: Callable[[int, str], bool] = lambda status, content: False,
        connections: int = 100,
        environment: bool = False,
    ) -> None:
        self.url = url
        self.patience = patience or Patience()
        self.counts: Counter[str] = Counter()
        """`requests`, `retries`, and failed tries by kind: `timeouts`, `connections`, `server_errors`,
        `bad_answers`."""
        self._sleep, self._final, self._secrets = sleep, final, tuple(filter(None, secrets))
        self._counting = threading.Lock()
        self._http = httpx.Client(
            timeout=httpx.Timeout(self.patience.timeout_s, connect=self.patience.connect_s),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            headers=dict(headers or {}),
            trust_env=environment,
        )

    def post(
        self,
        body: Mapping[str, Any],
        read: Callable[[Any], Read],
        tries: int | None = None,
        before: Callable[[], None] = lambda: None,
    ) -> Read:
        """The answer as `read` understands it; `read` raises `ValueError` for one that is not as expected.

        before: called before every try; what it raises ends them. Raises `Refused` at once where the server calls the
        request wrong, `Exhausted` after the last try.
        """
        content = json.dumps(body).encode()
        most = self.patience.tries if tries is None else tries
        for failed in range(1, most + 1):
            before()
            self.count("requests")
            try:
                return read(self._once(content))
            except (httpx.RequestError, _Failed, ValueError, RecursionError) as error:
                kind, said = _kind(error)
                said = self._discreet(said)
                self.count(kind)
                if failed == most:
                    raise Exhausted(f"{self.url}: {said} ({most} tries)") from (
                        None if self._secrets else error
                    )
                wait = max(self.patience.wait_s(failed, content), getattr(error, "wait_s", 0.0))
                log.warning("%s: %s; try %d of %d in %.1f s", self.url, said, failed + 1, most, wait)
                self.count("retries")
                self._sleep(wait)
        raise AssertionError("unreachable: tries are at least 1")

    def count(self, kind: str) -> None:
        """Note that something happened once more."""
        with self._counting:
            self.counts[kind] += 1

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _discreet(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return text

    def _once(self, content: bytes) -> Any:
        header = {"content-type": "application/json"}
        with self._http.stream("POST", self.url, content=content, headers=header) as answer:
            found = self._receive(answer)
        if answer.is_success:
            return json.loads(found)
        text = self._discreet(found.decode(errors="replace"))
        said = f"{answer.status_code} {text[:SHOWN]!r}"
        wrong = answer.is_client_error and answer.status_code not in RETRIED
        if wrong or answer.is_redirect or self._final(answer.status_code, text):
            raise Refused(f"{self.url}: {said}", answer.status_code, text)
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
        return min(asked_seconds(answer.headers), 6 * self.patience.longest_wait_s)


def asked_seconds(headers: Mapping[str, str]) -> float:
    """What `Retry-After` asks for, in seconds or until a date by the server's own clock; 0 where it asks nothing."""
    asked = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(asked):
        return float(asked)
    try:
        until = parsedate_to_datetime(asked)
        now = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):  # no date, or one without a zone
        return 0.0


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
