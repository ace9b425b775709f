"""What questions are made of: facts by number, how they are stated, who belongs to which split."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping

from envs.deepsearch.encyclopedia.chance import Dice
from envs.deepsearch.encyclopedia.graph import Graph
from envs.deepsearch.encyclopedia.mentions import Mentions
from envs.deepsearch.encyclopedia.render import Book
from envs.deepsearch.encyclopedia.schema import DATED, Step
from envs.deepsearch.encyclopedia.wordings import links_of

BOUNDS: Mapping[str, tuple[float, float]] = {
    "train": (0.0, 0.6),
    "dev": (0.6, 0.68),
    "test": (0.68, 0.8),
    "ood_dev": (0.8, 0.88),
    "ood_test": (0.88, 1.0),
}
"""Share of the things at which each split's questions start."""


def domain_of(split: str) -> str:
    """`id` for forms of training, else `ood`."""
    return "ood" if split.startswith("ood") else "id"


class Known:
    """A written encyclopedia, as questions are made of it."""

    def __init__(self, seed: int, graph: Graph, book: Book) -> None:
        self.entities, self.facts = graph.entities, graph.facts
        numbers = {one.name: number for number, one in enumerate(graph.entities)}
        self.stated: list[dict[str, str]] = [{} for _ in graph.entities]
        """How its page names each value of a thing."""
        for fact in book.facts:
            self.stated[numbers[fact.subject]][fact.relation] = fact.stated
        self.mentions = Mentions(graph.entities, book.passages)
        self._place = Dice(seed, "split").many(len(graph.entities))

    def name(self, number: int) -> str:
        """The title of a thing's page."""
        return self.entities[number].name

    def starts(self, split: str) -> list[int]:
        """The things that belong to a split."""
        low, high = BOUNDS[split]
        return [number for number, place in enumerate(self._place) if low <= place < high]

    def on_side(self, number: int, split: str) -> bool:
        """Whether questions of a split may need what is said of a thing."""
        return (self._place[number] < BOUNDS["train"][1]) == (split == "train")

    def step(self, number: int, relation: str) -> Step:
        """Reading one relation from a thing's page."""
        return Step(self.name(number), relation, self.stated[number][relation])

    def golds(self, number: int, relation: str) -> tuple[str, ...]:
        """All names of a thing's value, or its year."""
        value = self.facts[number][relation]
        return (str(value),) if relation in DATED else self.entities[value].names

    def conditions(self) -> tuple[Counter[tuple[str, str, int]], Counter[tuple[str, str, int, str, int]]]:
        """How many things of a kind have a value, and how many have two values."""
        alone = Counter[tuple[str, str, int]]()
        both = Counter[tuple[str, str, int, str, int]]()
        for entity, own in zip(self.entities, self.facts, strict=True):
            links = [name for name in links_of(entity.kind) if name in own]
            alone.update((entity.kind, name, own[name]) for name in links)
            both.update(
                (entity.kind, first, own[first], second, own[second])
                for first, second in itertools.combinations(links, 2)
            )
        return alone, both
