"""Laying trajectories out in rows: hand-built cases and the equality of layouts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from empg import EmpgConfig, modulate
from empg.batch import make_batch, micro_batches
from tests.empg.helpers import make_step, random_trajectory, trajectory

CHAT = trajectory(
    [
        make_step([10, 11], [12, 13], continues=False, logprobs=[-0.1, -0.2]),
        make_step([14], [15, 2], continues=True, logprobs=[-0.3, -0.4]),
    ],
    reward=1.0,
)


def test_seven_tokens_of_two_turns_share_a_row_and_keep_ids_and_probabilities_as_sampled():
    batch = make_batch([CHAT], pad_id=2)
    assert batch.token_ids.tolist() == [[10, 11, 12, 13, 14, 15, 2]]
    assert batch.step_of_token.tolist() == [[-1, -1, 0, 0, -1, 1, 1]]
    assert batch.sampled_logprobs[0].tolist() == pytest.approx([0, 0, -0.1, -0.2, 0, -0.3, -0.4])
    assert batch.next_step.tolist() == [1, -1]
    assert batch.trajectory_of_step.tolist() == [0, 0]


def test_a_sampled_end_token_stays_in_the_loss_when_it_is_also_the_padding_token():
    short = trajectory([make_step([10], [2], continues=False)], sample=1)
    batch = make_batch([CHAT, short], pad_id=2)
    assert batch.token_ids[1].tolist() == [10, 2, 2, 2, 2, 2, 2]
    assert batch.step_of_token[1].tolist() == [-1, 2, -1, -1, -1, -1, -1]
    assert batch.lengths.tolist() == [7, 2]
    assert int(batch.step_of_token[0, 6]) == 1


def test_steps_with_prompts_of_their_own_get_rows_of_their_own_and_one_step_table():
    windows = trajectory(
        [make_step([10, 11], [12], continues=False), make_step([10, 14, 15], [2], continues=False)]
    )
    batch = make_batch([windows, CHAT], pad_id=0)
    assert batch.trajectory_of_row.tolist() == [0, 0, 1]
    assert batch.step_of_token[:, :4].tolist() == [[-1, -1, 0, -1], [-1, -1, -1, 1], [-1, -1, 2, 2]]
    assert batch.next_step.tolist() == [1, -1, 3, -1]


def test_a_context_that_starts_anew_in_the_middle_keeps_its_following_step():
    split = trajectory(
        [
            make_step([10], [11], continues=False),
            make_step([12], [13], continues=True),
            make_step([14], [15], continues=False),
        ]
    )
    batch = make_batch([split], pad_id=0)
    assert batch.step_of_token.tolist() == [[-1, 0, -1, 1], [-1, 2, -1, -1]]
    assert batch.next_step.tolist() == [1, 2, -1]


@given(st.integers(0, 10_000))
def test_both_layouts_give_the_same_step_table_and_the_same_modulation(seed):
    chats = [random_trajectory(np.random.default_rng((seed, i)), sample=i) for i in range(3)]
    windows = [random_trajectory(np.random.default_rng((seed, i)), sample=i, window=True) for i in range(3)]
    one, other = make_batch(chats, 0), make_batch(windows, 0)
    assert other.num_rows == one.num_steps
    assert torch.equal(one.next_step, other.next_step)
    assert torch.equal(one.trajectory_of_step, other.trajectory_of_step)
    entropy = torch.rand(one.num_steps, generator=torch.Generator().manual_seed(seed))
    advantage = one.reward[one.trajectory_of_step]
    assert torch.equal(
        modulate(advantage, entropy, one.next_step, EmpgConfig()),
        modulate(advantage, entropy, other.next_step, EmpgConfig()),
    )


def test_errored_trajectories_and_tokens_sampled_from_nothing_are_refused():
    with pytest.raises(ValueError, match="task-0/3 ended in an error"):
        make_batch([trajectory(CHAT.steps, sample=3, end="error")], pad_id=0)
    with pytest.raises(ValueError, match="empty prompt"):
        make_batch([trajectory([make_step([], [5], continues=False)])], pad_id=0)
    with pytest.raises(ValueError, match="at least one trajectory"):
        make_batch([], pad_id=0)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 120))
def test_micro_batches_hold_every_row_once_within_the_budget(lengths, budget):
    parts = micro_batches(torch.tensor(lengths), budget)
    assert sorted(row for part in parts for row in part.tolist()) == list(range(len(lengths)))
    for part in parts:
        width = max(lengths[row] for row in part.tolist())
        assert len(part) == 1 or len(part) * width <= budget


def test_micro_batches_go_from_long_to_short_and_refuse_an_empty_budget():
    parts = micro_batches(torch.tensor([3, 9, 4, 9]), 12)
    assert [part.tolist() for part in parts] == [[1], [3], [2, 0]]
    with pytest.raises(ValueError, match="token_budget must be at least 1, got 0"):
        micro_batches(torch.tensor([1]), 0)
