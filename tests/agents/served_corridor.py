"""A corridor that a served model walks: over a real server on loopback, with a clock that never waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.policies.openai_policy import OpenAIPolicy
from agents.policies.openai_wire import Endpoint
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from agents.trajectory import Trajectory
from envs.client import Patience
from tests.agents.completions import Reply, Server, said
from tests.agents.toys import Corridor

FAST = Patience(timeout_s=5.0, connect_s=5.0, tries=4, first_wait_s=1.0, longest_wait_s=30.0)
PROMPTS = Prompts("Walk.")


def walked(body: dict[str, Any], number: int = 0) -> Reply:
    """The corridor's perfect answer, read from the messages alone."""
    task = next(m["content"] for m in body["messages"] if "Take the stone" in m["content"])
    here = body["messages"][-1]["content"].rpartition("cell ")[2].split(".")[0]
    action = "take" if f"in cell {here}." in task.split("You are")[0] else "right"
    return said(
        f"Thought: I am in cell {here}.\nAction: {action}", prompt=len(body["messages"]), completion=7
    )


def policy_of(server: Server, **settings: Any) -> OpenAIPolicy:
    given = {"patience": FAST, "parallel": 4, "sleep": lambda _: None, **settings}
    return OpenAIPolicy(given.pop("endpoint", Endpoint(server.url, "m")), **given)


def play(policy: Any, tasks: Sequence[str], **changes: Any) -> list[Trajectory]:
    episodes = [Episode(task, group=0, sample=i, place=(0, i)) for i, task in enumerate(tasks)]
    return rollout(
        policy, Corridor, episodes, RolloutConfig(max_new_tokens=100, **changes), prompts=PROMPTS, seed=3
    )
