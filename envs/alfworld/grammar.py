"""The text grammar of a game file: how commands are spelled and what is answered.

A grammar has, for each action of the domain, a command template and a feedback text, and rules that both refer to by
`#name#`. In a text, `{o.name}` is a property of the entity that a variable stands for; `[{o.name | query}]` lists it
for every solution of a conjunctive query. Of several rules with one name, the first whose condition holds is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from envs.alfworld.facts import Bindings, Literal, State
from envs.alfworld.problem import GameError

_ACTION = re.compile(r"action\s+([\w/-]+)\s*\{(.*?)^\}", re.DOTALL | re.MULTILINE)
_TEMPLATE = re.compile(r'\btemplate\s*::\s*"([^"]*)"\s*;')
_FEEDBACK = re.compile(r'\bfeedback\s*::\s*"([^"]*)"\s*;')
_BLOCK = re.compile(r'\bgrammar\s*::\s*"""(.*?)"""\s*;', re.DOTALL)
_TASK = re.compile(r'"task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*("(?:[^"\\]|\\.)*")')
_TASK_PREFIX = "Your task is to: "
_PIECE = re.compile(
    r"\[\{(?P<listed>[^{}]*)\}\]|\{(?P<value>[^{}|]*)\}|#(?P<rule>[^#]+)#|(?P<text>[^\[\]{}#]+)"
)
_LITERAL = re.compile(r"\s*(\w+)\(([^()]*)\)\s*(?:&|$)")
_ARTICLES = {"indefinite": "a", "definite": "the"}
_WORD = re.compile(r"'([^']*)'|(\w+)\.(\w+)|(\w+)")


class Property(NamedTuple):
    """A property of the entity that a variable stands for: its name or its id."""

    variable: str
    kind: str


class Call(NamedTuple):
    """What the rules of this name say."""

    rule: str


class Listing(NamedTuple):
    """A text for each solution of a query, put into one enumeration."""

    item: tuple[Piece, ...]
    query: tuple[Literal, ...]


Piece = str | Property | Call | Listing


@dataclass(frozen=True)
class Rule:
    """One way to expand a name."""

    condition: tuple[Literal, ...]
    text: str


@dataclass(frozen=True)
class Action:
    """How an action is commanded and answered."""

    template: str
    feedback: str


@dataclass(frozen=True)
class Grammar:
    """Command templates, feedback and rules of a game."""

    actions: Mapping[str, Action]
    """By the domain's name of the action, in lower case."""
    rules: Mapping[str, tuple[Rule, ...]]

    def with_task(self, task: str) -> Grammar:
        """The same grammar for another task."""
        return replace(self, rules={**self.rules, "task": (Rule((), f"{_TASK_PREFIX}{task}"),)})

    @property
    def task(self) -> str:
        """The task's sentence, without what introduces it."""
        return self.rules["task"][0].text.removeprefix(_TASK_PREFIX)

    def derive(self, text: str, bound: Bindings, state: State, names: Mapping[str, str]) -> str:
        """Expand a text; `GameError` for a rule or variable that does not exist."""
        return self._say(pieces(text), bound, state, names)

    def _say(self, said: Sequence[Piece], bound: Bindings, state: State, names: Mapping[str, str]) -> str:
        parts = []
        for piece in said:
            if isinstance(piece, str):
                parts.append(piece)
            elif isinstance(piece, Property):
                parts.append(_property(piece, bound, names))
            elif isinstance(piece, Call):
                parts.append(self._call(piece.rule, bound, state, names))
            else:
                found = state.solve(piece.query, bound)
                items = [self._say(piece.item, each, state, names) for each in found]
                parts.append(self._enumerate(items, bound, state, names))
        return "".join(parts)

    def _call(self, name: str, bound: Bindings, state: State, names: Mapping[str, str]) -> str:
        for rule in self.rules.get(name, ()):
            if not rule.condition or state.holds(rule.condition, bound):
                return self.derive(rule.text, bound, state, names)
        raise GameError(f"no rule {name!r} of the grammar applies")

    def _enumerate(self, items: list[str], bound: Bindings, state: State, names: Mapping[str, str]) -> str:
        if not items:
            return self._call("list_empty", bound, state, names)
        if len(items) == 1:
            return items[0]
        separator = self._call("list_separator", bound, state, names)
        last_separator = self._call("list_last_separator", bound, state, names)
        return separator.join(items[:-1]) + last_separator + items[-1]


def _property(asked: Property, bound: Bindings, names: Mapping[str, str]) -> str:
    entity = bound.get(asked.variable)
    if entity is None:
        known = ", ".join(bound) or "none"
        raise GameError(f"the grammar names {asked.variable}.{asked.kind}, expected one of {known}")
    return names[entity] if asked.kind == "name" else entity


def parse_grammar(text: str) -> Grammar:
    """Read a grammar; equal texts but for the task are read once.

    Raises `GameError` where it has no task, an action without template, or a rule that cannot be read.
    """
    found = _find_task(text)
    rest = text[: found.start(1)] + '""' + text[found.end(1) :]
    return _parse_rest(rest).with_task(task_of(text))


def task_of(text: str) -> str:
    """The task's sentence in a grammar, without what introduces it; `GameError` where there is none."""
    return str(json.loads(_find_task(text)[1])).removeprefix(_TASK_PREFIX)


def _find_task(text: str) -> re.Match[str]:
    found = _TASK.search(text)
    if found is None:
        raise GameError('the grammar has no rule "task", expected one with the task\'s sentence')
    return found


@lru_cache(maxsize=8)
def _parse_rest(text: str) -> Grammar:
    actions = {}
    for found in _ACTION.finditer(text):
        template, feedback = _TEMPLATE.search(found[2]), _FEEDBACK.search(found[2])
        if template is None or feedback is None:
            raise GameError(f"action {found[1]} of the grammar lacks its template or feedback")
        actions[found[1].lower()] = Action(template[1], feedback[1])
    rules: dict[str, tuple[Rule, ...]] = {}
    for block in _BLOCK.findall(text):
        try:
            data = json.loads(
                "\n".join(line for line in block.split("\n") if not line.lstrip().startswith("#"))
            )
            for name, options in data.items():
                rules[name] = tuple(
                    Rule(parse_query(option.get("condition", "")), option["rhs"].replace("\\n", "\n"))
                    for option in options
                )
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise GameError(f"a block of the grammar is no table of rules: {error}") from error
    return Grammar(actions, rules)


@lru_cache(maxsize=512)
def parse_query(text: str) -> tuple[Literal, ...]:
    """A conjunction such as `holds(a:agent, o:object) & isclean(o:object)`; types of variables follow from it."""
    literals, at = [], 0
    text = text.strip()
    while at < len(text):
        found = _LITERAL.match(text, at)
        if found is None:
            raise GameError(f"the grammar asks {text!r}, expected predicates joined by &")
        variables = tuple(part.split(":")[0].strip() for part in found[2].split(",") if part.strip())
        literals.append(Literal(found[1].lower(), variables))
        at = found.end()
    return tuple(literals)


@lru_cache(maxsize=512)
def pieces(text: str) -> tuple[Piece, ...]:
    """Cut a text of the grammar as the official reader does: it drops white space at the start, and all that
    follows an unmatched bracket.
    """
    found: list[Piece] = []
    at = len(text) - len(text.lstrip())
    while (match := _PIECE.match(text, at)) is not None:
        at = match.end()
        if match["text"] is not None:
            found.append(match["text"])
        elif match["rule"] is not None:
            found.append(Call(match["rule"]))
        elif match["value"] is not None:
            found.extend(_value(match["value"]))
        else:
            shown, _, query = match["listed"].partition("|")
            called = re.fullmatch(r"\s*#([^#]+)#\s*", shown)
            item = (Call(called[1]),) if called else _value(shown)
            found.append(Listing(item, parse_query(query)))
    return tuple(found)


def _value(statement: str) -> tuple[Piece, ...]:
    """`o.indefinite + ' ' + o.name`; of `r.name or r.id` the name, which is never empty here."""
    words: list[Piece] = []
    for term in statement.partition(" or ")[0].split("+"):
        found = _WORD.fullmatch(term.strip())
        if found is None:
            raise GameError(f"the grammar computes {statement!r}, expected properties joined by +")
        literal, variable, kind, bare = found.groups()
        if literal is not None:
            words.append(literal)
        elif (kind or "name") in ("name", "id"):
            words.append(Property(variable or bare, kind or "name"))
        elif kind in _ARTICLES:
            words.append(_ARTICLES[kind])
        else:
            raise GameError(
                f"the grammar asks for {variable}.{kind}, expected name, id, indefinite or definite"
            )
    return tuple(words)
