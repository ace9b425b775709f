"""Invented names: pronounceable, built from syllables by kind, and no name stands inside another one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from envs.deepsearch.encyclopedia.chance import Dice


def _words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


_ONSETS = _words("b br d dr f g gr h j k kr l m n p pr r s st t tr v vr z")
_VOWELS = "aeiou"
_MIDDLES = _words("b d k l m n r s t v ld lm lv nd nt rd rk rm rn st")

_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "female": ("a", "e", "ia", "ine", "issa", "ela"),
    "male": ("o", "an", "us", "ik", "ert", "on"),
    "surname": ("ov", "esh", "ersen", "ucci", "oty", "enko", "ander", "ibal"),
    "person": ("ax", "ello", "aru", "izo"),
    "town": ("amar", "osted", "ovik", "aburg", "iton", "udor", "eham"),
    "river": ("une", "oya", "ira", "aza", "ulle"),
    "region": ("aland", "emark", "oshire", "oveld"),
    "country": ("avonia", "ethia", "uland", "ombar"),
    "company": ("amco", "ulco", "idor", "orno"),
    "school": ("enhall", "ersby", "owell"),
    "orchestra": ("anto", "ivo", "elian"),
    "club": ("adon", "ulok", "ibex"),
    "festival": ("alune", "irra", "ofest"),
    "battle": ("eld", "ogar", "atch"),
    "expedition": ("aut", "orix", "endor"),
    "work": ("iel", "oon", "aly"),
}
_AVOIDED = ("dik", "kik", "tit", "turd", "tard")
_AFTER: Mapping[str, tuple[str, ...]] = {
    "company": ("Glass", "Steel", "Mills", "Lines", "Motors", "Foods", "Paper", "Tools"),
    "school": ("College", "Academy", "Institute", "University"),
    "orchestra": ("Orchestra", "Philharmonic", "Ensemble"),
    "club": ("Rovers", "United", "Athletic", "Rowers"),
    "festival": ("Festival", "Fair", "Games"),
    "battle": ("Battle", "Siege"),
    "expedition": ("Expedition", "Voyage", "Crossing"),
}
_FIRST = _words(
    "Amber Autumn Bitter Black Blue Borrowed Bright Broken Burning Calm Cold Copper Crooked Dark Dusty "
    "Distant Early Empty Endless Faded Fallen Final Foreign Forgotten Frozen Gentle Golden Grey Half "
    "Hidden Hollow Honest Idle Iron Lasting Late Little Lonely Lost Lucky Midnight Narrow Northern Open "
    "Pale Paper Patient Plain Quiet Rapid Red Restless Rising Sacred Salt Scarlet Second Secret Seven "
    "Short Silent Silver Simple Sleeping Slow Small Southern Stolen Stone Strange Sudden Summer Tall "
    "Tender Third Tired Twelve Velvet Violet Wandering Warm White Wild Winter Wooden Yellow Young"
)
_LAST = _words(
    "Anchor Angel Apple Balcony Ballad Bell Bird Bridge Candle Card Castle Circle Clock Cloud Coast "
    "Corner Crown Dance Door Dream Eagle Echo Evening Feather Field Fire Flower Forest Fountain Friend "
    "Garden Gate Glove Guest Hammer Harbour Harvest Heart Horse Hour House Island Journey Key Kingdom "
    "Ladder Lake Lantern Lesson Letter Mask Meadow Mirror Moon Morning Mountain Night Ocean Orchard Owl "
    "Palace Pearl Piano Pilot Promise Rain Ring Road Room Rose Sailor Shadow Ship Shore Sky Song Star "
    "Storm Stranger Street Sun Table Thief Tower Train Tree Valley Violin Voice Wall Wedding Wheel Wind "
    "Window Witness"
)
_WORKS = ("novel", "film", "painting", "song")
_TRIES = 20
"""After so many names that are taken, they are made a syllable longer; titles of works get an invented word."""


class Namer:
    """Gives every name once; a word that is a whole name, or its only invented part, is in no other name."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._dice: dict[str, Dice] = {}
        self._taken: set[str] = {word.lower() for words in _AFTER.values() for word in words}
        self._taken |= {word.lower() for word in (*_FIRST, *_LAST)}
        self._words_of_people: set[str] = set()

    def title(self, kind: str) -> str:
        """A name for a new thing; not for people, whose surnames are inherited."""
        if kind in _WORKS:
            return self._unused(kind, self._work)
        word = self._unused(kind, self._word(kind))
        if kind == "battle":
            return f"{self._of(kind).pick(_AFTER[kind])} of {word}"
        return f"{word} {self._of(kind).pick(_AFTER[kind])}" if kind in _AFTER else word

    def alias(self, kind: str) -> str:
        """Another name for a thing: one word, or for works another title."""
        if kind in _WORKS:
            return self._unused(kind, self._work)
        return self._unused(kind, self._word(kind))

    def surname(self) -> str:
        """A surname; several people may bear it."""
        return self._human("surname")

    def person(self, sex: str, surname: str) -> str:
        """A full name; first names are shared, the whole is not."""
        return self._unused(sex, lambda _, longer: f"{self._human(sex, longer)} {surname}")

    def _of(self, kind: str) -> Dice:
        if kind not in self._dice:
            self._dice[kind] = Dice(self._seed, "names", kind)
        return self._dice[kind]

    def _unused(self, kind: str, make: Callable[[Dice, int], str]) -> str:
        for tried in itertools.count():
            name = make(self._of(kind), tried // _TRIES)
            if name.lower() not in self._taken and name.lower() not in self._words_of_people:
                self._taken.add(name.lower())
                return name
        raise AssertionError("names only grow longer")

    def _human(self, part: str, longer: int = 0) -> str:
        """A word of people's names: it may be drawn again, but never for anything else."""
        while (word := self._word(part)(self._of(part), longer)).lower() in self._taken:
            continue
        self._words_of_people.add(word.lower())
        return word

    @staticmethod
    def _word(kind: str) -> Callable[[Dice, int], str]:
        def make(dice: Dice, longer: int) -> str:
            more = "".join(dice.pick(_ONSETS) + dice.pick(_VOWELS) for _ in range(longer))
            stem = dice.pick(_ONSETS) + dice.pick(_VOWELS) + dice.pick(_MIDDLES)
            word = more + stem + dice.pick(_ENDINGS[kind])
            return make(dice, longer) if any(part in word for part in _AVOIDED) else word.capitalize()

        return make

    @staticmethod
    def _work(dice: Dice, longer: int) -> str:
        first = Namer._word("work")(dice, longer - 1) if longer else dice.pick(_FIRST)
        return f"{first} {dice.pick(_LAST)}"
