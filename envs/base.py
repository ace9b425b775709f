"""What every environment promises: the text-env contract, task panels, worlds and demonstrators.

An environment is a `gymnasium.Env` whose observations and actions are strings. Everything the learner or a
report needs travels in the typed `info`, never inside the text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, Protocol, TypedDict

import gymnasium

Split = Literal["train", "dev", "test"]
Progress = Callable[[str, int, int], None]
"""(what is being done, how much of it is done, how much there is)"""


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


class EnvError(RuntimeError):
    """The engine, the retriever or the data failed; it says nothing about the policy.

    A rollout turns it into an errored trajectory, which is counted and left out of training and rates.
    """


class StepInfo(TypedDict):
    """Facts about the moment after `reset` or `step`; the same keys every time."""

    task_id: str
    task_type: str
    """Kind of task for per-type tables: the product category, the ALFWorld task type, the question form."""
    success: bool
    """The task was solved; never true on a truncated episode."""
    score: float
    """Graded result of the episode in [0, 1]; 0 until the environment pays."""
    admissible: tuple[str, ...]
    """Actions the environment accepts now, in its own syntax; free-text actions appear as a template."""
    action_valid: bool
    """Whether the last action was understood; true after `reset`."""
    reward_parts: NotRequired[Any]
    """Where a reward has parts: a dataclass that says why it is what it is, None before it is paid."""


class AnyText(gymnasium.spaces.Text):
    """Strings of any characters up to a length; sampling draws ASCII letters and digits."""

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length=max_length, min_length=0)

    def contains(self, x: Any) -> bool:
        """Whether this is a string that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length


class TextEnv(gymnasium.Env[str, str]):
    """A text world with a step limit.

    `reset(seed=, options={"task": task_id})` opens that task; without a task the seed chooses one of the train
    split. An action that is not understood is answered in the environment's own words, costs a step and sets
    `action_valid=False`. `truncated` means that the step limit ended the episode. Stepping an episode that is
    over raises `RuntimeError`; an unknown task id raises `KeyError`; a failing engine raises `EnvError`.
    """

    max_steps: int

    @classmethod
    def prepare(cls, coming: Sequence[tuple[TextEnv, str]]) -> None:
        """Told which actions its environments are about to be given, side by side in one rollout.

        What they need from outside can then be asked for in one batch; what an agent sees does not depend on it. What
        fails for one action is raised by its `step`; what fails for all ends the rollout.
        """


@dataclass(frozen=True)
class TaskPanel:
    """An ordered, pinned list of tasks; equal hashes mean that two runs saw the same tasks."""

    env: str
    split: Split
    task_ids: tuple[str, ...]
    task_texts: tuple[str, ...] = field(repr=False)
    """What the agent is asked in each task; it enters the hash, so a changed price cap is seen."""

    def __post_init__(self) -> None:
        if not self.task_ids:
            raise ValueError(f"the {self.env} {self.split} panel is empty; expected at least one task")
        if len(self.task_ids) != len(self.task_texts):
            raise ValueError(f"{len(self.task_ids)} task ids but {len(self.task_texts)} task texts")
        if len(set(self.task_ids)) != len(self.task_ids):
            raise ValueError(f"the {self.env} {self.split} panel repeats a task id")

    def __len__(self) -> int:
        return len(self.task_ids)

    @property
    def digest(self) -> str:
        """SHA-256 over the ordered ids and texts."""
        listed = json.dumps([self.env, self.split, self.task_ids, self.task_texts], ensure_ascii=False)
        return hashlib.sha256(listed.encode()).hexdigest()


@dataclass(frozen=True)
class Decision:
    """One move of a scripted demonstrator."""

    kind: str
    """What was decided, for accuracy per kind: WebShop has query, item, option, back, buy."""
    thought: str
    action: str
    careless: bool = False
    """Whether this move was drawn from the careless habit rather than the skilled one."""


class Demonstrator(Protocol):
    """A scripted player that reads only what a policy is shown; one object plays one episode."""

    def decide(self, observation: str, info: StepInfo) -> Decision:
        """The next move; called once before every `step`."""
        ...


class World(Protocol):
    """All that the environments of one process share: data, index, panels. Built once, never changed."""

    name: str
    """Benchmark name, as in suites and prompts: `webshop`."""

    def make_env(self) -> TextEnv:
        """A fresh environment over the shared data."""
        ...

    def panel(self, split: Split, size: int | None = None) -> TaskPanel:
        """The first `size` tasks of a split (all by default); `ValueError` when there are fewer."""
        ...

    def demonstrator(
        self, seed: Sequence[int], carelessness: Mapping[str, float] | None = None
    ) -> Demonstrator:
        """A player for one episode; `carelessness` maps kinds of decision to the chance of a careless one."""
        ...

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record: sizes, sources, hashes, versions of what decides rewards."""
        ...

    def counts(self) -> Mapping[str, int]:
        """What was asked of servers since the world was opened, and what failed, by kind; empty without servers."""
        ...
