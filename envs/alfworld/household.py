"""What homes are like: kinds of things and receptacles, what can be done with them, where they usually are."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("household.toml")


@dataclass(frozen=True)
class Room:
    """One kind of room."""

    always: tuple[str, ...]
    """Receptacles of which every room has at least one."""
    further: Mapping[str, tuple[float, int]]
    """How many of a kind an average room has, and the most."""
    things: Mapping[str, float]
    """How many of a kind lie in an average room."""


@dataclass(frozen=True)
class Household:
    """Common knowledge of homes; kinds are spelled as in the official files, `CounterTop`."""

    openable: frozenset[str]
    able: Mapping[str, frozenset[str]]
    """Kinds of things by what can be done: clean, heat, cool, slice, hold, light."""
    holds: Mapping[str, frozenset[str]]
    """What may be put into a kind of receptacle."""
    usual: Mapping[str, Mapping[str, int]]
    """How often a thing is in each kind of receptacle, in per cent, the likeliest first."""
    rooms: Mapping[str, Room]


@lru_cache(maxsize=1)
def household() -> Household:
    """What the file beside this module says; read once."""
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Household(
        openable=frozenset(table["openable"]),
        able={name: frozenset(kinds) for name, kinds in table["able"].items()},
        holds={kind: frozenset(things) for kind, things in table["holds"].items()},
        usual=table["usual"],
        rooms={
            name: Room(
                tuple(room["always"]),
                {kind: (mean, most) for kind, (mean, most) in room["further"].items()},
                room["things"],
            )
            for name, room in table["rooms"].items()
        },
    )
