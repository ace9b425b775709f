"""What an agent did, as plain frozen data: tokens exactly as read and sampled, never re-tokenised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EndReason = Literal["terminated", "truncated", "context", "error"]
"""Why an episode ended: the task was over; the step limit; the policy's context was full; the environment failed."""

StopReason = Literal["stop", "length"]
"""Why a turn ended: the end-of-turn token was sampled, or the token limit was reached."""

UNKNOWN_TOKEN = -1
"""A token of which nothing but its existence is known, as a served model's are: counted, never trained on."""


@dataclass(frozen=True)
class Step:
    """One think-act cycle."""

    prompt_ids: tuple[int, ...]
    """Tokens read before writing: new ones only if `continues`, else the whole prompt from its first token."""
    continues: bool
    """Whether the context is the previous step's context + its `action_ids` + `prompt_ids`."""
    action_ids: tuple[int, ...]
    """Everything the policy wrote, with the end-of-turn token where it was sampled."""
    action_logprobs: tuple[float, ...]
    """Log-probability of each written token (nats) under the distribution it was sampled from; NaN where unknown."""
    stop: StopReason
    thought: str
    action: str
    """The command parsed from the written text and sent to the environment."""
    well_formed: bool
    """Whether the text had the thought-action form; a repaired or unreadable one is not."""
    action_valid: bool
    """Whether the environment understood the action."""
    observation: str
    """What the environment answered."""
    reward: float

    def __post_init__(self) -> None:
        if not self.action_ids:
            raise ValueError("a step must hold at least one written token")
        if len(self.action_ids) != len(self.action_logprobs):
            raise ValueError(
                f"{len(self.action_ids)} action tokens but {len(self.action_logprobs)} log-probabilities"
            )


@dataclass(frozen=True)
class Trajectory:
    """One episode of one task."""

    task_id: str
    task_type: str
    group: int
    """Number of the group of samples that share a baseline; unique within one collected batch."""
    sample: int
    """Position within the group."""
    steps: tuple[Step, ...]
    reward: float
    """What the learner maximises: 1 for success and 0 otherwise, or the graded score, by the rollout's setting."""
    success: bool
    score: float
    end: EndReason
    error: str | None = None
    opening: str | None = None
    """What the environment showed before the first step; None where it failed before it could."""

    def __post_init__(self) -> None:
        if self.end != "error" and not self.steps:
            raise ValueError(f"episode {self.task_id}/{self.sample} ended as {self.end!r} without a step")
        if self.steps and self.steps[0].continues:
            raise ValueError("the first step of a trajectory cannot continue a context")
        if (self.end == "error") != (self.error is not None):
            raise ValueError(f"end is {self.end!r} but error is {self.error!r}")

    @property
    def usable(self) -> bool:
        """Whether it may enter training and rates; a broken environment says nothing about the policy."""
        return self.end != "error"
