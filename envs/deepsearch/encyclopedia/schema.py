"""What the invented world is made of: kinds of things, relations between them, facts, questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


class EncyclopediaError(ValueError):
    """Settings that cannot be met, or an encyclopedia that breaks one of its promises."""


@dataclass(frozen=True)
class Relation:
    """A function from things of some kinds to things of others, or to years."""

    name: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...] = ()
    """Kinds of the value; empty where it is a year."""
    asked: bool = True
    """Questions may use it; the others make passages that look alike without answering."""

    @property
    def dated(self) -> bool:
        """Whether the value is a year."""
        return not self.objects


PERSON, TOWN, PLACES = ("person",), ("town",), ("country", "region", "town", "river")
KINDS = (
    *("country", "region", "town", "river", "person", "novel", "film", "painting", "song"),
    *("company", "school", "orchestra", "club", "festival", "battle", "expedition"),
)

_RELATIONS = (
    Relation("birthplace", PERSON, TOWN),
    Relation("deathplace", PERSON, TOWN),
    Relation("school", PERSON, ("school",)),
    Relation("spouse", PERSON, PERSON),
    Relation("mother", PERSON, PERSON),
    Relation("father", PERSON, PERSON),
    Relation("region", ("town", "river"), ("region",)),
    Relation("river", TOWN, ("river",)),
    Relation("country", ("region",), ("country",)),
    Relation("capital", ("country", "region"), TOWN),
    Relation("director", ("film",), PERSON),
    Relation("star", ("film",), PERSON),
    Relation("source", ("film",), ("novel",)),
    Relation("author", ("novel",), PERSON),
    Relation("setting", ("novel",), TOWN),
    Relation("painter", ("painting",), PERSON),
    Relation("owner", ("painting",), ("company",)),
    Relation("singer", ("song",), PERSON),
    Relation("namesake", ("song", "school", "festival"), PERSON),
    Relation("founder", ("company", "school", "club", "festival"), PERSON),
    Relation("base", ("company", "school", "orchestra", "club"), TOWN),
    Relation("leader", ("orchestra", "expedition"), PERSON),
    Relation("venue", ("festival", "battle"), TOWN),
    Relation("victor", ("battle",), PERSON),
    Relation("goal", ("expedition",), ("river",)),
    Relation("birth_year", PERSON),
    Relation("founding_year", ("town", "company", "school", "orchestra", "club", "festival")),
    Relation("release_year", ("novel", "film", "painting", "song")),
    Relation("event_year", ("battle", "expedition")),
    Relation("visited", PERSON, TOWN, asked=False),
    Relation("friend", PERSON, PERSON, asked=False),
    Relation("death_year", PERSON, asked=False),
    Relation("neighbour", PLACES, PLACES, asked=False),
    Relation("mentions", ("novel", "painting"), ("river",), asked=False),
    Relation("screened", ("film",), ("festival",), asked=False),
    Relation("trades", ("company",), ("company",), asked=False),
    Relation("toured", ("orchestra",), TOWN, asked=False),
    Relation("rival", ("club",), ("club",), asked=False),
    Relation("other_year", KINDS, asked=False),
)
RELATIONS: Mapping[str, Relation] = {relation.name: relation for relation in _RELATIONS}
DATED = frozenset(relation.name for relation in _RELATIONS if relation.dated)
"""Relations whose value is a year."""
ASKED_DATES = tuple(name for name in RELATIONS if name in DATED and RELATIONS[name].asked)
ASKED_LINKS = tuple(name for name in RELATIONS if name not in DATED and RELATIONS[name].asked)
"""Relations that questions use and whose value is a thing."""


@dataclass(frozen=True)
class Entity:
    """Something that has a page."""

    kind: str
    name: str
    """The title of its page."""
    aliases: tuple[str, ...]
    """Other names in use; its page says them."""
    noun: str
    """What its page calls it: `painter`, `film`."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the title first."""
        return (self.name, *self.aliases)


@dataclass(frozen=True)
class Fact:
    """One edge of the graph, and where the corpus says it."""

    subject: str
    """Title of the page that says it."""
    relation: str
    value: str
    """The value's title, or a year."""
    stated: str
    """The value as the sentence names it: the title, an alias, or the year."""
    passage: int
    """Position in the corpus."""
    span: tuple[int, int]
    """Where its sentence begins and ends in the passage's text."""


@dataclass(frozen=True)
class Step:
    """One page to read."""

    title: str
    relation: str
    answer: str
    """The value as the page states it."""


@dataclass(frozen=True)
class MultiHopQuestion:
    """A question with its answer and the way to it."""

    id: str
    text: str
    golds: tuple[str, ...]
    """All accepted answers; the first one is the title, the year, the number, or yes or no."""
    form: str
    relations: tuple[str, ...]
    """In the order in which they are followed."""
    hops: int
    domain: str
    """`id` for forms of training, `ood` for others."""
    split: str
    supporting_titles: tuple[str, ...]
    """Pages needed, in the order of the hops."""
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Settings:
    """What to generate; the passages depend on `seed` and `passages` alone."""

    seed: int = 0
    passages: int = 4000
    train: int = 3600
    dev: int = 100
    test: int = 100
    ood_dev: int = 100
    ood_test: int = 100

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = LEAST_PASSAGES if field.name == "passages" else 0
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise EncyclopediaError(f"{field.name} is {value!r}, expected a whole number from {least}")

    @property
    def questions(self) -> Mapping[str, int]:
        """How many questions each split has."""
        return {split: getattr(self, split) for split in SPLITS}


LEAST_PASSAGES = 120
SPLITS = ("train", "dev", "test", "ood_dev", "ood_test")
