"""Pages of the generated encyclopedia: they say what its graph holds, in time and place, by names that are unique."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import pytest

from envs.deepsearch.encyclopedia import (
    Encyclopedia,
    EncyclopediaError,
    Settings,
    check,
    generate,
    read_value,
)
from envs.deepsearch.encyclopedia.names import Namer
from envs.deepsearch.encyclopedia.phrases import FILLERS, SENTENCES
from envs.deepsearch.encyclopedia.schema import ASKED_DATES, ASKED_LINKS, DATED, RELATIONS
from envs.deepsearch.encyclopedia.wordings import slots
from tests.envs.encyclopedias import SMALL, assert_read_back, known
from tests.envs.encyclopedias import made as made_once


@pytest.fixture(scope="module")
def world() -> Encyclopedia:
    return made_once(Settings(seed=0))


@pytest.fixture(scope="module")
def small() -> Encyclopedia:
    return made_once(Settings(seed=1, **SMALL))


# Texts


def test_passages_are_short_and_pages_have_one_or_two_of_them_in_a_row(world: Encyclopedia) -> None:
    counts = [len(passage.text.split()) for passage in world.passages]
    assert 25 <= sum(counts) / len(counts) <= 45
    assert sum(count < 20 for count in counts) < 0.02 * len(counts)
    assert max(counts) <= 60
    assert {passage.text.count(".") for passage in world.passages} <= {1, 2, 3}
    pages = [
        (title, len(list(group))) for title, group in itertools.groupby(one.title for one in world.passages)
    ]
    assert len(pages) == len({title for title, _ in pages})
    assert {count for _, count in pages} == {1, 2}
    assert [passage.id for passage in world.passages] == [str(at) for at in range(4000)]


def test_every_fact_is_stated_in_just_one_sentence_of_its_own_page(world: Encyclopedia) -> None:
    seen = Counter((fact.subject, fact.relation) for fact in world.facts)
    assert set(seen.values()) == {1}
    for fact in world.facts:
        begin, end = fact.span
        assert fact.stated in world.passages[fact.passage].text[begin:end]


def test_each_relation_of_a_kind_has_several_wordings_that_are_used(world: Encyclopedia) -> None:
    for kind, sentences in SENTENCES.items():
        relations = {name for name, relation in RELATIONS.items() if kind in relation.subjects}
        assert {name for sentence in sentences for name in slots(sentence)} == relations
        for relation in relations:
            assert sum(slots(sentence) == (relation,) for sentence in sentences) >= 2, (kind, relation)
    texts = " ".join(passage.text for passage in world.passages)
    for sentence in itertools.chain(*SENTENCES.values()):
        words = max(re.split(r"\{.*?\}", sentence), key=len).strip()
        assert words in texts, sentence


def test_no_sentence_reads_as_another_relation() -> None:
    for sentence in dict.fromkeys(itertools.chain(*SENTENCES.values())):
        values = {name: "1234" if name in DATED else f"Tamo {name.title()}" for name in slots(sentence)}
        values = {name: value.replace("_", "") for name, value in values.items()}
        text = f"Miro Ten is a thing. It {sentence.removeprefix(chr(123) + 'x' + chr(39) + 's} ').format(**values)}."
        for relation in RELATIONS:
            assert read_value(relation, "Miro Ten", text) == values.get(relation), (relation, text)


def test_fillers_state_nothing() -> None:
    for filler in itertools.chain(*FILLERS.values()):
        assert not any(read_value(relation, "Miro", f"Miro. {filler}.") for relation in RELATIONS)
        assert not re.search(r" [A-Z]|[0-9]", filler)


def test_a_passage_of_another_page_says_nothing_about_a_title(world: Encyclopedia) -> None:
    passage = next(one for one in world.passages if read_value("birthplace", one.title, one.text))
    assert read_value("birthplace", "Somebody Else", passage.text) is None
    assert read_value("birthplace", passage.title.split()[0][:-1], passage.text) is None
    with pytest.raises(EncyclopediaError, match="unknown relation 'shoe_size', expected one of birthplace"):
        read_value("shoe_size", passage.title, passage.text)


def test_other_names_are_used_for_subjects_and_for_values(world: Encyclopedia) -> None:
    aliases = {alias: one.name for one in world.entities for alias in one.aliases}
    assert 0.15 < len(aliases) / len(world.entities) < 0.25
    by_alias = [fact for fact in world.facts if fact.stated in aliases]
    assert all(fact.value == aliases[fact.stated] for fact in by_alias)
    assert 0.02 < len(by_alias) / len(world.facts) < 0.1
    subjects = Counter(
        aliases[sentence.split(" ")[0]] == passage.title
        for passage in world.passages
        for sentence in passage.text.split(". ")[1:]
        if sentence.split(" ")[0] in aliases
    )
    assert subjects[True] > 50
    assert subjects[False] == 0
    assert any(len(question.golds) > 1 for question in world.questions["test"])


# Names


def test_names_are_unique_and_none_is_a_part_of_another_things_name(world: Encyclopedia) -> None:
    names = [(name.casefold(), one.name) for one in world.entities for name in one.names]
    assert len({name for name, _ in names}) == len(names)
    assert all(
        re.fullmatch(r"[A-Z][a-z]+(?: (?:of )?[A-Z][a-z]+)*", name)
        for one in world.entities
        for name in one.names
    )
    listed = " | ".join(f" {name} " for name, _ in names)
    for name, _ in names:
        assert listed.count(f" {name} ") == 1, name


def test_people_share_surnames_and_works_of_different_kinds_share_words(world: Encyclopedia) -> None:
    surnames = Counter(one.name.split()[-1] for one in world.entities if one.kind == "person")
    assert sum(count for count in surnames.values() if count > 1) > 0.5 * sum(surnames.values())
    of_kind = {
        kind: {w for one in world.entities if one.kind == kind for w in one.name.split()}
        for kind in ("film", "novel")
    }
    assert len(of_kind["film"] & of_kind["novel"]) > 50


def test_names_stay_unique_when_all_short_ones_are_given() -> None:
    namer = Namer(0)
    works = [namer.title("film") for _ in range(9000)]
    towns = [namer.title("town") for _ in range(25_000)]
    people = [namer.person("female", "Orvan") for _ in range(6000)]
    names = [*works, *towns, *people]
    assert len({name.casefold() for name in names}) == len(names)
    assert {len(name.split()) for name in (*works, *people)} == {2}
    assert not set(towns) & {word for name in (*works, *people) for word in name.split()}


def test_the_smallest_encyclopedia_is_whole() -> None:
    made = generate(Settings(seed=3, passages=120, train=20, dev=0, test=0, ood_dev=0, ood_test=0))
    assert len(made.passages) == 120
    assert check(made)["questions"] == 20
    assert_read_back(made)


# Time, place and kin


def test_relations_lead_from_their_kinds_to_their_kinds(world: Encyclopedia) -> None:
    kinds = {one.name: one.kind for one in world.entities}
    for fact in world.facts:
        relation = RELATIONS[fact.relation]
        assert kinds[fact.subject] in relation.subjects
        if fact.relation in DATED:
            assert re.fullmatch(r"1[0-9]{3}|20[01][0-9]|2020", fact.value), fact
        else:
            assert kinds[fact.value] in relation.objects, fact
            assert fact.value != fact.subject
    assert set(RELATIONS) == {fact.relation for fact in world.facts}
    assert len(ASKED_LINKS) + len(ASKED_DATES) == 29


def test_nobody_acts_before_growing_up_or_after_death(world: Encyclopedia) -> None:
    facts = known(world)
    roles = ("director", "author", "painter", "singer", "founder", "leader", "victor", "star")
    for title, own in facts.items():
        year = next(
            (int(own[name]) for name in ("release_year", "founding_year", "event_year") if name in own), None
        )
        for role in roles:
            if role in own and year is not None:
                person = facts[own[role]]
                assert int(person["birth_year"]) + 18 <= year <= int(person.get("death_year", 9999)), (
                    title,
                    role,
                )
        if "namesake" in own and year is not None:
            assert int(facts[own["namesake"]]["birth_year"]) + 20 <= year, title
        if "source" in own:
            assert int(facts[own["source"]]["release_year"]) < int(own["release_year"]), title
        if "school" in own:
            assert int(facts[own["school"]]["founding_year"]) <= int(own["birth_year"]) + 17, title
        if "other_year" in own:
            began = next(
                (int(own[name]) for name in ("birth_year", "release_year", "founding_year") if name in own), 0
            )
            assert began < int(own["other_year"]) <= int(own.get("death_year", 2020)), title


def test_families_are_possible(world: Encyclopedia) -> None:
    facts, checked = known(world), 0
    for title, own in facts.items():
        if "spouse" in own:
            assert facts[own["spouse"]]["spouse"] == title
            siblings = own.get("mother") is not None and own.get("mother") == facts[own["spouse"]].get(
                "mother"
            )
            assert not siblings, title
        if "mother" in own:
            checked += 1
            mother, father = facts[own["mother"]], facts[own["father"]]
            assert mother["spouse"] == own["father"]
            assert title.split()[-1] == own["father"].split()[-1]
            for parent in (mother, father):
                assert 20 <= int(own["birth_year"]) - int(parent["birth_year"]) <= 42
    assert checked > 100


def test_mothers_are_women_and_fathers_men(world: Encyclopedia) -> None:
    parents = {
        role: {fact.value for fact in world.facts if fact.relation == role} for role in ("mother", "father")
    }
    wrong = {"mother": re.compile(r"\b(He|His)\b"), "father": re.compile(r"\b(She|Her)\b")}
    for passage in world.passages:
        for role, titles in parents.items():
            assert passage.title not in titles or not wrong[role].search(passage.text), passage


def test_capitals_lie_in_what_they_are_capitals_of_and_rivers_stay_in_their_country(
    world: Encyclopedia,
) -> None:
    facts = known(world)
    kinds = {one.name: one.kind for one in world.entities}
    for title, own in facts.items():
        if "capital" in own:
            region = facts[own["capital"]]["region"]
            assert title == (region if kinds[title] == "region" else facts[region]["country"])
        if "river" in own:
            assert facts[facts[own["river"]]["region"]]["country"] == facts[facts[title]["region"]]["country"]
