"""People: when they lived, what they did, whom they married, whose children they were."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from envs.deepsearch.encyclopedia.chance import Dice

BORN = (1780, 1960)
ALIVE = 9999
"""Year of death of those who live."""
_WORKS: Mapping[str, tuple[int, int, int]] = {
    "novelist": (13, 1780, 1940),
    "film director": (13, 1880, 1960),
    "actor": (13, 1875, 1960),
    "painter": (11, 1780, 1950),
    "singer": (11, 1830, 1960),
    "conductor": (7, 1800, 1950),
    "explorer": (8, 1780, 1900),
    "general": (8, 1780, 1890),
    "merchant": (9, 1780, 1950),
    "teacher": (7, 1780, 1920),
}
"""Professions: how many in a hundred, and when their people were born."""
_MARRIED = 0.6
_KNOWN_PARENTS = 0.45
_AGE_OF_PARENTS = (20, 42)
_AGE_GAP = 8
_TRIES = 10


@dataclass(frozen=True)
class Person:
    """A life in years; kin by their numbers."""

    sex: str
    work: str
    birth: int
    death: int
    spouse: int | None = None
    mother: int | None = None
    father: int | None = None


def settle(seed: int, numbers: Sequence[int]) -> dict[int, Person]:
    """A life for every number."""
    hundred = [work for work, (share, _, _) in _WORKS.items() for _ in range(share)]
    order = [hundred[at * 37 % 100] for at in range(100)]  # mixed, so that any few people have most of them
    people = {
        number: _live(order[at % 100], Dice(seed, "person", number)) for at, number in enumerate(numbers)
    }
    couples = _marry(people, seed)
    for woman, man in couples:
        people[woman] = replace(people[woman], spouse=man)
        people[man] = replace(people[man], spouse=woman)
    for number in people:
        people[number] = _descend(number, people, couples, seed)
    return people


def _live(work: str, dice: Dice) -> Person:
    _, first, last = _WORKS[work]
    birth = dice.between(first, last)
    dead = birth <= 1920 or dice.chance(0.5)
    sex = "female" if dice.chance(0.5) else "male"
    return Person(sex, work, birth, birth + dice.between(45, 90) if dead else ALIVE)


def _marry(people: Mapping[int, Person], seed: int) -> list[tuple[int, int]]:
    """Couples of about equal age, sorted by the woman's year of birth."""
    women, men = (
        sorted((one.birth, number) for number, one in people.items() if one.sex == sex)
        for sex in ("female", "male")
    )
    couples, taken = [], set()
    for birth, woman in women:
        dice = Dice(seed, "marriage", woman)
        low = bisect_left(men, (birth - _AGE_GAP, -1))
        high = bisect_right(men, (birth + _AGE_GAP, max(people)))
        for _ in range(_TRIES if high > low and dice.chance(_MARRIED) else 0):
            man = men[dice.between(low, high - 1)][1]
            if man not in taken:
                taken.add(man)
                couples.append((woman, man))
                break
    return couples


def _descend(
    number: int, people: Mapping[int, Person], couples: Sequence[tuple[int, int]], seed: int
) -> Person:
    """The person with parents, where a couple of the right age is found."""
    person, dice = people[number], Dice(seed, "parents", number)
    if not dice.chance(_KNOWN_PARENTS):
        return person
    youngest, oldest = _AGE_OF_PARENTS
    low = bisect_left(couples, person.birth - oldest, key=lambda couple: people[couple[0]].birth)
    high = bisect_right(couples, person.birth - youngest, key=lambda couple: people[couple[0]].birth)
    for _ in range(_TRIES if high > low else 0):
        woman, man = couples[dice.between(low, high - 1)]
        spouse = None if person.spouse is None else people[person.spouse]
        siblings = spouse is not None and spouse.mother == woman
        if youngest <= person.birth - people[man].birth <= oldest and not siblings:
            return replace(person, mother=woman, father=man)
    return person
