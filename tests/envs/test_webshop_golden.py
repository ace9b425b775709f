"""Exact parity with transcripts of the official environment on its 1,000-product data.

What they hold and how they were recorded is told in the README beside them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.webshop.parity import REPLAYS, Official, check_rows, open_official, read_rows
from envs.webshop.world import WebShopWorld

pytestmark = pytest.mark.shared

COMPARED = {
    "products": 1000,
    "goals_synthetic": 1200,
    "goals_human": 13,
    "index_tokens": 1000,
    "search": 320,
    "rewards": 1600,
    "episodes": 2294,
}
"""Things compared in each file; an episode counts its pages."""
TEST_PANELS = {
    "synthetic": "ffe634da776a3d126176b927df8ce46f56c17629fed27d1fcfd2bf6bd3e7f508",
    "human": "c3e5907b9054a931509fd7373809415ed3ac4951b94dccdc19b315134ebb6b9b",
}


@pytest.fixture(scope="module")
def golden(shared: Path) -> Path:
    return shared / "data" / "webshop" / "golden"


@pytest.fixture(scope="module")
def official(golden: Path) -> Official:
    return open_official(golden.parent, golden)


@pytest.mark.parametrize("name", REPLAYS)
def test_every_recorded_row_is_reproduced(golden: Path, official: Official, name: str) -> None:
    checks = [
        check
        for number, row in enumerate(read_rows(golden, name))
        for check in check_rows(name, official, row, number)
    ]
    assert [(check.where, check.differing) for check in checks if check.differing] == []
    assert len(checks) == COMPARED[name]


@pytest.mark.parametrize(("source", "number"), [("synthetic", 6910), ("human", 13)])
def test_the_official_data_has_as_many_goals_and_their_test_panels_are_pinned(
    official: Official, source: str, number: int
) -> None:
    world = official.world(source)  # type: ignore[arg-type]
    assert len(world.goals) == number
    assert world.panel("test").digest == TEST_PANELS[source]


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_episodes_through_the_environment(golden: Path, official: Official, mode: str) -> None:
    worlds = {
        source: WebShopWorld(
            official.catalogue,
            source,
            nouns="stored",
            index=official.index,
            max_steps=100,
            observation_mode=mode,  # type: ignore[arg-type]
        )
        for source in ("synthetic", "human")
    }
    for episode in read_rows(golden, "episodes"):
        if episode["show_attrs"]:
            continue
        env = worlds[episode["mode"]].make_env()
        observation, info = env.reset(options={"task": f"{episode['mode']}-{episode['goal_index']}"})
        for number, step in enumerate(episode["steps"]):
            if number:
                observation, reward, terminated, truncated, info = env.step(step["action"])
                assert (reward, terminated, truncated) == (step["reward"], step["done"], False)
            assert observation == step["observation" if mode == "text" else "observation_rich"]
            assert list(info["clickables"]) == step["available_actions"]["clickables"]
            if step["done"]:
                assert info["success"] == (step["reward"] == 1.0)
                break
