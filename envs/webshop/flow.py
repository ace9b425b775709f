"""The page flow of the shop: which action leads from which page to which, without any state of its own.

`advance` maps a state and an action to the next state, so environments that share a shop cannot disturb each
other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from envs.webshop.catalogue import AnyCatalogue, Product
from envs.webshop.goals import Goal
from envs.webshop.nouns import TitleNouns
from envs.webshop.pages import ATTRIBUTES, SUBPAGES, Listing, Page, PageKind, clickables
from envs.webshop.reward import RewardKind, RewardParts, purchase_reward
from envs.webshop.search import Search

LISTED = 10
"""Products on a results page."""

_ACTION = re.compile(r"(.+)\[(.+)\]")


@dataclass(frozen=True, eq=False)
class Shop:
    """What all environments of a world share."""

    catalogue: AnyCatalogue
    index: Search
    prices: Mapping[str, float]
    """What each product costs when bought (dollars); a range is shown, one price in it is charged."""
    nouns: TitleNouns
    show_attributes: bool = False
    """Whether item pages have the Attributes sub-page."""
    prefix_queries: bool = True
    """Whether `search[<c> category]` and `search[<q> query]` list a whole kind, as in the official shop."""
    reward: RewardKind = "official"
    """How a purchase is judged."""

    def find(self, keywords: str) -> Sequence[Product]:
        """Products for a query, best first. A leading space makes any query an ordinary one."""
        first, _, rest = keywords.partition(" ")
        if self.prefix_queries and first == "<c>" and rest.split(" ")[0]:
            category = rest.split(" ")[0].strip()
            return self.catalogue.of_kind("category", category)
        if self.prefix_queries and first == "<q>":
            return self.catalogue.of_kind("query", rest.strip())
        return self.index.search(keywords)


@dataclass(frozen=True, slots=True)
class State:
    """Where a shopper is; everything an episode knows."""

    goal: Goal
    kind: PageKind = "search"
    keywords: str = ""
    number: int = 1
    asin: str = ""
    options: tuple[tuple[str, str], ...] = ()
    subpage: str = ""
    visited: frozenset[str] = frozenset()
    """Asins opened since the last `back to search`."""
    score: float | None = None
    parts: RewardParts | None = None


def parse_action(action: str) -> tuple[Literal["search", "click"], str] | None:
    """Name and lower-cased argument of an action, or None.

    The official grammar: the last `[` opens the argument and the last `]` on the line closes it; what follows
    is ignored, a line break before it is not allowed, and the name must be exactly `search` or `click`.
    """
    if (match := _ACTION.match(action)) is None:
        return None
    name, argument = match.groups()
    if name == "search":
        return "search", argument.lower()
    return ("click", argument.lower()) if name == "click" else None


def advance(shop: Shop, state: State, page: Page, action: str) -> State | None:
    """The state after an action on the page of `state`; None for an action that is not understood there."""
    parsed = parse_action(action)
    if parsed is None:
        return None
    name, argument = parsed
    if name == "search":
        return results(state, argument, 1)
    if argument == "search" or argument not in clickables(page):
        return None
    return click(shop, state, page, argument)


def results(state: State, keywords: str, number: int) -> State:
    """A results page; leaving an item forgets it and its options."""
    return replace(
        state,
        kind="results",
        keywords=keywords,
        number=number,
        asin="",
        options=(),
        subpage="",
        score=None,
        parts=None,
    )


def click(shop: Shop, state: State, page: Page, target: str) -> State:
    """What a click on something that the page offers leads to; names of buttons come before option values."""
    if target == "buy now":
        return buy(shop, state)
    if target == "back to search":
        return State(state.goal)
    place = address_kind(state)
    if target == "next >" and place == "search_results":
        return results(state, state.keywords, state.number + 1)
    if target == "< prev":
        return previous(state, place)
    for name in (*SUBPAGES, ATTRIBUTES):
        if target == name.lower():
            return replace(state, kind="subpage", subpage=name)
    for listing in page.listings:
        if target == listing.asin.lower():
            return replace(state, kind="item", asin=listing.asin, visited=state.visited | {listing.asin})
    return choose(state, page, target)


def previous(state: State, place: str) -> State:
    """`< Prev`: an earlier results page, the results behind an item, or the item behind a sub-page."""
    if place == "search_results":
        return results(state, state.keywords, state.number - 1)
    if place == "item_sub_page":
        return replace(state, kind="item", subpage="")
    return results(state, state.keywords, state.number)


def choose(state: State, page: Page, value: str) -> State:
    """Choose a value in place of an earlier one of the same option; a value in two options means the last."""
    name = [option for option, values in page.options if value in values][-1]
    return replace(state, options=tuple({**dict(state.options), name: value}.items()))


def buy(shop: Shop, state: State) -> State:
    """The purchase and what it earns."""
    product = shop.catalogue.by_asin[state.asin]
    score, parts = purchase_reward(
        product, state.goal, shop.prices[product.asin], dict(state.options), shop.nouns, shop.reward
    )
    return replace(state, kind="done", score=score, parts=parts)


def address(state: State) -> str:
    """The official URL of a page after the host; some behaviour is decided by words in it."""
    keywords = state.keywords.replace(" ", "+")
    match state.kind:
        case "results":
            return f"search_results/{keywords}/{state.number}"
        case "item":
            return f"item_page/{state.asin}/{keywords}/{state.number}/{json.dumps(dict(state.options))}"
        case "subpage":
            options = str(dict(state.options))
            return f"item_sub_page/{state.asin}/{keywords}/{state.number}/{state.subpage}/{options}"
        case _:
            return state.kind


def address_kind(state: State) -> str:
    """The kind of page that the official server takes the address for; the words may stand in the query."""
    words = address(state)
    return next(
        kind for kind in ("search_results", "item_page", "item_sub_page", state.kind) if kind in words
    )


def page_of(shop: Shop, state: State) -> Page:
    """What is shown in a state."""
    instruction = state.goal.instruction
    match state.kind:
        case "search":
            return Page("search", instruction)
        case "results":
            found = shop.find(state.keywords)
            first = (state.number - 1) * LISTED
            listed = found[max(first, 0) : max(first + LISTED, 0)]
            listings = tuple(Listing(product.asin, product.title, product.price_tag) for product in listed)
            return Page(
                "results",
                instruction,
                number=state.number,
                total=len(found),
                listings=listings,
                marked=state.visited,
            )
        case "item":
            return item_page(shop, state)
        case "subpage":
            lines = subpage_lines(shop.catalogue.by_asin[state.asin], state.subpage)
            return Page("subpage", instruction, asin=state.asin, name=state.subpage, lines=lines)
        case "done":
            return Page("done", instruction, asin=state.asin, selected=state.options, score=state.score)


def item_page(shop: Shop, state: State) -> Page:
    """A product with its options."""
    product = shop.catalogue.by_asin[state.asin]
    words = address(state)
    return Page(
        "item",
        state.goal.instruction,
        asin=product.asin,
        title=product.title,
        price=product.price_tag,
        options=product.options,
        selected=state.options,
        subpages=(*SUBPAGES, ATTRIBUTES) if shop.show_attributes else SUBPAGES,
        marked=frozenset(value for _, values in product.options for value in values if f'"{value}"' in words),
    )


def subpage_lines(product: Product, name: str) -> tuple[str, ...]:
    """Paragraphs of a sub-page; reviews are always empty in the official text environment."""
    match name:
        case "Description":
            return (product.description,)
        case "Features":
            return tuple(f" {bullet}" for bullet in product.bullets)
        case "Attributes":
            attributes = (f" {attribute}" for attribute in product.attributes)
            return (*attributes, product.category, product.query, product.product_category)
        case _:
            return ()
