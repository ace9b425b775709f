"""Official game files: trees of `game.tw-pddl` and `traj_data.json` as the official download lays them out."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.alfworld.engine import Game
from envs.alfworld.grammar import parse_grammar, task_of
from envs.alfworld.problem import GameError
from envs.alfworld.tasks import OFFICIAL_TYPES, PARTS, Part, Task, TaskType
from envs.base import Progress, silent

GAME, FACTS = "game.tw-pddl", "traj_data.json"
FOLDERS: Mapping[Part, str] = {"train": "train", "seen": "valid_seen", "unseen": "valid_unseen"}
OFFICIAL_COUNTS: Mapping[Part, int] = {"train": 3553, "seen": 140, "unseen": 134}
"""Solvable games of the six types in version 2.1.1 of the official files."""
VARIABLE = "ALFWORLD_DATA"
"""The environment variable in which the official package is told where its files are."""
MEMO = "alfworld-games.json"
HINT = (
    f"set DATA or {VARIABLE} to the folder that `alfworld-download` fills (it holds json_2.1.1/train, "
    "json_2.1.1/valid_seen and json_2.1.1/valid_unseen)"
)


@dataclass(frozen=True)
class GameContent:
    """What a game is made of, from a file or generated."""

    problem: str
    """The PDDL problem."""
    task: str
    """The sentence behind `Your task is to: `."""
    walkthrough: tuple[str, ...]
    """Commands that win the game."""
    grammar: str | None = None
    """The official text grammar with the task in it; None for a generated game."""
    domain: str | None = None
    """The official PDDL domain; None for a generated game."""


def parse_game(content: GameContent) -> Game:
    """A game for the native engine, with its own texts or, where it has none, the built-in ones."""
    if content.grammar is None:
        return Game.parse(content.problem, task=content.task)
    return Game.parse(content.problem, content.grammar)


@dataclass(frozen=True)
class GameRef:
    """Where a game of a tree is."""

    task_id: str
    """`<folder of the task>/<folder of the trial>`."""
    part: Part
    path: Path
    """Its game file."""


def find_tree(data: Path | str | None = None) -> Path:
    """The folder that holds `train`, `valid_seen` and `valid_unseen`: `data`, its `json_2.1.1`, or the same of the
    environment variable `ALFWORLD_DATA` where `data` is None.

    Raises `GameError` where there is none.
    """
    named = data if data is not None else os.environ.get(VARIABLE)
    if not named:
        raise GameError(f"the official ALFWorld games were asked for, but no folder is named; {HINT}")
    root = Path(named)
    for folder in (root, root / "json_2.1.1"):
        if all((folder / name).is_dir() for name in FOLDERS.values()):
            return folder
    raise GameError(f"no folders {', '.join(FOLDERS.values())} in {root} or {root / 'json_2.1.1'}; {HINT}")


def list_games(tree: Path, part: Part) -> tuple[GameRef, ...]:
    """The games of a part, sorted by id; trials without a game file and the unsupported kinds (sliced, movable) are
    left out, as the official package does.
    """
    found = []
    for path in sorted((tree / FOLDERS[part]).glob(f"*/*/{FACTS}")):
        task_id = f"{path.parent.parent.name}/{path.parent.name}"
        if "movable" in task_id or "Sliced" in task_id or not (path.parent / GAME).is_file():
            continue
        found.append(GameRef(task_id, part, path.parent / GAME))
    return tuple(sorted(found, key=lambda ref: ref.task_id))


def read_game(path: Path) -> GameContent:
    """Read a game file, or the one in a trial's folder.

    Raises `GameError`: missing, not JSON, or without what a game needs.
    """
    return _content(_read_table(path), path)


def _content(table: Mapping[str, Any], path: Path) -> GameContent:
    try:
        grammar = str(table["grammar"])
        return GameContent(
            problem=str(table["pddl_problem"]),
            task=task_of(grammar),
            walkthrough=tuple(str(command) for command in table.get("walkthrough") or ()),
            grammar=grammar,
            domain=str(table["pddl_domain"]),
        )
    except (KeyError, TypeError) as error:
        raise GameError(f"{path} has no {error}, expected an official game file") from None
    except GameError as error:
        raise GameError(f"{path}: {error}") from error


def _read_table(path: Path) -> dict[str, Any]:
    if path.is_dir():
        if not (path / GAME).is_file():
            raise GameError(f"no {GAME} in {path}, expected the folder of one trial or its game file")
        path /= GAME
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise GameError(f"no file {path}; {HINT}") from None
    except ValueError as error:
        raise GameError(f"{path} is no game file: {error}") from error
    if not isinstance(table, dict):
        raise GameError(f"{path} is no game file: expected a JSON object")
    return table


class OfficialGames:
    """The games of an official tree: listed, counted and hashed once, read when they are opened."""

    def __init__(
        self,
        tree: Path,
        *,
        counts: Mapping[Part, int] = OFFICIAL_COUNTS,
        memo: Path | None = None,
        progress: Progress = silent,
    ) -> None:
        """Look through a tree; what files say is remembered in the file `memo` until they change.

        counts: how many games each part must have.

        Raises `GameError`: a part is empty or partial, or a file is no game.
        """
        known = _known(memo)
        games = {part: list_games(tree, part) for part in PARTS}
        self._refs: dict[str, GameRef] = {}
        self._tasks: dict[Part, tuple[Task, ...]] = {}
        seen: dict[str, dict[str, Any]] = {}
        lines, putting = list[str](), set[str]()
        total, done = sum(map(len, games.values())), 0
        for part, refs in games.items():
            tasks = []
            for ref in refs:
                entry = _entry(ref, known)
                seen[str(ref.path.resolve())] = entry
                done += 1
                if done % 50 == 0 or done == total:
                    progress("reading games", done, total)
                if not entry["solvable"]:
                    continue
                tasks.append(Task(ref.task_id, entry["type"], entry["task"]))
                self._refs[ref.task_id] = ref
                lines.append(f"{part} {ref.task_id} {entry['sha256']}\n")
                putting.add(entry["put"])
            self._tasks[part] = tuple(tasks)
        _check_counts(tree, {part: len(tasks) for part, tasks in self._tasks.items()}, counts)
        if seen != known:
            write_json(memo, seen)
        self._digest = hashlib.sha256("".join(lines).encode()).hexdigest()
        self._putting = "; ".join(sorted(putting))

    def tasks(self, part: Part) -> Sequence[Task]:
        """The tasks of a part, sorted by id."""
        return self._tasks[part]

    def content(self, task_id: str) -> GameContent:
        """A game; `GameError` where its file is missing or no game."""
        return read_game(self._refs[task_id].path)

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts: the games' number, the SHA-256 of ids and contents, and how putting is spelled: by
        that, versions of the official texts differ most.
        """
        return {
            "data": "official",
            "data_digest": self._digest,
            "games": sum(map(len, self._tasks.values())),
            "putting": self._putting,
        }


def _entry(ref: GameRef, known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the index knows about a game: read again only where one of its files has changed."""
    states = [path.stat() for path in (ref.path, ref.path.parent / FACTS)]
    stamp = [number for state in states for number in (state.st_size, state.st_mtime_ns)]
    entry = known.get(str(ref.path.resolve()))
    if entry is not None and entry["stamp"] == stamp:
        return dict(entry)
    table = _read_table(ref.path)
    content = _content(table, ref.path)
    return {
        "stamp": stamp,
        "type": _task_type(ref.path.parent / FACTS),
        "task": content.task,
        "put": parse_grammar(content.grammar or "").actions["putobject"].template,
        "solvable": bool(table.get("solvable")),
        "sha256": hashlib.sha256(ref.path.read_bytes()).hexdigest(),
    }


def _task_type(path: Path) -> TaskType:
    try:
        name = json.loads(path.read_text(encoding="utf-8"))["task_type"]
    except (ValueError, KeyError, TypeError) as error:
        raise GameError(f"{path} does not say its task_type: {error}") from error
    if name not in OFFICIAL_TYPES:
        raise GameError(f"{path} has task type {name!r}, expected one of {', '.join(OFFICIAL_TYPES)}")
    return OFFICIAL_TYPES[name]


def _check_counts(tree: Path, found: Mapping[Part, int], expected: Mapping[Part, int]) -> None:
    wrong = [
        f"{FOLDERS[part]} has {found[part]} games, expected {expected[part]}"
        for part in PARTS
        if found[part] != expected[part]
    ]
    if wrong:
        raise GameError(f"{tree} is not the whole set: {'; '.join(wrong)}; {HINT}")


def _known(memo: Path | None) -> dict[str, dict[str, Any]]:
    """What an earlier look found; nothing where it is of another form, since it can be found out again."""
    fields = ("stamp", "type", "task", "put", "solvable", "sha256")
    try:
        return {
            path: {name: entry[name] for name in fields} for path, entry in (read_json(memo) or {}).items()
        }
    except (KeyError, TypeError, AttributeError):
        return {}


def read_json(path: Path | None) -> dict[str, Any] | None:
    """The table in a file of the cache; None where there is none that can be read."""
    try:
        table = None if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return table if isinstance(table, dict) else None


def write_json(path: Path | None, table: Mapping[str, Any]) -> None:
    """Put a table into a file of the cache, whole or not at all; nothing where there is no cache."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(table), encoding="utf-8")
    os.replace(draft, path)
