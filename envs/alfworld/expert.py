"""A scripted player that reads only what a policy is shown, with a skilled and a careless habit per decision.

Skilled: goes through the room by where such things usually are, opens what is closed, takes the thing, cleans, heats or
cools it where that is asked, and puts it where it belongs, or switches the lamp on. It remembers what it saw.
Careless, by kind of decision: `search` goes anywhere; `open` leaves a door closed and goes on; `take` takes something
else; `process` brings the thing as it is; `place` puts it down where it stands, or is content with one of two. After a
careless `process` or `place` it thinks that the task is done, and looks around. A `slip` is a command that does
nothing, such as to take what is not there; the player goes on as if it had not been. All can be made good, and the
player does so unless it is careless again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from envs.alfworld.household import household
from envs.base import Decision, StepInfo

CARELESS_KINDS = ("search", "open", "take", "process", "place", "slip")
AHEAD = 2
"""How many of the next places a thought names."""

_TASK = re.compile(r"Your task is to: (.*)")
_SEEN = re.compile(r"you see (.*?)\.")
_NAME = re.compile(r"an? (\w+ \d+)")
_ARRIVED = re.compile(r"You arrive at (\w+ \d+)\.")
_SENTENCES = tuple(
    (process, re.compile(pattern))
    for process, pattern in (
        ("look", r"(?:examine the|look at) (?P<o>\w+) (?:with|under) the (?P<r>\w+)"),
        ("two", r"(?:find|put) two (?P<o>\w+) (?:and put them )?(?:in|on) (?P<r>\w+)"),
        ("clean", r"(?:put a clean|clean some) (?P<o>\w+) (?:and put it )?(?:in|on) (?P<r>\w+)"),
        ("heat", r"(?:put a hot|heat some) (?P<o>\w+) (?:and put it )?(?:in|on) (?P<r>\w+)"),
        ("cool", r"(?:put a cool|cool some) (?P<o>\w+) (?:and put it )?(?:in|on) (?P<r>\w+)"),
        ("put", r"put (?:a|some) (?P<o>\w+) (?:in|on) (?P<r>\w+)"),
    )
)
_APPLIANCES = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
_STATES = {"clean": "Clean", "heat": "Hot", "cool": "Cool"}


@dataclass(frozen=True)
class Request:
    """What a task asks for."""

    process: str
    """`put`, `two`, `clean`, `heat`, `cool`, or `look`."""
    kind: str
    """What it is about: `mug`."""
    goal: str
    """The kind of receptacle that it goes to, or the lamp."""


def read_request(observation: str) -> Request:
    """The request in a first observation; `ValueError` for one of another form."""
    task = _TASK.search(observation)
    for process, pattern in _SENTENCES:
        found = pattern.match(task[1]) if task else None
        if found:
            return Request(process, found["o"], found["r"])
    said = task[1] if task else observation
    raise ValueError(f"task {said!r} is of none of the six types")


def kind_of(name: str) -> str:
    """`mug` of `mug 2`."""
    return name.partition(" ")[0]


class AlfworldDemonstrator:
    """Plays one episode; `carelessness` maps a kind of decision to the chance that it is taken carelessly."""

    def __init__(self, rng: np.random.Generator, carelessness: Mapping[str, float] | None = None) -> None:
        self._rng = rng
        self._carelessness = dict(carelessness or {})
        if unknown := sorted(self._carelessness.keys() - set(CARELESS_KINDS)):
            raise ValueError(f"unknown kinds of decision {unknown}, expected any of {list(CARELESS_KINDS)}")
        self._request: Request | None = None
        self._places: dict[str, list[str] | None] = {}
        """What was last seen in each receptacle; None where it was not looked into."""
        self._left = set[str]()
        """Doors that were left closed."""
        self._here = ""
        self._held = ""
        self._ready = set[str]()
        """Things that were cleaned, heated or cooled as asked."""
        self._as_it_is = set[str]()
        """Things that it carelessly brings without that."""
        self._placed = set[str]()
        self._content = ""
        """The careless habit by which it thinks that the task is done."""
        self._last = Decision("", "", "")

    def decide(self, observation: str, info: StepInfo) -> Decision:
        """The next move; called once before every step."""
        if self._request is None:
            self._request = read_request(observation)
            self._places = dict.fromkeys(_names(observation))
        elif info["action_valid"]:
            self._notice(observation, self._request)
        slip = self._slip(self._request, info["admissible"]) if self._careless("slip") else None
        if slip is not None:
            self._last = slip
        elif self._content and self._careless(self._content):
            self._last = Decision(self._content, "Done", "look", careless=True)
        else:
            self._content = ""
            self._last = self._next(self._request, info["admissible"])
        return self._last

    # What is known

    def _notice(self, observation: str, request: Request) -> None:
        """Remember what the last command did and what can be seen now."""
        verb, _, rest = self._last.action.partition(" ")
        arrived = _ARRIVED.match(observation)
        if arrived:
            self._here = arrived[1]
        if (arrived or verb in ("open", "examine")) and "is closed" not in observation:
            self._places[self._here] = _names(observation)
        if verb == "take":
            self._held, _, source = rest.partition(" from ")
            self._placed.discard(self._held)
            self._places[source] = [name for name in self._places[source] or () if name != self._held]
        elif verb == "move":
            thing, _, where = rest.partition(" to ")
            self._places[where] = [*(self._places[where] or ()), thing]
            self._held = ""
            self._ready.discard(thing)  # else the task would be over
            self._as_it_is.discard(thing)
            if (kind_of(thing), kind_of(where)) == (request.kind, request.goal):
                self._placed.add(thing)
            if self._last.careless:
                self._content = self._last.kind
            elif request.process == "two" and self._placed:
                self._content = "place"
        elif verb == request.process:
            self._ready.add(self._held)

    def _where(self, kind: str) -> Iterator[tuple[str, str]]:
        """Things of a kind that were seen, with their places; what is at hand comes first."""
        for place in sorted(self._places, key=lambda name: name != self._here):
            for name in self._places[place] or ():
                if kind_of(name) == kind:
                    yield name, place

    def _to_search(self, kind: str) -> list[str]:
        """Places to look into for things of a kind, the most promising first; those left closed come last."""
        chances = _usual().get(kind, {})

        def rank(name: str) -> tuple[bool, float, str, int]:
            cost = 2 if kind_of(name) in _openable() else 1
            promise = chances.get(kind_of(name), 0) / cost
            return name in self._left, -promise, kind_of(name), int(name.rpartition(" ")[2])

        unknown = [name for name, seen in self._places.items() if seen is None]
        return sorted(unknown or self._places, key=rank)

    # What is done

    def _careless(self, kind: str) -> bool:
        return bool(self._rng.random() < self._carelessness.get(kind, 0.0))

    def _slip(self, request: Request, admissible: Sequence[str]) -> Decision | None:
        """A command that does nothing here; None where none comes to mind."""
        if not self._here:
            return None
        thing, number = request.kind, int(self._rng.integers(1, 4))
        wrong = [
            (f"Found {thing} {number}", f"take {thing} {number} from {self._here}"),
            ("Maybe there", f"go to {self._here}"),
            (f"{thing} {number} to {self._here}", f"move {thing} {number} to {self._here}"),
        ]
        thought, command = wrong[int(self._rng.integers(len(wrong)))]
        return None if command in admissible else Decision("slip", thought, command, careless=True)

    def _next(self, request: Request, admissible: Sequence[str]) -> Decision:
        if not self._held:
            return self._fetch(request, admissible)
        if kind_of(self._held) != request.kind:
            return self._put_back(request, admissible)
        if request.process == "look":
            return self._look(request, admissible)
        return self._bring(request, admissible)

    def _fetch(self, request: Request, admissible: Sequence[str]) -> Decision:
        """Get the next thing: known ones first, else search."""
        noun = f"second {request.kind}" if request.process == "two" and self._placed else request.kind
        for name, place in self._where(request.kind):
            if kind_of(place) == request.goal and request.process in ("put", "two"):
                continue
            if place == self._here and f"take {name} from {place}" in admissible:
                return self._take(name, place, admissible)
            if f"go to {place}" in admissible:
                return Decision("search", f"Saw {name}", f"go to {place}")
            if f"open {place}" in admissible:
                return Decision("open", f"Find {noun}: closed", f"open {place}")
        return self._search(request.kind, f"Find {noun}", admissible)

    def _take(self, name: str, place: str, admissible: Sequence[str]) -> Decision:
        others = [
            command
            for command in admissible
            if command.startswith("take ") and kind_of(command[5:]) != kind_of(name)
        ]
        if others and self._careless("take"):
            chosen = others[int(self._rng.integers(len(others)))]
            return Decision("take", "This may do", chosen, careless=True)
        return Decision("take", f"Found {name}", f"take {name} from {place}")

    def _put_back(self, request: Request, admissible: Sequence[str]) -> Decision:
        """Put down what is not asked for."""
        for command in admissible:
            if command.startswith("move "):
                return Decision("place", f"No {request.kind}", command)
        return self._go(self._to_search(request.kind), "place", f"No {request.kind}", admissible)

    def _search(self, kind: str, thought: str, admissible: Sequence[str]) -> Decision:
        """Look into the next place: open a door at hand, else go there."""
        if f"open {self._here}" in admissible and self._places.get(self._here) is None:
            if self._here not in self._left and self._careless("open"):
                self._left.add(self._here)
            elif self._here not in self._left or self._to_search(kind)[0] == self._here:
                return Decision("open", f"{thought}: closed", f"open {self._here}")
        elif self._places.get(self._here, ()) is None:
            self._places[self._here] = []  # a place without anything to look into
        places = [name for name in self._to_search(kind) if name != self._here]
        if self._careless("search"):
            anywhere = [name for name in self._places if f"go to {name}" in admissible]
            chosen = anywhere[int(self._rng.integers(len(anywhere)))]
            return Decision("search", "Maybe there", f"go to {chosen}", careless=True)
        return self._go(places, "search", thought, admissible)

    def _go(self, places: Sequence[str], kind: str, thought: str, admissible: Sequence[str]) -> Decision:
        """Go to the first of the places that one can go to; the thought names the next ones."""
        for number, place in enumerate(places):
            if f"go to {place}" in admissible:
                ahead = ", ".join(places[number : number + AHEAD])
                return Decision(kind, f"{thought}: {ahead}", f"go to {place}")
            if f"examine {place}" in admissible and self._places[place] is None:
                command = f"open {place}" if f"open {place}" in admissible else f"examine {place}"
                self._here = place  # reached from the same place
                return Decision(kind, f"{thought}: beside", command)
        return Decision(kind, f"{thought}: look", "look")

    def _look(self, request: Request, admissible: Sequence[str]) -> Decision:
        for command in admissible:
            if command.startswith(f"use {request.goal}"):
                return Decision("place", f"Hold {self._held}", command)
        known = [place for _, place in self._where(request.goal) if place != self._here]
        thought = f"Hold {self._held}, find {request.goal}"
        if known:
            return self._go(known[:1], "place", thought, admissible)
        return self._search(request.goal, thought, admissible)

    def _bring(self, request: Request, admissible: Sequence[str]) -> Decision:
        """Treat what is held where that is asked, then put it where it belongs."""
        thing, appliance = self._held, _APPLIANCES.get(request.process)
        if appliance is None:
            return self._place(thing, request, admissible)
        if thing not in self._ready:
            return self._treat(request, appliance, admissible)
        return self._place(f"{_STATES[request.process]} {thing}", request, admissible)

    def _treat(self, request: Request, appliance: str, admissible: Sequence[str]) -> Decision:
        thing = self._held
        for command in admissible:
            if command.startswith(f"{request.process} {thing} "):
                return Decision("process", f"Hold {thing}, {request.process} it", command)
        if self._last.kind == "take" and self._careless("process"):
            self._as_it_is.add(thing)
        if thing in self._as_it_is:
            decision = self._place(thing, request, admissible)
            return Decision("process", decision.thought, decision.action, careless=True)
        places = [name for name in self._places if kind_of(name) == appliance]
        return self._go(places, "process", f"Hold {thing}, {request.process} it", admissible)

    def _place(self, what: str, request: Request, admissible: Sequence[str]) -> Decision:
        thing = self._held
        if kind_of(self._here) != request.goal and self._careless("place"):
            for command in admissible:
                if command.startswith(f"move {thing} to "):
                    return Decision("place", "Here is good", command, careless=True)
        for command in admissible:
            if command.startswith(f"move {thing} to {request.goal} "):
                return Decision("place", f"{what} to {command.rpartition(' to ')[2]}", command)
        if kind_of(self._here) == request.goal and f"open {self._here}" in admissible:
            return Decision("open", f"{what} to {self._here}: closed", f"open {self._here}")
        targets = [name for name in self._places if kind_of(name) == request.goal]
        targets.sort(
            key=lambda name: (not self._placed.intersection(self._places[name] or ()), _number(name))
        )
        for target in targets:
            if f"go to {target}" in admissible:
                return Decision("place", f"{what} to {target}", f"go to {target}")
        return Decision("place", f"{what} to {request.goal}: none", "look")


def _names(observation: str) -> list[str]:
    """What an observation lists; nothing where it lists nothing."""
    found = _SEEN.search(observation)
    return _NAME.findall(found[1]) if found else []


def _number(name: str) -> int:
    return int(name.rpartition(" ")[2])


@lru_cache(maxsize=1)
def _usual() -> Mapping[str, Mapping[str, int]]:
    """Where things usually are, by names as observations spell them."""
    return {
        kind.lower(): {place.lower(): share for place, share in places.items()}
        for kind, places in household().usual.items()
    }


@lru_cache(maxsize=1)
def _openable() -> frozenset[str]:
    return frozenset(kind.lower() for kind in household().openable)
