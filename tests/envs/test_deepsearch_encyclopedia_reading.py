"""The grammar of the generated encyclopedia: what it writes it can read, and search finds where to start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import bm25s
import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.deepsearch.encyclopedia import (
    Encyclopedia,
    EncyclopediaError,
    Fact,
    Settings,
    parse_question,
)
from envs.deepsearch.encyclopedia.chance import Dice
from envs.deepsearch.encyclopedia.phrases import EVENTS, NOUNS
from envs.deepsearch.encyclopedia.schema import ASKED_DATES, ASKED_LINKS, RELATIONS
from envs.deepsearch.encyclopedia.wordings import write_bridge
from tests.envs.encyclopedias import BRIDGES, SMALL, asked
from tests.envs.encyclopedias import made as made_once


@pytest.fixture(scope="module")
def world() -> Encyclopedia:
    return made_once(Settings(seed=0))


@pytest.fixture(scope="module")
def small() -> Encyclopedia:
    return made_once(Settings(seed=1, **SMALL))


# Reading


def chains_of(length: int) -> st.SearchStrategy[tuple[str, ...]]:
    """Relations each of which can follow the one before."""
    last = (*ASKED_LINKS, *ASKED_DATES)
    found = [(name,) for name in (last if length == 1 else ASKED_LINKS)]
    for at in range(1, length):
        follow = last if at == length - 1 else ASKED_LINKS
        found = [
            (*chain, name)
            for chain in found
            for name in follow
            if set(RELATIONS[chain[-1]].objects) & set(RELATIONS[name].subjects)
        ]
    return st.sampled_from(found)


@settings(max_examples=120, deadline=None)
@given(
    relations=st.integers(1, 4).flatmap(chains_of),
    name=st.sampled_from(["Mira Orvan", "Tarel", "Battle of Gremeld", "Silver Harbour", "Brolo Glass Works"]),
    draw=st.integers(0, 1000),
)
def test_a_bridge_of_any_relations_in_any_wording_has_one_reading(
    relations: tuple[str, ...], name: str, draw: int
) -> None:
    parsed = parse_question(write_bridge(name, relations, Dice(draw, "test")))
    assert (parsed.form, parsed.subjects, parsed.relations) == ("bridge", (name,), relations)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Where was the director of Pale Lantern born?",
            ("bridge", ("Pale Lantern",), ("director", "birthplace")),
        ),
        (
            "In which year was the birth of the person who painted Red Owl?",
            ("bridge", ("Red Owl",), ("painter", "birth_year")),
        ),
        (
            "Who was born later, Ana Bel or Tomo Vik?",
            ("comparison", ("Ana Bel", "Tomo Vik"), ("birth_year",)),
        ),
        ("Do Red Owl and Pale Sun have the same painter?", ("same", ("Red Owl", "Pale Sun"), ("painter",))),
        (
            "Which film stars Ana Bel and was directed by Tomo Vik?",
            ("intersection", ("Ana Bel", "Tomo Vik"), ("star", "director")),
        ),
        (
            "How many years after the founding of Tarel was the release of Red Owl?",
            ("gap", ("Tarel", "Red Owl"), ("founding_year", "release_year")),
        ),
    ],
)
def test_questions_are_read_as_a_person_would(text: str, expected: tuple[object, ...]) -> None:
    parsed = parse_question(text)
    assert (parsed.form, parsed.subjects, parsed.relations) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Where was born?",
        "Who wrote it?",
        "Where was the director of born?",
        "Where was the spouse of Red Owl founded?",
    ],
)
def test_what_is_no_question_of_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(EncyclopediaError, match="0 readings, expected a question with one"):
        parse_question(text)


def test_every_asked_relation_has_words() -> None:
    assert set(NOUNS) == set(ASKED_LINKS)
    assert set(EVENTS) == set(ASKED_DATES)


# Finding


Search = Callable[[Sequence[str]], list[list[str]]]


@pytest.fixture(scope="module")
def search(world: Encyclopedia) -> Search:
    """Titles of the three best passages of each query."""
    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: Sequence[str]) -> Any:
        return bm25s.tokenize(list(texts), stopwords="en", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens([f"{one.title}\n{one.text}" for one in world.passages]), show_progress=False)

    def best(queries: Sequence[str]) -> list[list[str]]:
        found, _ = index.retrieve(tokens(queries), k=3, show_progress=False)
        return [[world.passages[int(at)].title for at in row] for row in found]

    return best


def test_searching_a_title_finds_its_page(world: Encyclopedia, search: Search) -> None:
    titles = [one.name for one in world.entities]
    found = [title in hits for title, hits in zip(titles, search(titles), strict=True)]
    assert sum(found) / len(found) >= 0.95
    aliased = [one for one in world.entities if one.aliases]
    hits = search([one.aliases[0] for one in aliased])
    assert sum(one.name in row for one, row in zip(aliased, hits, strict=True)) / len(aliased) >= 0.85


def test_searching_a_whole_bridge_question_finds_its_start_but_seldom_its_end(
    world: Encyclopedia, search: Search
) -> None:
    bridges = [one for one in asked(world) if one.form in BRIDGES]
    hits = search([one.text for one in bridges])
    starts = [one.supporting_titles[0] in row for one, row in zip(bridges, hits, strict=True)]
    ends = [one.supporting_titles[-1] in row for one, row in zip(bridges, hits, strict=True)]
    assert sum(starts) / len(starts) > 0.9
    assert sum(ends) / len(ends) < 0.1


def test_facts_are_immutable_records(small: Encyclopedia) -> None:
    fact = small.facts[0]
    assert isinstance(fact, Fact)
    with pytest.raises(AttributeError):
        fact.value = "else"  # type: ignore[misc]
