"""The official reward, case by case, its leniency pinned so that nobody mends it silently; and the strict variant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envs.webshop.catalogue import Product
from envs.webshop.goals import Goal
from envs.webshop.reward import (
    RewardKind,
    colour_of,
    matched_attributes,
    matched_options,
    purchase_reward,
    strict_form,
    strictly_matched_options,
    type_factor,
)
from tests.envs import shops

SHOP = shops.catalogue()
SHIRT = SHOP.by_asin["B000000001"]
NOUNS = shops.nouns()


def goal(**changes: object) -> Goal:
    whole = Goal(
        index=0,
        source="synthetic",
        product=SHIRT,
        instruction="",
        attributes=("long sleeve", "machine wash"),
        options=(("color", "red"), ("size", "large")),
        price_upper=30.0,
        weight=1.0,
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def paid(
    product: Product,
    chosen: dict[str, str],
    price: float = 25.0,
    kind: RewardKind = "official",
    **changes: object,
) -> float:
    return purchase_reward(product, goal(**changes), price, chosen, lambda bought: NOUNS[bought.asin], kind)[
        0
    ]


def test_buying_exactly_what_was_asked_pays_one() -> None:
    assert paid(SHIRT, {"color": "red", "size": "large"}) == 1.0


@pytest.mark.parametrize(
    ("chosen", "price", "expected"),
    [
        ({}, 25.0, 3 / 5),  # two attributes and the price
        ({"color": "red"}, 25.0, 4 / 5),
        ({"color": "red", "size": "large"}, 30.0, 1.0),  # the cap itself is allowed
        ({"color": "red", "size": "large"}, 30.01, 4 / 5),
        ({"color": "navy | white"}, 31.0, 2 / 5),
    ],
)
def test_each_miss_costs_one_part(chosen: dict[str, str], price: float, expected: float) -> None:
    assert paid(SHIRT, chosen, price) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("bought", "wanted", "official", "strict"),
    [
        ("large", "x-large", True, False),  # a wrong size is officially accepted
        ("small", "x-small", True, False),
        ("black", "black and white", True, False),
        ("x-large", "large", True, False),
        ("large", "small", False, False),
        ("9", "10", False, False),
        ("10", "10 wide", True, False),
        ("titanium", "tan", True, False),  # a colour inside another word
        ("bordered", "red", True, False),
        ("standard", "tan chair", True, False),
        ("light blue", "blue", True, False),
        ("red", "blue", False, False),
        ("navy", "blue", False, False),
        ("\u00e9t\u00e9", "t", True, False),  # officially, Latin-1 letters are dropped
        ("\u00e9", "\u00e9", False, True),  # and what is empty then matches nothing
        ("!!", "!!", False, True),
        ("large", "Large ", True, True),
        ("a-red", "red", True, True),  # people write the colour, not the seller's code for it
        ("blue | white", "white and blue", True, True),
    ],
)
def test_human_options_match_loosely_as_officially_and_by_equality_when_strict(
    bought: str, wanted: str, official: bool, strict: bool
) -> None:
    # W11, W19
    assert matched_options((bought,), (wanted,)) == official
    assert strictly_matched_options({"option": bought}, (wanted,)) == strict


@pytest.mark.parametrize(
    ("bought", "wanted", "official", "strict"),
    [
        ("large", ("size", "large"), True, True),
        ("large", ("size", "x-large"), True, False),
        ("red", ("color", "red"), True, True),
        ("tv stand", ("style", "tv stand"), False, True),  # officially read as "tan"; the asked pair is not
        ("r.brown2070", ("color", "r.brown2070"), False, True),
        ("light oak", ("color", "light walnut"), True, False),
        ("b-gray", ("color", "a-gray"), True, False),
        ("blue", ("color", "red"), False, False),
    ],
)
def test_synthetic_options_are_officially_compared_as_printed_pairs_and_exactly_when_strict(
    bought: str, wanted: tuple[str, str], official: bool, strict: bool
) -> None:
    # W11, W19
    assert matched_options((bought,), (wanted,)) == official
    assert strictly_matched_options({wanted[0]: bought}, (wanted,)) == strict


def test_a_strict_value_counts_only_under_the_option_that_was_asked_for() -> None:
    assert matched_options(("large",), (("size", "large"),)) == 1
    assert strictly_matched_options({"fit": "large"}, (("size", "large"),)) == 0


@pytest.mark.parametrize(
    ("chosen", "official", "strict"),
    [
        ({"color": "red", "size": "x-large"}, 1.0, 1.0),
        ({"color": "red", "size": "large"}, 1.0, 4 / 5),
        ({"color": "a-red", "size": "x-large"}, 1.0, 4 / 5),
        ({}, 3 / 5, 3 / 5),  # only the options are judged differently
    ],
)
def test_the_strict_reward_loses_a_part_for_each_option_that_is_not_equal(
    chosen: dict[str, str], official: float, strict: float
) -> None:
    wanted = (("color", "red"), ("size", "x-large"))
    assert paid(SHIRT, chosen, options=wanted) == pytest.approx(official)
    assert paid(SHIRT, chosen, options=wanted, kind="strict") == pytest.approx(strict)


def test_one_bought_value_may_satisfy_several_wanted_options() -> None:
    assert matched_options(("large",), (("size", "large"), ("fit", "large"))) == 2


@pytest.mark.parametrize(
    ("value", "colour"),
    [
        ("standard", "tan"),
        ("bordered", "red"),
        ("titanium", "tan"),
        ("peppermint", "mint"),
        ("washed", "ash"),
        ("navy blue", "blue"),  # the order of the official list decides, not that of the words
        ("large", "large"),
        (("color", "red"), "red"),
        (("color", "dark red"), "('color', 'dark red')"),
    ],
)
def test_colours_are_found_as_substrings(value: tuple[str, str] | str, colour: str) -> None:
    assert colour_of(value) == colour


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("standard", "standard"),
        ("bordered", "bordered"),
        ("titanium", "titanium"),
        ("peppermint", "peppermint"),
        ("washed", "washed"),
        ("r.brown2070", "r.brown2070"),
        ("a-gray", "gray"),
        ("Navy Blue", "blue navy"),
        ("blue | navy", "blue navy"),
    ],
)
def test_strict_colours_are_whole_words(value: str, form: str) -> None:
    # W19
    assert strict_form(value) == form


def test_attributes_count_when_listed_alike_or_mentioned_in_title_bullets_or_description() -> None:
    product = replace(
        SHIRT, attributes=("long sleeves",), bullets=("Tag", "Free"), description="Made of SILK"
    )
    assert matched_attributes(product, ("long sleeve",)) == 1
    assert matched_attributes(product, ("cotton", "tag free", "made of silk", "wool")) == 3


@pytest.mark.parametrize(
    ("same_kind", "title_score", "factor"),
    [
        (True, 0.0, 0.0),
        (True, 0.05, 0.1),
        (True, 0.1, 1.0),
        (False, 0.2, 0.5),
        (False, 0.21, 1.0),
        (False, 0.09, 0.1),
    ],
)
def test_type_factor(same_kind: bool, title_score: float, factor: float) -> None:
    assert type_factor(same_kind, title_score) == factor


def test_another_kind_of_product_pays_nothing_however_cheap() -> None:
    assert paid(SHOP.by_asin["B000000005"], {}, 5.0) == 0.0


def test_a_target_without_title_nouns_counts_as_barely_alike() -> None:
    total, parts = purchase_reward(SHIRT, goal(), 25.0, {}, lambda product: ())
    assert (parts.title_score, parts.r_type) == (0.2, 1.0)
    assert total == pytest.approx(3 / 5)


def test_repeated_nouns_count_in_the_denominator_so_a_product_can_fall_short_of_itself() -> None:
    _, parts = purchase_reward(SHIRT, goal(), 25.0, {}, lambda product: ("shirt", "shirt", "cotton"))
    assert parts.title_score == pytest.approx(2 / 3)


def test_option_parts_are_none_where_no_option_is_asked() -> None:
    _, parts = purchase_reward(SHIRT, goal(options=()), 25.0, {}, lambda product: NOUNS[product.asin])
    assert (parts.r_option, parts.w_option, parts.w_att, parts.w_price) == (None, None, 2 / 3, 1 / 3)
