"""A served model that plays as the scripted demonstrator does, known from nothing but the messages it is sent."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from agents.responses import format_response
from envs.base import World
from tests.agents.completions import Reply, said

_TAKEN = re.compile(r"^Actions taken so far: (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Demonstration:
    """One task as the demonstrator plays it."""

    responses: tuple[str, ...]
    success: bool


class Demonstrating:
    """Answers the n-th request of an episode by the demonstrator's n-th response to its task."""

    def __init__(self, world: World, tasks: tuple[str, ...]) -> None:
        self.by_task: dict[str, Demonstration] = {}
        self._by_opening: dict[str, str] = {}
        with closing(world.make_env()) as env:
            for task in tasks:
                player = world.demonstrator((7,))
                observation, info = env.reset(options={"task": task})
                self._by_opening[observation] = task
                responses, over = list[str](), False
                while not over:
                    decided = player.decide(observation, info)  # type: ignore[arg-type]  # a plain dict
                    responses.append(format_response(decided.thought, decided.action))
                    observation, _, terminated, truncated, info = env.step(decided.action)
                    over = terminated or truncated
                won = bool(info["success"]) and terminated
                self.by_task[task] = Demonstration(tuple(responses), won)

    def task_of(self, body: dict[str, Any]) -> str:
        """The task of a request, known by its opening observation; "" for one that shows none."""
        return self._find(body)[0]

    def _find(self, body: dict[str, Any]) -> tuple[str, int]:
        """(task, place of the message that opens it), behind whatever examples are shown."""
        places = [
            (task, place)
            for place, message in enumerate(body["messages"])
            for opening, task in self._by_opening.items()
            if message["content"].startswith(opening)
        ]
        return places[0] if places else ("", 0)

    def __call__(self, body: dict[str, Any], number: int) -> Reply:
        """The next response, with 100 tokens read for each message and 1 written for each word."""
        task, opened = self._find(body)
        if not task:
            return said("ready", prompt=100, completion=1)
        prompt = body["messages"][-1]["content"]
        counted = _TAKEN.search(prompt)
        written = sum(message["role"] == "assistant" for message in body["messages"][opened:])
        responses = self.by_task[task].responses  # its last one again for a policy that was not understood
        text = responses[min(int(counted[1]) if counted else written, len(responses) - 1)]
        return said(text, prompt=100 * len(body["messages"]), completion=len(text.split()))
