"""The same shop opened twice: mapped from a cache, and held in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envs.webshop import WebShopWorld, load_world
from envs.webshop.goals import GoalSource


def mapped(data: Path, cache: Path, source: GoalSource = "synthetic", **settings: Any) -> WebShopWorld:
    return load_world(
        data, goal_source=source, nouns="stored", cache=cache, mapped_from=0, max_steps=30, **settings
    )


def held(data: Path, source: GoalSource = "synthetic") -> WebShopWorld:
    return load_world(data, goal_source=source, nouns="stored", max_steps=30)


def assert_equal_worlds(one: WebShopWorld, other: WebShopWorld) -> None:
    assert one.describe() == other.describe()
    assert tuple(one.catalogue.products) == tuple(other.catalogue.products)
    assert dict(one.catalogue.by_asin) == dict(other.catalogue.by_asin)
    assert dict(one.catalogue.title_nouns or {}) == dict(other.catalogue.title_nouns or {})
    assert dict(one.shop.prices) == dict(other.shop.prices)
    assert tuple(one.goals) == tuple(other.goals)
    for split in ("train", "dev", "test"):
        assert one.panel(split).digest == other.panel(split).digest
        assert one.panel(split, 1).task_texts == other.panel(split, 1).task_texts
