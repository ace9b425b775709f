"""Which benchmarks exist, what their data can be asked for, and how it is opened.

A loader imports its environment only when called, so listing the benchmarks costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from envs.base import World


@dataclass(frozen=True)
class WebShopSettings:
    """What a WebShop suite may say in its `[world]` table."""

    products: int = 1000
    """Size of the generated catalogue; official files bring their own."""
    goal_source: Literal["synthetic", "human"] = "synthetic"
    seed: int = 0
    """Seed of the generated catalogue."""
    max_steps: int = 15
    """Actions an episode may take; the paper's number."""
    observation_mode: Literal["text", "text_rich"] = "text"
    """The official text form of pages."""
    show_attributes: bool = False
    """Offer the attributes sub-page, which shows what the reward looks for."""
    prefix_queries: bool = True
    """Let `search[<c> category]` and `search[<q> query]` list a whole kind, as in the official shop."""

    def __post_init__(self) -> None:
        if self.products < 1:
            raise ValueError(f"products must be positive, got {self.products}")


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: the settings of its data and the function that opens it."""

    settings: type[Any]
    load: Callable[[Path | None, Any], World]
    """(folder of official files or None for generated data, settings) -> world."""


def _webshop(data: Path | None, settings: WebShopSettings) -> World:
    from envs.webshop import load_world

    return load_world(data, **asdict(settings))


BENCHMARKS: Mapping[str, Benchmark] = {"webshop": Benchmark(WebShopSettings, _webshop)}
