"""A scripted shopper that reads only what a policy is shown, with a skilled and a careless habit per decision.

Skilled: searches for all that is asked, goes through the results in order and takes the first that covers the request
within the price cap, goes back where a wanted option value is not offered, chooses every wanted option, buys.
Careless, by kind of decision: `query` searches for the bare noun; `item` takes the first result; `back` and
`option` buy at once. Demonstrations that mix both put the skilled habit into a policy's support without making it
its mode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import Stemmer

from envs.base import Decision, StepInfo
from envs.webshop.pages import Listing, Page

CARELESS_KINDS = ("query", "item", "option", "back")
LAST_PAGE = 3
"""The shopper looks no further than this page of results."""

_CAP = re.compile(r",? and price lower than ([\d.]+) dollars$")
_OPTIONS = re.compile(r" with ((?:(?! with )[^:])+: .*)$")
_OPTION = re.compile(r"(?:^|, and )([^:]+): (.*?)(?=, and [^:]+: |$)")
_WORD = re.compile(r"[a-z0-9]+")
_IGNORED = frozenset(
    {"a", "an", "and", "are", "come", "find", "for", "i", "in", "looking", "me", "need", "of", "please", "s"}
    | {"some", "that", "the", "to", "use", "with"}
)


@dataclass(frozen=True)
class Request:
    """What an instruction asks for, as a shopper reads it."""

    keywords: str
    options: tuple[tuple[str, str], ...]
    """Named options, in order; empty for free wording, where values are looked for in the text."""
    cap: float
    text: str

    @property
    def noun(self) -> str:
        """The last two words before any `with` or `for`."""
        head = re.split(r" (?:with|for|that|,)\b", self.keywords)[0]
        return " ".join(head.split()[-2:]) or self.keywords


def read_request(instruction: str) -> Request:
    """Split the instruction into keywords, options and price cap; a part that is absent stays empty or infinite."""
    text = instruction.strip()
    cap = _CAP.search(text)
    body = text[: cap.start()] if cap else text
    named = _OPTIONS.search(body)
    keywords = body[: named.start()] if named else body
    return Request(
        keywords=keywords.removeprefix("Find me ").strip(),
        options=tuple(_OPTION.findall(named.group(1))) if named else (),
        cap=float(cap.group(1)) if cap else float("inf"),
        text=text.lower(),
    )


class WebShopDemonstrator:
    """Plays one episode; `carelessness` maps a kind of decision to the chance that it is taken carelessly."""

    def __init__(self, rng: np.random.Generator, carelessness: Mapping[str, float] | None = None) -> None:
        self._rng = rng
        self._carelessness = dict(carelessness or {})
        if unknown := sorted(self._carelessness.keys() - set(CARELESS_KINDS)):
            raise ValueError(f"unknown kinds of decision {unknown}, expected any of {list(CARELESS_KINDS)}")
        self._stem = Stemmer.Stemmer("porter")
        self._seen: set[str] = set()

    def decide(self, observation: str, info: StepInfo) -> Decision:
        """The next move on the page in `info`; the text form adds nothing to it."""
        page: Page = cast(Any, info)["page"]
        request = read_request(page.instruction)
        if page.kind == "search":
            return self._query(request)
        if page.kind == "results":
            return self._item(request, page)
        if page.kind == "item":
            return self._choose(request, page)
        return Decision("back", "Back", "click[< prev]")

    def _careless(self, kind: str) -> bool:
        return bool(self._rng.random() < self._carelessness.get(kind, 0.0))

    def _query(self, request: Request) -> Decision:
        if self._careless("query"):
            return Decision("query", "Just the noun", f"search[{request.noun.lower()}]", careless=True)
        return Decision("query", "All that is asked", f"search[{request.keywords.lower()}]")

    def _item(self, request: Request, page: Page) -> Decision:
        unseen = [listing for listing in page.listings if listing.asin not in self._seen]
        if unseen and self._careless("item"):
            return self._open(unseen[0], "The first looks right", careless=True)
        coverage = {listing.asin: self._coverage(request, listing) for listing in page.listings}
        best = max(coverage.values(), default=0)
        notes = []
        for listing in page.listings:
            high = _price(listing.price)
            if listing.asin in self._seen:
                verdict = "seen"
            elif high > request.cap:
                verdict = "over"
            else:
                verdict = "ok" if coverage[listing.asin] == best else "no"
            notes.append(f"{int(high)} {verdict}")
            if verdict == "ok":
                return self._open(listing, _below(request, notes))
        if page.listings and page.number < LAST_PAGE:
            return Decision("item", _below(request, notes), "click[next >]")
        if unseen:
            return self._open(min(unseen, key=lambda listing: _price(listing.price)), "The cheapest then")
        return Decision("item", "Nothing left", "click[back to search]")

    def _open(self, listing: Listing, thought: str, careless: bool = False) -> Decision:
        self._seen.add(listing.asin)
        return Decision("item", thought, f"click[{listing.asin.lower()}]", careless)

    def _coverage(self, request: Request, listing: Listing) -> int:
        """How many of the request's words the title has."""
        return len(self._stems(request.keywords) & self._stems(listing.title))

    def _stems(self, text: str) -> set[str]:
        return {self._stem.stemWord(word) for word in _WORD.findall(text.lower()) if word not in _IGNORED}

    def _choose(self, request: Request, page: Page) -> Decision:
        wanted = wanted_options(request, page)
        chosen = dict(page.selected)
        offered = {name: set(values) for name, values in page.options}
        found = [(name, value, value in offered.get(name, ())) for name, value in wanted]
        open_options = [(name, value) for name, value in wanted if chosen.get(name) != value]
        thought = ": ".join(open_options[0]) if open_options else "All chosen"
        if not chosen:
            checks = (f"{name}: {value} {'yes' if there else 'no'}" for name, value, there in found)
            thought = ", ".join(checks) or "Nothing to choose"
        if not all(there for *_, there in found):
            if self._careless("back"):
                return Decision("back", "Good enough", "click[buy now]", careless=True)
            return Decision("back", thought, "click[< prev]")
        if not open_options:
            return Decision("buy", thought, "click[buy now]")
        if self._careless("option"):
            return Decision("option", "Good enough", "click[buy now]", careless=True)
        return Decision("option", thought, f"click[{open_options[0][1]}]")


def wanted_options(request: Request, page: Page) -> list[tuple[str, str]]:
    """The (name, value) pairs that the request wants on this item page.

    Named options are taken as written, whether or not the page offers the value. In free wording, a group's wanted
    value is its longest one that occurs in the text as whole words; a group without one is left alone.
    """
    if request.options:
        names = {name for name, _ in page.options}
        return [(name, value) for name, value in request.options if name in names or not names]
    found = []
    for name, values in page.options:
        inside = [v for v in values if re.search(rf"(?<!\w){re.escape(v.lower())}(?!\w)", request.text)]
        if inside:
            found.append((name, max(inside, key=len)))
    return found


def _below(request: Request, notes: list[str]) -> str:
    cap = f"{request.cap:.0f}" if request.cap < float("inf") else "none"
    return f"Cap {cap}: {', '.join(notes)}"


def _price(shown: str) -> float:
    """The highest price in a price text; an unreadable one counts as unaffordable."""
    numbers = [float(number.replace(",", "")) for number in re.findall(r"[\d,]*\d(?:\.\d+)?", shown)]
    return max(numbers, default=float("inf"))
