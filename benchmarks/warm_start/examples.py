"""Demonstrations as token rows, laid out by the very rollout that will sample from the policy.

The recorded episodes are replayed through `agents.rollout` by a policy that writes the demonstrated responses
and an environment that shows the recorded observations. So prompts, joints between turns, cuts and layouts
cannot differ from what reinforcement learning feeds later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from agents.chat import ChatFormat
from agents.policies.base import Generation, RoundSession, Sampling, Turn
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from agents.trajectory import Trajectory
from benchmarks.progress import Status
from benchmarks.warm_start.demonstrations import Demonstration, Progress, silent
from envs.base import Decision, StepInfo, TextEnv


@dataclass(frozen=True)
class Span:
    """Where a row holds a written response: tokens `start` to `stop`, end of turn included."""

    start: int
    stop: int
    decision: Decision


@dataclass(frozen=True, eq=False)
class Example:
    """One token row: a whole conversation, or a step of the window layout."""

    ids: NDArray[np.int64]
    """[T]"""
    spans: tuple[Span, ...]

    @property
    def written(self) -> NDArray[np.bool_]:
        """[T], true for the tokens of responses."""
        mask = np.zeros(len(self.ids), dtype=bool)
        for span in self.spans:
            mask[span.start : span.stop] = True
        return mask


def make_examples(
    demonstrations: Sequence[Demonstration],
    tokenizer: Any,
    config: RolloutConfig,
    *,
    prompts: Prompts,
    max_context: int,
    progress: Progress = silent,
) -> list[Example]:
    """Token rows of all demonstrations, in order; one that outgrows `max_context` is cut at a step.

    Raises `ValueError` if a response is longer than `config.max_new_tokens` or reads back as another action.
    """
    trajectories = replay(
        demonstrations, tokenizer, config, prompts=prompts, max_context=max_context, progress=progress
    )
    return [
        example
        for demonstration, trajectory in zip(demonstrations, trajectories, strict=True)
        for example in _rows(trajectory, demonstration)
    ]


def replay(
    demonstrations: Sequence[Demonstration],
    tokenizer: Any,
    config: RolloutConfig,
    *,
    prompts: Prompts,
    max_context: int,
    progress: Progress = silent,
) -> list[Trajectory]:
    """Trajectories that a policy writing the demonstrated responses would have left."""
    policy = _ReplayPolicy(demonstrations, tokenizer, prompts, max_context)
    episodes = [Episode(str(i), group=i, sample=0, place=(i,)) for i in range(len(demonstrations))]
    done = count(1)

    def note(_: Trajectory) -> None:
        progress(Status("tokens", next(done), len(episodes)))

    return rollout(
        policy, lambda: _ReplayEnv(demonstrations), episodes, config, prompts=prompts, seed=0, on_done=note
    )


def _rows(trajectory: Trajectory, demonstration: Demonstration) -> list[Example]:
    rows: list[tuple[list[int], list[Span]]] = []
    for step, decision in zip(
        trajectory.steps, demonstration.decisions, strict=False
    ):  # a full context ends early
        if not step.continues:
            rows.append(([], []))
        ids, spans = rows[-1]
        ids += step.prompt_ids
        spans.append(Span(len(ids), len(ids) + len(step.action_ids), decision))
        ids += step.action_ids
    return [Example(np.asarray(ids, dtype=np.int64), tuple(spans)) for ids, spans in rows]


class _ReplayPolicy(RoundSession):
    """Writes the demonstrated responses; a session asks for each episode's in order."""

    def __init__(
        self, demonstrations: Sequence[Demonstration], tokenizer: Any, prompts: Prompts, max_context: int
    ) -> None:
        self.chat = ChatFormat(tokenizer)
        self.max_context = max_context
        self._demonstrations, self._tokenizer, self._prompts = demonstrations, tokenizer, prompts
        self._written: dict[int, int] = {}

    def open(self, episodes: int, sampling: Sampling) -> _ReplayPolicy:
        return self

    def update(self) -> None:
        pass

    def generate(self, turns: Sequence[Turn]) -> list[Generation]:
        return [self._write(turn) for turn in turns]

    def close_episode(self, episode: int) -> None:
        self._written.pop(episode, None)

    def _write(self, turn: Turn) -> Generation:
        demonstration = self._demonstrations[turn.episode]
        number = self._written.get(turn.episode, 0)
        self._written[turn.episode] = number + 1
        decision = demonstration.decisions[number]
        text = self._prompts.format(decision.thought, decision.action)
        ids = (*self._tokenizer.encode(text, add_special_tokens=False), self.chat.turn_end)
        if len(ids) > turn.max_new_tokens:
            raise ValueError(
                f"the demonstrated response {text!r} of task {demonstration.task_id} has {len(ids)} tokens, "
                f"expected at most max_new_tokens = {turn.max_new_tokens}"
            )
        return Generation(ids, (0.0,) * len(ids), "stop")


class _ReplayEnv(TextEnv):
    """Shows the recorded observations; task ids are positions in the list of demonstrations."""

    observation_space = gymnasium.spaces.Text(1_000_000)
    action_space = gymnasium.spaces.Text(10_000)

    def __init__(self, demonstrations: Sequence[Demonstration]) -> None:
        self._demonstrations = demonstrations

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        assert options is not None
        self._shown = self._demonstrations[int(options["task"])]
        self._step = 0
        return self._shown.observations[0], self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        expected = self._shown.decisions[self._step].action
        if action.lower() != expected.lower():  # the small policy's tokenizer writes lower case
            raise ValueError(
                f"the demonstrated action {expected!r} of task {self._shown.task_id} reads as {action!r}"
            )
        self._step += 1
        over = self._step == len(self._shown.decisions)
        shown = "" if over else self._shown.observations[self._step]
        return shown, 0.0, over, False, self._info()

    def _info(self) -> dict[str, Any]:
        over = self._step == len(self._shown.decisions)
        info = StepInfo(
            task_id=self._shown.task_id,
            task_type="demonstration",
            success=over and self._shown.success,
            score=float(over and self._shown.success),
            admissible=() if over else self._shown.admissible[self._step],
            action_valid=True,
        )
        return dict(info)
