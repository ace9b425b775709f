"""Speed and memory as ratios measured in one run, so that a busy or slow machine moves both sides alike.

The two sides of a ratio are measured in turns, each pair in the opposite order of the one before. A ratio is
the median over pairs; its range over pairs says how far it may be believed.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from agents.policies.base import Sampling, Turn
from agents.policies.torch_policy import TorchPolicy
from agents.prompts import make_prompts
from benchmarks import bench_alfworld, bench_official, records
from benchmarks.bench_empg import looped, step_batch, vectorised
from benchmarks.bench_memory import QWEN_VOCABULARY, Form, Kind, Pass, Peak, check_same, measure_apart
from benchmarks.bench_official import choose
from benchmarks.bench_tools import ROOT, figure
from benchmarks.config import load_suite
from benchmarks.warm_start.small_model import build_model, train_tokenizer
from empg.advantages import EmpgConfig
from envs.webshop import WebShopEnv, WebShopWorld, load_world

Measure = Callable[[], float]


@dataclass(frozen=True)
class Sizes:
    """How much work each measurement does; the defaults take about five minutes on two idle cores."""

    repeats: int = 3
    products: int = 1000
    conversations: int = 64
    """Played at once, as many as an iteration of the default suite plays."""
    turns: int = 8
    new_tokens: int = 28
    """Tokens written in each turn at most: the demonstrator's thought and action under this tokenizer."""
    page_characters: int = 2000
    """Length that pages are cut to; few are longer."""
    shop_episodes: int = 300
    alfworld_games: int = bench_alfworld.GAMES
    steps: int = 100_000
    """Agent steps in the batch that EMPG modulates."""
    tokens_per_step: int = 8
    rows: int = 4
    """Of a pass whose memory is measured."""
    row_tokens: int = 128
    """Sampled tokens of each row."""
    vocabulary: int = QWEN_VOCABULARY
    chunk: int = 32
    """Tokens whose logits exist at a time."""


@dataclass(frozen=True)
class Ratio:
    """Two ways of doing the same, by pairs."""

    name: str
    unit: str
    first: str
    """What this project does."""
    second: str
    """What it is compared with."""
    pairs: tuple[tuple[float, float], ...]
    more_is_better: bool
    """Whether the unit counts work done (else cost); a ratio above 1 always favours `first`."""

    @property
    def ratios(self) -> tuple[float, ...]:
        """One for each pair."""
        return tuple(a / b if self.more_is_better else b / a for a, b in self.pairs)

    @property
    def median(self) -> float:
        """The figure to quote."""
        return statistics.median(self.ratios)


@dataclass(frozen=True)
class Rate:
    """A speed on its own."""

    name: str
    unit: str
    values: tuple[float, ...]


def in_pairs(first: Measure, second: Measure, repeats: int) -> tuple[tuple[float, float], ...]:
    """Measure both `repeats` times, in turns: AB, BA, AB, ..."""
    pairs = []
    for number in range(repeats):
        if number % 2:
            two, one = second(), first()
        else:
            one, two = first(), second()
        pairs.append((one, two))
    return tuple(pairs)


# Rollout with and without a cache that lives across turns


def walk(world: WebShopWorld, conversations: int, turns: int, characters: int) -> list[list[str]]:
    """What a shopper who clicks about at random is shown: `turns` pages for each conversation."""
    panel = world.panel("train", conversations)
    env, walks = world.make_env(), []
    for number, task in enumerate(panel.task_ids):
        generator = np.random.default_rng(number)
        page, info = env.reset(options={"task": task})
        pages = [page[:characters]]
        while len(pages) < turns:
            admissible = [action for action in info["admissible"] if action != "click[buy now]"]
            page, _, _, _, info = env.step(choose(admissible, page, generator))
            pages.append(page[:characters])
        walks.append(pages)
    return walks


def rollout_speed(policy: TorchPolicy, walks: Sequence[Sequence[str]], system: str, new_tokens: int) -> float:
    """Sampled tokens per second over whole conversations, reading of pages included."""
    chat = policy.chat
    session = policy.open(len(walks), Sampling())
    stopped, sampled, seconds = [True] * len(walks), 0, 0.0
    for turn in range(len(walks[0])):
        requests = [
            Turn(
                episode=number,
                new_ids=chat.next_ids(pages[turn], stopped[number])
                if turn
                else chat.opening_ids(system, pages[0]),
                restart=turn == 0,
                max_new_tokens=new_tokens,
                uniforms=np.random.default_rng((number, turn)).random(new_tokens),
            )
            for number, pages in enumerate(walks)
        ]
        begun = time.perf_counter()
        written = session.generate(requests)
        seconds += time.perf_counter() - begun
        sampled += sum(len(one.token_ids) for one in written)
        stopped = [one.stop == "stop" for one in written]
    return sampled / seconds


def bench_rollout(world: WebShopWorld, sizes: Sizes) -> Ratio:
    """Tokens per second with the cache kept across turns against reading everything again at each turn.

    The model has the shape of the shipped policy.
    """
    walks = walk(world, sizes.conversations, sizes.turns, sizes.page_characters)
    system = make_prompts(world.name).system
    context = sizes.turns * (sizes.page_characters + sizes.new_tokens) + 2048
    config = replace(load_suite("webshop").base.warm_start.model, max_context=context)
    texts = [page for pages in walks for page in pages]
    tokenizer = train_tokenizer([system, *texts], config.vocab_size)
    page_tokens = sum(len(tokenizer(page).input_ids) for page in texts) / len(texts)
    model = build_model(config, len(tokenizer), seed=0)

    def speed(keep_cache: bool) -> float:
        policy = TorchPolicy(model, tokenizer, max_context=config.max_context, keep_cache=keep_cache)
        return rollout_speed(policy, walks, system, sizes.new_tokens)

    rollout_speed(  # what is set up on first use
        TorchPolicy(model, tokenizer, max_context=config.max_context),
        [walks[0][:2]],
        system,
        sizes.new_tokens,
    )
    return Ratio(
        name=(
            f"rollout, {sizes.conversations} conversations of {sizes.turns} turns, "
            f"pages of {page_tokens:.0f} tokens, responses of {sizes.new_tokens}"
        ),
        unit="sampled tokens/s",
        first="cache kept across turns",
        second="read again at each turn",
        pairs=in_pairs(lambda: speed(True), lambda: speed(False), sizes.repeats),
        more_is_better=True,
    )


# The shop alone


def shop_speed(env: WebShopEnv, tasks: Sequence[str], seed: int) -> tuple[float, float]:
    """(steps per second, resets per second) under random valid actions; choosing them is not counted."""
    steps, step_seconds, reset_seconds = 0, 0.0, 0.0
    for number, task in enumerate(tasks):
        generator = np.random.default_rng((seed, number))
        begun = time.perf_counter()
        page, info = env.reset(options={"task": task})
        reset_seconds += time.perf_counter() - begun
        over = False
        while not over:
            action = choose(info["admissible"], page, generator)
            begun = time.perf_counter()
            page, _, terminated, truncated, info = env.step(action)
            step_seconds += time.perf_counter() - begun
            steps += 1
            over = terminated or truncated
    return steps / step_seconds, len(tasks) / reset_seconds


def bench_shop(world: WebShopWorld, sizes: Sizes) -> tuple[Rate, Rate]:
    """Speed of one environment in one process."""
    ids = world.panel("train").task_ids
    tasks = [ids[number % len(ids)] for number in range(sizes.shop_episodes)]
    measured = [shop_speed(world.make_env(), tasks, seed) for seed in range(sizes.repeats)]
    name = f"WebShop, {sizes.products:,} products, random valid actions"
    steps, resets = zip(*measured, strict=True)
    return Rate(name, "steps/s", steps), Rate(name, "resets/s", resets)


# EMPG as tensors and as loops


def bench_empg(sizes: Sizes) -> Ratio:
    """Seconds for one batch; both forms must give the same numbers before they are timed."""
    config, batch = EmpgConfig(), step_batch(sizes.steps, sizes.tokens_per_step)
    lists = (
        batch.advantage.tolist(),
        batch.next_step.tolist(),
        batch.token_entropy.tolist(),
        batch.step_of_token.tolist(),
    )
    torch.testing.assert_close(
        vectorised(batch, config), torch.tensor(looped(*lists, config)), atol=1e-4, rtol=0
    )
    return Ratio(
        name=f"EMPG, {len(batch.advantage):,} steps of {sizes.tokens_per_step} tokens",
        unit="s",
        first="tensors",
        second="Python loops",
        pairs=in_pairs(
            lambda: seconds(lambda: vectorised(batch, config)),
            lambda: seconds(lambda: looped(*lists, config)),
            sizes.repeats,
        ),
        more_is_better=False,
    )


def seconds(work: Callable[[], object]) -> float:
    """How long a call takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


# Memory of the scoring and the training pass


def bench_memory(kind: Kind, sizes: Sizes) -> Ratio:
    """Peak memory that a pass adds, with logits by chunks and all at once; both must find the same numbers."""
    first: list[Peak] = []

    def mebibytes(form: Form) -> float:
        peak = measure_apart(Pass(kind, form, sizes.rows, sizes.row_tokens, sizes.chunk, sizes.vocabulary))
        first.append(peak)
        check_same(first[0], peak)
        return peak.bytes / 2**20

    return Ratio(
        name=f"{kind}, {sizes.rows} x {sizes.row_tokens} tokens, vocabulary {sizes.vocabulary:,}",
        unit="MiB at the peak",
        first=f"chunks of {sizes.chunk} tokens",
        second="all logits at once",
        pairs=in_pairs(lambda: mebibytes("chunked"), lambda: mebibytes("naive"), sizes.repeats),
        more_is_better=False,
    )


# All of it


def run_bench(
    console: Console, out: Path | None = None, sizes: Sizes | None = None, data: Path | None = None
) -> dict[str, Any]:
    """Measure everything, print it, and write it as JSON where `out` says.

    data: official files for the comparison with the official shop; None takes the generated catalogue.
    """
    sizes = sizes or Sizes()
    results: list[Ratio | Rate] = []
    with console.status("opening the shop") as status:
        world = load_world(products=sizes.products)
        status.update("rollout")
        results.append(bench_rollout(world, sizes))
        status.update("shop")
        results.extend(bench_shop(world, sizes))
        cost = bench_official.measure_apart(data, sizes.products, sizes.shop_episodes)
        status.update("ALFWorld")
        games = bench_alfworld.measure_apart(sizes.alfworld_games)
        status.update("EMPG")
        results.append(bench_empg(sizes))
        status.update("memory")
        results += [bench_memory(kind, sizes) for kind in get_args(Kind)]
    report = {
        "format": 1,
        **records.provenance(ROOT),
        "threads": torch.get_num_threads(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "sizes": asdict(sizes),
        "ratios": [asdict(one) | {"ratio": one.median} for one in results if isinstance(one, Ratio)],
        "rates": [
            asdict(one) | {"rate": statistics.median(one.values)} for one in results if isinstance(one, Rate)
        ],
        "alfworld": asdict(games),
        "webshop": {"here": asdict(cost), "official": asdict(bench_official.OFFICIAL)},
    }
    show(console, results)
    show_cost(console, cost)
    bench_alfworld.show_costs(console, games)
    if out is not None:
        records.write_json(out, report)
    return report


def show(console: Console, results: Sequence[Ratio | Rate]) -> None:
    """Two tables: ratios with both sides, and plain rates."""
    table = Table("measurement", "compared", box=SIMPLE_HEAD, show_edge=False)
    table.add_column("median", justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("range", justify="right")
    for one in results:
        if isinstance(one, Rate):
            table.add_row(
                one.name, one.unit, figure(statistics.median(one.values)), "", _range(one.values, "")
            )
            continue
        ours, other = (statistics.median(side) for side in zip(*one.pairs, strict=True))
        table.add_row(
            f"{one.name}\n[{one.unit}]".replace("[", r"\["),
            f"{one.first}\n{one.second}",
            f"{figure(ours)}\n{figure(other)}",
            f"{figure(one.median)}×",
            _range(one.ratios, "×"),
        )
    console.print(table)
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    console.print(
        "Medians; the range is that of single pairs or repeats. Above 1× the first line is better. "
        f"{torch.get_num_threads()} threads{load}."
    )


def show_cost(console: Console, cost: bench_official.Cost) -> None:
    """The shop beside the official one."""
    table = Table(f"WebShop, {cost.products:,} products, text", box=SIMPLE_HEAD, show_edge=False)
    for column in ("here", "official", "ratio"):
        table.add_column(column, justify="right")
    for row in bench_official.rows(cost):
        table.add_row(*row)
    console.print(table)
    official = bench_official.OFFICIAL
    console.print(
        f"Random valid actions, process CPU time. Official: its code on its own {official.products:,} products, "
        f"measured once on two shared cores. Title nouns here: {cost.nouns}; official: {official.nouns}.",
        markup=False,
    )


def _range(values: Sequence[float], unit: str) -> str:
    return f"{figure(min(values))} to {figure(max(values))}{unit}"


def main(data: Path | None = None) -> None:
    """Print the measurements of this machine."""
    run_bench(Console(), data=data)
