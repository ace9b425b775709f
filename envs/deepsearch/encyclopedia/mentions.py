"""Which passages name what, found in their texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from envs.deepsearch.corpus import Passage
from envs.deepsearch.encyclopedia.schema import Entity

Node = int
"""A thing by its number, or a year as a negative number."""
_NAMED = re.compile(r"[A-Z][a-z]+(?: (?:of )?[A-Z][a-z]+)*|\b[0-9]{4}\b")


class Mentions:
    """An index from things and years to passages and pages; the title of a passage counts as its text."""

    def __init__(self, entities: Sequence[Entity], passages: Sequence[Passage]) -> None:
        numbers = {name: number for number, one in enumerate(entities) for name in one.names}
        self._passages: dict[Node, set[int]] = defaultdict(set)
        self._pages: dict[Node, set[Node]] = defaultdict(set)
        for at, passage in enumerate(passages):
            own = numbers[passage.title]
            found = {own}
            for word in _NAMED.findall(passage.text):
                if word[0].isdigit():
                    found.add(-int(word))
                elif word in numbers:
                    found.add(numbers[word])
            self._pages[own] |= found
            for node in found:
                self._passages[node].add(at)

    def together(self, one: Node, other: Node) -> bool:
        """Whether any passage names both."""
        return not self._passages[one].isdisjoint(self._passages[other])

    def on_page(self, page: Node, node: Node) -> bool:
        """Whether the page of a thing names a thing or year."""
        return node in self._pages[page]
