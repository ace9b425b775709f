"""Random choices named by place: what is drawn somewhere does not depend on what was drawn elsewhere."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
_AT_ONCE = 64


class Dice:
    """The stream of one place; numbers are drawn in blocks, since single draws are slow."""

    def __init__(self, seed: int, *place: str | int) -> None:
        """`place`: words and numbers that name what is being decided."""
        key = tuple(zlib.crc32(part.encode()) if isinstance(part, str) else part for part in place)
        self._rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
        self._held: list[float] = []

    def random(self) -> float:
        """Uniform in [0, 1)."""
        if not self._held:
            self._held = self._rng.random(_AT_ONCE).tolist()
        return self._held.pop()

    def many(self, count: int) -> list[float]:
        """So many of them, uniform in [0, 1)."""
        found: list[float] = self._rng.random(count).tolist()
        return found

    def below(self, end: int) -> int:
        """A whole number from 0 up to and without `end`."""
        return int(self.random() * end)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        if high < low:
            raise ValueError(f"nothing lies between {low} and {high}")
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def pick(self, choices: Sequence[T]) -> T:
        """One of these."""
        return choices[self.below(len(choices))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """These in random order."""
        return [items[int(at)] for at in self._rng.permutation(len(items))]
