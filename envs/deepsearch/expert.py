"""A scripted player that answers from what it was shown, with a skilled and a careless habit per decision.

Skilled: reads the question by the encyclopedia's grammar, searches for each thing it has to know, reads its value from
the page of that thing, goes on from there, and answers. Careless, by kind of decision: `query` searches for the whole
question; `read` takes a value from another passage; `hop` is content too early: it answers with the first value that
it finds, or guesses; `slip` is an action that is not understood. A wrong answer ends the episode; everything else can
be made good, and the player does so unless it is careless again.

Questions that are not of that grammar, such as those of published data sets, it cannot reason about: it searches for
the question and answers with the title of the first passage that the question does not name.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from envs.base import Decision, StepInfo
from envs.deepsearch.encyclopedia.phrases import EVENTS, NOUNS
from envs.deepsearch.encyclopedia.schema import DATED, EncyclopediaError
from envs.deepsearch.encyclopedia.wordings import ParsedQuestion, parse_question, read_aliases, read_value

CARELESS_KINDS = ("query", "read", "hop", "slip")
TRIES = 3
"""Searches for one thing before its page is opened."""
UNKNOWN = "unknown"
ALSO_KNOWN = "also known as"

Shown = Sequence[tuple[str, str]]
"""Titles and texts of the passages that an observation shows."""
Play = Generator[Decision, Shown, None]
Lookup = Generator[Decision, Shown, str]

_NAME = re.compile(r"[A-Z][a-z]+(?: (?:of )?[A-Z][a-z]+)*")
_YEAR = re.compile(r"\b[0-9]{4}\b")
_ASKS_WHETHER = re.compile(r"(?:are|is|was|were|do|does|did|has|have|can)\b", re.IGNORECASE)


class DeepSearchDemonstrator:
    """Plays one episode; `carelessness` maps a kind of decision to the chance that it is taken carelessly."""

    def __init__(self, rng: np.random.Generator, carelessness: Mapping[str, float] | None = None) -> None:
        self._rng = rng
        self._carelessness = dict(carelessness or {})
        if unknown := sorted(self._carelessness.keys() - set(CARELESS_KINDS)):
            raise ValueError(f"unknown kinds of decision {unknown}, expected any of {list(CARELESS_KINDS)}")
        self._play: Play | None = None
        self._waiting: Decision | None = None
        """What comes after a slip."""
        self._misread = False
        """Whether the last value was taken from the wrong passage."""

    def decide(self, observation: str, info: StepInfo) -> Decision:
        """The next move; called once before every step."""
        if self._play is None:
            self._question = observation.removeprefix("Question: ")
            self._play = self._begin()
            decision = next(self._play)
        elif self._waiting is not None:
            decision, self._waiting = self._waiting, None
            return decision
        else:
            decision = self._play.send(info["shown"])  # type: ignore[typeddict-item]  # a key of DeepSearchInfo
        if self._misread:
            decision, self._misread = replace(decision, careless=True), False
        if self._careless("slip"):
            self._waiting = decision
            verb = decision.action.partition("[")[0]
            return Decision(
                "slip", decision.thought, decision.action.replace(f"{verb}[", f"{verb} ", 1), True
            )
        return decision

    def _begin(self) -> Play:
        try:
            asked = parse_question(self._question)
        except EncyclopediaError:
            return self._guess()
        plays = {"bridge": self._bridge, "intersection": self._intersection}
        return plays.get(asked.form, self._pair)(asked)

    def _careless(self, kind: str) -> bool:
        return bool(self._rng.random() < self._carelessness.get(kind, 0.0))

    # Forms of questions

    def _bridge(self, asked: ParsedQuestion) -> Play:
        """From the name along the relations."""
        name, known = asked.subjects[0], ""
        for number, relation in enumerate(asked.relations):
            if number and self._careless("hop"):
                yield Decision("hop", known, f"answer[{name}]", careless=True)
            name = yield from self._look_up(name, relation, known)
            known = f"{_noun(relation)}: {name}"
        yield Decision("hop", known, f"answer[{name}]")

    def _pair(self, asked: ParsedQuestion) -> Play:
        """A value of each of two things; the answer follows from both."""
        first, second = asked.subjects
        relations = asked.relations * 2 if len(asked.relations) == 1 else asked.relations
        one = yield from self._look_up(first, relations[0], "")
        known = f"{first}: {one}"
        if self._careless("hop"):
            guess = str(self._rng.integers(1, 100)) if asked.form == "gap" else _judge(asked, one, one)
            yield Decision("hop", known, f"answer[{guess}]", careless=True)
        other = yield from self._look_up(second, relations[1], known)
        yield Decision("hop", f"{known}, {second}: {other}", f"answer[{_judge(asked, one, other)}]")

    def _intersection(self, asked: ParsedQuestion) -> Play:
        """Things that stand in one relation to the first name and in another to the second."""
        wanted = dict(zip(asked.relations, asked.subjects, strict=True))
        met: dict[str, set[str]] = {}
        queries = [
            f"{asked.kind} {' '.join(asked.subjects)}",
            *(f"{asked.kind} {one}" for one in asked.subjects),
        ]
        for query in queries:
            shown = yield self._query(f"Find {asked.kind}", query)
            _check(met, wanted, shown)
            if self._careless("hop") and met:
                yield Decision("hop", "This may do", f"answer[{next(iter(met))}]", careless=True)
            for title in sorted(met, key=lambda title: -len(met[title])):
                if len(met[title]) == 1 and met[title]:
                    _check(met, wanted, (yield Decision("query", f"Check {title}", f"open[{title}]")))
                if len(met[title]) == len(wanted):
                    yield Decision("hop", f"Both: {title}", f"answer[{title}]")
        best = max(met, key=lambda title: len(met[title]), default=UNKNOWN)
        yield Decision("hop", f"Best: {best}", f"answer[{best}]")

    def _guess(self) -> Play:
        shown = yield Decision("query", "Search it", f"search[{self._question}]")
        titles = [title for title, _ in shown]
        fresh = [title for title in titles if title.lower() not in self._question.lower()]
        answer = "yes" if _ASKS_WHETHER.match(self._question) else next(iter(fresh or titles), UNKNOWN)
        yield Decision("hop", "A guess", f"answer[{answer}]")

    # Finding a value

    def _look_up(self, name: str, relation: str, known: str) -> Lookup:
        """The value of a relation, searched for under all names of its subject that come up."""
        thought = f"{known}. Find {_noun(relation)}" if known else f"Find {_noun(relation)}"
        names = [name]
        for number in range(TRIES):
            query = f"{_noun(relation) if number < TRIES - 1 else ALSO_KNOWN} {names[-1]}"
            shown = yield self._query(thought, query)
            if (value := self._read(relation, names, shown)) is not None:
                return value
            names += [title for title in _titles(names, shown) if title not in names]
        shown = yield Decision("query", f"{thought}: open", f"open[{names[-1]}]")
        value = self._read(relation, names, shown)
        return UNKNOWN if value is None else value

    def _query(self, thought: str, query: str) -> Decision:
        if self._careless("query"):
            return Decision("query", "Search it", f"search[{self._question}]", careless=True)
        return Decision("query", thought, f"search[{query}]")

    def _read(self, relation: str, names: Sequence[str], shown: Shown) -> str | None:
        """The value on a page of this thing; carelessly, something like it on another."""
        titles = {*names, *_titles(names, shown)}
        if self._careless("read"):
            pattern = _YEAR if relation in DATED else _NAME
            others = [
                found
                for title, text in shown
                if title not in titles
                for found in pattern.findall(text.removeprefix(title))
            ]
            if others:
                self._misread = True
                return str(others[int(self._rng.integers(len(others)))])
        values = (read_value(relation, title, text) for title, text in shown if title in titles)
        return next((value for value in values if value is not None), None)


def _noun(relation: str) -> str:
    """`director`; for years `year of birth`."""
    return NOUNS.get(relation) or _YEARS[relation]


_YEARS = {
    relation: "year of " + event.split(" of ")[0].removeprefix("the ") for relation, event in EVENTS.items()
}


def _titles(names: Sequence[str], shown: Shown) -> list[str]:
    """Titles of the shown pages whose subject is also known by one of the names."""
    return [title for title, text in shown if not set(names).isdisjoint(read_aliases(title, text))]


def _judge(asked: ParsedQuestion, one: str, other: str) -> str:
    """The answer to a question about the values of two things."""
    if asked.form == "same":
        return "yes" if one == other else "no"
    years = [int(year) if year.isdigit() else 0 for year in (one, other)]
    if asked.form == "gap":
        return str(years[1] - years[0])
    first_is_earlier = years[0] < years[1]
    return asked.subjects[0 if first_is_earlier == (asked.when == "earlier") else 1]


def _check(met: dict[str, set[str]], wanted: Mapping[str, str], shown: Shown) -> None:
    """Note which conditions each shown page meets."""
    for title, text in shown:
        for relation, name in wanted.items():
            if read_value(relation, title, text) == name:
                met.setdefault(title, set()).add(relation)
