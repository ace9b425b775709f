"""A small kitchen for tests of the ALFWorld engine, written by hand as an official PDDL problem is."""

from __future__ import annotations

from collections.abc import Iterable

from envs.alfworld.engine import Game, Play

FRIDGE, MICROWAVE, SINK = "Fridge_bar_1", "Microwave_bar_1", "Sink_bar_1_bar_SinkBasin"
COUNTER, DESK = "CounterTop_bar_1", "Desk_bar_1"
DRAWERS = ("Drawer_bar_1", "Drawer_bar_2")
"""They share a place: the first id is called drawer 2, the last drawer 1."""
RECEPTACLES = (FRIDGE, MICROWAVE, SINK, COUNTER, DESK, *DRAWERS)
OBJECTS = ("Apple_bar_1", "Mug_bar_1", "Mug_bar_2", "Knife_bar_1", "DeskLamp_bar_1", "Book_bar_1")

PLACED = (
    ("Apple_bar_1", FRIDGE),
    ("Mug_bar_1", COUNTER),
    ("Mug_bar_2", DESK),
    ("Knife_bar_1", COUNTER),
    ("DeskLamp_bar_1", DESK),
    ("Book_bar_1", DRAWERS[0]),
)


def kind(entity: str) -> str:
    return "SinkBasin" if "SinkBasin" in entity else entity.split("_bar_")[0]


def place(receptacle: str) -> str:
    return "loc_bar_drawers" if receptacle in DRAWERS else f"loc_bar_{kind(receptacle)}"


def goal(target: str, receptacle: str, also: str = "") -> str:
    return (
        f"(and (exists (?r - receptacle) (exists (?o - object) (and (inReceptacle ?o ?r) "
        f"(objectType ?o {target}Type) (receptacleType ?r {receptacle}Type) {also}))))"
    )


LOOK_GOAL = (
    "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?ot DeskLampType) "
    "(toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r))) "
    "(exists (?o - object ?a - agent) (and (objectType ?o BookType) (holds ?a ?o))))"
)
TWO_GOAL = (
    "(and (exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 MugType) (receptacleType ?r "
    "CounterTopType) (inReceptacle ?o1 ?r) (exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 MugType) "
    "(receptacleType ?r CounterTopType) (inReceptacle ?o2 ?r)))))))"
)


def problem(wanted: str, extra: Iterable[str] = ()) -> str:
    """The kitchen with a goal."""
    abilities = {
        "pickupable": ("Apple_bar_1", "Mug_bar_1", "Mug_bar_2", "Knife_bar_1", "Book_bar_1"),
        "cleanable": ("Apple_bar_1", "Mug_bar_1", "Mug_bar_2", "Knife_bar_1"),
        "heatable": ("Apple_bar_1", "Mug_bar_1", "Mug_bar_2"),
        "coolable": ("Apple_bar_1", "Mug_bar_1", "Mug_bar_2"),
        "sliceable": ("Apple_bar_1",),
        "toggleable": ("DeskLamp_bar_1",),
        "isReceptacleObject": ("Mug_bar_1", "Mug_bar_2"),
        "openable": (FRIDGE, MICROWAVE, *DRAWERS),
    }
    kinds = sorted({kind(entity) for entity in RECEPTACLES})
    fits = {"Apple": kinds, "Mug": kinds, "Knife": ("CounterTop", "SinkBasin"), "Book": ("Desk", "Drawer")}
    facts = [
        *(f"(receptacleType {entity} {kind(entity)}Type)" for entity in RECEPTACLES),
        *(f"(receptacleAtLocation {entity} {place(entity)})" for entity in RECEPTACLES),
        *(f"(objectType {entity} {kind(entity)}Type)" for entity in OBJECTS),
        *(f"(inReceptacle {entity} {where})" for entity, where in PLACED),
        *(f"(objectAtLocation {entity} {place(where)})" for entity, where in PLACED),
        *(f"({name} {entity})" for name, able in abilities.items() for entity in able),
        *(f"(canContain {where}Type {thing}Type)" for thing, rooms in fits.items() for where in rooms),
        "(atLocation agent1 loc_bar_start)",
        *extra,
    ]
    places = sorted({place(entity) for entity in RECEPTACLES} | {"loc_bar_start"})
    objects = [
        "agent1 - agent",
        *(f"{entity} - object" for entity in OBJECTS),
        *(f"{entity} - receptacle" for entity in RECEPTACLES),
        *(f"{entity} - location" for entity in places),
        *(
            f"{kind(entity)}Type - otype"
            for entity in ("Mug_bar_1", "Apple_bar_1", "Knife_bar_1", "Book_bar_1")
        ),
        "DeskLampType - otype",
        *(f"{name}Type - rtype" for name in kinds),
    ]
    return (
        "(define (problem kitchen) (:domain alfred)\n(:objects\n" + "\n".join(objects) + ")\n"
        "(:init\n" + "\n".join(facts) + ")\n(:goal " + wanted + "))"
    )


def play(wanted: str | None = None, task: str = "put a mug in desk.", extra: Iterable[str] = ()) -> Play:
    """A play of the kitchen that has been reset; by default an apple must be put on the countertop."""
    opened = Play(Game.parse(problem(wanted or goal("Apple", "CounterTop"), extra), task=task))
    opened.reset()
    return opened
