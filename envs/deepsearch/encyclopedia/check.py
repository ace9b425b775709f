"""Proof that every question has just one answer, that the corpus says it, and that there is no shortcut.

It shares nothing with the generator but the texts, the facts and the grammar: questions are read from their text and
solved by going through the facts, names are looked for by words in the passages.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from envs.deepsearch.encyclopedia.schema import DATED, SPLITS, EncyclopediaError, Fact, MultiHopQuestion
from envs.deepsearch.encyclopedia.wordings import ParsedQuestion, parse_question

if TYPE_CHECKING:
    from envs.deepsearch.encyclopedia.encyclopedia import Encyclopedia

_FAMILY = {"pair": "bridge", "bridge3": "bridge", "bridge4": "bridge"}
_WITH_NAMES = ("comparison",)
"""Forms whose question names its answer."""


def check(encyclopedia: Encyclopedia) -> dict[str, int]:
    """Check everything that is promised; how many names, facts and questions were checked.

    Raises `EncyclopediaError` with the question, the fact or the name that breaks a promise.
    """
    names = _check_names(encyclopedia)
    facts = _check_facts(encyclopedia)
    checker = _Checker(encyclopedia)
    questions = 0
    for question in (one for split in encyclopedia.questions.values() for one in split):
        try:
            checker.check(question)
        except EncyclopediaError as error:
            raise EncyclopediaError(f"question {question.id} {question.text!r}: {error}") from error
        questions += 1
    _check_splits(encyclopedia.questions)
    return {"names": names, "facts": facts, "questions": questions}


def _demand(condition: bool, broken: str) -> None:
    if not condition:
        raise EncyclopediaError(broken)


def words(text: str) -> tuple[str, ...]:
    """A text's words without case, accents and punctuation."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    kept = "".join(
        one if one.isalnum() or one.isspace() else " " for one in plain if not unicodedata.combining(one)
    )
    return tuple(kept.split())


def _holds(text: Sequence[str], name: Sequence[str]) -> bool:
    """Whether words stand together somewhere in a text."""
    return any(tuple(text[at : at + len(name)]) == tuple(name) for at in range(len(text) - len(name) + 1))


def _check_names(encyclopedia: Encyclopedia) -> int:
    """No two names are alike, and none is a part of another thing's."""
    owner: dict[tuple[str, ...], str] = {}
    for entity in encyclopedia.entities:
        for name in entity.names:
            other = owner.setdefault(words(name), entity.name)
            _demand(
                other == entity.name and len(entity.names) == len(set(entity.names)),
                f"{name!r} is twice a name",
            )
    for parts, title in owner.items():
        for begin in range(len(parts)):
            for end in range(begin + 1, len(parts) + 1):
                inside = owner.get(parts[begin:end], title)
                _demand(inside == title, f"a name of {inside!r} is a part of a name of {title!r}")
    return len(owner)


def _check_facts(encyclopedia: Encyclopedia) -> int:
    """Every relation has one value, and the sentence that is said to state it names that value."""
    called = {entity.name: entity.names for entity in encyclopedia.entities}
    seen = set[tuple[str, str]]()
    for fact in encyclopedia.facts:
        _demand((fact.subject, fact.relation) not in seen, f"{fact}: there is another value, expected one")
        seen.add((fact.subject, fact.relation))
        passage = encyclopedia.passages[fact.passage]
        begin, end = fact.span
        sentence = passage.text[begin:end]
        accepted = (fact.value,) if fact.relation in DATED else called[fact.value]
        whole = sentence.endswith(".") and (begin == 0 or passage.text[begin - 2 : begin] == ". ")
        _demand(passage.title == fact.subject, f"{fact} is on the page {passage.title!r}")
        _demand(whole and fact.stated in accepted, f"{fact} is not in a sentence of its own: {sentence!r}")
        _demand(_holds(words(sentence), words(fact.stated)), f"{fact} is not stated by {sentence!r}")
    return len(seen)


class _Checker:
    """Solves questions from the facts and looks for shortcuts in the passages."""

    def __init__(self, encyclopedia: Encyclopedia) -> None:
        self._entities = {name: entity for entity in encyclopedia.entities for name in entity.names}
        self._values: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        self._subjects: dict[tuple[str, str], set[str]] = defaultdict(set)
        for fact in encyclopedia.facts:
            self._values[fact.subject, fact.relation].append(fact)
            self._subjects[fact.relation, fact.value].add(fact.subject)
        self._texts = [words(f"{passage.title} . {passage.text}") for passage in encyclopedia.passages]
        self._pages: dict[str, list[int]] = defaultdict(list)
        self._having: dict[str, set[int]] = defaultdict(set)
        for at, (passage, text) in enumerate(zip(encyclopedia.passages, self._texts, strict=True)):
            self._pages[passage.title].append(at)
            for word in text:
                self._having[word].add(at)

    def check(self, question: MultiHopQuestion) -> None:
        """Everything about one question."""
        asked = parse_question(question.text)
        form = _FAMILY.get(question.form, question.form)
        _demand(asked.form == form, f"it reads as {asked.form!r}, expected {form!r}")
        _demand(asked.relations == question.relations, f"it reads as {asked.relations}")
        answers = _SOLVERS[asked.form](self, asked)
        _demand(
            answers == {question.golds[0]},
            f"{sorted(answers)} answer it, expected only {question.golds[0]!r}",
        )
        entity = self._entities.get(question.golds[0])
        if entity is not None:
            _demand(
                question.golds == entity.names, f"its golds are {question.golds}, expected {entity.names}"
            )
        if question.form not in _WITH_NAMES:
            for gold in question.golds:
                _demand(not _holds(words(question.text), words(gold)), f"it names its answer {gold!r}")
        self._check_steps(question)
        if form == "bridge":
            self._check_shortcuts(question, asked.subjects[0])

    def _check_steps(self, question: MultiHopQuestion) -> None:
        titles = tuple(dict.fromkeys(step.title for step in question.steps))
        _demand(titles == question.supporting_titles, f"its steps need {titles}")
        for step in question.steps:
            facts = self._values[step.title, step.relation]
            _demand([fact.stated for fact in facts] == [step.answer], f"{step} is stated as {facts}")

    def _check_shortcuts(self, question: MultiHopQuestion, start: str) -> None:
        """The answer is only where the last hop leads, and never beside the name that the question gives."""
        golds = question.golds
        pages = question.supporting_titles
        _demand(len(pages) == question.hops == len(question.relations), f"it has {len(pages)} pages")
        for page in pages[:-1]:
            _demand(
                not self._named(golds) & set(self._pages[page]), f"the page {page!r} names the answer already"
            )
        both = self._named(golds) & self._named(self._entities[start].names)
        _demand(not both, f"passages {sorted(both)} name both {start!r} and the answer")

    def _named(self, names: Sequence[str]) -> set[int]:
        """Passages in which one of these names stands."""
        found = set[int]()
        for name in map(words, names):
            with_all = set.intersection(*(self._having[word] for word in name))
            found |= {at for at in with_all if _holds(self._texts[at], name)}
        return found

    # One solver a form: the answers that the facts give

    def _follow(self, names: set[str], relation: str) -> set[str]:
        return {fact.value for name in names for fact in self._values[name, relation]}

    def _bridge(self, asked: ParsedQuestion) -> set[str]:
        found = {self._entities[asked.subjects[0]].name}
        for relation in asked.relations:
            found = self._follow(found, relation)
        return found

    def _comparison(self, asked: ParsedQuestion) -> set[str]:
        years = {name: max(map(int, self._follow({name}, asked.relations[0]))) for name in asked.subjects}
        wanted = min(years.values()) if asked.when == "earlier" else max(years.values())
        return {name for name, year in years.items() if year == wanted}

    def _same(self, asked: ParsedQuestion) -> set[str]:
        one, other = (self._follow({name}, asked.relations[0]) for name in asked.subjects)
        _demand(bool(one) and bool(other), "a value is missing")
        return {"yes" if one == other else "no"}

    def _intersection(self, asked: ParsedQuestion) -> set[str]:
        first, second = (
            {title for title in self._subjects[relation, value] if self._entities[title].kind == asked.kind}
            for relation, value in zip(asked.relations, asked.subjects, strict=True)
        )
        _demand(len(first) > 1 and len(second) > 1, "one of its conditions is enough")
        return first & second

    def _gap(self, asked: ParsedQuestion) -> set[str]:
        first, second = (
            self._follow({name}, relation)
            for name, relation in zip(asked.subjects, asked.relations, strict=True)
        )
        return {str(int(later) - int(earlier)) for earlier in first for later in second}


_SOLVERS: Mapping[str, Callable[[_Checker, ParsedQuestion], set[str]]] = {
    "bridge": _Checker._bridge,
    "comparison": _Checker._comparison,
    "same": _Checker._same,
    "intersection": _Checker._intersection,
    "gap": _Checker._gap,
}


def _check_splits(questions: Mapping[str, Sequence[MultiHopQuestion]]) -> None:
    """No text, start or needed fact of training is in another split; no start is in two splits."""
    texts = Counter(question.text for split in SPLITS for question in questions[split])
    twice = [text for text, count in texts.items() if count > 1]
    _demand(not twice, f"questions are there twice: {twice[:3]}")
    starts = {split: set(_starts(questions[split])) for split in SPLITS}
    for at, split in enumerate(SPLITS):
        for other in SPLITS[at + 1 :]:
            both = starts[split] & starts[other]
            _demand(not both, f"questions of {split} and of {other} start at {sorted(both)[:3]}")
    needed = {(step.title, step.relation) for one in questions["train"] for step in one.steps}
    for split in SPLITS[1:]:
        for question in questions[split]:
            shared = needed & {(step.title, step.relation) for step in question.steps}
            _demand(not shared, f"question {question.id} {question.text!r} needs {shared}, as training does")


def _starts(questions: Sequence[MultiHopQuestion]) -> Iterator[str]:
    for question in questions:
        count = 1 if _FAMILY.get(question.form, question.form) in ("bridge", "intersection") else 2
        yield from (step.title for step in question.steps[:count])
