"""Pages: what is true of a thing, in one or two passages of a few sentences, and where each fact is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from envs.deepsearch.corpus import Passage
from envs.deepsearch.encyclopedia.chance import Dice
from envs.deepsearch.encyclopedia.graph import Graph
from envs.deepsearch.encyclopedia.phrases import FILLERS, SENTENCES
from envs.deepsearch.encyclopedia.schema import DATED, KINDS, Entity, Fact
from envs.deepsearch.encyclopedia.wordings import slots

FEWEST_WORDS = 25
"""Passages that have fewer get a sentence more, up to three."""
MERGED = 0.5
"""How often two relations that one sentence can state are stated by it."""
TOGETHER = 0.8
"""How often two units after the first sentence share one."""
BY_ALIAS = 0.3
"""How often a value is called by its other name, where it has one."""
_PRONOUNS = {"female": ("She", "Her"), "male": ("He", "His"), "": ("It", "Its")}
_FILLER_OF = {
    **dict.fromkeys(("country", "region", "town", "river"), "place"),
    **dict.fromkeys(("novel", "film", "painting", "song"), "work"),
    **dict.fromkeys(("company", "school", "orchestra", "club"), "group"),
    **dict.fromkeys(("festival", "battle", "expedition"), "event"),
    "person": "person",
}
_PAST = ("person", "battle", "expedition")

Unit = tuple[str, ...]
"""Relations that one predicate states."""


@dataclass(frozen=True)
class Book:
    """The corpus with what it says."""

    passages: tuple[Passage, ...]
    facts: tuple[Fact, ...]
    """In the order of the corpus."""


def write(seed: int, graph: Graph, passages: int) -> Book:
    """All pages in random order, in exactly so many passages."""
    numbers = range(len(graph.entities))
    ties = Dice(seed, "length").many(len(numbers))
    by_length = sorted(numbers, key=lambda one: (-len(graph.facts[one]), ties[one]))
    long = set(by_length[: passages - len(numbers)])
    pages = Dice(seed, "order").shuffled(numbers)
    written: list[Passage] = []
    facts: list[Fact] = []
    for number in pages:
        page = _Page(seed, graph, number)
        for text, said in page.write(2 if number in long else 1):
            title = graph.entities[number].name
            for relation, stated, span in said:
                value = graph.facts[number][relation]
                of = str(value) if relation in DATED else graph.entities[value].name
                facts.append(Fact(title, relation, of, stated, len(written), span))
            written.append(Passage(str(len(written)), title, text))
    return Book(tuple(written), tuple(facts))


Said = tuple[str, str, tuple[int, int]]


class _Page:
    """One page in the making."""

    def __init__(self, seed: int, graph: Graph, number: int) -> None:
        self._dice = Dice(seed, "page", number)
        self._entity = graph.entities[number]
        self._sex = graph.sexes[number]
        self._facts = graph.facts[number]
        self._values = {
            name: str(value) if name in DATED else self._called(graph.entities[value])
            for name, value in self._facts.items()
        }

    def write(self, passages: int) -> list[tuple[str, list[Said]]]:
        """The texts, each with the relations it states: relation, value as stated, span of the sentence."""
        units = self._units(passages)
        cut = (len(units) + 1) // 2 if passages == 2 else len(units)
        parts = [units[:cut], units[cut:]][:passages]
        return [self._passage(part, first=at == 0) for at, part in enumerate(parts)]

    def _called(self, entity: Entity) -> str:
        if entity.aliases and self._dice.chance(BY_ALIAS):
            return self._dice.pick(entity.aliases)
        return entity.name

    def _units(self, passages: int) -> list[Unit]:
        """All relations, some of them in twos, in random order."""
        left = dict.fromkeys(self._dice.shuffled(tuple(self._facts)))
        units: list[Unit] = []
        for pair in self._dice.shuffled(_twos(self._entity.kind)):
            room = len(left) + len(units) > passages + 1
            if room and all(name in left for name in pair) and self._dice.chance(MERGED):
                units.append(pair)
                for name in pair:
                    del left[name]
        return self._dice.shuffled([*units, *((name,) for name in left)])

    def _passage(self, units: Sequence[Unit], *, first: bool) -> tuple[str, list[Said]]:
        rest = units[1:]
        cut = len(rest) if len(rest) == 2 and self._dice.chance(TOGETHER) else (len(rest) + 1) // 2
        groups = [group for group in (rest[:cut], rest[cut:]) if group]
        text, said = "", list[Said]()
        for at, group in enumerate([units[:1], *groups]):
            sentence = self._lead(group[0], first=first) if at == 0 else self._sentence(group)
            begin = len(text) + (1 if text else 0)
            text = f"{text} {sentence}".strip()
            said += [(name, self._values[name], (begin, len(text))) for unit in group for name in unit]
        count = 1 + len(groups)
        for filler in self._dice.shuffled(FILLERS[_FILLER_OF[self._entity.kind]])[: 3 - count]:
            if len(text.split()) < FEWEST_WORDS:
                text = f"{text} {filler}."
        return text, said

    def _lead(self, unit: Unit, *, first: bool) -> str:
        """A passage's first sentence; it begins with the title, and the first one of a page says all names."""
        entity, predicate = self._entity, self._predicate(unit)
        also = f", also known as {entity.aliases[0]}," if first and entity.aliases else ""
        if self._dice.chance(0.6 if first else 0.3):
            article = "an" if entity.noun[0] in "aeiou" else "a"
            is_a = f"{'was' if entity.kind in _PAST else 'is'} {article} {entity.noun}"
            return f"{entity.name}{also} {is_a} {'who' if entity.kind == 'person' else 'that'} {predicate}."
        if self._dice.chance(0.7):
            return f"The {entity.noun} {entity.name}{also} {predicate}."
        return f"{entity.name}{also} {predicate}."

    def _sentence(self, units: Sequence[Unit]) -> str:
        pronoun, possessive = _PRONOUNS[self._sex]
        entity = self._entity
        others = (*entity.aliases * 2, f"The {entity.noun}", entity.name)
        subject = pronoun if self._dice.chance(0.5) else self._dice.pick(others)
        if len(units) == 1 and (whole := _sentences(entity.kind, units[0])[1]) and self._dice.chance(0.5):
            owner = possessive if subject == pronoun else f"{subject}'s"
            return f"{owner} {self._fill(self._dice.pick(whole))}."
        *before, last = [self._predicate(unit) for unit in units]
        return f"{subject} {', '.join(before)}{' and ' if before else ''}{last}."

    def _predicate(self, unit: Unit) -> str:
        return self._fill(self._dice.pick(_sentences(self._entity.kind, unit)[0]))

    def _fill(self, sentence: str) -> str:
        return sentence.removeprefix("{x's} ").format(**self._values)


@lru_cache(maxsize=1024)
def _sentences(kind: str, unit: Unit) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Predicates, and whole sentences, that state just these relations."""
    found = [sentence for sentence in SENTENCES[kind] if set(slots(sentence)) == set(unit)]
    whole = tuple(sentence for sentence in found if sentence.startswith("{x's}"))
    return tuple(sentence for sentence in found if sentence not in whole), whole


@lru_cache(maxsize=len(KINDS))
def _twos(kind: str) -> tuple[Unit, ...]:
    """Pairs of relations that one predicate states."""
    pairs = (slots(sentence) for sentence in SENTENCES[kind])
    return tuple(dict.fromkeys(tuple(sorted(pair)) for pair in pairs if len(pair) == 2))
