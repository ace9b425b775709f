"""Generated encyclopedias of the tests, each made once, and what is asked of them in several files."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from envs.deepsearch.encyclopedia import (
    Encyclopedia,
    MultiHopQuestion,
    Settings,
    generate,
    parse_question,
    read_aliases,
    read_value,
)
from envs.deepsearch.encyclopedia.schema import RELATIONS

SMALL = {"passages": 400, "train": 80, "dev": 3, "test": 3, "ood_dev": 2, "ood_test": 2}
SPLITS = ("train", "dev", "test", "ood_dev", "ood_test")
BRIDGES = ("bridge", "pair", "bridge3", "bridge4")


@lru_cache(maxsize=4)
def made(settings: Settings) -> Encyclopedia:
    """The encyclopedia of these settings."""
    return generate(settings)


def asked(encyclopedia: Encyclopedia) -> list[MultiHopQuestion]:
    return [question for split in SPLITS for question in encyclopedia.questions[split]]


def known(encyclopedia: Encyclopedia) -> dict[str, dict[str, str]]:
    """Title -> relation -> value."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for fact in encyclopedia.facts:
        found[fact.subject][fact.relation] = fact.value
    return found


def assert_read_back(made: Encyclopedia, *, every: int = 1) -> None:
    """Of a passage, each relation reads as what the generator put there, and as None where it put none.

    `every`: all facts are read, but that nothing else is read is looked at in so many passages only.
    """
    stated = {(fact.passage, fact.relation): fact.stated for fact in made.facts}
    said = defaultdict[int, list[str]](list)
    for fact in made.facts:
        said[fact.passage].append(fact.relation)
    for at, passage in enumerate(made.passages):
        for relation in RELATIONS if at % every == 0 else said[at]:
            read = read_value(relation, passage.title, passage.text)
            assert read == stated.get((at, relation)), (relation, passage)
    aliases = defaultdict[str, list[str]](list)
    for passage in made.passages:
        aliases[passage.title] += read_aliases(passage.title, passage.text)
    assert {one.name: one.aliases for one in made.entities} == {
        one.name: tuple(aliases[one.name]) for one in made.entities
    }
    for question in asked(made):
        parsed = parse_question(question.text)
        subjects = [step.title for step in question.steps][: 1 if question.form in BRIDGES else 2]
        if question.form == "intersection":
            subjects = [step.answer for step in question.steps]
        assert parsed.form == ("bridge" if question.form in BRIDGES else question.form)
        assert (list(parsed.subjects), parsed.relations) == (subjects, question.relations)
