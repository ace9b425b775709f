"""A large WebShop catalogue mapped from its cache against the same one held in memory.

Each side is opened in a process of its own (`python -m benchmarks.bench_catalogue`), since memory that was
used once may stay with a process. What a process adds is its anonymous memory: the mapped pages are the
system's, once for all processes, and it may take them back.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.bench_tools import anonymous_bytes, peak_bytes, run_apart

QUERIES, EPISODES = 200, 50


def run_bench(console: Console, products: int, episodes: int = EPISODES) -> dict[str, Any]:
    """Write a catalogue of `products` products as official files, measure both ways of opening it, print them.

    Raises `RuntimeError` when the two give different tasks, search results or episodes.
    """
    from envs.webshop.generate import generate

    with tempfile.TemporaryDirectory() as folder, console.status(f"writing {products:,} products") as status:
        data, cache = Path(folder) / "data", Path(folder) / "cache"
        generate(products).write(data)
        size = sum(path.stat().st_size for path in data.glob("items_*.json"))
        sides = {}
        for name, mapped in (("first, makes the cache", True), ("mapped", True), ("held in memory", False)):
            status.update(name)
            sides[name] = measure_apart(data, cache if mapped else None, episodes)
        cached = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    if len({side["answers"] for side in sides.values()}) != 1:
        raise RuntimeError("the mapped and the held catalogue gave different answers, expected equal ones")
    console.print(show(sides, size))
    console.print(
        f"{products:,} products in {size / 1e6:,.0f} MB of files, {cached / 1e6:,.0f} MB of cache; wall seconds "
        f"(CPU seconds). Searches: {QUERIES} different instructions; memory after them and {episodes} episodes.",
        highlight=False,
    )
    return {"products": products, "bytes": size, "cache_bytes": cached, "sides": sides}


def show(sides: Mapping[str, Mapping[str, Any]], size: int) -> Table:
    """A row for each process."""
    table = Table("process", box=SIMPLE_HEAD, show_edge=False)
    for column in ("open", "first search", "median search", "added memory", "of the files", "peak"):
        table.add_column(column, justify="right")
    for name, side in sides.items():
        timed = [side[one] for one in ("open", "first_search", "median_search")]
        unit = [("s", 1), ("ms", 1000), ("ms", 1000)]
        times = [
            f"{wall * factor:.3g} {name} ({cpu * factor:.3g})"
            for (wall, cpu), (name, factor) in zip(timed, unit, strict=True)
        ]
        added = side["added_bytes"]
        memory = ["?", "?"] if added is None else [f"{added / 2**20:,.1f} MiB", f"{added / size:.1%}"]
        table.add_row(name, *times, *memory, f"{side['peak_bytes'] / 2**20:,.0f} MiB")
    return table


def measure_apart(data: Path, cache: Path | None, episodes: int) -> dict[str, Any]:
    """What a new process measures; `RuntimeError` with its last words when it fails."""
    arguments = [str(data), f"--episodes={episodes}"] + ([] if cache is None else [f"--cache={cache}"])
    measured: dict[str, Any] = run_apart("benchmarks.bench_catalogue", arguments, "opening the catalogue")
    return measured


def measure_here(data: Path, cache: Path | None, episodes: int) -> dict[str, Any]:
    """Open the data in this process, search and play; times are (wall, CPU) seconds."""
    from envs.webshop import load_world
    from envs.webshop.analysis import analyse

    analyse("what is set up on first use")
    before, answers = anonymous_bytes(), hashlib.sha256()
    opening, world = timed(lambda: load_world(data, nouns="stored", cache=cache, mapped_from=0))
    goals = [
        world.goals[number] for number in range(0, len(world.goals), max(1, len(world.goals) // QUERIES))
    ]
    searches = []
    for query in [goal.instruction.lower() for goal in goals][:QUERIES]:
        took, found = timed(lambda query=query: world.shop.find(query))  # type: ignore[misc]
        searches.append(took)
        answers.update(json.dumps([query, [product.asin for product in found]]).encode())
    env = world.make_env()
    for number, goal in enumerate(goals[:episodes]):
        page, info = env.reset(options={"task": goal.task_id})
        player, over = world.demonstrator((number,)), False
        while not over:
            page, reward, terminated, truncated, info = env.step(player.decide(page, info).action)
            over = terminated or truncated
            answers.update(json.dumps([page, reward]).encode())
    after = anonymous_bytes()
    median = sorted(searches)[len(searches) // 2]
    return {
        "open": opening,
        "first_search": searches[0],
        "median_search": median,
        "added_bytes": None if before is None or after is None else after - before,
        "peak_bytes": peak_bytes(),
        "answers": answers.hexdigest(),
    }


def timed(work: Callable[[], Any]) -> tuple[tuple[float, float], Any]:
    """Wall and CPU seconds of a call, and what it returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return (time.perf_counter() - wall, time.process_time() - cpu), found


def main() -> None:
    """Measure one side and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    arguments = parser.parse_args()
    print(json.dumps(measure_here(arguments.data, arguments.cache, arguments.episodes)))


if __name__ == "__main__":
    main()
