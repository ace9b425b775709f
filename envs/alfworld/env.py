"""The ALFWorld text environment: one household task in one room, the official texts.

Departures from the official environment (alfworld 0.4, `AlfredTWEnv`), all of them:

| where | official | here | made official by |
| --- | --- | --- | --- |
| engine | TextWorld over Fast Downward | the same results in plain Python | `backend="textworld"` |
| after the task is won | accepts commands | the episode is over; `step` raises `RuntimeError` | no |
| step limit | ends with `done`, won or not | `truncated`, which is never a success | no |
| reset | the next game of a shuffled list | any task by its id, at any time | no |
| numbers of things | shuffled for training on request | never shuffled: a task always reads the same | no |
| `put o in/on r` | not understood in games that say `move o to r` | the same; with `aliases=True` either is | default |

The reward is 1 at the moment the engine says that the task is won, else 0. A command that is not admissible is answered
by `Nothing happens.`, costs a step and sets `action_valid=False`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from envs.alfworld.engine import Engine, Moment
from envs.base import AnyText, StepInfo, TextEnv

if TYPE_CHECKING:
    from envs.alfworld.tasks import Task
    from envs.alfworld.world import AlfworldWorld

MAX_STEPS = 50
MAX_OBSERVATION_CHARACTERS = 1_000_000
MAX_ACTION_CHARACTERS = 100_000

_PUT = re.compile(r"put (?P<o>\S+ \d+) (?:in/on|in|on|into|onto) (?P<r>\S+ \d+)")
_MOVE = re.compile(r"move (?P<o>\S+ \d+) to (?P<r>\S+ \d+)")


class AlfworldInfo(StepInfo):
    """Facts about the moment after `reset` or `step`."""

    won: bool
    """What the engine says; it equals `success`, since an episode ends when it is won."""


class AlfworldEnv(TextEnv):
    """One agent in the games of a shared world; see the table above for how it differs from the official one."""

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012 - gymnasium's own name and form

    def __init__(
        self,
        world: AlfworldWorld,
        *,
        max_steps: int = MAX_STEPS,
        aliases: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if max_steps < 1:
            raise ValueError(f"max_steps is {max_steps}, expected at least 1")
        self.world = world
        self.max_steps = max_steps
        self.aliases = aliases
        self.render_mode = render_mode
        self.observation_space = AnyText(MAX_OBSERVATION_CHARACTERS)
        self.action_space = AnyText(MAX_ACTION_CHARACTERS)
        self._engine: Engine | None = None
        self._task: Task | None = None
        self._steps = 0
        self._over = False

    def reset(  # type: ignore[override]  # to mypy a TypedDict is no dict[str, Any]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, AlfworldInfo]:
        """Open a task by id, or one of the train split chosen by the seed.

        Raises `KeyError` for a task that this world does not have, `ValueError` for an unknown option and
        `EnvError` for a game that cannot be opened.
        """
        super().reset(seed=seed)
        options = options or {}
        if unknown := options.keys() - {"task"}:
            raise ValueError(f"unknown reset options {sorted(unknown)}, expected 'task'")
        if "task" in options:
            task = self.world.task(options["task"])
        else:
            train = self.world.tasks("train")
            task = train[int(self.np_random.integers(len(train)))]
        self.close()
        self._engine, self._task = self.world.open(task.task_id), task
        self._steps, self._over = 0, False
        self._moment = self._engine.reset()
        return self._moment.feedback, self._info(valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, AlfworldInfo]:  # type: ignore[override]
        """Carry out a command such as `go to desk 1`.

        Raises `RuntimeError` before `reset` and after the end, `TypeError` for an action that is no string.
        """
        if self._engine is None or self._over:
            raise RuntimeError("the episode is over; call reset" if self._over else "call reset before step")
        if not isinstance(action, str):
            raise TypeError(f"action is {action!r}, expected a string such as 'go to desk 1'")
        self._moment = self._engine.step(self._spelled(action))
        self._steps += 1
        won = self._moment.won
        truncated = not won and self._steps >= self.max_steps
        self._over = won or truncated
        return self._moment.feedback, float(won), won, truncated, self._info(valid=self._moment.understood)

    def render(self) -> str:
        """The last feedback."""
        if self._engine is None:
            raise RuntimeError("call reset before render")
        return self._moment.feedback

    def close(self) -> None:
        """Give back what the engine of the present game holds."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _spelled(self, action: str) -> str:
        """The command in the spelling that this game understands, where aliases are on."""
        found = _PUT.fullmatch(action.strip()) or _MOVE.fullmatch(action.strip())
        if not self.aliases or found is None:
            return action
        spelled = (f"move {found['o']} to {found['r']}", f"put {found['o']} in/on {found['r']}")
        return next((command for command in spelled if command in self._moment.admissible), action)

    def _info(self, *, valid: bool) -> AlfworldInfo:
        assert self._task is not None
        moment: Moment = self._moment
        return AlfworldInfo(
            task_id=self._task.task_id,
            task_type=self._task.task_type,
            success=moment.won,
            score=float(moment.won),
            admissible=moment.admissible,
            action_valid=valid,
            won=moment.won,
        )
