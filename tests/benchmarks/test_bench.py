"""The measurements compare equal work, in fair order, and say which side is better."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from agents.policies.base import Generation, Turn
from benchmarks import bench, bench_official
from benchmarks.bench_empg import looped, step_batch, vectorised
from benchmarks.bench_memory import Pass, Peak, check_same, measure_apart
from benchmarks.bench_official import Cost
from empg.advantages import EmpgConfig
from envs.webshop import WebShopWorld, load_world
from tests.empg.oracle import empg_pseudocode
from tests.envs import shops

TINY = bench.Sizes(
    repeats=2,
    products=60,
    conversations=2,
    turns=3,
    new_tokens=4,
    page_characters=120,
    shop_episodes=3,
    alfworld_games=1,
    steps=50,
)

COST = Cost((0.5, 0.9), (0.1, 0.2), None, (100.0, 100.0), 60, "title words")


@pytest.fixture(scope="module")
def world() -> WebShopWorld:
    return load_world(products=TINY.products)


def test_the_two_sides_are_measured_in_turns_and_swap_places() -> None:
    calls: list[str] = []

    def side(name: str, value: float) -> bench.Measure:
        def measure() -> float:
            calls.append(name)
            return value

        return measure

    assert bench.in_pairs(side("a", 1.0), side("b", 2.0), 3) == ((1.0, 2.0),) * 3
    assert "".join(calls) == "abbaab"


@pytest.mark.parametrize(("more_is_better", "expected"), [(True, 2.0), (False, 0.5)])
def test_a_ratio_above_one_always_favours_the_first_side(more_is_better: bool, expected: float) -> None:
    # Ratios of the pairs: 2, 4 and 1.5; the ratio of the medians would be 3.
    pairs = ((2.0, 1.0), (12.0, 3.0), (6.0, 4.0)) if more_is_better else ((2.0, 1.0), (3.0, 0.75), (6.0, 4.0))
    assert bench.Ratio("", "", "", "", pairs, more_is_better).median == expected


def test_the_looped_form_is_the_papers_pseudocode_and_agrees_with_the_tensors() -> None:
    config = EmpgConfig(k=1.3, k_f=0.7, zeta=0.1)
    batch = step_batch(steps=20, tokens_per_step=3)
    in_rows = [[mark % 5 if mark >= 0 else -1 for mark in row] for row in batch.step_of_token.tolist()]
    raw = batch.advantage.reshape(-1, 5)[:, :1].expand(batch.token_entropy.shape)
    expected = empg_pseudocode(raw.tolist(), batch.token_entropy.tolist(), in_rows, k=1.3, k_f=0.7, zeta=0.1)
    written = batch.step_of_token >= 0
    wanted = torch.where(written, torch.tensor(expected), 0.0)
    found = looped(
        batch.advantage.tolist(),
        batch.next_step.tolist(),
        batch.token_entropy.tolist(),
        batch.step_of_token.tolist(),
        config,
    )
    torch.testing.assert_close(torch.tensor(found), wanted, atol=1e-5, rtol=0)
    torch.testing.assert_close(vectorised(batch, config), wanted, atol=1e-5, rtol=0)


def test_walks_show_as_many_pages_as_asked_for_and_never_end(world: WebShopWorld) -> None:
    walks = bench.walk(world, conversations=4, turns=8, characters=300)
    assert [len(pages) for pages in walks] == [8] * 4
    assert all(0 < len(page) <= 300 for pages in walks for page in pages)
    assert len({pages[0] for pages in walks}) == 4


def test_every_randomly_chosen_action_is_valid(world: WebShopWorld) -> None:
    env = world.make_env()
    generator = np.random.default_rng(0)
    kinds = set()
    for task in world.panel("train", 10).task_ids:
        page, info = env.reset(options={"task": task})
        over = False
        while not over:
            action = bench_official.choose(info["admissible"], page, generator)
            kinds.add(action.split("[")[0])
            page, _, terminated, truncated, info = env.step(action)
            assert info["action_valid"], action
            over = terminated or truncated
    assert kinds == {"search", "click"}


def test_each_turn_of_each_conversation_is_asked_for_once_and_only_the_first_restarts() -> None:
    asked: list[tuple[int, bool, tuple[int, ...]]] = []

    class Chat:
        def opening_ids(self, system: str, user: str) -> tuple[int, ...]:
            return (len(system), len(user))

        def next_ids(self, user: str, stopped: bool) -> tuple[int, ...]:
            return (int(stopped), len(user))

    class Session:
        def generate(self, turns: Sequence[Turn]) -> list[Generation]:
            asked.extend((turn.episode, turn.restart, turn.new_ids) for turn in turns)
            return [Generation((1, 2), (0.0, 0.0), "length" if turn.episode else "stop") for turn in turns]

    class Policy:
        chat = Chat()

        def open(self, episodes: int, sampling: object) -> Session:
            return Session()

    speed = bench.rollout_speed(Policy(), [["a", "bb"], ["ccc", "dddd"]], "sys", 4)  # type: ignore[arg-type]
    assert asked == [(0, True, (3, 1)), (1, True, (3, 3)), (0, False, (1, 2)), (1, False, (0, 4))]
    assert speed > 0


@pytest.mark.parametrize("kind", ["scoring", "training"])
def test_chunks_bound_the_memory_of_a_pass_that_finds_the_same(kind: Any) -> None:
    size = Pass(kind, "chunked", rows=3, tokens=128, chunk=16, vocabulary=60_000)
    chunked, naive = measure_apart(size), measure_apart(replace(size, form="naive"))
    logits = size.rows * size.tokens * size.vocabulary * 4
    assert naive.bytes > 2 * logits
    assert chunked.bytes < logits
    check_same(chunked, naive)
    assert len(naive.numbers) > 2
    assert all(np.isfinite(value) and value != 0 for value in naive.numbers.values())


def test_passes_that_find_different_numbers_are_an_error_that_shows_both() -> None:
    with pytest.raises(RuntimeError, match=r"entropy is 1.0 in one form of the pass and 1.1 in the other"):
        check_same(Peak(1, {"loss": 3.0, "entropy": 1.0}), Peak(2, {"loss": 3.0, "entropy": 1.1}))


def test_a_failing_memory_measurement_reports_the_childs_last_words() -> None:
    with pytest.raises(RuntimeError, match=r"chunked scoring pass ended with 2: .*invalid int value: 'many'"):
        measure_apart(Pass("scoring", "chunked", chunk="many"))  # type: ignore[arg-type]


def test_the_bench_prints_every_measurement_and_writes_it_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mebibytes = {"chunked": 32, "naive": 512}
    monkeypatch.setattr(
        bench, "measure_apart", lambda size: Peak(mebibytes[size.form] * 2**20, {"loss": 1.0})
    )
    asked = []

    def measured(data: Path | None, products: int, episodes: int) -> Cost:
        asked.append((data, products, episodes))
        return COST

    monkeypatch.setattr(bench_official, "measure_apart", measured)
    console = Console(width=120, record=True, file=(tmp_path / "screen").open("w"))
    bench.run_bench(console, tmp_path / "bench.json", TINY, tmp_path)
    assert asked == [(tmp_path, TINY.products, TINY.shop_episodes)]
    written = json.loads((tmp_path / "bench.json").read_text())
    assert [one["unit"] for one in written["ratios"]] == ["sampled tokens/s", "s", *["MiB at the peak"] * 2]
    assert [one["unit"] for one in written["rates"]] == ["steps/s", "resets/s"]
    assert all(len(one["pairs"]) == 2 and one["ratio"] > 0 for one in written["ratios"])
    assert [one["ratio"] for one in written["ratios"][2:]] == [16.0, 16.0]
    shown = console.export_text()
    for wanted in (
        "sampled tokens/s",
        "steps/s",
        "resets/s",
        "Python loops",
        "16×",
        "threads",
        "ms of CPU per step",
    ):
        assert wanted in shown
    assert written["webshop"]["official"]["step"] == [22.5, 23.6]


def test_the_shop_stands_beside_the_official_one_with_the_range_of_their_ratios() -> None:
    # The least ratio is the official least over our most: 22.5 / 0.9 and 23.6 / 0.5.
    assert bench_official.rows(COST) == [
        ("ms of CPU per step", "0.5 to 0.9", "22.5 to 23.6", "25 to 47.2×"),
        ("ms of CPU per reset", "0.1 to 0.2", "4.3 to 5.1", "21.5 to 51×"),
        ("MB resident, world open", "?", "442", "?"),
        ("MB resident at the peak", "100", "695", "6.95×"),
    ]


def test_the_shop_is_measured_in_a_process_of_its_own_without_torch_on_the_data_given(tmp_path: Path) -> None:
    cost = bench_official.measure_apart(shops.write(tmp_path), products=1, episodes=4)
    assert cost.products == 7
    assert 0 < cost.step[0] <= cost.step[1]
    assert 0 < cost.reset[0] <= cost.reset[1]
    assert cost.peak[1] < 200  # importing torch alone takes more


def test_a_failing_measurement_of_the_shop_reports_the_childs_last_words(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"measuring the shop ended with 1: .*items_shuffle"):
        bench_official.measure_apart(tmp_path, products=1, episodes=1)


@pytest.mark.parametrize(
    ("value", "shown"), [(1234.5, "1,234"), (99.46, "99.5"), (0.03141, "0.0314"), (7.0, "7")]
)
def test_figures_have_three_significant_digits(value: float, shown: str) -> None:
    assert bench.figure(value) == shown
