"""From trajectories to tensors: one step table, whatever the context layout was.

Symbols: N rows (sequences fed to the model), T tokens a row, S agent steps, M trajectories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from agents.trajectory import UNKNOWN_TOKEN, Step, Trajectory

NOT_SAMPLED = -1


@dataclass(frozen=True)
class Batch:
    """Token rows, padded on the right, with the step table and the trajectories behind them.

    What was sampled is told by `step_of_token` and how long a row is by `lengths`; the padding token's value
    means nothing, so it may well be the end-of-turn token.
    """

    token_ids: Tensor
    """[N, T] int64."""
    lengths: Tensor
    """[N] int64: tokens of each row before its padding."""
    step_of_token: Tensor
    """[N, T] int64: index into the step table, -1 for every token that was not sampled."""
    sampled_logprobs: Tensor
    """[N, T] float32: log-probability (nats) each token was sampled with; 0 where none was sampled."""
    trajectory_of_row: Tensor
    """[N] int64."""
    trajectory_of_step: Tensor
    """[S] int64."""
    next_step: Tensor
    """[S] int64: the step that follows in the same trajectory, -1 at its last one."""
    reward: Tensor
    """[M] float64: the trajectory's raw reward."""
    success: Tensor
    """[M] bool."""
    group: Tensor
    """[M] int64."""

    @property
    def num_rows(self) -> int:
        """N."""
        return self.token_ids.shape[0]

    @property
    def num_steps(self) -> int:
        """S."""
        return self.next_step.shape[0]

    @property
    def num_trajectories(self) -> int:
        """M."""
        return self.reward.shape[0]


@dataclass
class _Row:
    trajectory: int
    tokens: list[int]
    steps: list[int]
    logprobs: list[float]


def make_batch(trajectories: Sequence[Trajectory], pad_id: int) -> Batch:
    """Lay trajectories out in rows: a step that continues its context shares a row, another one starts a row.

    Token ids and log-probabilities are taken over exactly as they were sampled.

    raises ValueError for no trajectories, an errored one, one whose tokens are unknown, or a sampled token with nothing
    before it.
    """
    if not trajectories:
        raise ValueError("a batch needs at least one trajectory")
    rows: list[_Row] = []
    trajectory_of_step: list[int] = []
    next_step: list[int] = []
    for index, trajectory in enumerate(trajectories):
        if not trajectory.usable:
            raise ValueError(
                f"{trajectory.task_id}/{trajectory.sample} ended in an error and cannot be trained on"
            )
        for step in trajectory.steps:
            if not step.continues:
                rows.append(_Row(index, [], [], []))
            _append(rows[-1], step, len(next_step))
            trajectory_of_step.append(index)
            next_step.append(len(next_step) + 1)
        next_step[-1] = NOT_SAMPLED
    return Batch(
        token_ids=_padded([row.tokens for row in rows], pad_id, torch.int64),
        lengths=torch.tensor([len(row.tokens) for row in rows]),
        step_of_token=_padded([row.steps for row in rows], NOT_SAMPLED, torch.int64),
        sampled_logprobs=_padded([row.logprobs for row in rows], 0.0, torch.float32),
        trajectory_of_row=torch.tensor([row.trajectory for row in rows]),
        trajectory_of_step=torch.tensor(trajectory_of_step),
        next_step=torch.tensor(next_step),
        reward=torch.tensor([t.reward for t in trajectories], dtype=torch.float64),
        success=torch.tensor([t.success for t in trajectories], dtype=torch.bool),
        group=torch.tensor([t.group for t in trajectories]),
    )


def micro_batches(lengths: Tensor, token_budget: int) -> list[Tensor]:
    """Split rows into micro-batches of at most `token_budget` tokens, padding included.

    Rows are sorted by length, the longest first, so that little is padded and a shortage of memory shows at
    once. A row longer than the budget goes alone. Every row appears exactly once; the order is a pure
    function of `lengths`.

    lengths: [N]; returns row indices.
    """
    if token_budget < 1:
        raise ValueError(f"token_budget must be at least 1, got {token_budget}")
    order = torch.argsort(lengths, descending=True, stable=True)
    batches: list[Tensor] = []
    start = 0
    while start < len(order):
        longest = max(int(lengths[order[start]]), 1)
        stop = start + max(token_budget // longest, 1)
        batches.append(order[start:stop])
        start = stop
    return batches


class Pass(NamedTuple):
    """One forward pass of one process."""

    rows: Tensor
    counts: bool
    """False where it only keeps step with the other processes."""


def passes(lengths: Tensor, token_budget: int, rank: int = 0, count: int = 1) -> list[Pass]:
    """What process `rank` of `count` does of some rows, in micro-batches of at most `token_budget` tokens.

    The rows, sorted by length, are dealt out one by one, so that all have about the same to do. Everybody gets the
    same number of passes, because sharded weights are gathered together: who has fewer repeats the shortest row and
    drops the result. A pure function of its arguments; the counted passes of all processes hold each row once.

    lengths: [N], at least one; a pass holds row indices.
    """
    order = torch.argsort(lengths, descending=True, stable=True)
    dealt = [order[each::count] for each in range(count)]
    batches = [micro_batches(lengths[rows], token_budget) for rows in dealt]
    idle = max(map(len, batches)) - len(batches[rank])
    return [Pass(dealt[rank][local], True) for local in batches[rank]] + [Pass(order[-1:], False)] * idle


def _append(row: _Row, step: Step, number: int) -> None:
    read, written = len(step.prompt_ids), len(step.action_ids)
    if not row.tokens and not read:
        raise ValueError(f"step {number} has an empty prompt: its first token was sampled from nothing")
    if UNKNOWN_TOKEN in step.prompt_ids or UNKNOWN_TOKEN in step.action_ids:
        raise ValueError(
            f"step {number} has unknown tokens, as a served model's are; it can be evaluated and cannot be trained on"
        )
    row.tokens += [*step.prompt_ids, *step.action_ids]
    row.steps += [NOT_SAMPLED] * read + [number] * written
    row.logprobs += [0.0] * read + list(step.action_logprobs)


def _padded(rows: Sequence[Sequence[float]], fill: float, dtype: torch.dtype) -> Tensor:
    table = torch.full((len(rows), max(map(len, rows))), fill, dtype=dtype)
    for index, row in enumerate(rows):
        table[index, : len(row)] = torch.tensor(row, dtype=dtype)
    return table
