"""Exact parity with transcripts of the official environment on its 1,000-product data.

What they hold and how they were recorded is told in the README beside them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from envs.webshop.analysis import analyse
from envs.webshop.catalogue import Catalogue, read_folder
from envs.webshop.flow import State, advance, page_of
from envs.webshop.pages import clickables, render
from envs.webshop.reward import purchase_reward
from envs.webshop.search import SearchIndex, document
from envs.webshop.world import WebShopWorld

pytestmark = pytest.mark.shared

TEST_PANELS = {
    "synthetic": "ffe634da776a3d126176b927df8ce46f56c17629fed27d1fcfd2bf6bd3e7f508",
    "human": "c3e5907b9054a931509fd7373809415ed3ac4951b94dccdc19b315134ebb6b9b",
}


def rows(shared: Path, name: str) -> Iterator[Any]:
    with gzip.open(
        shared / "data" / "webshop" / "golden" / f"{name}.jsonl.gz", "rt", encoding="utf-8"
    ) as lines:
        yield from map(json.loads, lines)


@pytest.fixture(scope="module")
def catalogue(shared: Path) -> Catalogue:
    nouns = {row["asin"]: tuple(row["title_nouns"]) for row in rows(shared, "products")}
    return replace(read_folder(shared / "data" / "webshop"), title_nouns=nouns)


@pytest.fixture(scope="module")
def worlds(catalogue: Catalogue) -> dict[str, WebShopWorld]:
    return {
        "synthetic": WebShopWorld(catalogue, "synthetic", nouns="stored", max_steps=100),
        "human": WebShopWorld(catalogue, "human", nouns="stored", max_steps=100),
    }


def test_products_prices_and_options(shared: Path, worlds: dict[str, WebShopWorld]) -> None:
    for row in rows(shared, "products"):
        for world in worlds.values():
            product = world.catalogue.by_asin[row["asin"]]
            options = {name: list(values) for name, values in product.options}
            found = (world.shop.prices[product.asin], product.price_tag, options)
            assert found == (row["price"], row["price_tag"], row["options"])


@pytest.mark.parametrize(("source", "number"), [("synthetic", 6910), ("human", 13)])
def test_goals_in_order(shared: Path, worlds: dict[str, WebShopWorld], source: str, number: int) -> None:
    goals = worlds[source].goals
    assert len(goals) == number
    for row in rows(shared, f"goals_{source}"):
        goal = goals[row["index"]]
        product = goal.product
        found = {
            "index": goal.index,
            "instruction_text": goal.instruction,
            "asin": product.asin,
            "attributes": list(goal.attributes),
            "goal_options": dict(goal.options) if source == "synthetic" else list(goal.options),  # type: ignore[arg-type]
            "price_upper": goal.price_upper,
            "weight": goal.weight,
            "category": product.category,
            "query": product.query,
            "product_category": product.product_category,
            "name": product.title,
        }
        assert found == row


@pytest.mark.parametrize("source", ["synthetic", "human"])
def test_the_test_panels_of_the_official_data_are_pinned(
    worlds: dict[str, WebShopWorld], source: str
) -> None:
    assert worlds[source].panel("test").digest == TEST_PANELS[source]


def test_index_tokens(shared: Path, catalogue: Catalogue) -> None:
    for row in rows(shared, "index_tokens"):
        assert analyse(document(catalogue.by_asin[row["asin"]])) == row["tokens"], row["asin"]


def test_search_order_and_scores(shared: Path, catalogue: Catalogue) -> None:
    index = SearchIndex(catalogue)
    for row in rows(shared, "search"):
        query = row["query"].lower()
        ranked = index.ranked(query)
        assert analyse(query) == row["tokens"]
        assert [index.products[doc].asin for doc, _ in ranked] == row["asins"], query
        assert [score for _, score in ranked] == pytest.approx(row["scores"], abs=1e-4)


def test_rewards_and_their_parts(shared: Path, worlds: dict[str, WebShopWorld]) -> None:
    for row in rows(shared, "rewards"):
        world = worlds[row["mode"]]
        product, goal = world.catalogue.by_asin[row["asin"]], world.goals[row["goal_index"]]
        total, parts = purchase_reward(product, goal, row["price"], row["options"], world.shop.nouns)
        assert total == row["reward"], row["id"]
        assert {name: value for name, value in asdict(parts).items() if value is not None} == row["info"], (
            row["id"]
        )


def test_episodes_page_by_page(shared: Path, worlds: dict[str, WebShopWorld]) -> None:
    """Through the page flow itself, which goes on after a purchase as the official environment does."""
    steps = 0
    for episode in rows(shared, "episodes"):
        world = worlds[episode["mode"]]
        shop = replace(world.shop, show_attributes=episode["show_attrs"])
        state = State(world.goals[episode["goal_index"]])
        for step in episode["steps"]:
            action = step["action"]
            after = None if action is None else advance(shop, state, page_of(shop, state), action)
            state = after or state
            page = page_of(shop, state)
            bought = after is not None and after.kind == "done"
            where = (episode["id"], action)
            assert render(page, "text") == step["observation"], where
            assert render(page, "text_rich") == step["observation_rich"], where
            offered = {"has_search_bar": page.has_search_bar, "clickables": list(clickables(page))}
            assert offered == step["available_actions"], where
            assert (state.score if bought else 0, bought) == (step["reward"], step["done"]), where
            steps += 1
    assert steps == 2294


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_episodes_through_the_environment(shared: Path, worlds: dict[str, WebShopWorld], mode: str) -> None:
    for episode in rows(shared, "episodes"):
        if episode["show_attrs"]:
            continue
        env = worlds[episode["mode"]].make_env()
        env.observation_mode = mode  # type: ignore[assignment]
        task = f"{episode['mode']}-{episode['goal_index']}"
        observation, info = env.reset(options={"task": task})
        for number, step in enumerate(episode["steps"]):
            if number:
                observation, reward, terminated, truncated, info = env.step(step["action"])
                assert (reward, terminated, truncated) == (step["reward"], step["done"], False)
            assert observation == step["observation" if mode == "text" else "observation_rich"]
            assert list(info["clickables"]) == step["available_actions"]["clickables"]
            if step["done"]:
                assert info["success"] == (step["reward"] == 1.0)
                break
