"""Games written as the official files are, for the official engine; its domain and texts come from its own package."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from envs.alfworld.games import FACTS, GAME, GameContent
from envs.alfworld.tasks import OFFICIAL_TYPES, Task
from envs.base import EnvError

DOMAIN, TEXTS = "alfred.pddl", "alfred.twl2"
PLACEHOLDER = "UNKNOWN GOAL."
"""What the package's texts say instead of a task."""


def domain_text() -> str:
    """The official PDDL domain; `EnvError` where the package is not installed."""
    return _package_file(DOMAIN)


def grammar_text(task: str) -> str:
    """The official texts for a task such as `put a mug in desk.`; `EnvError` where they cannot be had."""
    text = _package_file(TEXTS)
    if PLACEHOLDER not in text:
        raise EnvError(
            f"{TEXTS} of the installed alfworld has no {PLACEHOLDER!r} to replace, expected that of 0.4"
        )
    return text.replace(PLACEHOLDER, task)


def official_table(content: GameContent) -> dict[str, Any]:
    """What the game file of a game holds."""
    return {
        "pddl_domain": content.domain or domain_text(),
        "grammar": content.grammar or grammar_text(content.task),
        "pddl_problem": content.problem,
        "solvable": True,
        "walkthrough": list(content.walkthrough),
    }


def export_game(task: Task, content: GameContent, folder: Path) -> Path:
    """Write a game into `<folder>/<task id>` as the official download lays it out, and return its game file."""
    official = next(name for name, short in OFFICIAL_TYPES.items() if short == task.task_type)
    target = folder / task.task_id
    target.mkdir(parents=True, exist_ok=True)
    facts = {"task_id": target.name, "task_type": official}
    for name, table in ((FACTS, facts), (GAME, official_table(content))):
        draft = target / f".{name}.{os.getpid()}"
        draft.write_text(json.dumps(table), encoding="utf-8")
        os.replace(draft, target / name)
    return target / GAME


@lru_cache(maxsize=4)
def _package_file(name: str) -> str:
    """A file of the installed package, which is found without importing it: that would make folders."""
    spec = find_spec("alfworld")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place) / "data" / name
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise EnvError(
        f"{name} comes with the package alfworld, which is not installed: pip install 'empg-bench[alfworld]'"
    )
