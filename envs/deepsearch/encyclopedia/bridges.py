"""Chains of facts that a bridge question can follow without a shortcut."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from envs.deepsearch.encyclopedia.chance import Dice
from envs.deepsearch.encyclopedia.composition import pairs
from envs.deepsearch.encyclopedia.known import Known
from envs.deepsearch.encyclopedia.schema import ASKED_DATES, ASKED_LINKS, DATED

MOST_STARTS = 6000
"""From no more starts chains of two hops are looked for, however many there are; from a quarter for each hop more."""

Chain = tuple[int, tuple[str, ...], tuple[int, ...]]
"""Start, relations, and where each of them leads: things by number, years as negative numbers."""
K = TypeVar("K")
T = TypeVar("T")


def chains(seed: int, known: Known, split: str, hops: int, *, kept: bool) -> Iterator[Chain]:
    """Chains of so many hops for a split, those of different relations in turns.

    `kept`: whether consecutive relations are the pairs kept for out-of-domain questions, or those of training.
    """
    allowed = pairs()[1 if kept else 0]
    starts = Dice(seed, "starts", split, hops).shuffled(known.starts(split))
    groups = defaultdict[tuple[str, ...], list[Chain]](list)
    for start in starts[: MOST_STARTS // 4 ** (hops - 2)]:
        for chain in _from(known, split, hops, allowed, (start, (), ())):
            groups[chain[1]].append(chain)
    kind = "kept" if kept else "trained"
    mixed = {key: Dice(seed, "chains", split, kind, *key).shuffled(group) for key, group in groups.items()}
    order = Dice(seed, "chains", split, kind, hops).shuffled(sorted(mixed))
    return (chain for _, chain in in_turns({key: mixed[key] for key in order}))


def in_turns(groups: Mapping[K, Sequence[T]]) -> Iterator[tuple[K, T]]:
    """One of each group, then another one of each that has one left, and so on."""
    for at in itertools.count():
        some = [(key, group[at]) for key, group in groups.items() if at < len(group)]
        if not some:
            return
        yield from some


def _from(
    known: Known, split: str, hops: int, allowed: frozenset[tuple[str, str]], chain: Chain
) -> Iterator[Chain]:
    """All ways to go on from a chain to one of so many hops."""
    start, relations, nodes = chain
    page = nodes[-1] if nodes else start
    if not known.on_side(page, split):
        return
    last = len(relations) == hops - 1
    for relation in (*ASKED_LINKS, *ASKED_DATES) if last else ASKED_LINKS:
        value = known.facts[page].get(relation)
        if value is None or (relations and (relations[-1], relation) not in allowed):
            continue
        node = -value if relation in DATED else value
        if _direct(known, (start, *nodes), node):
            longer = (start, (*relations, relation), (*nodes, node))
            if not last:
                yield from _from(known, split, hops, allowed, longer)
            elif not known.mentions.together(start, node):
                yield longer


def _direct(known: Known, before: Sequence[int], node: int) -> bool:
    """Whether a node is new, and no page but the last one says it already."""
    return node not in before and not any(known.mentions.on_page(page, node) for page in before[:-1])
