"""The official engine as a second backend: TextWorld's PDDL environment over Fast Downward, as `alfworld` drives it.

It is the oracle that the native engine is compared with, and a thousand times slower. Nothing of it is imported before
a game is opened. No planner and no expert runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from envs.alfworld.engine import Moment
from envs.alfworld.games import GameContent
from envs.base import EnvError

SUPPORTED = {"alfworld": "0.4.", "textworld": "1.7."}
"""Beginnings of the versions that this was compared with."""


def check_installed() -> None:
    """Raise `EnvError` where the official packages are missing or of another version than is supported."""
    for package, supported in SUPPORTED.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            raise EnvError(
                f"backend textworld needs the package {package} {supported}x, which is not installed: "
                "pip install 'empg-bench[alfworld]', or use the native backend"
            ) from None
        if not found.startswith(supported):
            raise EnvError(
                f"backend textworld: {package} {found} is installed, expected {supported}x: "
                "pip install 'empg-bench[alfworld]', or use the native backend"
            )


class OfficialGame:
    """One open game of the official engine; `close` hands its engine on to the next one."""

    def __init__(self, content: GameContent) -> None:
        """Load a game; one without domain and grammar gets those of the installed package.

        Raises `EnvError`: the engine is not installed, or cannot load the game.
        """
        check_installed()
        from envs.alfworld.export import official_table

        self._env: Any = _IDLE.pop() if _IDLE else _engine()
        self._admissible: tuple[str, ...] = ()
        with _as_error("load"):
            self._env.load(official_table(content))

    def reset(self) -> Moment:
        """Start again; the first feedback describes the room and the task."""
        with _as_error("reset"):
            return self._moment(self._env.reset(), understood=True)

    def step(self, command: str) -> Moment:
        """Carry out a command; one that is not admissible changes nothing."""
        understood = command.strip() in self._admissible
        with _as_error(f"step {command!r}"):
            return self._moment(self._env.step(command)[0], understood=understood)

    def close(self) -> None:
        """Hand the engine on; a second call does nothing."""
        if self._env is not None:
            _IDLE.append(self._env)
            self._env = None

    def _moment(self, state: Any, *, understood: bool) -> Moment:
        self._admissible = tuple(state["admissible_commands"])
        return Moment(str(state.feedback), self._admissible, bool(state["won"]), understood)


_IDLE: list[Any] = []
"""Engines that wait for another game. Each holds a copy of the planner's library, which cannot be unloaded safely: a
new copy may get the place of an old one in the file system, and is then taken for it. So no more are made than play at
once."""


def _engine() -> Any:
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld import EnvInfos
    from textworld.envs.pddl import PddlEnv

    return AlfredDemangler(env=PddlEnv(EnvInfos(won=True, admissible_commands=True)))


@contextmanager
def _as_error(doing: str) -> Iterator[None]:
    """Any failure of the engine as `EnvError`; the program's arguments, which the translator replaces, are kept."""
    arguments = sys.argv
    try:
        yield
    except Exception as error:
        raise EnvError(f"the official engine failed at {doing}: {type(error).__name__}: {error}") from error
    finally:
        sys.argv = arguments
