"""The grammar: writes questions and reads them back, and reads values from passages, with the tables of `phrases`.

Out-of-domain questions are made of the same phrases as those of training: only what is combined with what is new. The
one exception is the frame of a form that training does not have: `INTERSECTION`, whose conditions are predicates of
the pages, and `GAPS`, whose events are asked for in training by `DATE_QUESTION`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from envs.deepsearch.encyclopedia.chance import Dice
from envs.deepsearch.encyclopedia.phrases import (
    COMPARISONS,
    DATE_QUESTION,
    EVENTS,
    GAPS,
    INTERSECTION,
    NOUNS,
    QUESTIONS,
    SAME,
    SECOND_PHRASES,
    SENTENCES,
    WHEN,
)
from envs.deepsearch.encyclopedia.schema import DATED, RELATIONS, EncyclopediaError

_NAME = r"[A-Z][a-z]+(?: (?:of )?[A-Z][a-z]+)*"
_YEAR = r"[0-9]{4}"
_ALSO_KNOWN = "also known as {}"
_SLOT = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True)
class ParsedQuestion:
    """What a question asks, read from its text alone."""

    form: str
    """`bridge` (any number of hops), `comparison`, `same`, `intersection` or `gap`."""
    subjects: tuple[str, ...]
    """The names in it, in order: one of a bridge, two of all others."""
    relations: tuple[str, ...]
    """A bridge: in the order in which they are followed. `comparison` and `same`: the one to look up for both. `gap`
    and `intersection`: that of the first and that of the second name."""
    when: str = ""
    """Which one a comparison asks for: `earlier` or `later`."""
    kind: str = ""
    """What an intersection asks for: `film`."""


def noun_phrases(relation: str) -> tuple[str, ...]:
    """Ways to speak of a value: `the director of {x}`."""
    second = SECOND_PHRASES.get(relation)
    return (f"the {NOUNS[relation]} of {{x}}", *([second] if second else []))


def value_questions(relation: str) -> tuple[str, ...]:
    """Ways to ask for a value: `Who directed {x}?`"""
    event = EVENTS.get(relation)
    return (*QUESTIONS[relation], *([DATE_QUESTION.format(event=event)] if event else []))


def condition(kind: str, relation: str) -> str:
    """The predicate by which an intersection states a relation, with its value as `{}`."""
    for sentence in SENTENCES[kind]:
        if slots(sentence) == (relation,):
            return _SLOT.sub("{}", sentence)
    raise EncyclopediaError(f"no sentence about a {kind} states {relation!r} alone")


def slots(sentence: str) -> tuple[str, ...]:
    """The relations that a sentence states, in order."""
    return tuple(name for name in _SLOT.findall(sentence) if name != "x's")


def parse_question(text: str) -> ParsedQuestion:
    """Read a question of this encyclopedia's grammar; names need not exist.

    Raises `EncyclopediaError` where the text is no such question.
    """
    readings = list(dict.fromkeys(itertools.chain(_pairs(text), _bridges(text))))
    if len(readings) != 1:
        raise EncyclopediaError(f"{text!r} has {len(readings)} readings, expected a question with one")
    return readings[0]


def read_value(relation: str, title: str, passage_text: str) -> str | None:
    """A relation's value as a passage of the page `title` states it; None where it does not.

    Values may be aliases; `read_aliases` of the value's own passages says of what.
    """
    if not _subject(title).match(passage_text):
        return None
    found = (pattern.search(passage_text) for pattern in _readers(relation))
    return next((match[1] for match in found if match), None)


def read_aliases(title: str, passage_text: str) -> tuple[str, ...]:
    """Other names of its subject that a passage of the page `title` says."""
    if not _subject(title).match(passage_text):
        return ()
    return tuple(re.findall(_ALSO_KNOWN.format(f"({_NAME})"), passage_text))


@lru_cache(maxsize=4096)
def _subject(title: str) -> re.Pattern[str]:
    """How every passage of a page begins."""
    return re.compile(rf"(?:The [a-z ]+ )?{re.escape(title)}\b")


def _pattern(template: str, groups: dict[str, str]) -> re.Pattern[str]:
    """A template as a pattern; its slots as given, or as any text."""
    parts = _SLOT.split(template)
    texts, names = parts[::2], parts[1::2]
    written = [groups.get(name, "(.+)") for name in names]
    return re.compile("".join(itertools.chain(*zip(map(re.escape, texts), [*written, ""], strict=True))))


@lru_cache(maxsize=64)
def _readers(relation: str) -> tuple[re.Pattern[str], ...]:
    if relation not in RELATIONS:
        raise EncyclopediaError(f"unknown relation {relation!r}, expected one of {', '.join(RELATIONS)}")
    found = []
    for sentence in dict.fromkeys(itertools.chain(*SENTENCES.values())):
        stated = slots(sentence)
        if relation in stated:
            groups = {name: _YEAR if name in DATED else _NAME for name in stated}
            groups[relation] = f"({groups[relation]})"
            found.append(_pattern(" " + sentence.removeprefix("{x's}").strip(), groups))
    return tuple(found)


def _named(text: str) -> bool:
    return re.fullmatch(_NAME, text) is not None


@lru_cache(maxsize=1)
def _askers() -> tuple[tuple[str, re.Pattern[str]], ...]:
    names = (*NOUNS, *EVENTS)
    return tuple((name, _pattern(question, {})) for name in names for question in value_questions(name))


@lru_cache(maxsize=1)
def _phrasers() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, _pattern(phrase, {})) for name in NOUNS for phrase in noun_phrases(name))


def _bridges(text: str) -> Iterator[ParsedQuestion]:
    for relation, pattern in _askers():
        if asked := pattern.fullmatch(text):
            for name, chain in _unfold(asked[1]):
                if _fits(chain := (*chain, relation)):
                    yield ParsedQuestion("bridge", (name,), chain)


def _unfold(phrase: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Ways to read a noun phrase: the name in it, and the relations from there."""
    if _named(phrase):
        yield phrase, ()
    if not phrase.startswith("the "):
        return
    for relation, pattern in _phrasers():
        if match := pattern.fullmatch(phrase):
            for name, chain in _unfold(match[1]):
                yield name, (*chain, relation)


def _fits(chain: Sequence[str]) -> bool:
    """Whether each relation's value can be the next one's subject."""
    return all(
        set(RELATIONS[first].objects) & set(RELATIONS[then].subjects)
        for first, then in itertools.pairwise(chain)
    )


@lru_cache(maxsize=1)
def _pairers() -> tuple[tuple[re.Pattern[str], ParsedQuestion], ...]:
    """Patterns of all questions about two names, with what they ask; the names are their two groups."""
    two = {"a": f"({_NAME})", "b": f"({_NAME})"}
    found = []
    for relation, templates in COMPARISONS.items():
        for template, when in itertools.product(templates, WHEN):
            found.append(
                (
                    _pattern(template, {**two, "when": when}),
                    ParsedQuestion("comparison", (), (relation,), when),
                )
            )
    for relation, noun in NOUNS.items():
        for template in SAME:
            found.append((_pattern(template, {**two, "noun": noun}), ParsedQuestion("same", (), (relation,))))
    for template, first, then in itertools.product(GAPS, EVENTS, EVENTS):
        a, b = EVENTS[first].format(x="{a}"), EVENTS[then].format(x="{b}")
        found.append((_pattern(template.format(a=a, b=b), two), ParsedQuestion("gap", (), (first, then))))
    return (*found, *_intersecters())


def _intersecters() -> Iterator[tuple[re.Pattern[str], ParsedQuestion]]:
    for kind in SENTENCES:
        links = links_of(kind)
        for first, then in itertools.permutations(links, 2):
            a, b = (condition(kind, relation).format("{x}") for relation in (first, then))
            yield (
                _pattern(INTERSECTION.format(kind=kind, a=a, b=b), {"x": f"({_NAME})"}),
                ParsedQuestion("intersection", (), (first, then), kind=kind),
            )


def links_of(kind: str) -> tuple[str, ...]:
    """Relations of a kind that questions use and whose value is a thing."""
    return tuple(
        name for name, one in RELATIONS.items() if one.asked and not one.dated and kind in one.subjects
    )


def _pairs(text: str) -> Iterator[ParsedQuestion]:
    start = text.split(" ", 1)[0]
    for pattern, asked in _pairers():
        if pattern.pattern.startswith(start) and (match := pattern.fullmatch(text)):
            yield ParsedQuestion(asked.form, (match[1], match[2]), asked.relations, asked.when, asked.kind)


def write_bridge(name: str, relations: Sequence[str], dice: Dice) -> str:
    """A question that follows these relations from a name."""
    phrase = name
    for relation in relations[:-1]:
        phrase = dice.pick(noun_phrases(relation)).format(x=phrase)
    return dice.pick(value_questions(relations[-1])).format(x=phrase)


def write_comparison(relation: str, when: str, first: str, second: str, dice: Dice) -> str:
    """Which of two comes earlier, or later."""
    return dice.pick(COMPARISONS[relation]).format(when=when, a=first, b=second)


def write_same(relation: str, first: str, second: str, dice: Dice) -> str:
    """Whether two share a value."""
    return dice.pick(SAME).format(noun=NOUNS[relation], a=first, b=second)


def write_intersection(kind: str, relations: Sequence[str], values: Sequence[str]) -> str:
    """Which thing of a kind has these two values."""
    a, b = (
        condition(kind, relation).format(value) for relation, value in zip(relations, values, strict=True)
    )
    return INTERSECTION.format(kind=kind, a=a, b=b)


def write_gap(relations: Sequence[str], names: Sequence[str], dice: Dice) -> str:
    """How many years lie between two events, the earlier one first."""
    a, b = (EVENTS[relation].format(x=name) for relation, name in zip(relations, names, strict=True))
    return dice.pick(GAPS).format(a=a, b=b)
