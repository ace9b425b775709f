"""Scorers: hand-worked cases, an oracle written from SQuAD's definition, and the edge cases that data brought."""

from __future__ import annotations

import itertools
import json
import re
import string
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.deepsearch.scorers import MOST_EXTRA_TOKENS, Scorer, contains, exact, f1, make_scorer, normalize

WORDS = ("a", "the", "red", "kite", "of", "1950", "yes", "no", "town")
PHRASES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)
EM, F1, CONTAINS = (make_scorer(name) for name in ("em", "f1", "contains"))


def squad_normalize(text: str) -> str:
    """As SQuAD 1.1 defines it."""
    bare = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def squad_f1(prediction: str, gold: str) -> float:
    """As SQuAD 1.1 and HotpotQA define it."""
    one, other = squad_normalize(prediction), squad_normalize(gold)
    if one != other and {one, other} & {"yes", "no", "noanswer"}:
        return 0.0
    common = sum((Counter(one.split()) & Counter(other.split())).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(one.split()), common / len(other.split())
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Half-Way Girl.", "halfway girl"),
        ("A", "a"),
        ("the", "the"),
        ("!!!", "!!!"),
        ("  ", ""),
        ("“Beauty” and ‘the’ Beast", "beauty and beast"),
        ("1,000", "1000"),
        ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("Zéphyrine", "zéphyrine"),
        ("ﬁlm", "film"),
        ("STRASSE", "strasse"),
    ],
)
def test_texts_are_compared_without_case_punctuation_articles_and_forms(text: str, expected: str) -> None:
    assert normalize(text) == expected


@given(st.text(st.characters(max_codepoint=126)))
def test_ascii_texts_are_normalised_as_squad_does_unless_nothing_would_be_left(text: str) -> None:
    if squad_normalize(text):
        assert normalize(text) == squad_normalize(text)


@given(st.text())
def test_only_white_space_becomes_empty_and_normalising_again_changes_little(text: str) -> None:
    assert bool(normalize(text)) == bool(text.strip()) or not normalize(text).strip()
    assert EM("q", text, [text]).success == bool(normalize(text))


@given(PHRASES, PHRASES)
def test_token_f1_is_squads(prediction: list[str], gold: list[str]) -> None:
    one, other = " ".join(prediction), " ".join(gold)
    if squad_normalize(one) and squad_normalize(other):
        assert f1(one, other) == pytest.approx(squad_f1(one, other))


@pytest.mark.shared
def test_real_answers_are_scored_as_by_squad(shared: Path) -> None:
    folder = shared / "data" / "deepsearch"
    golds = [
        gold
        for path in sorted(folder.glob("*.jsonl"))
        if path.name != "corpus.jsonl" and "webwalker" not in path.name
        for line in path.read_text(encoding="utf-8").splitlines()
        for gold in json.loads(line)["golden_answers"]
    ]
    assert len(golds) > 700
    compared = 0
    for one, other in itertools.pairwise(golds):
        if (one + other).isascii() and squad_normalize(one) and squad_normalize(other):
            assert exact(one, other) == float(squad_normalize(one) == squad_normalize(other))
            assert f1(one, other) == pytest.approx(squad_f1(one, other))
            compared += 1
    assert compared > 500
    assert all(EM("q", gold, [gold]).success for gold in golds if gold.strip())


@pytest.mark.parametrize("scorer", [EM, F1, CONTAINS])
def test_an_empty_answer_is_never_right_not_even_against_an_empty_gold(scorer: Scorer) -> None:
    for answer in ("", "   ", "\n"):
        verdict = scorer("q", answer, ["", "A", "no"])
        assert (verdict.success, verdict.score, verdict.matched) == (False, 0.0, None)


@pytest.mark.parametrize("scorer", [EM, F1, CONTAINS])
def test_a_gold_that_is_an_article_can_be_answered_and_is_not_matched_by_others(scorer: Scorer) -> None:
    assert scorer("Which letter?", "a", ["A"]).success
    assert not scorer("Which letter?", "B", ["A"]).success


def test_the_best_accepted_answer_counts_and_is_named() -> None:
    verdict = F1("q", "New York", ["NYC", "New York City", "the Big Apple"])
    assert (verdict.matched, verdict.score) == ("New York City", pytest.approx(0.8))
    assert verdict.success
    assert EM("q", "nyc.", ["New York", "NYC"]).matched == "NYC"


def test_f1_is_a_success_from_its_threshold_on() -> None:
    strict = make_scorer("f1", threshold=0.9)
    assert not strict("q", "New York", ["New York City"]).success
    assert strict.describe() == {"name": "f1", "least": 0.9}


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("It was Elmwick", "Elmwick", 1.0),
        ("north", "no", 0.0),
        ("no, it was not", "no", 0.0),
        ("No.", "no", 1.0),
        ("in 1950", "950", 0.0),
        ("Kite Red", "Red Kite", 0.0),
        ("北京是中国的首都", "中国", 1.0),
    ],
)
def test_containment_is_of_whole_tokens_in_one_piece(answer: str, gold: str, expected: float) -> None:
    assert contains(answer, gold) == expected


def test_a_recited_passage_contains_nothing() -> None:
    words = " ".join(f"w{number}" for number in range(MOST_EXTRA_TOKENS))
    assert contains(f"{words} Elmwick", "Elmwick") == 1.0
    assert contains(f"{words} more Elmwick", "Elmwick") == 0.0


def test_answers_without_spaces_share_characters() -> None:
    assert f1("肖亮教授", "肖亮") == pytest.approx(2 * 2 / (4 + 2))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "bleu"}, "unknown scorer 'bleu', expected em, f1, contains or judge"),
        ({"name": "em", "threshold": 0.5}, r"scorer 'em' has no settings \['threshold'\]"),
        ({"name": "f1", "threshold": 0}, "threshold is 0, expected a number in"),
    ],
)
def test_a_wrong_setting_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_scorer(**arguments)


def test_a_question_without_accepted_answers_is_an_error() -> None:
    with pytest.raises(ValueError, match="no accepted answers to 'q'"):
        EM("q", "x", [])
