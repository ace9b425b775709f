"""The clipped surrogate, the KL estimator, aggregation and the overlong penalty, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from empg.losses import (
    DAPO,
    GRPO,
    LossConfig,
    OverlongConfig,
    importance_weight,
    k3,
    limited_ratio,
    overlong_penalty,
    surrogate,
    token_weights,
)


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [(1.35, 1.0, 1.28), (1.25, 1.0, 1.25), (0.7, -1.0, -0.8), (1.5, -1.0, -1.5)],
)
def test_the_surrogate_clips_higher_above_than_below(ratio, advantage, expected):
    assert float(surrogate(torch.tensor(ratio), torch.tensor(advantage), DAPO)) == pytest.approx(expected)


def test_grpo_clips_at_one_fifth_on_both_sides():
    actual = surrogate(torch.tensor([1.35, 0.7]), torch.tensor([1.0, -1.0]), GRPO)
    assert actual.tolist() == pytest.approx([1.2, -0.8])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("difference", [-200.0, 200.0])
@pytest.mark.parametrize("advantage", [-1.0, 1.0])
def test_huge_probability_changes_leave_losses_and_gradients_finite(dtype, difference, advantage):
    logprob = torch.tensor([0.0], dtype=dtype, requires_grad=True)
    other = torch.tensor([-difference], dtype=dtype)
    kl = k3(logprob, other)
    ratio = limited_ratio(logprob, other)
    loss = -surrogate(ratio, torch.tensor([advantage], dtype=dtype), GRPO) + kl
    loss.backward()
    assert bool(torch.isfinite(loss))
    assert bool(torch.isfinite(kl))
    assert float(kl.detach()) >= 0
    assert bool(torch.isfinite(logprob.grad))


def test_k3_is_zero_where_the_policies_agree_and_positive_elsewhere():
    difference = torch.arange(-300, 301).double() / 10
    values = k3(torch.zeros(601, dtype=torch.float64), difference)
    assert float(values[300]) == 0
    assert bool((values[difference != 0] > 0).all())
    assert float(k3(torch.tensor(0.0), torch.tensor(math.log(2)))) == pytest.approx(0.3069, abs=5e-5)


def test_a_gradient_step_on_the_kl_term_reduces_the_kl():
    reference = torch.log_softmax(torch.tensor([0.5, 0.0, -1.0]), 0)
    logits = torch.tensor([-1.0, 0.5, 1.0], requires_grad=True)

    def expected_k3():
        logp = torch.log_softmax(logits, 0)
        return (logp.exp().detach() * k3(logp, reference)).sum(), (logp.exp() * (logp - reference)).sum()

    loss, before = expected_k3()
    loss.backward()
    with torch.no_grad():
        logits -= 0.1 * logits.grad
    assert float(expected_k3()[1].detach()) < float(before.detach())


def test_token_mean_and_sequence_mean_differ_on_unequal_lengths():
    step_of_token = torch.tensor([[0, 0, 0], [1, -1, -1]])  # 3 tokens of loss 1, one of loss 5
    loss = torch.tensor([[1.0, 1.0, 1.0], [5.0, 9.0, 9.0]])
    rows = torch.tensor([0, 1])
    assert float((token_weights(step_of_token, rows, "token-mean") * loss).sum()) == pytest.approx(2.0)
    assert float((token_weights(step_of_token, rows, "sequence-mean") * loss).sum()) == pytest.approx(3.0)


def test_sequence_mean_joins_the_rows_of_a_trajectory():
    # Trajectory 7 has two rows of 1 and 3 tokens, trajectory 9 one of 2: weights 1/8 and 1/4.
    step_of_token = torch.tensor([[0, -1, -1], [1, 1, 1], [2, 2, -1]])
    weights = token_weights(step_of_token, torch.tensor([7, 7, 9]), "sequence-mean")
    assert weights.tolist() == [[0.125, 0, 0], [0.125] * 3, [0.25, 0.25, 0]]


@pytest.mark.parametrize("aggregation", ["token-mean", "sequence-mean"])
def test_a_masked_sequence_counts_neither_above_nor_below_the_line(aggregation):
    both = token_weights(torch.tensor([[0, 0, -1], [-1, -1, -1]]), torch.tensor([0, 1]), aggregation)
    alone = token_weights(torch.tensor([[0, 0, -1]]), torch.tensor([0]), aggregation)
    assert torch.equal(both[:1], alone)
    assert float(both[1].sum()) == 0


@pytest.mark.parametrize("aggregation", ["token-mean", "sequence-mean"])
def test_a_batch_with_everything_masked_has_loss_zero_and_a_backward_pass(aggregation):
    weights = token_weights(torch.full((2, 3), -1), torch.tensor([0, 1]), aggregation)
    values = torch.ones(2, 3, requires_grad=True)
    loss = (weights * values).sum()
    loss.backward()
    assert float(loss.detach()) == 0
    assert torch.equal(values.grad, torch.zeros(2, 3))


def test_the_soft_overlong_penalty_is_a_ramp_to_minus_one():
    penalty = overlong_penalty(torch.tensor([10.0, 80.0, 90.0, 100.0, 120.0]), OverlongConfig(100, 20))
    assert penalty.tolist() == [0, 0, -0.5, -1, -1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"clip_low": 1.0}, "clip_low must lie in"),
        ({"clip_high": -0.1}, "clip_high must be"),
        ({"kl_coef": math.nan}, "kl_coef must be"),
        ({"entropy_coef": -1.0}, "entropy_coef must be"),
        ({"aggregation": "mean"}, "aggregation must be 'token-mean' or 'sequence-mean', got 'mean'"),
    ],
)
def test_impossible_loss_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        LossConfig(**wrong)


def test_an_overlong_ramp_must_fit_below_its_end():
    with pytest.raises(ValueError, match=r"cache_tokens must lie in 1\.\.max_tokens=10, got 20"):
        OverlongConfig(10, 20)


def test_importance_weights_are_the_ratio_of_trainer_to_engine_up_to_the_cap_and_constants():
    old = torch.tensor([-1.0, -1.0, -1.0, 0.0], requires_grad=True)
    engine = torch.tensor([-1.0, -1.0 - math.log(1.5), -1.0 + math.log(4), -500.0])
    weight = importance_weight(old, engine, 2.0)
    torch.testing.assert_close(weight, torch.tensor([1.0, 1.5, 0.25, 2.0]))
    assert not weight.requires_grad


@pytest.mark.parametrize("cap", [0.0, -1.0, math.inf, math.nan])
def test_an_importance_cap_that_is_no_positive_number_is_refused(cap):
    with pytest.raises(ValueError, match="importance_cap"):
        LossConfig(importance_cap=cap)
