"""The text grammar of a game file: how commands are spelled and what is answered.

A grammar has, for each action of the domain, a command template and a feedback text, and rules that both refer to by
`#name#`. In a text, `{o.name}` is a property of the entity that a variable stands for; `[{o.name | query}]` lists it
for every solution of a conjunctive query. Of several rules with one name, the first whose condition holds is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

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
_WORD = re.compile(r"'([^']*)'|(\w+)\.(\w+)|(\w+)")


@dataclass(frozen=True)
class Value:
    """Properties of entities and fixed texts, one after the other."""

    words: tuple[tuple[str, str], ...]
    """(variable, property), or ("", text)."""


@dataclass(frozen=True)
class Call:
    """What the rules of this name say."""

    rule: str


@dataclass(frozen=True)
class Listing:
    """A text for each solution of a query, put into one enumeration."""

    item: Value | Call
    query: tuple[Literal, ...]


Piece = str | Value | Call | Listing


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
        return "".join(self._say(piece, bound, state, names) for piece in pieces(text))

    def _say(self, piece: Piece, bound: Bindings, state: State, names: Mapping[str, str]) -> str:
        if isinstance(piece, str):
            return piece
        if isinstance(piece, Value):
            return "".join(_property(word, bound, names) for word in piece.words)
        if isinstance(piece, Call):
            for rule in self.rules.get(piece.rule, ()):
                if not rule.condition or state.holds(rule.condition, bound):
                    return self.derive(rule.text, bound, state, names)
            raise GameError(f"no rule {piece.rule!r} of the grammar applies")
        items = [self._say(piece.item, found, state, names) for found in state.solve(piece.query, bound)]
        return self._enumerate(items, bound, state, names)

    def _enumerate(self, items: list[str], bound: Bindings, state: State, names: Mapping[str, str]) -> str:
        if not items:
            return self._say(Call("list_empty"), bound, state, names)
        if len(items) == 1:
            return items[0]
        separator = self._say(Call("list_separator"), bound, state, names)
        return (
            separator.join(items[:-1])
            + self._say(Call("list_last_separator"), bound, state, names)
            + items[-1]
        )


def _property(word: tuple[str, str], bound: Bindings, names: Mapping[str, str]) -> str:
    variable, kind = word
    if not variable:
        return kind
    if variable not in bound:
        raise GameError(f"the grammar names {variable}.{kind}, expected one of {', '.join(bound) or 'none'}")
    if kind == "name":
        return names[bound[variable]]
    known = {"id": bound[variable], "indefinite": "a", "definite": "the"}
    if kind not in known:
        raise GameError(f"the grammar asks for {variable}.{kind}, expected name, id, indefinite or definite")
    return known[kind]


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
            found.append(_value(match["value"]))
        else:
            shown, _, query = match["listed"].partition("|")
            called = re.fullmatch(r"\s*#([^#]+)#\s*", shown)
            found.append(Listing(Call(called[1]) if called else _value(shown), parse_query(query)))
    return tuple(found)


def _value(statement: str) -> Value:
    """`o.indefinite + ' ' + o.name`; of `r.name or r.id` the name, which is never empty here."""
    words: list[tuple[str, str]] = []
    for term in statement.partition(" or ")[0].split("+"):
        found = _WORD.fullmatch(term.strip())
        if found is None:
            raise GameError(f"the grammar computes {statement!r}, expected properties joined by +")
        literal, variable, kind, bare = found.groups()
        words.append(("", literal) if literal is not None else (variable or bare, kind or "name"))
    return Value(tuple(words))
