"""Games without a download: any number of solvable games of the six types, in the form of the official ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from envs.alfworld.games import GameContent, read_json, write_json
from envs.alfworld.household import FILE, household
from envs.alfworld.names import official_names
from envs.alfworld.problem import GameError
from envs.alfworld.scenes import FEWEST, MOST, ROOMS, Layout, Stand, Thing, furnish, layout, random
from envs.alfworld.tasks import OFFICIAL_TYPES, PARTS, Part, Task, TaskType

COUNTS: Mapping[Part, int] = {"train": 1200, "seen": 140, "unseen": 134}
LAYOUTS: Mapping[Part, range] = {"train": range(1, 27), "seen": range(1, 27), "unseen": range(27, 31)}
"""Numbers of each kind of room: unseen games are in rooms of which no train game is."""
TYPES: tuple[TaskType, ...] = tuple(OFFICIAL_TYPES.values())
TRIES = 200
LAMP = "DeskLamp"

_ROOMS_OF: Mapping[TaskType, tuple[str, ...]] = {
    "pick": tuple(ROOMS),
    "pick2": tuple(ROOMS),
    "look": ("bedroom", "living room"),
    "clean": ("kitchen", "kitchen", "bathroom"),
    "heat": ("kitchen",),
    "cool": ("kitchen",),
}
_APPLIANCE: Mapping[TaskType, str] = {"clean": "SinkBasin", "heat": "Microwave", "cool": "Fridge"}
_SENTENCES: Mapping[TaskType, tuple[str, str]] = {
    "pick": ("put a {o} in {r}.", "put some {o} on {r}."),
    "look": ("examine the {o} with the {r}.", "look at {o} under the {r}."),
    "clean": ("put a clean {o} in {r}.", "clean some {o} and put it in {r}."),
    "heat": ("put a hot {o} in {r}.", "heat some {o} and put it in {r}."),
    "cool": ("put a cool {o} in {r}.", "cool some {o} and put it in {r}."),
    "pick2": ("find two {o} and put them in {r}.", "put two {o} in {r}."),
}
"""The official sentences."""


@dataclass(frozen=True)
class Plan:
    """A game before it is written down."""

    task: Task
    layout: Layout
    things: tuple[Thing, ...]
    """What the task is about comes first."""
    target: str
    """The kind of receptacle, or the lamp."""

    @property
    def kind(self) -> str:
        """What the task is about."""
        return self.things[0].kind


class GeneratedGames:
    """Games made from a seed: listed at once, written when they are opened."""

    def __init__(
        self,
        seed: int = 0,
        *,
        counts: Mapping[Part, int] = COUNTS,
        most_receptacles: int = MOST,
        cache: Path | None = None,
    ) -> None:
        """Plan all games, or read in the folder `cache` what an earlier process planned with the same code."""
        if not FEWEST <= most_receptacles <= MOST:
            raise ValueError(f"most_receptacles is {most_receptacles}, expected {FEWEST} to {MOST}")
        for part in PARTS:
            if counts[part] < 1:
                raise ValueError(f"{part} games: {counts[part]} were asked for, expected at least 1")
        self._seed, self._most = seed, most_receptacles
        self._said = f"generated (seed {seed}, rooms of {FEWEST} to {most_receptacles} receptacles)"
        key = (seed, most_receptacles, *(counts[part] for part in PARTS), _code())
        name = f"alfworld-generated-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.json"
        found = read_json(cache and cache / name) or {}
        try:
            self._digest = str(found["digest"])
            self._tasks = {part: tuple(Task(*task) for task in found[part]) for part in PARTS}
        except (KeyError, TypeError):
            self._digest, self._tasks = self._plan_all(counts)
            listed = {str(part): tasks for part, tasks in self._tasks.items()}
            write_json(cache and cache / name, {"digest": self._digest, **listed})

    def _plan_all(self, counts: Mapping[Part, int]) -> tuple[str, dict[Part, tuple[Task, ...]]]:
        plans: dict[str, Plan] = {}
        tasks: dict[Part, tuple[Task, ...]] = {}
        for part in PARTS:
            found = [plan(self._seed, part, number, self._most) for number in range(counts[part])]
            listed = {one.task.task_id: one for one in sorted(found, key=lambda one: one.task.task_id)}
            tasks[part] = tuple(one.task for one in listed.values())
            plans |= listed
        return hashlib.sha256(repr(plans).encode()).hexdigest(), tasks

    def tasks(self, part: Part) -> Sequence[Task]:
        """The tasks of a part, sorted by id."""
        return self._tasks[part]

    def content(self, task_id: str) -> GameContent:
        """A game, written down."""
        part, number = task_id.rpartition("/")[2].split("_")
        return write(plan(self._seed, part_of(part), int(number), self._most))

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts: how the games were made and the SHA-256 of their plans."""
        games = sum(map(len, self._tasks.values()))
        return {"data": self._said, "data_digest": self._digest, "games": games}


def part_of(name: str) -> Part:
    """A part by its name; `KeyError` for another one."""
    return {str(part): part for part in PARTS}[name]


@lru_cache(maxsize=1)
def _code() -> str:
    """SHA-256 of what decides the games beside their settings."""
    files = (FILE, Path(__file__), Path(__file__).with_name("scenes.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def plan(seed: int, part: Part, number: int, most: int = MOST) -> Plan:
    """The game of a number: its types take turns, all else depends on (seed, part, number) alone."""
    task_type = TYPES[number % len(TYPES)]
    rng = random(seed, 1, PARTS.index(part), number)
    for _ in range(TRIES):
        rooms = _ROOMS_OF[task_type]
        room = rooms[int(rng.integers(len(rooms)))]
        numbers = LAYOUTS[part]
        there = layout(seed, ROOMS[room] + numbers[int(rng.integers(len(numbers)))], most)
        goals = _goals(task_type, there)
        if not goals:
            continue
        kind, target = goals[int(rng.integers(len(goals)))]
        wanted = [kind, kind] if task_type == "pick2" else [kind]
        needed = [*wanted, *([LAMP] if task_type == "look" else [])]
        try:
            things = furnish(there, needed, {kind: target}, rng)
        except ValueError:
            continue
        sentence = _SENTENCES[task_type][int(rng.integers(2))].format(o=kind.lower(), r=target.lower())
        official = next(name for name, short in OFFICIAL_TYPES.items() if short == task_type)
        task_id = f"{official}-{kind}-None-{target}-{there.number}/{part}_{number:05d}"
        return Plan(Task(task_id, task_type, sentence), there, things, target)
    raise GameError(f"no {task_type} game found for seed {seed}, {part} {number} in {TRIES} tries")


def _goals(task_type: TaskType, there: Layout) -> list[tuple[str, str]]:
    """What a task in this room can be about: (kind of thing, kind of receptacle or lamp)."""
    known, present = household(), there.kinds
    things = [kind for kind in known.rooms[there.room].things if kind not in known.able["light"]]
    if task_type == "look":
        return [(kind, LAMP) for kind in things]
    appliance = _APPLIANCE.get(task_type)
    if appliance is not None:
        things = [kind for kind in things if kind in known.able[task_type]]
    return [
        (kind, target)
        for kind in things
        for target in sorted(present)
        if kind in known.holds.get(target, ()) and target != appliance
    ]


def write(planned: Plan) -> GameContent:
    """A planned game in the form of the official ones, with a walkthrough."""
    return GameContent(problem=_problem(planned), task=planned.task.text, walkthrough=_walkthrough(planned))


def _problem(planned: Plan) -> str:
    name = planned.task.task_id.replace("/", "-")
    return (
        f"(define (problem {name})\n(:domain alfred)\n(:objects\n{_lines(_declared(planned))})\n"
        f"(:init\n{_lines(_facts(planned))})\n(:goal\n    {_goal(planned)}\n)\n)\n"
    )


def _lines(parts: Sequence[str]) -> str:
    return "".join(f"    {part}\n" for part in parts)


def _declared(planned: Plan) -> list[str]:
    known = household()
    places = sorted({stand.place for stand in planned.layout.stands} | {planned.layout.entrance})
    return [
        "agent1 - agent",
        *(f"{kind}Type - otype" for kind in sorted({*known.usual, "Sink"})),
        *(f"{kind}Type - rtype" for kind in sorted({*known.holds, "Toaster"})),
        *(f"{thing.entity} - object" for thing in planned.things),
        *(f"{stand.entity} - receptacle" for stand in planned.layout.stands),
        *(f"{place} - location" for place in places),
    ]


def _facts(planned: Plan) -> list[str]:
    known, stands, things = household(), planned.layout.stands, planned.things
    kinds = sorted({thing.kind for thing in things})
    predicates = {
        "isReceptacleObject": "hold",
        "cleanable": "clean",
        "heatable": "heat",
        "coolable": "cool",
        "sliceable": "slice",
        "toggleable": "light",
    }
    return [
        *(f"(receptacleType {stand.entity} {stand.kind}Type)" for stand in stands),
        *(f"(objectType {thing.entity} {thing.kind}Type)" for thing in things),
        *(
            f"(canContain {where}Type {kind}Type)"
            for where in sorted(planned.layout.kinds)
            for kind in kinds
            if kind in known.holds.get(where, ())
        ),
        *(f"(pickupable {thing.entity})" for thing in things if thing.kind not in known.able["light"]),
        *(f"(openable {stand.entity})" for stand in stands if stand.kind in known.openable),
        f"(atLocation agent1 {planned.layout.entrance})",
        *(
            f"({predicate} {thing.entity})"
            for predicate, able in predicates.items()
            for thing in things
            if thing.kind in known.able[able]
        ),
        *(f"(inReceptacle {thing.entity} {thing.stand.entity})" for thing in things),
        *(f"(receptacleAtLocation {stand.entity} {stand.place})" for stand in stands),
        *(f"(objectAtLocation {thing.entity} {thing.stand.place})" for thing in things),
    ]


def _goal(planned: Plan) -> str:
    kind, target = f"{planned.kind}Type", f"{planned.target}Type"
    match planned.task.task_type:
        case "look":
            return (
                "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and "
                f"(objectType ?ot {target}) (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) "
                "(atLocation ?a ?l) (inReceptacle ?ot ?r))) "
                f"(exists (?o - object ?a - agent) (and (objectType ?o {kind}) (holds ?a ?o))))"
            )
        case "pick2":
            both = [
                f"(objectType ?o{n} {kind}) (receptacleType ?r {target}) (inReceptacle ?o{n} ?r)"
                for n in (1, 2)
            ]
            return (
                f"(and (exists (?r - receptacle) (exists (?o1 - object) (and {both[0]} "
                f"(exists (?o2 - object) (and (not (= ?o1 ?o2)) {both[1]}))))))"
            )
        case "pick":
            able = state = ""
        case process:
            able = f"({process}able ?o) "
            state = {"clean": "(isClean ?o) ", "heat": "(isHot ?o) ", "cool": "(isCool ?o) "}[process]
    return (
        f"(and (exists (?r - receptacle) (exists (?o - object) (and {able}(objectType ?o {kind}) "
        f"(receptacleType ?r {target}) {state}(inReceptacle ?o ?r)))))"
    )


def _walkthrough(planned: Plan) -> tuple[str, ...]:
    """Commands that win: fetch, where needed treat, then put down or look."""
    stands, things, task_type = planned.layout.stands, planned.things, planned.task.task_type
    names = official_names([*(stand.entity for stand in stands), *(thing.entity for thing in things)])
    opened: set[str] = set()
    here = planned.layout.entrance

    def visit(stand: Stand, *, inside: bool = True) -> list[str]:
        nonlocal here
        commands = [] if stand.place == here else [f"go to {names[stand.entity]}"]
        here = stand.place
        if inside and stand.kind in household().openable and stand.entity not in opened:
            opened.add(stand.entity)
            commands.append(f"open {names[stand.entity]}")
        return commands

    commands: list[str] = []
    target = next((stand for stand in stands if stand.kind == planned.target), None)
    for thing in things[: 2 if task_type == "pick2" else 1]:
        commands += visit(thing.stand)
        commands.append(f"take {names[thing.entity]} from {names[thing.stand.entity]}")
        if (appliance := _APPLIANCE.get(task_type)) is not None:
            tool = next(stand for stand in stands if stand.kind == appliance)
            commands += visit(tool, inside=False)
            commands.append(f"{task_type} {names[thing.entity]} with {names[tool.entity]}")
        if target is not None:
            commands += visit(target)
            commands.append(f"move {names[thing.entity]} to {names[target.entity]}")
    if task_type == "look":
        lamp = things[1]
        commands += [*visit(lamp.stand, inside=False), f"use {names[lamp.entity]}"]
    return tuple(commands)
