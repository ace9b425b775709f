"""Rooms for generated games: which receptacles stand where, and what lies in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from envs.alfworld.household import household

ROOMS = {"kitchen": 0, "living room": 200, "bedroom": 300, "bathroom": 400}
"""Kinds of rooms and where their numbers begin, as in the official scenes."""
MOST, FEWEST = 35, 10
"""How many receptacles a room may have."""
SHARED = 0.3
"""How often a drawer, cabinet or shelf is reached from the place of the one before."""
_STACKED = frozenset(("Drawer", "Cabinet", "Shelf"))
_ROOM_FOR = {
    "CounterTop": 6,
    "DiningTable": 6,
    "Fridge": 5,
    "Bed": 4,
    "Desk": 5,
    "Dresser": 4,
    "SideTable": 3,
}
_ONE = frozenset(
    ("CoffeeMachine", "StoveBurner", "ToiletPaperHanger", "TowelHolder", "HandTowelHolder", "Toaster")
)
_INSIDE = {"SinkBasin": "Sink", "BathtubBasin": "Bathtub"}
"""Receptacles whose id begins with what they belong to."""


@dataclass(frozen=True)
class Stand:
    """A receptacle in a room."""

    entity: str
    kind: str
    place: str


@dataclass(frozen=True)
class Layout:
    """An empty room."""

    number: int
    """As in the official scenes: kitchens from 1, living rooms from 201, bedrooms from 301, bathrooms from 401."""
    room: str
    stands: tuple[Stand, ...]
    entrance: str
    """The place where the agent begins; no receptacle is reached from it."""

    @property
    def kinds(self) -> frozenset[str]:
        """Which kinds of receptacles stand here."""
        return frozenset(stand.kind for stand in self.stands)


@dataclass(frozen=True)
class Thing:
    """Something that lies in a receptacle."""

    entity: str
    kind: str
    stand: Stand


def random(seed: int, *place: int) -> np.random.Generator:
    """A generator for one place of the generated world."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))


@lru_cache(maxsize=512)
def layout(seed: int, number: int, most: int) -> Layout:
    """The room of a number, with 10 to `most` receptacles; always the same one for the same arguments."""
    room = next(name for name in reversed(ROOMS) if number > ROOMS[name])
    known = household().rooms[room]
    rng = random(seed, 0, number)
    counts = Counter(known.always)
    total = int(rng.integers(max(FEWEST, len(known.always)), most + 1))
    while sum(counts.values()) < total:
        free = {kind: mean for kind, (mean, limit) in known.further.items() if counts[kind] < limit}
        counts[_draw(rng, free)] += 1
    kinds = sorted(counts.elements())
    spots = rng.permutation(15 * 15)[: len(kinds) + 1]
    stands: list[Stand] = []
    for kind, spot in zip(kinds, spots, strict=False):
        x, z = divmod(int(spot), 15)
        before = stands[-1] if stands else None
        shared = before and before.kind == kind and kind in _STACKED and rng.random() < SHARED
        place = (
            before.place if before and shared else f"loc_bar_{_grid(x - 7)}_bar_{_grid(z - 7)}_bar_1_bar_45"
        )
        at = ((x - 7) / 4 + 0.1, float(rng.integers(20, 160)) / 100, (z - 7) / 4 + 0.1)
        stands.append(Stand(entity(kind, at), kind, place))
    x, z = divmod(int(spots[-1]), 15)
    return Layout(number, room, tuple(stands), f"loc_bar_{_grid(x - 7)}_bar_{_grid(z - 7)}_bar_0_bar_30")


def entity(kind: str, at: Sequence[float]) -> str:
    """An id in the simulator's form, from a kind and a position in metres."""
    parts = [_INSIDE.get(kind, kind), *map(_metres, at), *([kind] if kind in _INSIDE else [])]
    return "_bar_".join(parts).lower()


def furnish(
    layout: Layout, needed: Sequence[str], avoid: Mapping[str, str], rng: np.random.Generator
) -> tuple[Thing, ...]:
    """Things for a room: the needed ones first, then what usually lies there.

    avoid: kinds of things, each with the kind of receptacle that none of them may be in.

    Raises `ValueError` where a needed thing has no place.
    """
    free = {
        stand.entity: 1 if stand.kind in _ONE else _ROOM_FOR.get(stand.kind, 2) for stand in layout.stands
    }
    things: list[Thing] = []
    for kind in (*needed, *_clutter(layout, rng, len(needed))):
        stand = _place_for(kind, layout, free, avoid.get(kind), rng)
        if stand is not None:
            free[stand.entity] -= 1
            at = rng.integers(-300, 300, size=3) / 100
            things.append(Thing(entity(kind, [*map(float, at)]), kind, stand))
        elif len(things) < len(needed):
            raise ValueError(f"no place for a {kind} in room {layout.number}")
    return tuple({thing.entity: thing for thing in things}.values())


def _clutter(layout: Layout, rng: np.random.Generator, without: int) -> list[str]:
    """Kinds of things that lie about, with repeats: about 1.2 things for each receptacle."""
    means = household().rooms[layout.room].things
    pool = [kind for kind, mean in means.items() for _ in range(int(mean + rng.random()))]
    wanted = max(0, round(1.2 * len(layout.stands)) - without)
    return [pool[number] for number in rng.permutation(len(pool))[:wanted]]


def _place_for(
    kind: str, layout: Layout, free: Mapping[str, int], avoid: str | None, rng: np.random.Generator
) -> Stand | None:
    """A receptacle with room for a thing, by where such things usually are."""
    open_stands = [stand for stand in layout.stands if free[stand.entity] > 0 and stand.kind != avoid]
    kinds = {stand.kind for stand in open_stands}
    weights = {place: share for place, share in household().usual[kind].items() if place in kinds}
    if not weights:
        return None
    chosen = _draw(rng, weights)
    options = [stand for stand in open_stands if stand.kind == chosen]
    return options[int(rng.integers(len(options)))]


def _draw(rng: np.random.Generator, weights: Mapping[str, float]) -> str:
    left = float(rng.random()) * sum(weights.values())
    for name, weight in weights.items():
        left -= weight
        if left < 0:
            return name
    return list(weights)[-1]  # where rounding leaves a rest


def _metres(value: float) -> str:
    whole, hundredths = divmod(round(abs(value) * 100), 100)
    return f"_{'minus' if value < 0 else 'plus'}_{whole:02d}_dot_{hundredths:02d}"


def _grid(value: int) -> str:
    return f"_minus_{-value}" if value < 0 else str(value)
