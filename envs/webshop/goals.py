"""What shoppers are asked to buy: goals in the official order, their price caps, and the splits.

Everything drawn comes from private generators with fixed seeds, in the official order: one uniform price for
each product with a price range, then one pair of price caps for each instruction, then the shuffle with seed
233. So a goal's number means the same task in every process and for every training seed.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from envs.base import Split
from envs.webshop.catalogue import Catalogue, DataError, Product

GoalSource = Literal["synthetic", "human"]

DRAW_SEED = 0
"""Seed of sampled prices and caps; the official code leaves them unseeded, its golden transcripts use 0."""
SHUFFLE_SEED = 233
"""The official seed of the goal order."""
PRICE_CAPS = tuple(10.0 * step for step in range(1, 100))
NO_CAP = 1_000_000.0

TEST_GOALS, DEV_GOALS = 500, 1000
"""The official numbers of test and dev goals, which come first in the shuffled order."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One task; `options` are (name, value) pairs in a synthetic goal and bare values in a human one."""

    index: int
    source: GoalSource
    product: Product
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...] | tuple[str, ...]
    price_upper: float
    weight: float
    """The official sampling weight; kept for comparison, not used to choose tasks."""

    @property
    def task_id(self) -> str:
        """Pinned name of the task, such as `synthetic-123`."""
        return f"{self.source}-{self.index}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A goal before the shuffle gives it its number."""

    product: Product
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...] | tuple[str, ...]
    price_upper: float


def sample_prices(catalogue: Catalogue, draw: random.Random) -> dict[str, float]:
    """What each product really costs (dollars), by asin; a price range is settled by one uniform draw."""
    return {
        product.asin: product.pricing[0] if len(product.pricing) == 1 else draw.uniform(*product.pricing)
        for product in catalogue.products
    }


def make_goals(
    catalogue: Catalogue, source: GoalSource, seed: int = DRAW_SEED
) -> tuple[dict[str, float], tuple[Goal, ...]]:
    """Sampled prices by asin, and all goals of a source in the official order."""
    if source not in get_args(GoalSource):
        raise ValueError(f"goal source is {source!r}, expected 'synthetic' or 'human'")
    draw = random.Random(seed)
    prices = sample_prices(catalogue, draw)
    drafts: list[Draft] = []
    for product in catalogue.products:
        price = prices[product.asin]
        drafts += synthetic(product, price, draw) if source == "synthetic" else human(product, price, draw)
    if len(drafts) < 3:
        raise DataError(
            f"{catalogue.source}: {len(drafts)} {source} goals, expected at least 3 (test, dev, train)"
        )
    count = Counter(attribute for draft in drafts for attribute in draft.attributes)
    random.Random(SHUFFLE_SEED).shuffle(drafts)
    goals = (
        Goal(
            index,
            source,
            draft.product,
            draft.instruction,
            draft.attributes,
            draft.options,
            draft.price_upper,
            weight(draft, count) if source == "synthetic" else 1.0,
        )
        for index, draft in enumerate(drafts)
    )
    return prices, tuple(goals)


def weight(draft: Draft, count: Mapping[str, int]) -> float:
    """Rarity of a synthetic goal's attributes: the mean of one over how many goals ask for each."""
    return sum(1.0 / count[attribute] for attribute in draft.attributes) / len(draft.attributes)


def price_cap(price: float, draw: random.Random) -> tuple[float, str]:
    """A cap above the price and the words that state it; no words where fewer than two caps are left."""
    above = [cap for cap in PRICE_CAPS if cap > price][:4]
    if len(above) < 2:
        return NO_CAP, ""
    cap = max(draw.sample(above, 2))
    return cap, f", and price lower than {cap:.2f} dollars"


def synthetic(product: Product, price: float, draw: random.Random) -> list[Draft]:
    """One goal for every combination of a product's options; they share one price cap."""
    if product.instruction is None:
        return []
    cap, cap_words = price_cap(price, draw)
    options = sorted(product.options)
    names = [name for name, _ in options]
    drafts = []
    for values in itertools.product(*(values for _, values in options)):
        chosen = tuple(zip(names, values, strict=True))
        wanted = ", and ".join(f"{name}: {value}" for name, value in chosen)
        words = f"{product.instruction}{' with ' + wanted if wanted else ''}{cap_words}"
        drafts.append(Draft(product, words, product.instruction_attributes, chosen, cap))
    return drafts


def human(product: Product, price: float, draw: random.Random) -> list[Draft]:
    """One goal for every human instruction that names an attribute."""
    drafts = []
    for entry in product.human:
        if entry.attributes:
            cap, cap_words = price_cap(price, draw)
            words = entry.instruction.strip(".") + cap_words
            drafts.append(Draft(product, words, entry.attributes, entry.options, cap))
    return drafts


def splits(goals: int) -> dict[Split, range]:
    """Goal numbers of each split, disjoint and covering.

    From 3,000 goals on, the official ones: test 0-499, dev 500-1499, train the rest. Below that the same
    shares as at 3,000: a sixth for test, a third for dev (at least one each), and train the rest. 13 human
    goals give 2, 4, 7.
    """
    if goals < 3:
        raise ValueError(f"{goals} goals cannot be split; expected at least 3")
    large = goals >= 2 * (TEST_GOALS + DEV_GOALS)
    test = TEST_GOALS if large else max(1, goals // 6)
    dev = DEV_GOALS if large else max(1, goals // 3)
    return {"train": range(test + dev, goals), "dev": range(test, test + dev), "test": range(test)}


def share_with_options(goals: Sequence[Goal]) -> float:
    """Share of goals that ask for at least one option."""
    return sum(bool(goal.options) for goal in goals) / len(goals)
