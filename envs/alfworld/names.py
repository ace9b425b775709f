"""What things are called: `mug 2` for an id of the simulator's form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_ESCAPES = (("_bar_", "|"), ("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ","))


def kind_of(entity: str) -> str | None:
    """The kind in an id such as `mug_bar__plus_00_dot_25_bar_...`; None for ids of another form.

    Basins share the kind of what they belong to in their id, so they get `basin` behind it.
    """
    kind, bar, _ = entity.partition("_bar_")
    if not bar:
        return None
    return kind + "basin" if "basin" in entity else kind


def official_names(entities: Iterable[str]) -> dict[str, str]:
    """Names of all entities of a game, by the rule of the official engine (its `Demangler`, not shuffled).

    Ids are taken in sorted order; of each kind, the first one gets the highest number and the last one 1. So the
    numbers depend on every entity of the game. An id without a kind is called by its own text and a space.
    """
    ordered = sorted(set(entities))
    left = Counter(kind for entity in ordered if (kind := kind_of(entity)) is not None)
    names = {}
    for entity in ordered:
        kind = kind_of(entity)
        if kind is None:
            text = entity
            for code, character in _ESCAPES:
                text = text.replace(code, character)
            names[entity] = f"{text} "
        else:
            names[entity] = f"{kind} {left[kind]}"
            left[kind] -= 1
    return names
