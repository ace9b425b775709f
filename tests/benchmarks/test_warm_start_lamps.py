"""A world of two pages for the warm-start tests: choose the lamp that was asked for, then press `go`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from envs.base import Decision, Split, StepInfo, TaskPanel, TextEnv

COLORS = ("dark blue", "red", "pale green", "b0katomilu")
TASKS = 12


class LampEnv(TextEnv):
    observation_space = gymnasium.spaces.Text(10_000)
    action_space = gymnasium.spaces.Text(1_000)
    max_steps = 4

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        assert options is not None
        self._task = str(options["task"])
        self._wanted = COLORS[int(self._task.split("-")[1]) % len(COLORS)]
        self._chosen, self._steps = "", 0
        return self._page(), self._info(over=False, valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        known = action in self._admissible()
        if known and action != "click[go]":
            self._chosen = action[len("click[") : -1]
        over = action == "click[go]"
        info = self._info(over, known)
        return self._page(), float(info["success"]), over, not over and self._steps == self.max_steps, info

    def _page(self) -> str:
        return " [SEP] ".join(
            ["Lamps", "Wanted:", self._wanted, "Offered:", *COLORS, "Chosen:", self._chosen, "Go"]
        )

    def _admissible(self) -> tuple[str, ...]:
        return (*(f"click[{color}]" for color in COLORS), "click[go]")

    def _info(self, over: bool, valid: bool) -> dict[str, Any]:
        won = over and self._chosen == self._wanted
        info = StepInfo(
            task_id=self._task, task_type="lamp", success=won, score=float(won),
            admissible=self._admissible(), action_valid=valid,
        )  # fmt: skip
        return {**info, "wanted": self._wanted, "chosen": self._chosen}


class LampPlayer:
    def __init__(self, seed: Sequence[int], carelessness: Mapping[str, float] | None) -> None:
        self._rng = np.random.default_rng(np.random.SeedSequence(list(seed)))
        self._careless = (carelessness or {}).get("option", 0.0)

    def decide(self, observation: str, info: StepInfo) -> Decision:
        facts: Any = info
        if facts["chosen"]:
            return Decision("buy", "Chosen", "click[go]")
        if self._rng.random() < self._careless:
            return Decision("option", "Any will do", "click[red]", careless=True)
        return Decision("option", f"{facts['wanted']} is wanted", f"click[{facts['wanted']}]")


class LampWorld:
    name = "webshop"  # a name that has a system prompt

    def __init__(self, tasks: int = TASKS) -> None:
        self.tasks = tasks

    def make_env(self) -> TextEnv:
        return LampEnv()

    def panel(self, split: Split, size: int | None = None) -> TaskPanel:
        ids = tuple(f"{split}-{number}" for number in range(self.tasks if size is None else size))
        return TaskPanel(self.name, split, ids, ids)

    def demonstrator(
        self, seed: Sequence[int], carelessness: Mapping[str, float] | None = None
    ) -> LampPlayer:
        return LampPlayer(seed, carelessness)

    def counts(self) -> dict[str, int]:
        return {}

    def describe(self) -> dict[str, Any]:
        return {"name": "lamps", "tasks": self.tasks}


def test_the_skilled_lamp_player_wins_every_task_of_the_stub_world():
    world = LampWorld()
    env = world.make_env()
    for task_id in world.panel("train").task_ids:
        player = world.demonstrator((0,))
        observation, info = env.reset(options={"task": task_id})
        over = False
        while not over:
            observation, _, over, _, info = env.step(player.decide(observation, info).action)
        assert info["success"]
