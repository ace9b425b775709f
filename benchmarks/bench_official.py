"""What WebShop costs beside the official environment: CPU time of steps and resets, and the memory of a process.

Measured in a process of its own (`python -m benchmarks.bench_official`), which imports the environment and nothing else
that a user of it would not have.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_tools import figure, peak_bytes, resident_bytes, run_apart

Range = tuple[float, float]
"""Least and most of several measurements."""

ROUNDS = 3
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Cost:
    """CPU time of the process for a call (milliseconds), and its memory (MB)."""

    step: Range
    reset: Range
    opened: Range | None
    """Resident once the world is open; None where the system does not say."""
    peak: Range
    """The most after all rounds."""
    products: int
    nouns: str
    """Where title nouns come from: a tagger costs memory and time."""


OFFICIAL = Cost((22.5, 23.6), (4.3, 5.1), (442.0, 442.0), (695.0, 695.0), 1000, "spacy, en_core_web_sm")
"""The official code (princeton-nlp/WebShop 64fa2a5c) on its 1,000 products under random valid actions, measured on
two shared cores; its engine's Java threads are counted."""


def choose(admissible: Sequence[str], page: str, generator: np.random.Generator) -> str:
    """One of the valid actions; a search for three words of the page where the template is drawn."""
    action = admissible[int(generator.integers(len(admissible)))]
    if not action.startswith("search["):
        return action
    words = [word for word in page.split() if word.isalnum()]
    return f"search[{' '.join(words[int(place)] for place in generator.integers(len(words), size=3))}]"


def measure_apart(data: Path | None, products: int, episodes: int) -> Cost:
    """What a new process measures; `RuntimeError` with its last words when it fails."""
    arguments = [f"--products={products}", f"--episodes={episodes}"]
    arguments += [] if data is None else [f"--data={data.resolve()}"]
    return Cost(**run_apart("benchmarks.bench_official", arguments, "measuring the shop"))


def measure_here(data: Path | None, products: int, episodes: int) -> Cost:
    """Open the world in this process and play `episodes` episodes in each round; choosing is not counted."""
    from envs.webshop import load_world

    world = load_world(data, products=products)
    env = world.make_env()
    ids = world.panel("train", min(episodes, len(world.splits["train"]))).task_ids
    env.reset(options={"task": ids[0]})
    opened = resident_bytes()
    steps, resets = [], []
    for number in range(ROUNDS):
        generator = np.random.default_rng(number)
        step, reset = CpuClock(), CpuClock()
        for episode in range(episodes):
            task = ids[episode % len(ids)]
            page, info = reset.run(env.reset, options={"task": task})
            over = False
            while not over:
                action = choose(info["admissible"], page, generator)
                page, _, terminated, truncated, info = step.run(env.step, action)
                over = terminated or truncated
        steps.append(step.milliseconds)
        resets.append(reset.milliseconds)
    return Cost(
        step=(min(steps), max(steps)),
        reset=(min(resets), max(resets)),
        opened=None if opened is None else (opened / MEGABYTE, opened / MEGABYTE),
        peak=(peak_bytes() / MEGABYTE, peak_bytes() / MEGABYTE),
        products=len(world.catalogue),
        nouns=world.shop.nouns.describe(),
    )


class CpuClock:
    """Mean CPU time of this process, all threads, for calls of one kind."""

    def __init__(self) -> None:
        self._calls, self._seconds = 0, 0.0

    def run(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call, count, and return what was returned."""
        begun = time.process_time()
        found = call(*arguments, **named)
        self._seconds += time.process_time() - begun
        self._calls += 1
        return found

    @property
    def milliseconds(self) -> float:
        """Per call."""
        return 1000 * self._seconds / self._calls


def rows(cost: Cost, official: Cost = OFFICIAL) -> list[tuple[str, str, str, str]]:
    """(what, here, official, how many times less here) for each measure, as text."""
    named: Mapping[str, str] = {
        "step": "ms of CPU per step",
        "reset": "ms of CPU per reset",
        "opened": "MB resident, world open",
        "peak": "MB resident at the peak",
    }
    found = []
    for name, what in named.items():
        here, there = getattr(cost, name), getattr(official, name)
        if here is None:
            found.append((what, "?", span(there), "?"))
        else:
            ratio = (there[0] / here[1], there[1] / here[0])
            found.append((what, span(here), span(there), f"{span(ratio)}\u00d7"))
    return found


def span(values: Range) -> str:
    """`0.31 to 0.33`, or one number where both are shown alike."""
    low, high = map(figure, values)
    return low if low == high else f"{low} to {high}"


def main() -> None:
    """Measure and print as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--products", type=int, required=True)
    parser.add_argument("--episodes", type=int, required=True)
    arguments = parser.parse_args()
    print(json.dumps(asdict(measure_here(arguments.data, arguments.products, arguments.episodes))))


if __name__ == "__main__":
    main()
