"""Official data: what is needed, what is there, and the cache that runs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.config import ConfigError, RunConfig
from benchmarks.prepare import one_line, open_world
from benchmarks.progress import Status, display
from benchmarks.worlds import BENCHMARKS
from envs.base import EnvError, Progress, World

Lines = list[str]


def describe_needed(benchmark: str, console: Console) -> None:
    """Name the official files of a benchmark and where they come from."""
    found = BENCHMARKS[benchmark]
    lines = [
        f"{benchmark} reads these official files, all of one size, from one folder:",
        *(f"  {name}: {meaning}" for name, meaning in found.needed.items()),
        f"{found.origin}.",
        "With `--data FOLDER` this command checks the files of a folder and prepares them.",
    ]
    show(lines, console)


def prepare_data(config: RunConfig, data: Path, cache: Path, console: Console) -> None:
    """Check the official files in a folder, show what they hold, and put what is large into the cache.

    Raises `ConfigError`: a file is missing, malformed, or without usable tasks.
    """
    before, after = CHECKS[config.benchmark]
    with display(console) as shown:

        def progress(stage: str, done: int, total: int) -> None:
            shown.update("data", Status(stage, done, total))

        try:
            lines = before(data, cache, progress)
            world = open_world(config, data, cache, lambda status: shown.update("data", status))
            lines += after(world, progress)
        except (EnvError, ValueError, OSError) as error:
            raise ConfigError(one_line(error)) from error
    show(lines, console)


def show(lines: Lines, console: Console) -> None:
    """Print lines as they are."""
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _webshop_files(data: Path, cache: Path, progress: Progress) -> Lines:
    from envs.webshop.cache import HASHES, content_hashes
    from envs.webshop.catalogue import find_files

    paths = find_files(data)
    hashes = content_hashes(paths, cache / HASHES, progress)
    return [f"{hashes[kind]}  {path.stat().st_size:>13,} bytes  {path.name}" for kind, path in paths.items()]


def _webshop_world(world: World, progress: Progress) -> Lines:
    facts = world.describe()
    splits = ", ".join(
        f"{part['tasks']:,} {split} ({part['share_with_options']:.0%} with options)"
        for split, part in facts["splits"].items()
    )
    return [
        f"{facts['products']:,} products; {facts['goals']:,} {facts['goal_source']} goals: {splits}; "
        f"content {facts['data_digest'][:12]}"
    ]


def _alfworld_files(data: Path, cache: Path, progress: Progress) -> Lines:
    from envs.alfworld.games import find_tree

    return [f"games in {find_tree(data)}"]


def _alfworld_world(world: World, progress: Progress) -> Lines:
    """How many games there are of each type; a game of each is won by its walkthrough, or `EnvError`."""
    from envs.alfworld.games import FOLDERS
    from envs.alfworld.world import AlfworldWorld

    assert isinstance(world, AlfworldWorld)
    facts = world.describe()
    lines, walked = [], list[str]()
    for split, part in facts["splits"].items():
        tasks = world.tasks(split)
        counts = Counter(task.task_type for task in tasks)
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        lines.append(f"{part['tasks']:,} games in {FOLDERS[part['part']]}: {listed}")
        walked += {task.task_type: task.task_id for task in tasks}.values()
    for number, task_id in enumerate(walked):
        world.check(task_id)
        progress("walking through games", number + 1, len(walked))
    return [*lines, f"{len(walked)} walkthroughs won; content {facts['data_digest'][:12]}"]


def _deepsearch_files(data: Path, cache: Path, progress: Progress) -> Lines:
    from envs.deepsearch.corpus import FileCorpus
    from envs.deepsearch.load import CORPUS

    corpus = FileCorpus(data / CORPUS, cache, progress)
    return [f"{corpus.digest}  {len(corpus):,} passages  {CORPUS}"]


def _deepsearch_world(world: World, progress: Progress) -> Lines:
    """Questions by file and split, and how many answers and supporting pages the corpus has."""
    from envs.deepsearch.world import DeepSearchWorld

    assert isinstance(world, DeepSearchWorld)
    facts = world.describe()
    lines = [
        f"{file['sha256']}  {file['questions']:,} questions, {file['domain']}  {name}"
        for name, file in facts["files"].items()
    ]
    lines.append(", ".join(f"{count:,} {split} questions" for split, count in facts["splits"].items()))
    asked = [question for split in ("train", "dev", "test") for question in world.questions(split)]
    titles = [(question, title) for question in asked for title in question.supporting_titles]
    there = sum(bool(world.corpus.titled(title)) for _, title in titles)
    if titles:
        lines.append(f"{there:,} of {len(titles):,} supporting pages are in the corpus")
    said = _share_answerable(world, asked, progress)
    return [
        *lines,
        f"{said} of {len(asked):,} questions have an accepted answer in some passage, or yes or no",
    ]


def _share_answerable(world: Any, asked: Sequence[Any], progress: Progress) -> int:
    """How many questions have an answer whose tokens stand in a passage in one piece."""
    from envs.deepsearch.scorers import normalize

    wanted = [{f" {normalize(gold)} " for gold in question.golds} for question in asked]
    found = [bool(golds & {" yes ", " no "}) for golds in wanted]
    for number, passage in enumerate(world.corpus.passages()):
        text = f" {normalize(f'{passage.title} {passage.text}')} "
        for place, golds in enumerate(wanted):
            if not found[place]:
                found[place] = any(gold in text for gold in golds)
        if number % 1000 == 0:
            progress("looking for answers", number, len(world.corpus))
    return sum(found)


Before = Callable[[Path, Path, Progress], Lines]
After = Callable[[World, Progress], Lines]
CHECKS: Mapping[str, tuple[Before, After]] = {
    "webshop": (_webshop_files, _webshop_world),
    "alfworld": (_alfworld_files, _alfworld_world),
    "deepsearch": (_deepsearch_files, _deepsearch_world),
}
"""What is looked at before a benchmark's official files are opened (folder, cache), and afterwards."""
