"""What a served model was asked for and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self


@dataclass(frozen=True)
class Usage:
    """Counts over answers, as the server states them; they add up."""

    answers: int = 0
    estimated: int = 0
    """Answers whose tokens the server did not count; they were estimated from the text."""
    prompt_tokens: int = 0
    """Tokens read, with those that the server had cached."""
    cached_tokens: int = 0
    completion_tokens: int = 0
    """Tokens written, with reasoning that is not shown."""
    reasoning_tokens: int = 0
    requests: int = 0
    """Tries, also those that failed."""
    retries: int = 0
    seconds: float = 0.0
    """From each request to its answer, waits for retries included; requests side by side all count."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"{field.name} is {value!r}, expected a number from 0")

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        mine, others = asdict(self), asdict(other)
        return Usage(**{name: mine[name] + others[name] for name in mine})

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Counts as `asdict` gave them; `ValueError` for anything else."""
        try:
            return cls(**record)
        except TypeError as error:
            raise ValueError(f"not a usage record: {error}") from error


@dataclass(frozen=True)
class Prices:
    """Dollars for a million tokens."""

    input: float
    output: float
    cached_input: float | None = None
    """Of tokens that the server had cached; None: as other input."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"price {field.name} is {value!r}, expected a number from 0")

    def dollars(self, usage: Usage) -> float:
        """What so much use costs."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = usage.prompt_tokens - usage.cached_tokens
        written = usage.completion_tokens
        return (fresh * self.input + usage.cached_tokens * cached + written * self.output) / 1e6
