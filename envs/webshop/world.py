"""One shop for all environments of a process: catalogue, index, goals, splits, panels."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import numpy as np

from envs.base import Demonstrator, Progress, Split, TaskPanel, silent
from envs.webshop.catalogue import AnyCatalogue, find_files, from_raw, read_folder
from envs.webshop.env import MAX_STEPS, WebShopEnv
from envs.webshop.flow import Shop
from envs.webshop.goals import Goal, GoalSet, GoalSource, make_goal_set, splits, task_id
from envs.webshop.lucene import LuceneSearch, open_searcher
from envs.webshop.nouns import NounSource, TitleNouns
from envs.webshop.pages import ObservationMode
from envs.webshop.reward import RewardKind, check_reward
from envs.webshop.search import Search, SearchIndex, SearchKind

NAME = "webshop"
MAPPED_FROM = 32_000_000
"""Bytes of product rows from which a catalogue is mapped rather than held: about 12,000 official products."""
MOST_LISTED = 200_000
"""Tasks that a panel of no given size may have."""

log = logging.getLogger(__name__)


class WebShopWorld:
    """A catalogue with one source of goals; built once, never changed, shared by its environments.

    Index and goals are made here unless they are given.
    """

    name = NAME

    def __init__(
        self,
        catalogue: AnyCatalogue,
        goal_source: GoalSource,
        *,
        index: Search | None = None,
        goals: GoalSet | None = None,
        nouns: NounSource = "auto",
        max_steps: int = MAX_STEPS,
        observation_mode: ObservationMode = "text",
        show_attributes: bool = False,
        prefix_queries: bool = True,
        reward: RewardKind = "official",
    ) -> None:
        check_reward(reward)
        self.catalogue = catalogue
        self.goal_source: GoalSource = goal_source
        self._goals = goals or make_goal_set(catalogue, goal_source)
        self.goals = self._goals.goals
        self.splits: Mapping[Split, range] = splits(len(self.goals))
        self.shop = Shop(
            catalogue=catalogue,
            index=index or SearchIndex(catalogue),
            prices=self._goals.prices,
            nouns=TitleNouns(catalogue, nouns),
            show_attributes=show_attributes,
            prefix_queries=prefix_queries,
            reward=reward,
        )
        self._max_steps = max_steps
        self._observation_mode: ObservationMode = observation_mode
        self._digest: str | None = None
        self.make_env()  # checks the settings of the environments before any work starts

    def make_env(self) -> WebShopEnv:
        """A fresh environment over the shared shop."""
        return WebShopEnv(self, max_steps=self._max_steps, observation_mode=self._observation_mode)

    def goal(self, task_id: str) -> Goal:
        """The goal of a task id such as `synthetic-123`; `KeyError` names the ids that exist."""
        source, _, number = task_id.partition("-") if isinstance(task_id, str) else ("", "", "")
        plain = number.isascii() and number.isdigit() and str(int(number)) == number
        if source == self.goal_source and plain and int(number) < len(self.goals):
            return self.goals[int(number)]
        ids = f"{self.goal_source}-0 to {self.goal_source}-{len(self.goals) - 1}"
        raise KeyError(f"unknown task {task_id!r}: this world has {len(self.goals)} goals, {ids}")

    def panel(self, split: Split, size: int | None = None) -> TaskPanel:
        """The first `size` tasks of a split in goal order; all by default."""
        if split not in self.splits:
            raise ValueError(f"unknown split {split!r}, expected one of {', '.join(self.splits)}")
        numbers = self.splits[split]
        if size is not None and not 0 < size <= len(numbers):
            raise ValueError(
                f"a panel of {size} {NAME} {split} tasks was asked for, but there are {len(numbers)}"
                f" ({len(self.goals)} {self.goal_source} goals in all splits)"
            )
        if size is None and len(numbers) > MOST_LISTED:
            raise ValueError(
                f"all {len(numbers)} {NAME} {split} tasks were asked for; expected a size of the panel "
                f"where there are more than {MOST_LISTED}, since every process lists its panels"
            )
        chosen = numbers if size is None else numbers[:size]
        return TaskPanel(
            NAME,
            split,
            tuple(task_id(self.goal_source, number) for number in chosen),
            tuple(self._goals.instructions[number] for number in chosen),
        )

    def demonstrator(
        self, seed: Sequence[int], carelessness: Mapping[str, float] | None = None
    ) -> Demonstrator:
        """A scripted player for one episode; its draws depend on `seed` alone."""
        from envs.webshop.expert import WebShopDemonstrator

        return WebShopDemonstrator(
            np.random.default_rng(np.random.SeedSequence(list(seed))), carelessness or {}
        )

    def counts(self) -> Mapping[str, int]:
        """Nothing is asked of servers."""
        return {}

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record."""
        if self._digest is None:
            self._digest = self.catalogue.digest()
        return {
            "name": NAME,
            "data": self.catalogue.source,
            "data_digest": self._digest,
            "products": len(self.catalogue),
            "goal_source": self.goal_source,
            "goals": len(self.goals),
            "splits": {
                split: {
                    "tasks": len(numbers),
                    "share_with_options": round(self._goals.share_with_options(numbers), 4),
                }
                for split, numbers in self.splits.items()
            },
            "reward": self.shop.reward,
            "nouns": self.shop.nouns.describe(),
            "search": self.shop.index.describe(),
            "versions": {name: version(name) for name in ("rapidfuzz", "PyStemmer", "numpy")},
            "observation_mode": self._observation_mode,
            "max_steps": self._max_steps,
            "show_attributes": self.shop.show_attributes,
            "prefix_queries": self.shop.prefix_queries,
        }


def load_world(
    data: Path | str | None = None,
    *,
    products: int = 1000,
    goal_source: GoalSource = "synthetic",
    seed: int = 0,
    nouns: NounSource = "auto",
    max_steps: int = MAX_STEPS,
    observation_mode: ObservationMode = "text",
    show_attributes: bool = False,
    prefix_queries: bool = True,
    reward: RewardKind = "official",
    search: SearchKind = "bm25",
    cache: Path | str | None = None,
    mapped_from: int = MAPPED_FROM,
    progress: Progress = silent,
) -> WebShopWorld:
    """The world of a folder of official files, or of a generated catalogue of `products` products.

    `products` and `seed` concern the generated catalogue only: a folder is always read whole. With
    `nouns="auto"` a folder's titles are tagged by spaCy where it is installed, else its stored nouns are
    used, else title words; a generated catalogue knows its own nouns. `reward="strict"` judges options by
    equality instead of the official similarity (see `reward.py`). `search="lucene"` ranks by the Lucene index
    in the folder `indexes` of `data` (see `lucene.py`). Raises `DataError` (one line) for missing or malformed
    data and `ValueError` for a setting that does not exist.

    A folder whose product file has at least `mapped_from` bytes is put into the folder `cache` once, and
    mapped from there by every process; smaller ones, and all where `cache` is None, are held in memory. The
    world is the same either way. `progress` hears (stage, done, total) while the cache is made.
    """
    settings: dict[str, Any] = {
        "max_steps": max_steps,
        "observation_mode": observation_mode,
        "show_attributes": show_attributes,
        "prefix_queries": prefix_queries,
        "reward": reward,
    }
    check_reward(reward)
    if search not in get_args(SearchKind):
        raise ValueError(f"search is {search!r}, expected 'bm25' or 'lucene'")
    searcher = open_searcher(None if data is None else Path(data)) if search == "lucene" else None
    if data is None:
        from envs.webshop.generate import generate

        catalogue = from_raw(generate(products, seed), f"generated (products {products}, seed {seed})")
        return WebShopWorld(catalogue, goal_source, nouns="stored" if nouns == "auto" else nouns, **settings)
    settings |= {"goal_source": goal_source, "nouns": nouns}
    size = find_files(Path(data))["products"].stat().st_size
    if cache is None or size < mapped_from:
        log.info("%s: %.1f MB of products, held in memory", data, size / 1e6)
        held = read_folder(Path(data))
        return WebShopWorld(held, index=LuceneSearch(held, searcher) if searcher else None, **settings)
    from envs.webshop.cache import open_folder

    log.info("%s: %.1f MB of products, mapped from %s", data, size / 1e6, cache)
    shop = open_folder(Path(data), goal_source, Path(cache), progress)
    index = LuceneSearch(shop.catalogue, searcher) if searcher else shop.index
    return WebShopWorld(shop.catalogue, index=index, goals=shop.goals, **settings)
