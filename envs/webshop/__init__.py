"""WebShop in text: an online shop with the official pages, goals and reward (arXiv 2207.01206)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from envs.webshop.env import WebShopEnv, WebShopInfo
from envs.webshop.pages import Listing, Page
from envs.webshop.world import WebShopWorld, load_world

__all__ = ["Listing", "Page", "WebShopEnv", "WebShopInfo", "WebShopWorld", "load_world"]

_shared_world = lru_cache(maxsize=4)(load_world)


def make(render_mode: str | None = None, **world: Any) -> WebShopEnv:
    """Entry point of `gymnasium.make("EMPG/WebShop-v0", **world)`; equal arguments share a world."""
    env = _shared_world(**world).make_env()
    env.render_mode = render_mode
    return env
