"""Deep Search: multi-hop questions over a retriever, answered in free text (the paper's third benchmark)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from envs.deepsearch.env import DeepSearchEnv, DeepSearchInfo
from envs.deepsearch.load import load_world
from envs.deepsearch.world import DeepSearchWorld

__all__ = ["DeepSearchEnv", "DeepSearchInfo", "DeepSearchWorld", "load_world"]

_shared_world = lru_cache(maxsize=4)(load_world)


def make(render_mode: str | None = None, **world: Any) -> DeepSearchEnv:
    """Entry point of `gymnasium.make("EMPG/DeepSearch-v0", **world)`; equal arguments share a world."""
    env = _shared_world(**world).make_env()
    env.render_mode = render_mode
    return env
