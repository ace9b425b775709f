"""One optimiser step's gradient against a loop over tokens, and its independence of how it is accumulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from empg import EmpgConfig, modulate
from empg.batch import make_batch
from empg.config import BatchConfig, LearnerConfig
from empg.losses import DAPO, GRPO, LossConfig
from empg.scores import open_model, score
from empg.update import Scored, accumulate_gradient, minibatches, modulate_parts
from tests.empg.helpers import Bigram, make_step, random_trajectory, tiny_model, trajectory

SEQUENCE = LossConfig(kl_coef=0.1, entropy_coef=0.05, aggregation="sequence-mean")
TOKEN = replace(SEQUENCE, aggregation="token-mean")


def _scored(model, trajectories, seed=0, pad=0):
    """A scored batch whose old and reference policies differ from the model: every term is at work."""
    batch = make_batch(trajectories, pad)
    own = score(model, batch, temperature=1.0, token_budget=1000, chunk=100)
    generator = torch.Generator().manual_seed(seed)
    sampled = batch.step_of_token >= 0
    old, reference = (
        own.logprob + 0.3 * torch.randn(sampled.shape, generator=generator) * sampled for _ in range(2)
    )
    advantage = torch.randn(batch.num_trajectories, generator=generator)[batch.trajectory_of_step]
    entropy = torch.rand(batch.num_steps, generator=generator)
    return Scored(batch, advantage, entropy, old, reference, own.entropy)


def _gradient(model, scored, loss, *, token_budget=10_000, chunk=100, part=None, advantage=None):
    config = LearnerConfig(loss=loss, batch=BatchConfig(token_budget=token_budget, chunk=chunk))
    model.zero_grad()
    part = torch.arange(scored.batch.num_trajectories) if part is None else part
    advantage = scored.raw_advantage if advantage is None else advantage
    stats = accumulate_gradient(open_model(model), scored, advantage, part, config)
    return stats, [p.grad.clone() for p in model.parameters()]


def _loop_loss(model, scored, config, members):
    """The loss as its definition reads: one row, one token at a time."""
    batch, per_trajectory, kls, ratios = scored.batch, {m: [] for m in members}, [], []
    for row in range(batch.num_rows):
        owner = int(batch.trajectory_of_row[row])
        if owner not in members:
            continue
        length = int(batch.lengths[row])
        logits = model(input_ids=batch.token_ids[row : row + 1, :length]).logits[0]
        for t in range(length):
            step = int(batch.step_of_token[row, t])
            if step < 0:
                continue
            p = torch.softmax(logits[t - 1], -1)
            logp = p[batch.token_ids[row, t]].log()
            ratio = torch.exp(logp - scored.old_logprob[row, t])
            advantage = scored.raw_advantage[step]
            clipped = min(max(ratio, 1 - config.clip_low), 1 + config.clip_high)
            gap = scored.reference_logprob[row, t] - logp
            kl = torch.exp(gap) - gap - 1
            entropy = -(p * p.log()).sum()
            policy = -min(ratio * advantage, clipped * advantage)
            if config.importance_cap is not None:
                engine = torch.exp(scored.old_logprob[row, t] - batch.sampled_logprobs[row, t])
                policy = policy * min(float(engine), config.importance_cap)
            per_trajectory[owner].append(policy + config.kl_coef * kl - config.entropy_coef * entropy)
            kls.append(float(kl.detach()))
            ratios.append(float(ratio.detach()))
    everything = [loss for losses in per_trajectory.values() for loss in losses]
    if config.aggregation == "token-mean":
        return sum(everything) / len(everything), kls, ratios
    return sum(sum(losses) / len(losses) for losses in per_trajectory.values()) / len(members), kls, ratios


@pytest.mark.parametrize(
    "config",
    [
        SEQUENCE,
        TOKEN,
        replace(TOKEN, clip_high=0.28),
        replace(TOKEN, importance_cap=0.05),
        replace(SEQUENCE, importance_cap=100.0),
    ],
)
def test_loss_and_gradient_equal_the_definition_written_as_loops(config):
    model, rng = tiny_model().eval(), np.random.default_rng(1)
    trajectories = [random_trajectory(rng, sample=i, window=i % 2 == 1) for i in range(5)]
    scored, members = _scored(model, trajectories), [0, 2, 3]
    stats, actual = _gradient(model, scored, config, token_budget=30, chunk=3, part=torch.tensor(members))
    model.zero_grad()
    expected, kls, ratios = _loop_loss(model, scored, config, members)
    expected.backward()
    assert stats.loss == pytest.approx(float(expected.detach()), abs=1e-5)
    assert stats.kl == pytest.approx(sum(kls) / len(kls), abs=1e-5)
    assert stats.ratio_sum == pytest.approx(sum(ratios), rel=1e-4)
    assert stats.ratio_max == pytest.approx(max(ratios), rel=1e-4)
    assert stats.tokens == len(kls)
    for mine, parameter in zip(actual, model.parameters(), strict=True):
        torch.testing.assert_close(mine, parameter.grad, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("config", [SEQUENCE, TOKEN])
def test_accumulating_one_by_eight_two_by_four_or_eight_by_one_changes_nothing(config):
    model, rng = tiny_model(), np.random.default_rng(2)
    steps = [4, 1, 7, 2, 5, 3, 6, 8]  # tokens written; every row is 16 tokens long
    trajectories = [
        trajectory(
            [
                make_step(
                    rng.integers(1, 32, 16 - n).tolist(), rng.integers(1, 32, n).tolist(), continues=False
                )
            ]
        )
        for n in steps
    ]
    scored = _scored(model, trajectories)
    whole, reference = _gradient(model, scored, config, token_budget=8 * 16)
    for rows in (4, 1):
        stats, gradient = _gradient(model, scored, config, token_budget=rows * 16)
        assert stats.loss == pytest.approx(whole.loss, abs=1e-6)
        assert stats.tokens == whole.tokens == sum(steps)
        for a, b in zip(gradient, reference, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


@pytest.mark.parametrize("config", [GRPO, DAPO, SEQUENCE, TOKEN])
def test_what_the_model_thinks_of_observations_changes_no_loss(config):
    # Padding is the end-of-turn token 2; tokens 10, 13 and 2 precede only tokens that were read, or nothing.
    chat = trajectory(
        [make_step([10, 11], [12, 13], continues=False), make_step([14], [15, 2], continues=True)]
    )
    short = trajectory([make_step([11], [15], continues=False)], sample=1)
    model = Bigram()
    scored = _scored(model, [chat, short], pad=2)
    before, gradients = _gradient(model, scored, config)
    assert torch.nonzero(gradients[0].abs().sum(1)).flatten().tolist() == [11, 12, 14, 15]
    with torch.no_grad():
        model.table[[10, 13, 2]] += torch.randn(3, 20)
    after, moved = _gradient(model, scored, config)
    assert after == before
    assert torch.equal(moved[0], gradients[0])


def test_a_clipped_token_gives_no_gradient_and_is_counted_on_its_side():
    # Ratio 2 with advantage +1 is clipped above; ratio 0.5 with advantage -1 below; the other two pass.
    chats = [trajectory([make_step([5], [6], continues=False)], sample=i) for i in range(4)]
    model = Bigram()
    scored = _scored(model, chats)
    own = float(torch.log_softmax(model.table.detach()[5], -1)[6])
    old = torch.zeros(4, 2)
    old[:, 1] = own - torch.tensor([2.0, 0.5, 2.0, 0.5]).log()
    signs = torch.tensor([1.0, -1.0, -1.0, 1.0])
    scored = replace(scored, old_logprob=old, raw_advantage=signs)
    plain = LossConfig(kl_coef=0, entropy_coef=0)
    stats, _ = _gradient(model, scored, plain)
    assert (stats.clipped_low, stats.clipped_high) == (1, 1)
    for member, passes in enumerate([False, False, True, True]):
        _, gradient = _gradient(model, scored, plain, part=torch.tensor([member]))
        assert bool(gradient[0].abs().sum() > 0) is passes


def test_equal_rewards_without_kl_and_entropy_terms_give_a_gradient_of_zero():
    model, rng = tiny_model(), np.random.default_rng(3)
    scored = _scored(model, [random_trajectory(rng, sample=i) for i in range(3)])
    still = torch.zeros(scored.batch.num_steps)
    stats, gradient = _gradient(model, scored, LossConfig(kl_coef=0, entropy_coef=0), advantage=still)
    assert stats.loss == 0
    assert all(float(each.abs().max()) == 0 for each in gradient)
    assert stats.kl > 0  # still measured


def test_equal_rewards_still_feel_the_kl_term():
    model, rng = tiny_model(), np.random.default_rng(3)
    scored = _scored(model, [random_trajectory(rng, sample=i) for i in range(3)])
    still = torch.zeros(scored.batch.num_steps)
    stats, gradient = _gradient(model, scored, LossConfig(kl_coef=0.5, entropy_coef=0), advantage=still)
    assert stats.loss == pytest.approx(0.5 * stats.kl, rel=1e-5)
    assert max(float(each.abs().max()) for each in gradient) > 0


@pytest.mark.parametrize(
    ("trajectories", "size", "sizes"), [(8, None, [8]), (8, 3, [3, 3, 2]), (5, 4, [3, 2])]
)
def test_optimiser_steps_split_by_trajectory_into_even_parts(trajectories, size, sizes):
    config = BatchConfig(minibatch_trajectories=size)
    parts = minibatches(trajectories, config, seed=0, iteration=0, epoch=0)
    assert [len(part) for part in parts] == sizes
    assert sorted(torch.cat(parts).tolist()) == list(range(trajectories))


def test_the_mini_batch_order_is_named_by_seed_iteration_and_epoch():
    def order(seed, iteration, epoch):
        config = BatchConfig(minibatch_trajectories=8)
        parts = minibatches(64, config, seed=seed, iteration=iteration, epoch=epoch)
        return torch.cat(parts).tolist()

    assert order(1, 2, 3) == order(1, 2, 3)
    assert len({tuple(order(*place)) for place in [(1, 2, 3), (0, 2, 3), (1, 0, 3), (1, 2, 0)]}) == 4


def test_minibatch_scope_modulates_each_part_as_if_it_were_the_batch():
    rng = np.random.default_rng(4)
    trajectories = [random_trajectory(rng, sample=i) for i in range(4)]
    scored = _scored(tiny_model(), trajectories)
    config = EmpgConfig(scope="minibatch")
    table = modulate_parts(scored, [torch.tensor([0, 3]), torch.tensor([1, 2])], config)
    for members in ([0, 3], [1, 2]):
        alone = make_batch([trajectories[m] for m in members], 0)
        steps = torch.isin(scored.batch.trajectory_of_step, torch.tensor(members))
        expected = modulate(scored.raw_advantage[steps], scored.entropy[steps], alone.next_step, config)
        torch.testing.assert_close(table.advantage[steps], expected)
    whole = modulate_parts(scored, [torch.tensor([0, 3]), torch.tensor([1, 2])], EmpgConfig())
    assert not torch.allclose(whole.advantage, table.advantage)


def test_without_empg_the_step_advantage_is_the_raw_one():
    rng = np.random.default_rng(5)
    scored = _scored(tiny_model(), [random_trajectory(rng, sample=i) for i in range(3)])
    assert torch.equal(modulate_parts(scored, [torch.arange(3)], None).advantage, scored.raw_advantage)


@pytest.mark.parametrize("cap", [1.0, 2.0])
def test_where_engine_and_trainer_agree_the_importance_correction_changes_no_bit(cap):
    model, rng = tiny_model(), np.random.default_rng(3)
    scored = _scored(model, [random_trajectory(rng, sample=i) for i in range(4)])
    agreeing = replace(scored, batch=replace(scored.batch, sampled_logprobs=scored.old_logprob))
    plain, expected = _gradient(model, agreeing, TOKEN)
    corrected, actual = _gradient(model, agreeing, replace(TOKEN, importance_cap=cap))
    assert corrected == plain
    assert all(a.equal(b) for a, b in zip(actual, expected, strict=True))
