"""Replays recorded transcripts of the official environment, row by row, and says where this one differs.

A golden folder holds gzipped JSON lines: `goals_synthetic`, `goals_human`, `products`, `index_tokens`, `search`,
`rewards`, `episodes`. They were recorded with prices and price caps drawn under seed 0 (`goals.DRAW_SEED`).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from envs.webshop.analysis import analyse
from envs.webshop.catalogue import Catalogue, DataError, read_folder
from envs.webshop.flow import State, advance, page_of
from envs.webshop.goals import Goal, GoalSource
from envs.webshop.nouns import NounSource
from envs.webshop.pages import clickables, render
from envs.webshop.reward import purchase_reward
from envs.webshop.search import SearchIndex, document
from envs.webshop.world import WebShopWorld

SCORE_TOLERANCE = 1e-4
"""Search scores may differ by this much; the order of the products may not."""


@dataclass(frozen=True)
class Check:
    """One compared thing: a product, a goal, a search, a reward, a step of an episode."""

    where: str
    expected: Mapping[str, Any]
    found: Mapping[str, Any]

    @property
    def differing(self) -> tuple[str, ...]:
        """Names of the parts that are not equal; none where all is."""
        names = dict.fromkeys((*self.expected, *self.found))
        missing = object()
        return tuple(
            name for name in names if self.expected.get(name, missing) != self.found.get(name, missing)
        )


class Official:
    """The shop on the official data, with the title nouns that the transcripts were recorded with."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._worlds: dict[str, WebShopWorld] = {}

    def world(self, source: GoalSource) -> WebShopWorld:
        """The world with one source of goals; `DataError` for a source that does not exist."""
        if source not in self._worlds:
            nouns: NounSource = "words" if self.catalogue.title_nouns is None else "stored"
            try:
                self._worlds[source] = WebShopWorld(
                    self.catalogue, source, nouns=nouns, index=self.index, max_steps=1_000_000
                )
            except ValueError as error:
                raise DataError(str(error)) from error
        return self._worlds[source]

    @cached_property
    def index(self) -> SearchIndex:
        """The search index of the data."""
        return SearchIndex(self.catalogue)


def open_official(data: Path, golden: Path) -> Official:
    """Read the official files; title nouns come from the golden `products`, where it is there.

    Raises `DataError` for missing or malformed files.
    """
    catalogue = read_folder(data)
    if golden_file(golden, "products").is_file():
        nouns = {row["asin"]: tuple(row["title_nouns"]) for row in read_rows(golden, "products")}
        missing = next((asin for asin in catalogue.by_asin if asin not in nouns), None)
        if missing is not None:
            raise DataError(f"{golden_file(golden, 'products')}: lacks product {missing} of {data}")
        catalogue = replace(catalogue, title_nouns=nouns)
    return Official(catalogue)


def golden_file(golden: Path, name: str) -> Path:
    """Where a golden folder keeps the rows of that name."""
    return golden / f"{name}.jsonl.gz"


def read_rows(golden: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a golden file; `DataError` where it is missing or no gzipped JSON lines."""
    path = golden_file(golden, name)
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as gzipped JSON lines: {error}") from error
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: expected at least one row, each an object")
    return rows


def check_rows(name: str, official: Official, row: Mapping[str, Any], number: int) -> list[Check]:
    """Everything that one golden row says, beside what this shop gives; `DataError` for a malformed row."""
    try:
        return list(REPLAYS[name](official, row))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        fault = f"{type(error).__name__}: {error}"
        raise DataError(f"{name}: row {number} does not fit the data or the golden form: {fault}") from error


def check_product(official: Official, row: Mapping[str, Any]) -> Iterator[Check]:
    """Sampled price, shown price and options of a product."""
    world = official.world("synthetic")
    product = world.catalogue.by_asin[row["asin"]]
    found = {
        "price": world.shop.prices[product.asin],
        "price_tag": product.price_tag,
        "options": {name: list(values) for name, values in product.options},
    }
    yield Check(f"product {product.asin}", {name: row[name] for name in found}, found)


def check_goal(source: GoalSource) -> Callable[[Official, Mapping[str, Any]], Iterator[Check]]:
    """All parts of a goal at its place in the official order."""

    def check(official: Official, row: Mapping[str, Any]) -> Iterator[Check]:
        yield Check(f"goal {row['index']}", row, goal_row(official.world(source).goals[row["index"]]))

    return check


def goal_row(goal: Goal) -> dict[str, Any]:
    """A goal in the golden form."""
    product = goal.product
    return {
        "index": goal.index,
        "instruction_text": goal.instruction,
        "asin": product.asin,
        "attributes": list(goal.attributes),
        "goal_options": dict(goal.options) if goal.source == "synthetic" else list(goal.options),  # type: ignore[arg-type]
        "price_upper": goal.price_upper,
        "weight": goal.weight,
        "category": product.category,
        "query": product.query,
        "product_category": product.product_category,
        "name": product.title,
    }


def check_tokens(official: Official, row: Mapping[str, Any]) -> Iterator[Check]:
    """What is indexed of a product."""
    tokens = analyse(document(official.catalogue.by_asin[row["asin"]]))
    yield Check(f"product {row['asin']}", {"tokens": row["tokens"]}, {"tokens": tokens})


def check_search(official: Official, row: Mapping[str, Any]) -> Iterator[Check]:
    """The products that a query finds, in order, with their scores."""
    query = row["query"].lower()
    ranked = official.index.ranked(query)
    scores = [score for _, score in ranked]
    found = {
        "tokens": analyse(query),
        "asins": [official.index.products[place].asin for place, _ in ranked],
        "scores": row["scores"] if close(row["scores"], scores) else scores,
    }
    expected = {name: row[name] for name in found}
    yield Check(f"search {query!r}", expected, found)


def close(left: list[float], right: list[float]) -> bool:
    """Whether two lists of scores are the same but for rounding."""
    return len(left) == len(right) and np.allclose(left, right, rtol=0, atol=SCORE_TOLERANCE)


def check_reward(official: Official, row: Mapping[str, Any]) -> Iterator[Check]:
    """The reward of buying a product for a goal, with its parts."""
    world = official.world(row["mode"])
    product, goal = world.catalogue.by_asin[row["asin"]], world.goals[row["goal_index"]]
    total, parts = purchase_reward(product, goal, row["price"], row["options"], world.shop.nouns)
    named = {name: value for name, value in asdict(parts).items() if value is not None}
    yield Check(
        f"reward {row['id']}",
        {"reward": row["reward"], "info": row["info"]},
        {"reward": total, "info": named},
    )


def check_episode(official: Official, row: Mapping[str, Any]) -> Iterator[Check]:
    """Every page of an episode; like the official environment, the flow goes on after a purchase."""
    world = official.world(row["mode"])
    shop = replace(world.shop, show_attributes=row["show_attrs"])
    state = State(world.goals[row["goal_index"]])
    for number, step in enumerate(row["steps"]):
        action = step["action"]
        after = None if action is None else advance(shop, state, page_of(shop, state), action)
        state = after or state
        page = page_of(shop, state)
        bought = after is not None and after.kind == "done"
        found = {
            "observation": render(page, "text"),
            "observation_rich": render(page, "text_rich"),
            "available_actions": {
                "has_search_bar": page.has_search_bar,
                "clickables": list(clickables(page)),
            },
            "reward": state.score if bought else 0,
            "done": bought,
        }
        expected = {name: step[name] for name in found}
        yield Check(f"episode {row['id']}, step {number}, action {action!r}", expected, found)


REPLAYS: Mapping[str, Callable[[Official, Mapping[str, Any]], Iterator[Check]]] = {
    "products": check_product,
    "goals_synthetic": check_goal("synthetic"),
    "goals_human": check_goal("human"),
    "index_tokens": check_tokens,
    "search": check_search,
    "rewards": check_reward,
    "episodes": check_episode,
}
"""How the rows of each golden file are replayed."""
