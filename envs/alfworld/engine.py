"""A native engine for the official games: the ALFRED domain's thirteen actions on plain Python facts.

It gives, for any sequence of commands, what the official engine gives (TextWorld's PDDL environment over Fast
Downward): feedback, admissible commands in order, and whether the goal holds. What follows from the official engine
rather than from the domain is kept, and said where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, Protocol

from envs.alfworld.facts import CHANGING, Bindings, Fact, Facts, State
from envs.alfworld.goal import holds, ordered
from envs.alfworld.grammar import Grammar, parse_grammar
from envs.alfworld.names import official_names
from envs.alfworld.problem import Condition, GameError, Problem, parse_problem
from envs.alfworld.texts import built_in_grammar

NOTHING_HAPPENS = "Nothing happens."
CLEANERS = ("sinktype", "sinkbasintype")
HEATERS = ("microwavetype",)
COOLERS = ("fridgetype",)
KNIVES = ("knifetype", "butterknifetype")


class Moment(NamedTuple):
    """What an engine says after `reset` or a command."""

    feedback: str
    admissible: tuple[str, ...]
    """All commands that do something now, sorted."""
    won: bool
    """The goal holds; it may cease to when the play goes on."""
    understood: bool
    """False where the command was not admissible, so that nothing happened."""


class Engine(Protocol):
    """One open game; it goes on after it is won."""

    def reset(self) -> Moment:
        """Start again."""
        ...

    def step(self, command: str) -> Moment:
        """Carry out a command."""
        ...

    def close(self) -> None:
        """Give back what the engine holds."""
        ...


class Act(NamedTuple):
    """An action of the domain on entities, as parameters by the domain's names."""

    action: str
    bound: Bindings


@dataclass(frozen=True)
class Receptacle:
    """What never changes about a receptacle."""

    entity: str
    place: str
    openable: bool
    holds: frozenset[str]
    """Types of objects that may be put into it."""
    cleans: bool
    heats: bool
    cools: bool


@dataclass(frozen=True)
class Thing:
    """What never changes about an object."""

    entity: str
    kinds: frozenset[str]
    pickupable: bool
    toggleable: bool
    cleanable: bool
    heatable: bool
    coolable: bool
    sliceable: bool

    @property
    def cuts(self) -> bool:
        """Whether it is a knife."""
        return not self.kinds.isdisjoint(KNIVES)


@dataclass(frozen=True)
class Game:
    """A game that is never changed by playing it; all its plays share it."""

    grammar: Grammar
    names: Mapping[str, str]
    agent: str
    receptacles: Mapping[str, tuple[Receptacle, ...]]
    """By the place from which they are reached."""
    things: Mapping[str, Thing]
    fixed: Facts
    changing: Facts
    goal: tuple[Condition, ...]
    decisive: frozenset[str]
    """Predicates that the goal asks for."""
    _commands: dict[Fact, str] = field(default_factory=dict, repr=False)
    _standing: dict[str, Mapping[str, Act]] = field(default_factory=dict, repr=False)
    _ways: dict[str, Act] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, problem: str, grammar: str | None = None, task: str | None = None) -> Game:
        """Read a PDDL problem with the grammar of its file, or with the built-in one and the sentence of its task.

        Raises `GameError` for a text that cannot be read or asks what this engine does not track.
        """
        if (grammar is None) == (task is None):
            raise GameError("expected either a grammar, which tells the task, or a task for the built-in one")
        texts = built_in_grammar(task or "") if grammar is None else parse_grammar(grammar)
        return _open(parse_problem(problem), texts)

    @property
    def task(self) -> str:
        """The sentence behind `Your task is to: `."""
        return self.grammar.task

    def command(self, act: Act, *entities: str) -> str:
        """How an action on these entities is commanded; a template can only ask what never changes."""
        key = (act.action, *entities)
        found = self._commands.get(key)
        if found is None:
            template = self.grammar.actions[act.action].template
            found = self.grammar.derive(template, act.bound, State(self.fixed, Facts()), self.names)
            self._commands[key] = found
        return found

    def standing(self, place: str) -> Mapping[str, Act]:
        """The commands that depend on nothing but where the agent stands.

        There is none to where it stands: an action without effect is none to the official planner.
        """
        found = self._standing.get(place)
        if found is None:
            agent = {"a": self.agent}
            here = [Act("inventory", agent), Act("help", agent), Act("look", {**agent, "l": place})]
            found = {self.command(act): act for act in here}
            for receptacle in self.receptacles.get(place, ()):
                act = Act("examinereceptacle", {**agent, "r": receptacle.entity})
                found[self.command(act, receptacle.entity)] = act
            found |= {command: act for command, act in self._going().items() if act.bound["lend"] != place}
            self._standing[place] = found
        return found

    def _going(self) -> Mapping[str, Act]:
        """The commands to go to each receptacle; where from is known when one goes."""
        if not self._ways:
            for place, receptacles in self.receptacles.items():
                for r in (receptacle.entity for receptacle in receptacles):
                    act = Act("gotolocation", {"a": self.agent, "lend": place, "r": r})
                    self._ways[self.command(act, r)] = act
        return self._ways


def _open(problem: Problem, grammar: Grammar) -> Game:
    by_predicate = Facts(problem.facts)
    at = by_predicate.rows("atlocation")
    if len(at) != 1:
        raise GameError(f"the agent is at {len(at)} places at the start, expected one")
    for action in ("look", "inventory", "help", "gotolocation", "openobject", "closeobject"):
        if action not in grammar.actions:
            raise GameError(f"the grammar has no action {action}, expected the ALFRED domain's actions")
    things = {fact[1]: _thing(fact[1], by_predicate) for fact in by_predicate.rows("objecttype")}
    receptacles: dict[str, list[Receptacle]] = {}
    for _, entity, place in by_predicate.rows("receptacleatlocation"):
        receptacles.setdefault(place, []).append(_receptacle(entity, place, by_predicate))
    agent = at[0][1]
    return Game(
        grammar=grammar,
        names=official_names(chain.from_iterable(fact[1:] for fact in problem.facts)),
        agent=agent,
        receptacles={place: tuple(found) for place, found in receptacles.items()},
        things=things,
        fixed=Facts(fact for fact in problem.facts if fact[0] not in CHANGING),
        changing=Facts(fact for fact in problem.facts if fact[0] in CHANGING),
        goal=tuple(ordered(condition) for condition in problem.goal),
        decisive=frozenset(atom[0] for condition in problem.goal for atom in condition.atoms),
    )


def _receptacle(entity: str, place: str, facts: Facts) -> Receptacle:
    kinds = [fact[2] for fact in facts.where("receptacletype", 1, entity)]
    return Receptacle(
        entity=entity,
        place=place,
        openable=("openable", entity) in facts,
        holds=frozenset(fact[2] for kind in kinds for fact in facts.where("cancontain", 1, kind)),
        cleans=any(kind in CLEANERS for kind in kinds),
        heats=any(kind in HEATERS for kind in kinds),
        cools=any(kind in COOLERS for kind in kinds),
    )


def _thing(entity: str, facts: Facts) -> Thing:
    able = {name: (name, entity) in facts for name in Thing.__annotations__ if name.endswith("able")}
    return Thing(entity, frozenset(fact[2] for fact in facts.where("objecttype", 1, entity)), **able)


class Play:
    """One play of a game."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def reset(self) -> Moment:
        """Start again; the first feedback describes the room and the task."""
        self._state = State(self.game.fixed, self.game.changing.copy())
        self._options: Mapping[str, Act] | None = None
        self._won = holds(self.game.goal, self._state)
        feedback = self.game.grammar.derive("#intro#", {}, self._state, self.game.names)
        return Moment(feedback, self._admissible(), self._won, True)

    def step(self, command: str) -> Moment:
        """Carry out a command; one that is not admissible changes nothing."""
        act = self._possible().get(command.strip())
        if act is None:
            return Moment(NOTHING_HAPPENS, self._admissible(), self._won, False)
        if act.action == "gotolocation":
            act = Act(act.action, {**act.bound, "lstart": self._place})
        made, unmade = effects(act)
        for fact in unmade:
            self._state.unmake(fact)
        for fact in made:
            self._state.make(fact)
        if made or unmade:
            self._options = None
        if any(fact[0] in self.game.decisive for fact in (*made, *unmade)):
            self._won = holds(self.game.goal, self._state)
        texts = self.game.grammar
        feedback = texts.derive(texts.actions[act.action].feedback, act.bound, self._state, self.game.names)
        return Moment(feedback, self._admissible(), self._won, True)

    def close(self) -> None:
        """Nothing is held."""

    def _admissible(self) -> tuple[str, ...]:
        return tuple(sorted(self._possible()))

    def _possible(self) -> Mapping[str, Act]:
        """Admissible commands; where two actions are spelled alike, the first is meant (their effects are equal)."""
        if self._options is None:
            place, held = self._place, self._held
            options = dict(self.game.standing(place))
            for receptacle in self.game.receptacles.get(place, ()):
                for act, *entities in self._at(receptacle, held):
                    options.setdefault(self.game.command(act, *entities), act)
            if held is not None:
                for act, *entities in self._with(held, place):
                    options.setdefault(self.game.command(act, *entities), act)
            self._options = options
        return self._options

    def _at(self, receptacle: Receptacle, held: Thing | None) -> Iterator[tuple[Act, *tuple[str, ...]]]:
        """What can be done at a receptacle: actions with the entities that their commands name."""
        agent, r = self.game.agent, receptacle.entity
        bound = {"a": agent, "l": receptacle.place, "r": r}
        is_open = ("opened", r) in self._state
        if receptacle.openable:
            yield Act("closeobject" if is_open else "openobject", bound), r
        reachable = is_open or not receptacle.openable
        for _, o, _ in self._state.of("inreceptacle").where("inreceptacle", 2, r):
            thing = self.game.things.get(o)
            if thing is None:
                continue
            if reachable and thing.pickupable and held is None:
                yield Act("pickupobject", {**bound, "o": o}), o, r
            if thing.toggleable:  # even through a closed door
                yield Act("toggleobject", {**bound, "o": o}), o
        if held is None:
            return
        o = held.entity
        if reachable and not held.kinds.isdisjoint(receptacle.holds):
            yield Act("putobject", {**bound, "o": o}), o, r
        for action, possible in (
            ("cleanobject", held.cleanable and receptacle.cleans),
            ("heatobject", held.heatable and receptacle.heats),
            ("coolobject", held.coolable and receptacle.cools),
        ):
            if possible:
                yield Act(action, {**bound, "o": o}), o, r

    def _with(self, held: Thing, place: str) -> Iterator[tuple[Act, *tuple[str, ...]]]:
        """What can be done with the thing in hand wherever one stands."""
        agent, ko = self.game.agent, held.entity
        # The domain means to let one examine what lies in sight too, but writes `?l - location, ?r`: to the official
        # reader that is a type "location," which nothing has.
        yield Act("examineobject", {"a": agent, "o": ko}), ko
        if not held.cuts:
            return
        for _, co, _ in self._state.of("objectatlocation").where("objectatlocation", 2, place):
            if co in self.game.things and self.game.things[co].sliceable:
                yield Act("sliceobject", {"a": agent, "l": place, "co": co, "ko": ko}), co, ko

    @property
    def _place(self) -> str:
        return self._state.of("atlocation").rows("atlocation")[0][2]

    @property
    def _held(self) -> Thing | None:
        rows = self._state.of("holds").rows("holds")
        return self.game.things[rows[0][2]] if rows else None


def effects(act: Act) -> tuple[Sequence[Fact], Sequence[Fact]]:
    """The facts that an action makes true, and those that it makes false."""
    b = act.bound
    match act.action:
        case "gotolocation":
            return [("atlocation", b["a"], b["lend"])], [("atlocation", b["a"], b["lstart"])]
        case "openobject":
            return [("opened", b["r"])], ()
        case "closeobject":
            return (), [("opened", b["r"])]
        case "pickupobject":
            taken = [("inreceptacle", b["o"], b["r"]), ("objectatlocation", b["o"], b["l"])]
            return [("holds", b["a"], b["o"]), ("holdsany", b["a"])], taken
        case "putobject":
            put = [("inreceptacle", b["o"], b["r"]), ("objectatlocation", b["o"], b["l"])]
            return put, [("holds", b["a"], b["o"]), ("holdsany", b["a"])]
        case "cleanobject":
            return [("isclean", b["o"])], ()
        case "heatobject":
            return [("ishot", b["o"])], [("iscool", b["o"])]
        case "coolobject":
            return [("iscool", b["o"])], [("ishot", b["o"])]
        case "toggleobject":
            return [("istoggled", b["o"])], ()
        case "sliceobject":
            return [("issliced", b["co"])], ()
        case _:
            return (), ()
