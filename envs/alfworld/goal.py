"""Whether a goal holds: existential conjunctions over the facts of a moment."""

from __future__ import annotations

from collections.abc import Sequence

from envs.alfworld.facts import Bindings, Fact, State
from envs.alfworld.problem import Condition


def ordered(condition: Condition) -> Condition:
    """The same condition with its atoms in an order that is quick to check: known entities first."""
    left, atoms, bound = list(condition.atoms), [], set[str]()

    def unknown(atom: Fact) -> tuple[bool, int]:
        missing = sum(word.startswith("?") and word not in bound for word in atom[1:])
        return missing == len(atom) - 1 > 0, missing

    while left:
        best = min(left, key=unknown)
        left.remove(best)
        atoms.append(best)
        bound.update(best[1:])
    return Condition(condition.variables, tuple(atoms), condition.different)


def holds(goal: Sequence[Condition], state: State) -> bool:
    """Whether all conditions can be satisfied; variables may share an entity unless they must differ."""
    return all(_satisfiable(condition, state, {}, 0) for condition in goal)


def _satisfiable(condition: Condition, state: State, bound: Bindings, at: int) -> bool:
    for left, right in condition.different:
        if left in bound and bound[left] == bound.get(right):
            return False
    if at == len(condition.atoms):
        return True
    predicate, *words = condition.atoms[at]
    known = [bound.get(word) if word.startswith("?") else word for word in words]
    facts = state.of(predicate)
    place = next((n for n, entity in enumerate(known) if entity is not None), None)
    rows = facts.rows(predicate) if place is None else facts.where(predicate, place + 1, str(known[place]))
    for fact in rows:
        found = dict(bound)
        for word, entity in zip(words, fact[1:], strict=True):
            if not word.startswith("?"):
                if word != entity:
                    break
            elif found.setdefault(word, entity) != entity:
                break
        else:
            if _satisfiable(condition, state, found, at + 1):
                return True
    return False
