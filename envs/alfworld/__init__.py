"""ALFWorld in text: household tasks in one room, with the official games, texts and rules (arXiv 2010.03768)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from envs.alfworld.env import AlfworldEnv, AlfworldInfo
from envs.alfworld.world import AlfworldWorld, load_world

__all__ = ["AlfworldEnv", "AlfworldInfo", "AlfworldWorld", "load_world"]

_shared_world = lru_cache(maxsize=4)(load_world)


def make(render_mode: str | None = None, **world: Any) -> AlfworldEnv:
    """Entry point of `gymnasium.make("EMPG/ALFWorld-v0", **world)`; equal arguments share a world."""
    env = _shared_world(**world).make_env()
    env.render_mode = render_mode
    return env
