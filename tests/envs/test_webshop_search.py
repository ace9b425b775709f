"""Search against a slow, obvious BM25, and the analyser against hand-made cases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.webshop.analysis import analyse, stem
from envs.webshop.catalogue import build
from envs.webshop.search import SearchIndex, best, document, rounded_lengths
from envs.webshop.wordbreak import tokens
from tests.envs import shops


def index_of(titles: Sequence[str]) -> SearchIndex:
    rows = [shops.row(f"B{number:03}", title) for number, title in enumerate(titles)]
    return SearchIndex(build("toy", rows, {}, {}))


def slow_scores(titles: Sequence[str], query: str) -> dict[int, float]:
    """Okapi BM25 with k1 0.9 and b 0.4, straight from its definition; lengths here are below 40, so exact."""
    documents = [analyse(title) for title in titles]
    average = sum(map(len, documents)) / len(documents)
    scores: dict[int, float] = {}
    for number, words in enumerate(documents):
        for term in analyse(query):
            if term in words:
                holding = sum(term in other for other in documents)
                idf = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
                count = words.count(term)
                gain = idf * count / (count + 0.9 * (1 - 0.4 + 0.4 * len(words) / average))
                scores[number] = scores.get(number, 0.0) + gain
    return scores


WORDS = st.lists(st.sampled_from(["red", "blue", "shirt", "lamp", "wool", "sock"]), max_size=8).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS.filter(bool), min_size=1, max_size=12), WORDS)
def test_scores_are_bm25_by_definition_and_ties_go_by_asin(titles: list[str], query: str) -> None:
    found = index_of(titles).ranked(query)
    expected = slow_scores(titles, query)
    assert {number: pytest.approx(score, rel=1e-5) for number, score in found} == expected
    assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))


def test_a_repeated_query_word_counts_twice() -> None:
    index = index_of(["red lamp", "blue lamp lamp"])
    once, twice = dict(index.ranked("red")), dict(index.ranked("red red"))
    assert twice[0] == pytest.approx(2 * once[0])


def test_equal_documents_come_by_ascending_asin_whatever_the_order_of_the_data() -> None:
    rows = [shops.row(asin, "red lamp") for asin in ("B3", "B1", "B2")]
    assert [product.asin for product in SearchIndex(build("toy", rows, {}, {})).search("lamp")] == [
        "B1",
        "B2",
        "B3",
    ]


def test_at_most_fifty_products_are_returned_and_only_those_that_share_a_term() -> None:
    index = index_of(["red lamp"] * 70 + ["blue sock"])
    assert len(index.search("lamp")) == 50
    assert [product.title for product in index.search("sock")] == ["blue sock"]
    assert index.search("the of") == index.search("") == index.search("unknown") == ()


def test_the_index_holds_every_product_of_the_catalogue() -> None:
    catalogue = shops.catalogue()
    index = SearchIndex(catalogue)
    assert len(index) == len(catalogue)
    assert {product.asin for product in index.products} == set(catalogue.by_asin)


def test_more_terms_than_the_official_engine_takes_are_searched_like_any_others() -> None:
    index = index_of(["red lamp", "blue sock"])
    query = " ".join(f"word{number}" for number in range(2000)) + " sock"
    assert [product.title for product in index.search(query)] == ["blue sock"]


def test_only_title_description_first_bullet_and_options_are_indexed() -> None:
    fields = {"full_description": "Warm", "small_description": ["Soft", "Hidden"]}
    row = shops.row("B1", "Sock", customization_options=shops.choices(Size=["S/M", "L"]), **fields)
    assert document(build("toy", [row], {}, {}).products[0]) == "sock warm soft size: s | m, l"


@given(st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=60), st.integers(1, 8))
def test_best_equals_a_full_sort(scores: list[float], wanted: int) -> None:
    order = sorted((number for number, score in enumerate(scores) if score), key=lambda n: (-scores[n], n))
    assert best(np.array(scores, dtype=np.float32), wanted).tolist() == order[:wanted]


def test_document_lengths_are_exact_to_forty_and_then_keep_four_bits() -> None:
    lengths = np.array([0, 1, 23, 24, 39, 40, 41, 42, 43, 107, 1000])
    assert rounded_lengths(lengths).tolist() == [0, 1, 23, 24, 39, 40, 40, 42, 42, 104, 984]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T-shirts & socks", ["T", "shirts", "socks"]),
        ("size: 9.5, 1,000 or 3/4", ["size", "9.5", "1,000", "or", "3", "4"]),
        ("description:solid a.b 1.a it's", ["description:solid", "a.b", "1", "a", "it's"]),
        ("snake_case _x_ __", ["snake_case", "_x_"]),
        ('28" x 28"', ["28", "x", "28"]),
        ("cafe\u0301 na\u00efve", ["cafe\u0301", "na\u00efve"]),
        ("\u65e5\u672c \u304b\u306a \u30ab\u30ca", ["\u65e5", "\u672c", "\u304b", "\u306a", "\u30ab\u30ca"]),
        (
            "hot \u2605 \U0001f339\U0001f339 deal\u2122",
            ["hot", "\u2605", "\U0001f339", "\U0001f339", "deal", "\u2122"],
        ),
        ("2\u00b2 \uff9f \u200b", ["2"]),
        ("46heel wi-fi a+b", ["46heel", "wi", "fi", "a", "b"]),
    ],
)
def test_word_boundaries_are_those_of_the_standard_tokeniser(text: str, expected: list[str]) -> None:
    assert list(tokens(text)) == expected


def test_overlong_words_are_cut_at_255_characters() -> None:
    assert [len(token) for token in tokens("x" * 600)] == [255, 255, 90]


@given(st.text(max_size=60))
def test_tokens_are_pieces_of_the_text_in_order(text: str) -> None:
    place = 0
    for token in tokens(text):
        place = text.index(token, place) + len(token)
        assert token


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("shoes", "shoe"),
        ("ladies", "ladi"),
        ("moisturizing", "moistur"),
        ("technology", "technolog"),  # with -logi to -log
        ("technologies", "technolog"),
        ("possibly", "possibl"),  # with -bli to -ble
        ("bly", "bly"),
        ("us", "us"),
        ("generously", "gener"),
    ],
)
def test_stems_are_those_of_lucenes_porter_stemmer(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_possessives_and_stop_words_go_before_stemming() -> None:
    assert analyse("The women's and women\u2019s shoes for THE bosses' use") == [
        "women",
        "women",
        "shoe",
        "boss",
        "us",
    ]


def test_answers_do_not_depend_on_earlier_queries() -> None:
    titles = ["red lamp", "blue lamp", "red sock"]
    asked = ["lamp", "red", "lamp red", "lamp"]
    together = index_of(titles)
    assert [together.search(query) for query in asked] == [index_of(titles).search(query) for query in asked]
    assert Counter(product.title for product in together.search("lamp")) == {"red lamp": 1, "blue lamp": 1}
