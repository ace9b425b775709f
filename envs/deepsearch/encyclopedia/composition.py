"""Which two relations training questions combine, and which are kept for out-of-domain questions.

The division is fixed: it depends on no seed, so a policy trained in one encyclopedia is out of domain in another too.
Every relation of an out-of-domain pair also occurs in training pairs, in the same position.
"""

from __future__ import annotations

from functools import lru_cache

from envs.deepsearch.encyclopedia.schema import ASKED_DATES, ASKED_LINKS, KINDS, RELATIONS

Pair = tuple[str, str]
_KEPT_EVERY = 4
_FEWEST_TO_DIVIDE = 3
"""Where fewer relations can follow, all of them are trained."""
_EMPTY = {("spouse", "spouse"), ("mother", "spouse"), ("father", "spouse")}
"""Pairs that lead back, or to what the first page says too."""


@lru_cache(maxsize=1)
def pairs() -> tuple[frozenset[Pair], frozenset[Pair]]:
    """Pairs of training, and those kept for out-of-domain questions."""
    trained, kept = set[Pair](), set[Pair]()
    for block, kind in enumerate(KINDS):
        firsts = [name for name in ASKED_LINKS if kind in RELATIONS[name].objects]
        seconds = [name for name in (*ASKED_LINKS, *ASKED_DATES) if kind in RELATIONS[name].subjects]
        divided = len(seconds) >= _FEWEST_TO_DIVIDE
        for row, first in enumerate(firsts):
            for column, second in enumerate(seconds):
                kept_one = divided and (row + column + block) % _KEPT_EVERY == 0
                if (first, second) not in _EMPTY:
                    (kept if kept_one else trained).add((first, second))
    return frozenset(trained), frozenset(kept)
