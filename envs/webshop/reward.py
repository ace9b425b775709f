"""The reward for a purchase, with its parts: the official one, and a strict variant of it.

total = r_type * (attributes matched + options matched + price in cap) / (attributes + options + 1)

Its quirks are kept, because published numbers contain them: "large" satisfies "x-large", the first colour
found as a substring stands for the whole value ("tan" in "titanium"), names of options are ignored for human
goals, and buying exactly what a synthetic goal asks for can score below 1 (51 values of the 1,000-product
data).

The strict variant differs in the match of options only (`strictly_matched_options`): values must be equal instead
of similar, colours are whole words, and a synthetic goal's option must be chosen under its own name. Its numbers
compare with no published ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, get_args

from rapidfuzz import fuzz, utils

from envs.webshop.catalogue import Product
from envs.webshop.goals import Goal

RewardKind = Literal["official", "strict"]

Nouns = Callable[[Product], Sequence[str]]
"""Lower-cased nouns of a product's title, in order, with repeats."""

_COLOUR_WORDS = """
    alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy
    camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral
    cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass
    gray green grey heather indigo ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon
    mauve merlot midnight mint mocha multicolor mushroom mustard natural navy nude olive orange peach pewter
    pink plum purple rainbow red rose royal rust sand sapphire seashell silver skull slate steel stone
    stonewash sunflower tan taupe teal tiger turquoise violet walnut wheat white wine yellow
"""
COLOURS = tuple(_COLOUR_WORDS.split())
"""The official colour words; the order matters, since the first one found wins."""

MATCH_ABOVE = 85
"""Token-set similarity (0 to 100, rounded) above which two texts count as the same."""

_WORD = re.compile(r"\w+")
_LATIN1 = dict.fromkeys(range(128, 256))


@dataclass(frozen=True, slots=True)
class RewardParts:
    """Why a purchase earned what it did; `w_` are the weights within the sum that `r_type` scales."""

    r_type: float
    r_att: float
    w_att: float
    query_match: bool
    category_match: bool
    title_score: float
    r_option: float | None
    """None where the goal asks for no option."""
    w_option: float | None
    r_price: bool
    w_price: float


def check_reward(kind: RewardKind) -> None:
    """Raises `ValueError` for a reward that does not exist."""
    if kind not in get_args(RewardKind):
        raise ValueError(f"reward is {kind!r}, expected 'official' or 'strict'")


def purchase_reward(
    product: Product,
    goal: Goal,
    price: float,
    chosen: Mapping[str, str],
    nouns: Nouns,
    kind: RewardKind = "official",
) -> tuple[float, RewardParts]:
    """Total in [0, 1] and its parts for buying a product at a price (dollars) with the chosen options."""
    asked = len(goal.attributes) + len(goal.options) + 1
    query_match, category_match, title_score = type_match(product, goal.product, nouns)
    r_type = type_factor(query_match or category_match, title_score)
    attributes = matched_attributes(product, goal.attributes)
    if kind == "official":
        options = matched_options(tuple(chosen.values()), goal.options)
    else:
        options = strictly_matched_options(chosen, goal.options)
    in_cap = price <= goal.price_upper
    total = (attributes + options + in_cap) / asked * r_type
    return total, RewardParts(
        r_type=r_type,
        r_att=attributes / len(goal.attributes),
        w_att=len(goal.attributes) / asked,
        query_match=query_match,
        category_match=category_match,
        title_score=title_score,
        r_option=options / len(goal.options) if goal.options else None,
        w_option=len(goal.options) / asked if goal.options else None,
        r_price=in_cap,
        w_price=1 / asked,
    )


def type_match(product: Product, target: Product, nouns: Nouns) -> tuple[bool, bool, float]:
    """Same query; two distinct category parts shared; share of the target's nouns that the product has."""
    shared = category_parts(product.product_category) & category_parts(target.product_category)
    wanted = nouns(target)
    found = len(set(nouns(product)) & set(wanted))
    return product.query == target.query, len(shared) >= 2, found / len(wanted) if wanted else 0.2


@cache
def category_parts(category: str) -> frozenset[str]:
    """The parts of a category path such as `Beauty › Hair Care › Shampoo`."""
    return frozenset(part.strip() for part in category.split("›"))


def type_factor(same_kind: bool, title_score: float) -> float:
    """What the title overlap makes of the kind; no overlap at all gives 0 even within the same category."""
    if title_score == 0.0:
        return 0.0
    if title_score < 0.1:
        return 0.1
    return 1.0 if same_kind or title_score > 0.2 else 0.5


def matched_attributes(product: Product, wanted: Sequence[str]) -> int:
    """How many wanted attributes the product lists or mentions."""
    listed = [normal_form(attribute) for attribute in product.attributes]
    texts = [product.title.lower(), " ".join(product.bullets).lower(), product.description.lower()]
    return sum(
        any(similar(own, normal_form(attribute)) for own in listed)
        or any(attribute in text for text in texts)
        for attribute in wanted
    )


def matched_options(chosen: Sequence[str], wanted: Sequence[tuple[str, str] | str]) -> int:
    """How many wanted options some chosen value satisfies, whatever option it was chosen for."""
    bought = [normal_form(colour_of(value)) for value in chosen]
    return sum(any(similar(value, normal_form(colour_of(option))) for value in bought) for option in wanted)


def colour_of(value: tuple[str, str] | str) -> str:
    """The first official colour within a value, else the value.

    A synthetic goal's option is the pair (name, value); there a colour must equal one of the two, and what is
    left to compare otherwise is the printed pair. That is how the official code behaves.
    """
    return next((colour for colour in COLOURS if colour in value), str(value))


def strictly_matched_options(chosen: Mapping[str, str], wanted: Sequence[tuple[str, str] | str]) -> int:
    """How many wanted options were chosen as asked.

    A synthetic goal's option is what one option of a product is called and its value: exactly that must be
    chosen. People's wishes name no option and spell values in their own way, so for a human goal any chosen
    value will do that is equal but for case, or that names the same colours.
    """
    values = {strict_form(value) for value in chosen.values()}
    return sum(
        strict_form(option) in values if isinstance(option, str) else chosen.get(option[0]) == option[1]
        for option in wanted
    )


def strict_form(value: str) -> str:
    """The official colours that stand in a value as whole words, in the official order, else the value."""
    words = set(_WORD.findall(value.lower()))
    return " ".join(colour for colour in COLOURS if colour in words) or value.strip().lower()


@lru_cache(maxsize=65536)
def normal_form(value: str) -> str:
    """What the official matcher compares: Latin-1 letters dropped, other signs as spaces, lower case."""
    return utils.default_process(value.translate(_LATIN1))


def similar(left: str, right: str) -> bool:
    """Whether two normal forms share their tokens closely enough; an empty one matches nothing."""
    return bool(left) and bool(right) and round(fuzz.token_set_ratio(left, right)) > MATCH_ABOVE
