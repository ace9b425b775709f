"""The generated encyclopedia: it is the same everywhere, its questions have one answer, and it is found only there."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.deepsearch.corpus import Passage
from envs.deepsearch.encyclopedia import (
    Encyclopedia,
    EncyclopediaError,
    MultiHopQuestion,
    Settings,
    check,
    generate,
    parse_question,
)
from envs.deepsearch.encyclopedia.composition import pairs
from tests.envs.encyclopedias import SMALL, SPLITS, asked, assert_read_back
from tests.envs.encyclopedias import made as made_once


@pytest.fixture(scope="module")
def world() -> Encyclopedia:
    return made_once(Settings(seed=0))


@pytest.fixture(scope="module")
def small() -> Encyclopedia:
    return made_once(Settings(seed=1, **SMALL))


# Determinism


def test_equal_settings_give_equal_encyclopedias_and_another_seed_another_one(small: Encyclopedia) -> None:
    assert generate(small.settings) == small
    assert generate(small.settings).digest == small.digest
    assert generate(replace(small.settings, seed=2)).corpus_digest != small.corpus_digest


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_another_process_makes_the_same_whatever_its_hashes_and_global_random_state(
    small: Encyclopedia, hash_seed: str
) -> None:
    code = (
        "import random, numpy; random.seed(5); numpy.random.seed(5)\n"
        "from envs.deepsearch.encyclopedia import Settings, generate\n"
        f"print(generate(Settings(seed=1, **{SMALL!r})).digest)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == small.digest


def test_asking_more_changes_neither_the_passages_nor_the_questions_that_were_there(
    small: Encyclopedia,
) -> None:
    more = generate(replace(small.settings, train=200, dev=0))
    assert more.corpus_digest == small.corpus_digest
    assert (more.passages, more.facts) == (small.passages, small.facts)
    assert more.questions["train"][: SMALL["train"]] == small.questions["train"]
    assert more.questions["ood_test"] == small.questions["ood_test"]
    assert more.questions["dev"] == ()
    assert more.digest != small.digest


def test_the_description_is_json_and_counts_what_is_there(small: Encyclopedia) -> None:
    described = json.loads(json.dumps(small.describe()))
    assert described["passages"] == len(small.passages) == SMALL["passages"]
    assert described["data_digest"] == small.digest
    assert (
        sum(described["kinds"].values()) == described["pages"] == len({one.title for one in small.passages})
    )
    assert sum(described["questions"]["train"].values()) == SMALL["train"]


# The promises, checked by an independent solver, and the checker itself


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32), passages=st.integers(350, 500))
def test_every_encyclopedia_keeps_all_promises_and_can_be_read_back(seed: int, passages: int) -> None:
    small = {**SMALL, "passages": passages, "dev": 1, "test": 1}
    made = generate(Settings(seed=seed, **small))
    counts = check(made)
    assert counts["questions"] == sum(small[split] for split in SPLITS)
    assert_read_back(made)


def test_the_default_encyclopedia_keeps_all_promises_and_can_be_read_back(world: Encyclopedia) -> None:
    counts = check(world)
    assert counts == {
        "names": sum(len(entity.names) for entity in world.entities),
        "facts": len(world.facts),
        "questions": 4000,
    }
    assert_read_back(world, every=5)


def with_question(made: Encyclopedia, question: MultiHopQuestion) -> Encyclopedia:
    """With this in the place of the question that has its id."""
    changed = [question if one.id == question.id else one for one in made.questions[question.split]]
    return replace(made, questions={**made.questions, question.split: tuple(changed)})


def with_passage(made: Encyclopedia, text: str) -> Encyclopedia:
    """With a passage more, on a page that is there."""
    more = Passage(str(len(made.passages)), made.passages[0].title, text)
    return replace(made, passages=(*made.passages, more))


def test_the_checker_refuses_a_wrong_answer_and_names_the_question(small: Encyclopedia) -> None:
    question = small.questions["train"][0]
    wrong = next(one.name for one in small.entities if one.name not in question.golds)
    with pytest.raises(EncyclopediaError, match=rf"{re.escape(question.text)}.*expected only '{wrong}'"):
        check(with_question(small, replace(question, golds=(wrong,))))


def test_the_checker_refuses_an_accepted_answer_that_is_missing(small: Encyclopedia) -> None:
    question = next(one for one in asked(small) if len(one.golds) > 1 and one.form == "bridge")
    with pytest.raises(EncyclopediaError, match="its golds are"):
        check(with_question(small, replace(question, golds=question.golds[:1])))


def test_the_checker_refuses_steps_that_the_pages_do_not_state(small: Encyclopedia) -> None:
    question = small.questions["train"][0]
    wrong = replace(question.steps[0], answer="Nobody")
    with pytest.raises(EncyclopediaError, match="is stated as"):
        check(with_question(small, replace(question, steps=(wrong, *question.steps[1:]))))


def test_the_checker_refuses_a_passage_that_names_both_ends_of_a_bridge(small: Encyclopedia) -> None:
    question = small.questions["train"][0]
    assert question.form == "bridge"
    text = f"Some say that {question.steps[0].title} and {question.golds[-1]} belong together."
    with pytest.raises(EncyclopediaError, match="name both"):
        check(with_passage(small, text))


def test_the_checker_refuses_a_second_value_and_a_fact_that_its_sentence_does_not_state(
    small: Encyclopedia,
) -> None:
    fact = next(one for one in small.facts if one.relation == "birthplace")
    other = next(one for one in small.facts if one.relation == "birthplace" and one.value != fact.value)
    with pytest.raises(EncyclopediaError, match="another value"):
        check(replace(small, facts=(*small.facts, replace(fact, value=other.value))))
    at = small.facts.index(fact)
    false = replace(fact, value=other.value, stated=other.value)
    with pytest.raises(EncyclopediaError, match="is not stated by"):
        check(replace(small, facts=(*small.facts[:at], false, *small.facts[at + 1 :])))


def test_the_checker_refuses_a_start_or_a_text_that_two_splits_share(small: Encyclopedia) -> None:
    stolen = small.questions["train"][0]
    again = {**small.questions, "test": (replace(stolen, id="test-00000", split="test"),)}
    with pytest.raises(EncyclopediaError, match="there twice"):
        check(replace(small, questions=again))


# Questions


def test_any_few_questions_in_a_row_have_all_forms_in_equal_parts(world: Encyclopedia) -> None:
    for split in SPLITS:
        questions = world.questions[split]
        assert len(questions) == getattr(world.settings, split)
        cycle = 5 if split.startswith("ood") else 4
        expected = (
            {"pair": 1, "bridge3": 1, "intersection": 1, "bridge4": 1, "gap": 1}
            if cycle == 5
            else {"bridge": 2, "comparison": 1, "same": 1}
        )
        for at in range(0, len(questions) - cycle, 7):
            assert Counter(one.form for one in questions[at : at + cycle]) == expected
        assert {one.domain for one in questions} == {"ood" if cycle == 5 else "id"}
        assert [one.id for one in questions] == [f"{split}-{at:05d}" for at in range(len(questions))]


def test_answers_cannot_be_guessed_from_the_form_of_a_question(world: Encyclopedia) -> None:
    train = world.questions["train"]
    same = [one for one in train if one.form == "same"]
    assert Counter(one.golds[0] for one in same) == {"yes": 450, "no": 450}
    by_relation = Counter((one.relations[0], one.golds[0]) for one in same)
    assert all(by_relation[name, "yes"] == by_relation[name, "no"] for name, _ in by_relation)
    comparisons = [one for one in train if one.form == "comparison"]
    places = Counter(
        (parse_question(one.text).when, one.steps[0].title == one.golds[0]) for one in comparisons
    )
    assert len(places) == 4
    assert max(places.values()) - min(places.values()) <= 12
    assert len({one.relations for one in train if one.form == "bridge"}) > 75
    answers = Counter(one.golds[0] for one in train if one.form == "bridge")
    assert max(answers.values()) < 0.02 * 1800


def test_out_of_domain_questions_combine_what_training_never_combines(world: Encyclopedia) -> None:
    trained, kept = pairs()
    used = {one.relations for one in world.questions["train"] if one.form == "bridge"}
    assert used <= trained
    assert not trained & kept
    for split in ("ood_dev", "ood_test"):
        for question in world.questions[split]:
            if question.form == "pair":
                assert question.relations in kept
                assert question.relations not in used
            if question.form in ("bridge3", "bridge4"):
                assert question.hops == len(question.relations) == int(question.form[-1])
                assert set(itertools.pairwise(question.relations)) <= trained
    assert {first for first, _ in kept} <= {first for first, _ in used}
    assert {second for _, second in kept} <= {second for _, second in used}
    asked_of = {name for one in world.questions["train"] for name in one.relations}
    for split in SPLITS[1:]:
        assert {name for one in world.questions[split] for name in one.relations} <= asked_of


def test_no_fact_that_a_training_question_needs_is_needed_by_another_split(world: Encyclopedia) -> None:
    needed = {
        split: {(step.title, step.relation) for one in world.questions[split] for step in one.steps}
        for split in SPLITS
    }
    starts = {split: {one.supporting_titles[0] for one in world.questions[split]} for split in SPLITS}
    for one, other in itertools.combinations(SPLITS, 2):
        assert not starts[one] & starts[other]
        if one == "train":
            assert not needed[one] & needed[other]


def test_an_intersection_needs_both_of_its_conditions(world: Encyclopedia) -> None:
    kinds = {one.name: one.kind for one in world.entities}
    having: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for fact in world.facts:
        having[kinds[fact.subject], fact.relation, fact.value].add(fact.subject)
    for question in world.questions["ood_test"]:
        if question.form == "intersection":
            kind = kinds[question.golds[0]]
            first, second = (having[kind, step.relation, step.answer] for step in question.steps)
            assert min(len(first), len(second)) > 1
            assert first & second == {question.golds[0]}


def test_a_gap_is_the_difference_of_two_stated_years(world: Encyclopedia) -> None:
    gaps = [one for one in world.questions["ood_test"] if one.form == "gap"]
    assert len(gaps) == 20
    for question in gaps:
        earlier, later = (int(step.answer) for step in question.steps)
        assert question.golds[0] == str(later - earlier)
        assert later > earlier


def test_too_many_questions_are_refused_with_how_many_there_are() -> None:
    with pytest.raises(
        EncyclopediaError, match=r"no more than \d+ ood_test questions .* fewer questions or more passages"
    ):
        generate(Settings(**{**SMALL, "ood_test": 5000}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"passages": 10}, "passages is 10, expected a whole number from 120"),
        ({"train": -1}, "train is -1, expected a whole number from 0"),
        ({"seed": 1.5}, "seed is 1.5, expected a whole number from 0"),
        ({"test": True}, "test is True, expected"),
    ],
)
def test_impossible_settings_are_refused(wrong: Mapping[str, Any], message: str) -> None:
    with pytest.raises(EncyclopediaError, match=message):
        Settings(**wrong)
