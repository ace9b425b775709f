"""A mapped world equals the one held in memory, and it is chosen by the size of the data."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from envs.webshop import WebShopWorld, load_world
from envs.webshop.cache import open_folder
from envs.webshop.goals import GoalSource
from envs.webshop.parity import read_rows
from tests.envs import shops
from tests.envs.mapped_worlds import assert_equal_worlds, held, mapped


def assert_equal_answers(one: WebShopWorld, other: WebShopWorld, queries: list[str]) -> None:
    for query in queries:
        assert one.shop.index.ranked(query) == other.shop.index.ranked(query), query
        assert one.shop.find(query) == other.shop.find(query), query
    products = other.catalogue.products
    kinds = {f"<c> {product.category}" for product in products} | {
        f"<q> {product.query}" for product in products
    }
    for query in ("<c> nothing", "<q> nothing", *sorted(kinds)):
        assert tuple(one.shop.find(query)) == tuple(other.shop.find(query)), query


def assert_equal_episodes(one: WebShopWorld, other: WebShopWorld, episodes: int) -> None:
    """Random valid actions, the purchase at last, through both worlds."""
    for number in range(episodes):
        draw = np.random.default_rng(number)
        task = {"task": f"{one.goal_source}-{draw.integers(len(one.goals))}"}
        envs = one.make_env(), other.make_env()
        first, second = (env.reset(options=task) for env in envs)
        for step in range(30):
            assert first == second
            admissible = first[1]["admissible"]
            action = str(draw.choice(admissible))
            if step > 20 and "click[buy now]" in admissible:
                action = "click[buy now]"
            if action.startswith("search"):
                action = f"search[{' '.join(draw.choice(first[0].split(), 3))}]"
            moves = [env.step(action) for env in envs]
            assert moves[0] == moves[1]
            if moves[0][2] or moves[0][3]:
                break
            first, second = ((move[0], move[4]) for move in moves)


def queries_of(world: WebShopWorld, count: int) -> list[str]:
    texts = [goal.instruction.lower() for goal in world.goals[:count]]
    return [*texts, *(text.split()[-1] for text in texts), "", "the of", "zzz unknown", "red  red", "\ud800"]


@pytest.mark.parametrize("source", ["synthetic", "human"])
def test_a_mapped_world_equals_the_one_in_memory(generated: Path, tmp_path: Path, source: GoalSource) -> None:
    memory = held(generated, source)
    assert_equal_worlds(mapped(generated, tmp_path, source), memory)
    again = mapped(generated, tmp_path, source)
    assert_equal_worlds(again, memory)
    assert_equal_answers(again, memory, queries_of(memory, 100))
    assert_equal_episodes(again, memory, 25)


@pytest.mark.parametrize("source", ["synthetic", "human"])
def test_the_shop_of_odd_rows_is_the_same_mapped(tmp_path: Path, source: GoalSource) -> None:
    data = shops.write(tmp_path / "data")
    world, memory = mapped(data, tmp_path / "cache", source), held(data, source)
    assert_equal_worlds(world, memory)
    assert_equal_answers(world, memory, queries_of(memory, 3))
    assert_equal_episodes(world, memory, 5)


def test_texts_with_lone_surrogates_and_empty_documents_survive(tmp_path: Path) -> None:
    titles = {"B\ud800": "", "B\U0001f339": " ", "B\uffff": "\udc80 a", "": "\U0001f339"}
    odd = [shops.row(asin, title) for asin, title in titles.items()]
    data = shops.write(tmp_path / "data")
    (data / "items_shuffle.json").write_text(json.dumps(shops.items() + odd))
    (data / "title_nouns.json").unlink()
    world, memory = (
        load_world(data, nouns="words", mapped_from=0, cache=folder) for folder in (tmp_path / "cache", None)
    )
    assert world.catalogue.title_nouns is None
    assert_equal_worlds(world, memory)


@pytest.mark.shared
@pytest.mark.parametrize("source", ["synthetic", "human"])
def test_the_official_products_are_the_same_mapped(shared: Path, tmp_path: Path, source: GoalSource) -> None:
    data = shared / "data" / "webshop"
    world, memory = (
        load_world(data, goal_source=source, nouns="words", mapped_from=0, cache=folder)
        for folder in (tmp_path, None)
    )
    assert_equal_worlds(world, memory)
    assert_equal_answers(world, memory, queries_of(memory, 50))
    assert_equal_episodes(world, memory, 10)


@pytest.mark.shared
def test_a_mapped_index_gives_the_official_search_order(shared: Path, tmp_path: Path) -> None:
    index = open_folder(shared / "data" / "webshop", "human", tmp_path).index
    for row in read_rows(shared / "data" / "webshop" / "golden", "search"):
        assert [index.products[doc].asin for doc, _ in index.ranked(row["query"].lower())] == row["asins"]


# Which way a folder is opened


def test_small_data_stays_in_memory_and_large_data_is_mapped_as_the_log_says(
    generated: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    size = (generated / "items_shuffle.json").stat().st_size
    small = load_world(generated, cache=tmp_path, mapped_from=size + 1)
    assert isinstance(small.catalogue.products, tuple)
    assert "held in memory" in caplog.text
    assert not list(tmp_path.iterdir())
    large = load_world(generated, cache=tmp_path, mapped_from=size)
    assert not isinstance(large.catalogue.products, tuple)
    assert "mapped from" in caplog.text


def test_every_stage_of_the_work_reports_its_progress_once_to_the_end(
    generated: Path, tmp_path: Path
) -> None:
    heard: dict[str, list[tuple[int, int]]] = {}
    mapped(generated, tmp_path, progress=lambda stage, *done: heard.setdefault(stage, []).append(done))
    assert [stage for stage in heard if not stage.startswith("hashing")] == [
        "reading products",
        "indexing products",
        "writing synthetic goals",
    ]
    for steps in heard.values():
        assert steps == sorted(set(steps))
        assert steps[-1][0] == steps[-1][1]
    heard.clear()
    mapped(generated, tmp_path, progress=lambda stage, *done: heard.setdefault(stage, []).append(done))
    assert not heard


def test_an_unknown_goal_source_is_refused_before_anything_is_made(generated: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="goal source is 'crowd'"):
        mapped(generated, tmp_path / "cache", "crowd")  # type: ignore[arg-type]
    assert not (tmp_path / "cache").exists()
