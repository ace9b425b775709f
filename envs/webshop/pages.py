"""What a page shows, as data, and its two official text forms.

A page is rendered through its text nodes, in document order, as the official environment reads them out of
its HTML.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

PageKind = Literal["search", "results", "item", "subpage", "done"]
ObservationMode = Literal["text", "text_rich"]
Node = tuple[Literal["text", "button", "option", "link"], str]

SEPARATOR = " [SEP] "
SUBPAGES = ("Description", "Features", "Reviews")
ATTRIBUTES = "Attributes"

_HTML_SAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"})


@dataclass(frozen=True, slots=True)
class Listing:
    """One product on a results page."""

    asin: str
    title: str
    price: str
    """The shown price or range, such as `$62.99 to $129.99`."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page; fields that its kind does not show keep their defaults."""

    kind: PageKind
    instruction: str
    number: int = 1
    """Results: the page number."""
    total: int = 0
    """Results: how many products were found."""
    listings: tuple[Listing, ...] = ()
    asin: str = ""
    title: str = ""
    price: str = ""
    options: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Item: option names with their values, in the order shown."""
    selected: tuple[tuple[str, str], ...] = ()
    """Item and done: chosen options as (name, value), in the order of first choosing."""
    subpages: tuple[str, ...] = ()
    """Item: names of the sub-pages that can be opened."""
    name: str = ""
    """Sub-page: which one."""
    lines: tuple[str, ...] = ()
    """Sub-page: its paragraphs."""
    marked: frozenset[str] = frozenset()
    """Asins and option values that `text_rich` shows as clicked."""
    score: float | None = None
    """Done: what the purchase earned."""

    @property
    def has_search_bar(self) -> bool:
        """Whether the page shows the search box."""
        return self.kind == "search"


def clickables(page: Page) -> tuple[str, ...]:
    """The official list without repeats: buttons and product links lower-cased, then option values."""
    buttons = [name.lower() for name in button_names(page)]
    links = [listing.asin.lower() for listing in page.listings]
    values = [value for _, values in page.options for value in values]
    return tuple(dict.fromkeys(buttons + links + values))


def button_names(page: Page) -> tuple[str, ...]:
    """Buttons in document order, as shown."""
    match page.kind:
        case "search":
            return ("Search",)
        case "results":
            return ("Back to Search", "< Prev", "Next >") if page.number > 1 else ("Back to Search", "Next >")
        case "item":
            return ("Back to Search", "< Prev", *page.subpages, "Buy Now")
        case "subpage":
            return ("Back to Search", "< Prev")
        case "done":
            return ()


def render(page: Page, mode: ObservationMode) -> str:
    """The page as an observation."""
    return text(page) if mode == "text" else text_rich(page)


def text(page: Page) -> str:
    """Observation mode `text`: stripped nodes joined by ` [SEP] `; chosen options cannot be seen."""
    return SEPARATOR.join([content.strip() for _, content in nodes(page)])


def text_rich(page: Page) -> str:
    """Observation mode `text_rich`: a node a line, with buttons and what was clicked marked."""
    head, body = "", []
    for kind, content in nodes(page):
        if kind == "text":
            body.append(content)
        elif kind == "button":
            body.append(f"[button] {content} [button_]")
        else:
            margin = "  " if kind == "option" else "\n"
            if content in page.marked:
                body.append(f"{margin}[clicked button] {content} [clicked button_]")
                if kind == "option":  # each notice goes in front of those before it
                    head = f"You have clicked {content}.\n{head}"
            else:
                body.append(f"{margin}[button] {content} [button_]")
    return head + "\n".join(body) + "\n"


def nodes(page: Page) -> Iterator[Node]:
    """Visible text nodes in document order."""
    for node in all_nodes(page):
        if not node[1] or node[1].isspace():
            if shown := collapse(node[1]):
                yield node[0], shown
        else:
            yield node


def collapse(content: str) -> str:
    """A text node as the official parser keeps it: a blank one is one space, or nothing with a line break."""
    if content and not content.strip(" \n\t\f\r"):
        return "" if "\n" in content else " "
    return content


def all_nodes(page: Page) -> list[Node]:
    """Text nodes in document order, empty ones included."""
    if page.kind == "done":
        return done_nodes(page)
    buttons: list[Node] = [("button", name) for name in button_names(page)]
    if page.kind == "search":
        return [("text", "WebShop"), ("text", "Instruction: "), ("text", page.instruction), *buttons]
    top: list[Node] = [("text", "Instruction:"), ("text", page.instruction), buttons[0]]
    if page.kind == "results":
        found: Node = ("text", f"Page {page.number} (Total results: {page.total})")
        shown: list[Node] = []
        for listing in page.listings:
            shown += (("link", listing.asin), ("text", listing.title), ("text", listing.price))
        return [*top, found, *buttons[1:], *shown]
    if page.kind == "subpage":
        return [*top, buttons[1], *(("text", line) for line in page.lines)]
    options: list[Node] = []
    for name, values in page.options:
        options.append(("text", name))
        options += [("option", value) for value in values]
    facts: list[Node] = [("text", page.title), ("text", f"Price: {page.price}"), ("text", "Rating: N.A.")]
    return [*top, buttons[1], *options, *facts, *buttons[2:]]


def done_nodes(page: Page) -> list[Node]:
    """The purchase page, with the parts that a browser hides; most of them are never filled in officially."""
    chosen = json.dumps(dict(page.selected), sort_keys=True).translate(_HTML_SAFE)
    bought = [
        "Purchased",
        "asin",
        page.asin,
        "options",
        chosen,
        "attrs",
        "None",
        "category",
        "None",
        "query",
        "None",
    ]
    target = [
        "asin",
        "options",
        "attrs",
        "price upper",
        "instuction text",
        "category",
        "product category",
        "query",
    ]
    contents = [
        *("Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)"),
        *(*bought, "product category", "None", "Target", *target, "Goal ", "None"),
        *("Reward", "Your score (min 0.0, max 1.0)", str(page.score), "Reward Details ", "None"),
    ]
    return [("text", content) for content in contents]
