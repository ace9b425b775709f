"""Goals: their order, price caps and splits never depend on anything but the data."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.webshop.catalogue import DataError, build
from envs.webshop.goals import make_goals, splits
from tests.conftest import ROOT
from tests.envs import shops

PANEL_DIGESTS = {
    "synthetic": "9b8fb2586acaee447a299da59b00d1960c3f414aa7a2ad8f14e32961f751c956",
    "human": "a12bcda0aeaa037c347a55448da512e7facaccac0bc509d14f2b032222341840",
}


def test_a_synthetic_goal_is_made_for_every_combination_of_options() -> None:
    _, goals = make_goals(shops.catalogue(), "synthetic")
    shirt = {goal.options for goal in goals if goal.product.asin == "B000000001"}
    assert shirt == {
        (("color", color), ("size", size))
        for color in ("red", "navy | white")
        for size in ("large", "x-large")
    }
    assert len(goals) == 4 + 1 + 1 + 1


def test_instructions_name_options_by_sorted_name_and_then_the_cap() -> None:
    _, goals = make_goals(shops.catalogue(), "synthetic")
    goal = next(goal for goal in goals if goal.options == (("color", "red"), ("size", "large")))
    start = "Find me machine wash men's shirts with long sleeve with color: red, and size: large"
    assert goal.instruction == f"{start}, and price lower than {goal.price_upper:.2f} dollars"
    assert goal.price_upper in (40.0, 50.0, 60.0)  # the larger of two of 30, 40, 50, 60


def test_goals_of_one_product_share_one_price_cap() -> None:
    _, goals = make_goals(shops.catalogue(), "synthetic")
    assert len({goal.price_upper for goal in goals if goal.product.asin == "B000000001"}) == 1


def test_a_product_above_every_cap_has_no_price_in_its_instruction() -> None:
    _, goals = make_goals(shops.catalogue(), "synthetic")
    goal = next(goal for goal in goals if goal.product.asin == "B000000004")
    assert (goal.instruction, goal.price_upper) == ("Find me led lamps", 1_000_000)


def test_human_goals_drop_the_final_stop_and_skip_instructions_without_attributes() -> None:
    _, goals = make_goals(shops.catalogue(), "human")
    starts = sorted(goal.instruction.split(", and price")[0] for goal in goals)
    assert starts == ["a big shirt", "i want a red shirt", "warm wool socks"]
    assert {goal.options for goal in goals} == {("red",), ("large",), ()}


def test_draws_follow_the_official_order_prices_first_then_one_pair_of_caps_per_product() -> None:
    prices, goals = make_goals(shops.catalogue(), "synthetic")
    draw = random.Random(0)
    assert prices["B000000002"] == draw.uniform(19.99, 30.5)
    caps = {}
    for asin, price in (("1", 25.0), ("2", prices["B000000002"]), ("3", 100.0)):
        above = [10.0 * step for step in range(1, 100) if 10.0 * step > price][:4]
        caps["B00000000" + asin] = max(draw.sample(above, 2))
    assert {goal.product.asin: goal.price_upper for goal in goals} == caps | {"B000000004": 1_000_000}


def test_the_same_task_id_means_the_same_task_whatever_the_global_generators_and_hash_seed_did() -> None:
    code = (
        "import random, numpy; random.seed({0}); numpy.random.seed({0}); random.random();"
        "from tests.envs import shops;"
        "print(*[shops.world(source).panel(split).digest for source in ('synthetic', 'human')"
        " for split in ('test', 'dev', 'train')])"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code.format(seed)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (0, 1)
    }
    assert len(answers) == 1
    digests = answers.pop().split()
    assert (digests[0], digests[3]) == (PANEL_DIGESTS["synthetic"], PANEL_DIGESTS["human"])


def test_making_goals_leaves_the_global_generators_alone() -> None:
    random.seed(5)
    np.random.seed(5)
    before = random.getstate(), np.random.get_state()[1].tolist()
    make_goals(shops.catalogue(), "synthetic")
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_a_goal_source_must_be_one_of_the_two() -> None:
    with pytest.raises(ValueError, match="goal source is 'crowd', expected 'synthetic' or 'human'"):
        make_goals(shops.catalogue(), "crowd")  # type: ignore[arg-type]


def test_too_few_goals_for_three_splits_are_refused() -> None:
    catalogue = build("toy", [shops.row("B1", "A")], {}, {})
    with pytest.raises(DataError, match="toy: 0 human goals, expected at least 3"):
        make_goals(catalogue, "human")


@pytest.mark.parametrize(
    ("goals", "sizes"),
    [
        (3, (1, 1, 1)),
        (13, (2, 4, 7)),
        (2999, (499, 999, 1501)),
        (3000, (500, 1000, 1500)),
        (6910, (500, 1000, 5410)),
    ],
)
def test_split_sizes(goals: int, sizes: tuple[int, int, int]) -> None:
    parts = splits(goals)
    assert (len(parts["test"]), len(parts["dev"]), len(parts["train"])) == sizes


def test_large_sets_split_at_the_official_goal_numbers() -> None:
    parts = splits(12087)
    assert (parts["test"], parts["dev"], parts["train"]) == (range(500), range(500, 1500), range(1500, 12087))


@given(st.integers(3, 20_000))
def test_splits_are_disjoint_cover_all_goals_and_leave_none_empty(goals: int) -> None:
    parts = splits(goals)
    assert all(len(part) for part in parts.values())
    assert sorted(number for part in parts.values() for number in part) == list(range(goals))
