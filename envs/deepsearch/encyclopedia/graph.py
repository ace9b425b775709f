"""The relation graph: who and what there is, and how it hangs together in time and place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from envs.deepsearch.encyclopedia.chance import Dice
from envs.deepsearch.encyclopedia.names import Namer
from envs.deepsearch.encyclopedia.people import BORN, Person, settle
from envs.deepsearch.encyclopedia.schema import KINDS, Entity

SHARES: Mapping[str, float] = {
    "country": 0.012,
    "region": 0.03,
    "town": 0.11,
    "river": 0.03,
    "novel": 0.08,
    "film": 0.10,
    "painting": 0.06,
    "song": 0.06,
    "company": 0.04,
    "school": 0.035,
    "orchestra": 0.02,
    "club": 0.02,
    "festival": 0.025,
    "battle": 0.02,
    "expedition": 0.02,
}
"""Share of each kind among the pages; the rest are people."""
FEWEST = 2
ALIASED = 0.2
"""Share of things that have another name."""
NOW = 2020
_TRIES = 30


@dataclass(frozen=True)
class Graph:
    """Things by number, with what is true of each."""

    entities: tuple[Entity, ...]
    sexes: tuple[str, ...]
    """`female`, `male`, or nothing."""
    facts: tuple[Mapping[str, int], ...]
    """Of each thing: relation -> number of the value, or the year."""


def build(seed: int, pages: int) -> Graph:
    """The graph with so many things, each of which will have a page."""
    return _Builder(seed, pages).build()


class _Builder:
    """Things get their relations kind by kind; each thing draws from a stream of its own."""

    def __init__(self, seed: int, pages: int) -> None:
        self._seed = seed
        sizes = {kind: max(FEWEST, round(share * pages)) for kind, share in SHARES.items()}
        sizes["person"] = pages - sum(sizes.values())
        starts = itertools.accumulate((sizes[kind] for kind in KINDS), initial=0)
        self._of = {kind: range(at, at + sizes[kind]) for kind, at in zip(KINDS, starts, strict=False)}
        self._kinds = [kind for kind in KINDS for _ in self._of[kind]]
        self._facts: list[dict[str, int]] = [{} for _ in self._kinds]
        self._people: dict[int, Person] = {}
        self._working: dict[str, list[int]] = {}

    def build(self) -> Graph:
        self._lay_out()
        self._people = settle(self._seed, self._of["person"])
        for number, person in self._people.items():
            self._working.setdefault(person.work, []).append(number)
        for kind in KINDS:
            for number in self._of[kind]:
                dice = Dice(self._seed, "facts", number)
                _MAKERS[kind](self, number, dice)
                self._set(number, "other_year", self._later_year(number, dice) if dice.chance(0.5) else None)
        for number in self._of["person"]:
            self._live(number, Dice(self._seed, "life", number))
        entities = self._name()
        sexes = tuple(self._people[number].sex if number in self._people else "" for number in self._numbers)
        facts = tuple(self._facts)
        return Graph(entities, sexes, facts)

    @property
    def _numbers(self) -> range:
        return range(len(self._kinds))

    def _lay_out(self) -> None:
        """Places: every country has regions, every region towns, and rivers stay in one country."""
        dice = Dice(self._seed, "places")
        countries, regions, towns = self._of["country"], self._of["region"], self._of["town"]
        self._inside: dict[int, list[int]] = {}
        for parts, wholes, relation in ((regions, countries, "country"), (towns, regions, "region")):
            for at, part in enumerate(parts):
                whole = wholes[at] if at < len(wholes) else dice.pick(wholes)
                self._facts[part][relation] = whole
                self._inside.setdefault(whole, []).append(part)
        for river in self._of["river"]:
            self._facts[river]["region"] = region = dice.pick(regions)
            self._inside.setdefault(-self._facts[region]["country"] - 1, []).append(river)

    def _set(self, number: int, relation: str, value: int | None) -> None:
        if value is not None:
            self._facts[number][relation] = value

    def _find(self, dice: Dice, among: Sequence[int], fits: Callable[[int], bool]) -> int | None:
        """One that fits, by trial; None where there seems to be none."""
        for _ in range(_TRIES if among else 0):
            if fits(found := dice.pick(among)):
                return found
        return None

    def _another(self, number: int, dice: Dice, among: Sequence[int] | None = None) -> int | None:
        return self._find(dice, among or self._of[self._kinds[number]], lambda found: found != number)

    def _later_year(self, number: int, dice: Dice) -> int | None:
        """A year in which something may have happened to it; None where it is too young."""
        if number in self._people:
            person = self._people[number]
            return dice.between(person.birth + 20, min(person.death, person.birth + 70, NOW))
        own = self._facts[number]
        began = max(own.get(name, 0) for name in ("founding_year", "release_year", "event_year"))
        first = max(BORN[0], began + 8)
        return dice.between(first, NOW) if first <= NOW else None

    def _worker(self, dice: Dice, works: Sequence[str], low: int, high: int) -> tuple[int | None, int]:
        """Someone of these professions and a year in which they were between so many years old."""
        among = self._working.get(dice.pick(works), ())
        found = self._find(
            dice, among, lambda one: self._people[one].death >= self._people[one].birth + low + 1
        )
        if found is None:
            return None, dice.between(BORN[1], NOW - 40)
        person = self._people[found]
        return found, dice.between(person.birth + low, min(person.birth + high, person.death, NOW))

    def _earlier_person(self, dice: Dice, year: int, *but: int | None) -> int | None:
        return self._find(
            dice, self._of["person"], lambda one: one not in but and self._people[one].birth + 20 <= year
        )

    # One maker a kind

    def _country(self, number: int, dice: Dice) -> None:
        regions = self._inside[number]
        self._set(number, "capital", dice.pick([town for region in regions for town in self._inside[region]]))
        self._set(number, "neighbour", self._another(number, dice))

    def _region(self, number: int, dice: Dice) -> None:
        self._set(number, "capital", dice.pick(self._inside[number]))
        self._set(number, "neighbour", self._another(number, dice))

    def _town(self, number: int, dice: Dice) -> None:
        self._set(number, "founding_year", dice.between(1100, 1700))
        region = self._facts[number]["region"]
        rivers = self._inside.get(-self._facts[region]["country"] - 1, [])
        if rivers and dice.chance(0.7):
            self._set(number, "river", dice.pick(rivers))
        if dice.chance(0.6):
            self._set(number, "neighbour", self._another(number, dice))

    def _river(self, number: int, dice: Dice) -> None:
        self._set(number, "neighbour", self._another(number, dice))

    def _person(self, number: int, dice: Dice) -> None:
        person = self._people[number]
        self._set(number, "birth_year", person.birth)
        self._set(number, "birthplace", home := dice.pick(self._of["town"]))
        for relation in ("spouse", "mother", "father"):
            self._set(number, relation, getattr(person, relation))
        if person.death <= NOW:
            self._set(number, "death_year", person.death if dice.chance(0.6) else None)
            self._set(number, "deathplace", dice.pick(self._of["town"]) if dice.chance(0.7) else None)
        passed = (home, self._facts[number].get("deathplace"))
        if dice.chance(0.4):
            self._set(number, "visited", self._find(dice, self._of["town"], lambda town: town not in passed))

    def _live(self, number: int, dice: Dice) -> None:
        """What of a life is known only when all else is there."""
        person = self._people[number]
        family = {number, person.spouse, person.mother, person.father}

        def founded(school: int) -> bool:
            return self._facts[school]["founding_year"] <= person.birth + 17

        def near(one: int) -> bool:
            return one not in family and abs(self._people[one].birth - person.birth) <= 15

        if dice.chance(0.6):
            self._set(number, "school", self._find(dice, self._of["school"], founded))
        if dice.chance(0.25):
            self._set(number, "friend", self._find(dice, self._of["person"], near))

    def _novel(self, number: int, dice: Dice) -> None:
        author, year = self._worker(dice, ["novelist"], 22, 65)
        self._set(number, "author", author)
        self._set(number, "release_year", year)
        self._set(number, "setting", dice.pick(self._of["town"]) if dice.chance(0.8) else None)
        self._set(number, "mentions", dice.pick(self._of["river"]) if dice.chance(0.5) else None)

    def _film(self, number: int, dice: Dice) -> None:
        director, year = self._worker(dice, ["film director"], 26, 65)
        self._set(number, "director", director)
        self._set(number, "release_year", year)

        def active(one: int) -> bool:
            person = self._people[one]
            return person.birth + 18 <= year <= min(person.death, person.birth + 75)

        def before(novel: int) -> bool:
            return self._facts[novel]["release_year"] < year

        self._set(number, "star", self._find(dice, self._working.get("actor", ()), active))
        if dice.chance(0.5):
            self._set(number, "source", self._find(dice, self._of["novel"], before))
        if dice.chance(0.3):
            self._set(number, "screened", dice.pick(self._of["festival"]))

    def _painting(self, number: int, dice: Dice) -> None:
        painter, year = self._worker(dice, ["painter"], 20, 70)
        self._set(number, "painter", painter)
        self._set(number, "release_year", year)
        self._set(number, "owner", dice.pick(self._of["company"]) if dice.chance(0.8) else None)
        self._set(number, "mentions", dice.pick(self._of["river"]) if dice.chance(0.3) else None)

    def _song(self, number: int, dice: Dice) -> None:
        singer, year = self._worker(dice, ["singer"], 18, 55)
        self._set(number, "singer", singer)
        self._set(number, "release_year", year)
        self._set(number, "namesake", self._earlier_person(dice, year, singer) if dice.chance(0.7) else None)

    def _organise(self, number: int, dice: Dice, role: str, works: Sequence[str], place: str) -> None:
        person, year = self._worker(dice, works, 24, 55)
        self._set(number, role, person)
        self._set(number, "founding_year", year)
        self._set(number, place, dice.pick(self._of["town"]))

    def _company(self, number: int, dice: Dice) -> None:
        self._organise(number, dice, "founder", ["merchant"], "base")
        self._set(number, "trades", self._another(number, dice) if dice.chance(0.5) else None)

    def _school(self, number: int, dice: Dice) -> None:
        self._organise(number, dice, "founder", ["teacher"], "base")
        own = self._facts[number]
        self._set(number, "namesake", self._earlier_person(dice, own["founding_year"], own.get("founder")))

    def _orchestra(self, number: int, dice: Dice) -> None:
        self._organise(number, dice, "leader", ["conductor"], "base")
        self._set(number, "toured", self._another(self._facts[number]["base"], dice))

    def _club(self, number: int, dice: Dice) -> None:
        self._organise(number, dice, "founder", ["merchant", "teacher", "general"], "base")
        self._set(number, "rival", self._another(number, dice))

    def _festival(self, number: int, dice: Dice) -> None:
        self._organise(number, dice, "founder", ["conductor", "singer", "actor"], "venue")
        own = self._facts[number]
        if dice.chance(0.7):
            self._set(
                number, "namesake", self._earlier_person(dice, own["founding_year"], own.get("founder"))
            )

    def _happen(self, number: int, dice: Dice, role: str, work: str) -> None:
        person, year = self._worker(dice, [work], 28, 60)
        self._set(number, role, person)
        self._set(number, "event_year", year)

    def _battle(self, number: int, dice: Dice) -> None:
        self._happen(number, dice, "victor", "general")
        self._set(number, "venue", dice.pick(self._of["town"]))

    def _expedition(self, number: int, dice: Dice) -> None:
        self._happen(number, dice, "leader", "explorer")
        self._set(number, "goal", dice.pick(self._of["river"]))

    def _name(self) -> tuple[Entity, ...]:
        """Names come last: children bear their father's surname."""
        namer = Namer(self._seed)
        names: dict[int, str] = {}
        people = self._of["person"]
        dice = Dice(self._seed, "surnames")
        surnames = [namer.surname() for _ in range(max(2, len(people) // 3))]
        for number in [one for one in self._numbers if one not in people]:
            names[number] = namer.title(self._kinds[number])
        for number in sorted(people, key=lambda one: (self._people[one].birth, one)):
            person = self._people[number]
            inherited = None if person.father is None else names[person.father].split()[-1]
            names[number] = namer.person(person.sex, inherited or dice.pick(surnames))
        found = []
        for number, place in enumerate(Dice(self._seed, "aliases").many(len(self._kinds))):
            kind, aliased = self._kinds[number], place < ALIASED
            noun = self._people[number].work if kind == "person" else kind
            found.append(Entity(kind, names[number], (namer.alias(kind),) if aliased else (), noun))
        return tuple(found)


_MAKERS: Mapping[str, Callable[[_Builder, int, Dice], None]] = {
    kind: getattr(_Builder, f"_{kind}") for kind in KINDS
}
