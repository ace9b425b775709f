"""How fast a server may be asked: requests and tokens a minute, shared by all threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """Limits of a server; None where there is none."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    """Read and written together."""

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value!r}, expected a number above 0")


class Limiter:
    """Spreads requests evenly, so that no minute holds more than the pace allows.

    A request's tokens are estimated when it begins and settled when it ends: one that took more than expected delays
    those behind it, one that took less lets them begin earlier.
    """

    def __init__(
        self,
        pace: Pace,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._per_request = 60 / pace.requests_per_minute if pace.requests_per_minute else 0.0
        self._per_token = 60 / pace.tokens_per_minute if pace.tokens_per_minute else 0.0
        self._lock = threading.Lock()
        self._requests_from = self._tokens_from = clock()
        """When the next request may begin, by either limit."""

    def wait(self, tokens: int) -> None:
        """Sleep until a request of about so many tokens may begin."""
        with self._lock:
            now = self._clock()
            start = max(now, self._requests_from, self._tokens_from)
            self._requests_from = start + self._per_request
            self._tokens_from = start + tokens * self._per_token
        if start > now:
            self._sleep(start - now)

    def settle(self, estimated: int, used: int) -> None:
        """Correct the tokens of a request that began with an estimate."""
        with self._lock:
            self._tokens_from += (used - estimated) * self._per_token
