"""Group advantages and EMPG against hand-computed values, identities and the loop-written pseudocode."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from empg import (
    EmpgConfig,
    clarity_bonus,
    entropy_scale,
    group_advantage,
    modulate,
    modulation,
    normalised_entropy,
    outcome_advantage,
    step_entropy,
    token_values,
)
from tests.empg.oracle import empg_pseudocode, group_advantages

LAST = -1


def _vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def _next_steps(lengths):
    following, start = [], 0
    for length in lengths:
        following += [*range(start + 1, start + length), LAST]
        start += length
    return torch.tensor(following)


def test_reference_numbers_of_two_steps():
    entropy, following = _vector(0, 1), torch.tensor([1, LAST])
    open_ended = modulation(_vector(1, 1), entropy, following, EmpgConfig(centre=False))
    assert open_ended.g.tolist() == pytest.approx([1.4621, 0.5379], abs=5e-5)
    assert open_ended.f.tolist() == pytest.approx([0.3679, 0], abs=5e-5)
    assert open_ended.advantage.tolist() == pytest.approx([1.4805, 0.5379], abs=5e-5)
    centred = modulate(_vector(1, 1), entropy, following, EmpgConfig())
    assert centred.tolist() == pytest.approx([0.4713, -0.4713], abs=5e-5)


def test_a_hand_computed_batch_of_two_trajectories():
    # Steps 0 -> 1 won, step 2 alone lost.
    half, full = math.exp(-0.5), math.exp(-1)
    scale = 3 / (1 + half + full)
    raw = [scale + 0.1 * half, scale * half, -scale * full]
    expected = [value - sum(raw) / 3 for value in raw]
    actual = modulate(
        _vector(1, 1, -1), _vector(0, 1, 2), torch.tensor([1, LAST, LAST]), EmpgConfig(zeta=0.1)
    )
    assert actual.tolist() == pytest.approx(expected, abs=1e-7)


batches = st.lists(  # per response: its raw advantage, and per step its token entropies
    st.tuples(
        st.floats(-3, 3),
        st.lists(st.lists(st.floats(0, 12), min_size=1, max_size=4), min_size=1, max_size=5),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(batches, st.floats(0, 3), st.floats(0, 3), st.floats(0, 1), st.integers(0, 5))
def test_the_vectorised_form_equals_the_papers_pseudocode(batch, k, k_f, zeta, padding):
    # Before each step stand two tokens that nobody sampled; their entropies and advantages must not matter.
    advantages, entropies, marks = [], [], []
    for advantage, steps in batch:
        entropies.append([h for step in steps for h in (99.0, 77.0, *step)])
        marks.append([m for i, step in enumerate(steps) for m in (-1, -1, *[i] * len(step))])
        advantages.append([advantage] * len(marks[-1]))
    expected = empg_pseudocode(advantages, entropies, marks, k=k, k_f=k_f, zeta=zeta)

    width = max(map(len, marks)) + padding
    step_of_token = torch.full((len(batch) + 1, width), -1)  # one row of nothing but padding
    token_entropy = torch.full((len(batch) + 1, width), 55.0, dtype=torch.float64)
    start = 0
    for row, (_, steps) in enumerate(batch):
        local = torch.tensor(marks[row])
        step_of_token[row, : len(local)] = torch.where(local >= 0, local + start, -1)
        token_entropy[row, : len(local)] = torch.tensor(entropies[row], dtype=torch.float64)
        start += len(steps)
    raw = torch.tensor([a for a, steps in batch for _ in steps], dtype=torch.float64)
    following = _next_steps([len(steps) for _, steps in batch])
    entropy = step_entropy(token_entropy, step_of_token, start)
    spread = token_values(
        modulate(raw, entropy, following, EmpgConfig(k=k, k_f=k_f, zeta=zeta)), step_of_token
    )
    for row, values in enumerate(expected):
        assert spread[row, : len(values)].tolist() == pytest.approx(values, abs=1e-9)
        assert spread[row, len(values) :].abs().sum() == 0
    assert spread[-1].abs().sum() == 0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.randoms(use_true_random=False), st.booleans())
def test_renumbering_the_steps_renumbers_the_result(lengths, random, inverse):
    steps = sum(lengths)
    advantage, entropy = (_vector(*[random.uniform(-2, 2) for _ in range(steps)]) for _ in range(2))
    following = _next_steps(lengths)
    order = list(range(steps))
    random.shuffle(order)
    place = torch.tensor([order.index(step) for step in range(steps)])  # old number -> new number
    config = EmpgConfig(form="inverse" if inverse else "exp")
    moved_next = torch.where(following >= 0, place[following.clamp(min=0)], LAST)[order]
    moved = modulate(advantage[order], entropy[order], moved_next, config)
    torch.testing.assert_close(moved, modulate(advantage, entropy, following, config)[order])


def test_equal_entropies_scale_every_step_by_one_and_pay_the_full_bonus():
    result = modulation(_vector(1, -1, 2), _vector(3, 3, 3), torch.tensor([1, LAST, LAST]), EmpgConfig())
    assert result.g.tolist() == [1, 1, 1]
    assert result.f.tolist() == [1, 0, 0]


def test_a_batch_of_one_step_trajectories_gets_no_bonus():
    assert clarity_bonus(_vector(0, 1, 5), torch.tensor([LAST] * 3), EmpgConfig()).tolist() == [0, 0, 0]


def test_the_bonus_comes_from_the_named_next_step_whatever_the_order():
    # Step 2 follows step 0; step 1 is another trajectory's only one.
    bonus = clarity_bonus(_vector(0, 1, 2), torch.tensor([2, LAST, LAST]), EmpgConfig())
    assert bonus.tolist() == pytest.approx([math.exp(-1), 0, 0])


def test_both_parts_off_leave_the_advantage_untouched():
    advantage = torch.tensor([1.0, 1.0, -0.3])
    result = modulate(
        advantage, torch.rand(3), torch.tensor([1, LAST, LAST]), EmpgConfig(scaling=False, bonus=False)
    )
    assert torch.equal(result, advantage)


def test_parts_of_strength_zero_only_centre():
    advantage = _vector(1, 1, -1)
    result = modulate(advantage, _vector(0.3, 2, 1), torch.tensor([1, LAST, LAST]), EmpgConfig(k=0, zeta=0))
    torch.testing.assert_close(result, advantage - advantage.mean())


def test_scaling_alone_and_bonus_alone_are_the_papers_ablations():
    advantage, entropy, following = _vector(1, 1, -1), _vector(0, 1, 2), torch.tensor([1, LAST, LAST])
    g = entropy_scale(entropy, EmpgConfig())
    scaled = modulate(advantage, entropy, following, EmpgConfig(bonus=False))
    torch.testing.assert_close(scaled, advantage * g - (advantage * g).mean())
    paid = advantage + 0.05 * _vector(math.exp(-0.5), 0, 0)
    rewarded = modulate(advantage, entropy, following, EmpgConfig(scaling=False))
    torch.testing.assert_close(rewarded, paid - paid.mean())


def test_the_inverse_form_is_the_reciprocal_of_normalised_entropy_plus_delta():
    g = entropy_scale(_vector(0, 1, 2), EmpgConfig(form="inverse", delta=0.5))
    raw = [1 / 0.5, 1 / 1.0, 1 / 1.5]
    assert g.tolist() == pytest.approx([value * 3 / sum(raw) for value in raw], abs=1e-6)


def test_the_scale_is_one_on_average_and_the_result_sums_to_zero():
    entropy = torch.rand(500, dtype=torch.float64)
    following = _next_steps([5] * 100)
    for config in (EmpgConfig(k=2), EmpgConfig(form="inverse")):
        assert float(entropy_scale(entropy, config).mean()) == pytest.approx(1)
        assert float(modulate(torch.randn(500).double(), entropy, following, config).sum()) == pytest.approx(
            0, abs=1e-9
        )


def test_a_tiny_spread_is_stretched_unless_a_floor_is_set():
    entropy = _vector(1.0, 1.00005, 1.0001)
    assert normalised_entropy(entropy).tolist() == pytest.approx([0, 0.5, 1], abs=1e-3)
    assert normalised_entropy(entropy, range_floor=0.1).tolist() == pytest.approx([0, 5e-4, 1e-3], abs=1e-5)
    assert normalised_entropy(_vector(0, 4), range_floor=0.1).tolist() == pytest.approx([0, 1])


def test_no_steps_give_no_advantages():
    nothing = torch.zeros(0)
    assert modulate(nothing, nothing, torch.zeros(0, dtype=torch.int64), EmpgConfig()).shape == (0,)


def test_no_gradient_flows_through_the_entropies():
    entropy = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    assert not modulate(torch.ones(3), entropy, torch.tensor([1, 2, LAST]), EmpgConfig()).requires_grad


def test_arguments_are_left_as_they_were():
    advantage, entropy, following = torch.ones(3), torch.rand(3), torch.tensor([1, LAST, LAST])
    before = [advantage.clone(), entropy.clone(), following.clone()]
    modulate(advantage, entropy, following, EmpgConfig())
    assert all(torch.equal(a, b) for a, b in zip(before, [advantage, entropy, following], strict=True))


@pytest.mark.parametrize(
    ("entropy", "following", "message"),
    [
        ([0.0, 1.0], [1, LAST, LAST], r"must all be \[S\]"),
        ([0.0, math.nan, 1.0], [1, LAST, LAST], "finite, got \\[nan\\]"),
        ([0.0, 1.0, 2.0], [1, 3, LAST], r"-1\.\.2"),
        ([0.0, 1.0, 2.0], [1, -2, LAST], r"-1\.\.2"),
    ],
)
def test_impossible_step_tables_are_refused(entropy, following, message):
    with pytest.raises(ValueError, match=message):
        modulate(torch.ones(3), torch.tensor(entropy), torch.tensor(following), EmpgConfig())


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": -1.0},
        {"k_f": math.inf},
        {"zeta": math.nan},
        {"delta": 0.0},
        {"range_floor": -0.1},
        {"form": "linear"},
        {"scope": "step"},
    ],
)
def test_impossible_settings_are_refused_by_name_and_value(wrong):
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=f"{name} must .*{value!r}"):
        EmpgConfig(**wrong)


def test_step_entropy_is_the_mean_over_the_steps_own_tokens_in_any_row():
    entropy = torch.tensor([[1.0, 2.0, 4.0, 100.0], [8.0, 100.0, 100.0, 6.0]])
    step = torch.tensor([[0, 0, 1, -1], [2, -1, -1, 1]])
    assert step_entropy(entropy, step, 3).tolist() == [1.5, 5.0, 8.0]


def test_a_step_without_tokens_or_outside_the_table_is_refused():
    with pytest.raises(ValueError, match=r"steps \[1\] have no sampled token"):
        step_entropy(torch.ones(1, 2), torch.tensor([[0, 2]]), 3)
    with pytest.raises(ValueError, match="step 2 is outside"):
        step_entropy(torch.ones(1, 3), torch.tensor([[0, 1, 2]]), 2)


def test_every_token_of_a_step_gets_its_value_and_no_other_token_any():
    lengths = (5, 2, 9)  # one row per step, padded to the longest
    step_of_token = torch.full((3, 12), -1)
    for step, length in enumerate(lengths):
        step_of_token[step, 3 : 3 + length] = step
    spread = token_values(torch.tensor([0.5, -1.0, 2.0]), step_of_token)
    for row, (value, length) in enumerate(zip([0.5, -1.0, 2.0], lengths, strict=True)):
        assert spread[row].tolist() == [0.0] * 3 + [value] * length + [0.0] * (9 - length)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 9)), min_size=1, max_size=12))
def test_group_advantages_equal_the_loop_written_ones_with_groups_missing_in_between(members):
    rewards, groups = zip(*members, strict=True)
    actual = group_advantage(torch.tensor(rewards, dtype=torch.float64), torch.tensor(groups))
    assert actual.tolist() == pytest.approx(group_advantages(rewards, groups), abs=1e-6)


def test_one_success_in_four_gives_three_halves():
    actual = group_advantage(torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.zeros(4, dtype=torch.int64))
    assert actual.tolist() == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-5)


def test_equal_rewards_give_exactly_zero_and_rounding_residue_is_not_blown_up():
    group = torch.zeros(7, dtype=torch.int64)
    assert group_advantage(torch.full((7,), 0.35), group).tolist() == [0.0] * 7
    nearly = torch.full((7,), 0.35, dtype=torch.float64)
    nearly[0] += 1e-9
    assert float(group_advantage(nearly, group).abs().max()) < 1e-3


def test_a_group_of_one_gives_zero():
    assert group_advantage(torch.tensor([1.0, 0.2]), torch.tensor([4, 7])).tolist() == [0.0, 0.0]


def test_rewards_that_are_not_numbers_are_refused():
    with pytest.raises(ValueError, match="rewards must be finite"):
        group_advantage(torch.tensor([1.0, math.nan]), torch.tensor([0, 0]))
    with pytest.raises(ValueError, match=r"must be \[N\]"):
        group_advantage(torch.ones(2), torch.zeros(3))


def test_outcome_advantages_are_plus_and_minus_one():
    assert outcome_advantage(torch.tensor([True, False])).tolist() == [1.0, -1.0]
    with pytest.raises(ValueError, match="booleans"):
        outcome_advantage(torch.tensor([1.0]))
