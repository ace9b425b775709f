"""PDDL problem files of the ALFRED domain: entities, first facts, goal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from envs.alfworld.facts import Fact

Expression = str | tuple["Expression", ...]
"""A parsed s-expression in lower case."""


class GameError(ValueError):
    """A game file is missing, malformed, or of another kind than is supported; the message is one line."""


@dataclass(frozen=True)
class Condition:
    """One conjunct of a goal: there are entities for the variables such that all of this holds."""

    variables: tuple[str, ...]
    atoms: tuple[Fact, ...]
    """Predicates over variables (which start with `?`) and entities."""
    different: tuple[tuple[str, str], ...]
    """Pairs of variables that must not stand for the same entity."""


@dataclass(frozen=True)
class Problem:
    """One game's world."""

    entities: Mapping[str, str]
    """PDDL types (`object`, `receptacle`, `location`, `agent`, `otype`, `rtype`) by id."""
    facts: tuple[Fact, ...]
    """What is true at the start: sorted, each once."""
    goal: tuple[Condition, ...]
    """All of these at once."""


_COMMENT = re.compile(r";[^\n]*")
_TOKEN = re.compile(r"[()]|[^\s()]+")
_FACT = re.compile(r"\(([^()]*)\)")
_SECTION = re.compile(r"\(\s*:(objects|init|goal|metric)\b")


def parse_problem(text: str) -> Problem:
    """Read a problem; costs of ways (`(= (distance ...) ...)`) are ignored, for no rule of the game uses them.

    Raises `GameError` where a section is missing or says something that the ALFRED domain has no word for.
    """
    sections = _sections(_COMMENT.sub("", text).lower())
    for needed in ("objects", "init", "goal"):
        if needed not in sections:
            raise GameError(f"the PDDL problem has no section :{needed}, expected :objects, :init and :goal")
    facts = {tuple(words) for body in _FACT.findall(sections["init"]) if (words := body.split())}
    facts = {fact for fact in facts if fact[0] not in ("distance", "total-cost", "=")}
    return Problem(_entities(sections["objects"]), tuple(sorted(facts)), _goal(sections["goal"]))


def _sections(text: str) -> dict[str, str]:
    """The text behind each section's keyword, up to the next section."""
    heads = list(_SECTION.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: text[head.end() : end] for head, end in zip(heads, ends, strict=False)}


def _entities(section: str) -> dict[str, str]:
    """Types by id, from lists such as `a b - object`."""
    entities: dict[str, str] = {}
    waiting: list[str] = []
    words = iter(section.replace(")", " ").split())
    for word in words:
        if word == "-":
            entities.update(dict.fromkeys(waiting, next(words, "object")))
            waiting = []
        else:
            waiting.append(word)
    return entities | dict.fromkeys(waiting, "object")


def parse_expression(text: str) -> Expression:
    """The first s-expression in a text; `GameError` where brackets do not match."""
    return _read(iter(_TOKEN.findall(text)))


def _read(tokens: Iterator[str]) -> Expression:
    stack: list[list[Expression]] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                break
            done = tuple(stack.pop())
            stack[-1].append(done)
            if len(stack) == 1:
                return done
        else:
            stack[-1].append(token)
    raise GameError("the PDDL text ends inside an expression, expected as many ')' as '('")


def _goal(section: str) -> tuple[Condition, ...]:
    expression = parse_expression(section)
    conjuncts = expression[1:] if expression[0] == "and" else (expression,)
    return tuple(_condition(conjunct) for conjunct in conjuncts)


def _condition(expression: Expression) -> Condition:
    """One conjunct with its nested quantifiers pulled to the front; variables of inner ones must be new."""
    variables: list[str] = []
    atoms: list[Fact] = []
    different: list[tuple[str, str]] = []

    def walk(part: Expression) -> None:
        match part:
            case ("and", *parts):
                for each in parts:
                    walk(each)
            case ("exists", (*declared,), body):
                new = [word for word in declared if isinstance(word, str) and word.startswith("?")]
                if set(new) & set(variables):
                    raise GameError(f"the goal declares {', '.join(new)} twice, expected distinct variables")
                variables.extend(new)
                walk(body)
            case ("not", ("=", str(left), str(right))):
                different.append((left, right))
            case (str(name), *words) if name not in ("not", "or", "forall", "imply", "when", "="):
                if not all(isinstance(word, str) for word in words):
                    raise GameError(f"the goal has {part!r}, expected a predicate over variables")
                atoms.append((name, *(str(word) for word in words)))
            case _:
                raise GameError(f"the goal has {part!r}, expected and, exists, predicates or (not (= a b))")

    walk(expression)
    return Condition(tuple(variables), tuple(atoms), tuple(different))
