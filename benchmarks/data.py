"""Official data: what is needed, what is there, and the cache that runs share."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from benchmarks.config import ConfigError, RunConfig
from benchmarks.prepare import one_line, open_world
from benchmarks.progress import Status, display
from benchmarks.worlds import BENCHMARKS
from envs.webshop.cache import HASHES, content_hashes


def describe_needed(benchmark: str, console: Console) -> None:
    """Name the official files of a benchmark and where they come from."""
    found = BENCHMARKS[benchmark]
    lines = [
        f"{benchmark} reads these official files, all of one size, from one folder:",
        *(f"  {name}: {meaning}" for name, meaning in found.needed.items()),
        f"{found.origin}.",
        "With `--data FOLDER` this command checks the files of a folder and prepares them.",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def prepare_data(config: RunConfig, data: Path, cache: Path, console: Console) -> None:
    """Check the official files in a folder, show what they hold, and put large ones into the cache.

    Raises `ConfigError`: a file is missing, malformed, or without usable products.
    """
    with display(console) as shown:

        def progress(stage: str, done: int, total: int) -> None:
            shown.update("data", Status(stage, done, total))

        try:
            paths = BENCHMARKS[config.benchmark].files(data)
            hashes = content_hashes(paths, cache / HASHES, progress)
        except (ValueError, OSError) as error:
            raise ConfigError(one_line(error)) from error
        world = open_world(config, data, cache, lambda status: shown.update("data", status))
    for kind, path in paths.items():
        line = f"{hashes[kind]}  {path.stat().st_size:>13,} bytes  {path.name}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    facts = world.describe()
    splits = ", ".join(
        f"{part['tasks']:,} {split} ({part['share_with_options']:.0%} with options)"
        for split, part in facts["splits"].items()
    )
    console.print(
        f"{facts['products']:,} products; {facts['goals']:,} {facts['goal_source']} goals: {splits}; "
        f"content {facts['data_digest'][:12]}",
        highlight=False,
        soft_wrap=True,
    )
