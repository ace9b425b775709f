"""Small ALFWorld worlds for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from envs.alfworld import AlfworldWorld
from envs.alfworld.games import FOLDERS
from envs.alfworld.generate import GeneratedGames, plan, write
from envs.alfworld.tasks import OFFICIAL_TYPES, PARTS, Part

COUNTS: Mapping[Part, int] = {"train": 12, "seen": 6, "unseen": 6}
GRAMMAR = """grammar :: \"\"\"
    {
        "intro": [{"rhs": "-= Welcome to TextWorld, ALFRED! =-\\n\\n#look#\\n\\n#task#"}],
        "look": [{"rhs": "You look around."}],
        "task": [{"rhs": "Your task is to: TASK"}]
    }
\"\"\";
"""
"""A grammar as game files have it, with few texts."""
_ACTIONS = {
    "gotolocation": ("go to {r}", "You arrive at {r.name}."),
    "openobject": ("open {r}", "You open {r.name}."),
    "closeobject": ("close {r}", "You close {r.name}."),
    "pickupobject": ("take {o} from {r}", "Taken."),
    "putobject": ("PUT", "Done."),
    "inventory": ("inventory", "You look at your hands."),
    "examinereceptacle": ("examine {r}", "Nothing special."),
    "examineobject": ("examine {o}", "Nothing special."),
    "toggleobject": ("use {o}", "You turn on the {o.name}."),
    "heatobject": ("heat {o} with {r}", "Hot."),
    "cleanobject": ("clean {o} with {r}", "Clean."),
    "coolobject": ("cool {o} with {r}", "Cool."),
    "sliceobject": ("slice {co} with {ko}", "Sliced."),
    "look": ("look", "#look#"),
    "help": ("help", "Ask nobody."),
}


@lru_cache(maxsize=1)
def games() -> GeneratedGames:
    return GeneratedGames(0, counts=COUNTS, most_receptacles=14)


def world(**settings: Any) -> AlfworldWorld:
    return AlfworldWorld(games(), **settings)


def grammar(task: str, put: str = "move {o} to {r}") -> str:
    actions = "".join(
        f'action {name} {{\n    template :: "{template}";\n    feedback :: "{feedback}";\n}}\n'
        for name, (template, feedback) in _ACTIONS.items()
    )
    return GRAMMAR.replace("TASK", task) + actions.replace("PUT", put)


def write_tree(folder: Path, counts: Mapping[Part, int] = COUNTS, put: str = "move {o} to {r}") -> Path:
    """Generated games as a tree of the official form."""
    tree = folder / "json_2.1.1"
    for part in PARTS:
        (tree / FOLDERS[part]).mkdir(parents=True)
        for number in range(counts[part]):
            planned = plan(0, part, number, 14)
            write_game(tree / FOLDERS[part] / planned.task.task_id, planned, put)
    return tree


def write_game(folder: Path, planned: Any, put: str = "move {o} to {r}", **changed: Any) -> None:
    content = write(planned)
    walkthrough = [*content.walkthrough]
    if put.startswith("put"):
        walkthrough = [
            command.replace("move", "put").replace(" to ", " in/on ") if command[0] == "m" else command
            for command in walkthrough
        ]
    table = {
        "pddl_domain": "(define (domain alfred))",
        "grammar": grammar(content.task, put),
        "pddl_problem": content.problem,
        "walkthrough": walkthrough,
        "solvable": True,
        **changed,
    }
    official = {short: name for name, short in OFFICIAL_TYPES.items()}[planned.task.task_type]
    folder.mkdir(parents=True)
    (folder / "game.tw-pddl").write_text(json.dumps(table))
    (folder / "traj_data.json").write_text(json.dumps({"task_type": official}))
