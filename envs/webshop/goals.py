"""What shoppers are asked to buy: goals in the official order, their price caps, and the splits.

Everything drawn comes from private generators with fixed seeds, in the official order: one uniform price for
each product with a price range, then one pair of price caps for each instruction, then the shuffle with seed
233. So a goal's number means the same task in every process and for every training seed.
"""

from __future__ import annotations

import itertools
import random
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from envs.base import Split
from envs.webshop.catalogue import AnyCatalogue, DataError, Product

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
        return task_id(self.source, self.index)


def task_id(source: GoalSource, index: int) -> str:
    """Pinned name of the task of a goal."""
    return f"{source}-{index}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A goal before the shuffle gives it its number."""

    product: Product
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...] | tuple[str, ...]
    price_upper: float


@dataclass(frozen=True, eq=False)
class GoalSet:
    """All goals of a source in the official order, and the prices they were made for."""

    prices: Mapping[str, float]
    """What each product really costs (dollars), by asin."""
    goals: Sequence[Goal]
    instructions: Sequence[str]
    """The goals' instructions, for those who need nothing else."""
    with_options: NDArray[np.bool_]
    """`[goals]` whether a goal asks for an option."""

    def __post_init__(self) -> None:
        if not len(self.goals) == len(self.instructions) == len(self.with_options):
            raise DataError(
                f"{len(self.goals)} goals, but {len(self.instructions)} instructions and "
                f"{len(self.with_options)} marks of options; expected one for each"
            )

    def share_with_options(self, numbers: range) -> float:
        """Share of some consecutive goals that ask for at least one option."""
        return float(self.with_options[numbers.start : numbers.stop].mean())


def make_goal_set(catalogue: AnyCatalogue, source: GoalSource) -> GoalSet:
    """The goals of a source, held in memory."""
    prices, goals = make_goals(catalogue, source)
    return GoalSet(
        prices, goals, [goal.instruction for goal in goals], np.array([bool(goal.options) for goal in goals])
    )


def make_goals(
    catalogue: AnyCatalogue, source: GoalSource, seed: int = DRAW_SEED
) -> tuple[dict[str, float], tuple[Goal, ...]]:
    """Sampled prices by asin, and all goals of a source in the official order."""
    check_source(source)
    draw = random.Random(seed)
    prices = sample_prices(catalogue.products, draw)
    priced = list(zip(catalogue.products, prices, strict=True))
    drafts = [draft for product, price in priced for draft in drafts_of(product, price, source, draw)]
    count = Counter(attribute for draft in drafts for attribute in draft.attributes)
    goals = (
        Goal(
            index,
            source,
            draft.product,
            draft.instruction,
            draft.attributes,
            draft.options,
            draft.price_upper,
            weight(source, draft.attributes, count),
        )
        for index, draft in enumerate(drafts[place] for place in goal_order(len(drafts), catalogue, source))
    )
    return {product.asin: price for product, price in priced}, tuple(goals)


def check_source(source: GoalSource) -> None:
    """Raises `ValueError` for a source that does not exist."""
    if source not in get_args(GoalSource):
        raise ValueError(f"goal source is {source!r}, expected 'synthetic' or 'human'")


def sample_prices(products: Iterable[Product], draw: random.Random) -> list[float]:
    """What each product really costs (dollars); a price range is settled by one uniform draw."""
    return [
        product.pricing[0] if len(product.pricing) == 1 else draw.uniform(*product.pricing)
        for product in products
    ]


def drafts_of(product: Product, price: float, source: GoalSource, draw: random.Random) -> list[Draft]:
    """The goals of one product; `draw` has sampled all prices, and has made all earlier products' goals."""
    return synthetic(product, price, draw) if source == "synthetic" else human(product, price, draw)


def goal_order(drafts: int, catalogue: AnyCatalogue, source: GoalSource) -> Sequence[int]:
    """Which draft becomes each goal: the official shuffle. `DataError` for too few to split."""
    if drafts < 3:
        raise DataError(
            f"{catalogue.source}: {drafts} {source} goals, expected at least 3 (test, dev, train)"
        )
    order = array("q", range(drafts))
    random.Random(SHUFFLE_SEED).shuffle(order)
    return order


def weight(source: GoalSource, attributes: Sequence[str], count: Mapping[str, int]) -> float:
    """Rarity of a synthetic goal's attributes: the mean of one over how many goals ask for each; human: 1."""
    if source == "human":
        return 1.0
    return sum(1.0 / count[attribute] for attribute in attributes) / len(attributes)


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
