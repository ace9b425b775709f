"""Ground facts and conjunctive queries over them: what a state of the world is, and how it is asked."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

Fact = tuple[str, ...]
"""A predicate and the entities it holds of, all in lower case: `("inreceptacle", "mug_bar_1", "desk_bar_1")`."""
Bindings = Mapping[str, str]
"""Entities by the names of variables."""


DENIED = "not_"
"""Prefix of a predicate that an action has made false."""
_CHANGED = (
    "atlocation",
    "holds",
    "holdsany",
    "inreceptacle",
    "isclean",
    "iscool",
    "ishot",
    "issliced",
    "istoggled",
    "objectatlocation",
    "opened",
)
CHANGING = frozenset(_CHANGED) | {f"{DENIED}{name}" for name in _CHANGED}
"""Predicates that actions change."""


class Literal(NamedTuple):
    """A predicate over variables, as in `inreceptacle(o, r)`."""

    predicate: str
    variables: tuple[str, ...]


class Facts:
    """A set of facts, indexed by predicate and by each argument; rows are kept in sorted order."""

    __slots__ = ("_rows", "_where")

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._rows: dict[str, list[Fact]] = {}
        self._where: dict[tuple[str, int, str], list[Fact]] = {}
        for fact in sorted(set(facts)):
            self._rows.setdefault(fact[0], []).append(fact)
            for place in range(1, len(fact)):
                self._where.setdefault((fact[0], place, fact[place]), []).append(fact)

    def copy(self) -> Facts:
        """An independent set of the same facts."""
        twin = Facts()
        twin._rows = {key: rows.copy() for key, rows in self._rows.items()}
        twin._where = {key: rows.copy() for key, rows in self._where.items()}
        return twin

    def __contains__(self, fact: Fact) -> bool:
        rows = self._narrowest(fact)
        at = bisect_left(rows, fact)
        return at < len(rows) and rows[at] == fact

    def add(self, fact: Fact) -> None:
        """Make a fact true."""
        if fact in self:
            return
        insort(self._rows.setdefault(fact[0], []), fact)
        for place in range(1, len(fact)):
            insort(self._where.setdefault((fact[0], place, fact[place]), []), fact)

    def remove(self, fact: Fact) -> None:
        """Make a fact false."""
        if fact not in self:
            return
        self._rows[fact[0]].remove(fact)
        for place in range(1, len(fact)):
            self._where[fact[0], place, fact[place]].remove(fact)

    def rows(self, predicate: str) -> Sequence[Fact]:
        """All facts of a predicate, sorted."""
        return self._rows.get(predicate, ())

    def where(self, predicate: str, place: int, entity: str) -> Sequence[Fact]:
        """The facts of a predicate that hold `entity` at `place` (counted from 1), sorted."""
        return self._where.get((predicate, place, entity), ())

    def _narrowest(self, fact: Fact) -> Sequence[Fact]:
        if len(fact) == 1:
            return self.rows(fact[0])
        return self.where(fact[0], 1, fact[1])


class State:
    """All facts of a moment: those that never change are shared by all plays of a game."""

    __slots__ = ("_changing", "_fixed")

    def __init__(self, fixed: Facts, changing: Facts) -> None:
        self._fixed = fixed
        self._changing = changing

    def of(self, predicate: str) -> Facts:
        """The set that knows a predicate."""
        return self._changing if predicate in CHANGING else self._fixed

    def __contains__(self, fact: Fact) -> bool:
        return fact in self.of(fact[0])

    def make(self, fact: Fact) -> None:
        """Make a fact true; that it was denied is forgotten."""
        self._changing.add(fact)
        self._changing.remove((f"{DENIED}{fact[0]}", *fact[1:]))

    def unmake(self, fact: Fact) -> None:
        """Make a fact false, and remember that an action denied it: texts ask for that."""
        self._changing.remove(fact)
        self._changing.add((f"{DENIED}{fact[0]}", *fact[1:]))

    def _candidates(self, literal: Literal, bound: Bindings) -> Sequence[Fact]:
        """Facts that may match a literal, sorted; exact in the first bound argument."""
        facts = self.of(literal.predicate)
        for place, variable in enumerate(literal.variables, 1):
            if (entity := bound.get(variable)) is not None:
                return facts.where(literal.predicate, place, entity)
        return facts.rows(literal.predicate)

    def solve(self, query: Sequence[Literal], bound: Bindings, at: int = 0) -> Iterator[Bindings]:
        """All ways to satisfy a conjunction, in the order of its literals and of sorted facts.

        Different variables stand for different entities.
        """
        if at == len(query):
            yield bound
            return
        literal = query[at]
        for fact in self._candidates(literal, bound):
            extended = bind(literal, fact, bound)
            if extended is not None:
                yield from self.solve(query, extended, at + 1)

    def holds(self, query: Sequence[Literal], bound: Bindings) -> bool:
        """Whether there is a way to satisfy a conjunction."""
        return next(self.solve(query, bound), None) is not None


def bind(literal: Literal, fact: Fact, bound: Bindings) -> Bindings | None:
    """The bindings with those of a fact that matches the literal; None where it does not."""
    if len(fact) != len(literal.variables) + 1:
        return None
    new: dict[str, str] | None = None
    for variable, entity in zip(literal.variables, fact[1:], strict=True):
        known = (new or bound).get(variable)
        if known is None:
            new = dict(bound) if new is None else new
            if entity in new.values():
                return None
            new[variable] = entity
        elif known != entity:
            return None
    return bound if new is None else new
