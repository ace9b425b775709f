"""The learner from trajectories to weights and numbers, on a tiny random Llama."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from empg import EmpgConfig, group_advantage, modulate, step_entropy
from empg.batch import make_batch
from empg.config import BatchConfig, DynamicSamplingConfig, LearnerConfig, OptimizerConfig
from empg.losses import DAPO, GRPO, LossConfig, OverlongConfig
from empg.metrics import score_metrics
from empg.scores import score
from empg.trainer import Learner, NonFiniteError
from empg.update import Scored
from tests.empg.helpers import (
    PAD,
    make_step,
    random_collect,
    random_trajectory,
    tiny_model,
    trajectory,
)

BATCH = BatchConfig(groups_per_batch=2, group_size=4, token_budget=64, chunk=16)
FAST = OptimizerConfig(lr=1e-2)


def _learner(model=None, **changes):
    settings = {"batch": BATCH, "optimizer": FAST} | changes
    return Learner(tiny_model() if model is None else model, LearnerConfig(**settings), pad_id=PAD)


def _weights(model):
    return torch.cat([p.detach().flatten().clone() for p in model.parameters()])


METRICS = [
    "iteration",
    "attempts",
    "episodes",
    "episodes_kept",
    "episodes_errored",
    "groups",
    "groups_kept",
    "uniform_group_share",
    "success",
    "success_kept",
    "score",
    "reward",
    "truncated_share",
    "context_share",
    "well_formed_share",
    "action_valid_share",
    "steps_per_episode",
    "sampled_tokens",
    "sampled_tokens_total",
    "train_tokens",
    "loss",
    "policy_loss",
    "kl_loss",
    "entropy",
    "entropy_min",
    "entropy_max",
    "surprisal",
    "ratio_mean",
    "ratio_max",
    "clip_low_share",
    "clip_high_share",
    "grad_norm",
    "lr",
    "g_min",
    "g_max",
    "bonus_mean",
    "advantage_abs_mean",
    "rollout_logprob_gap",
    "rollout_logprob_gap_max",
    "rollout_kl",
    "rollout_ratio_mean",
    "rollout_truncated_share",
    "optimizer_steps",
    "skipped",
]


def test_every_iteration_reports_the_same_keys_also_when_the_update_is_skipped():
    def collect(iteration, attempt):
        same = [random_trajectory(np.random.default_rng(i), sample=i, reward=1.0) for i in range(4)]
        return same if iteration == 0 else random_collect(2, 4)(iteration, attempt)

    learner = _learner(sampling=DynamicSamplingConfig(2))
    skipped, trained = learner.iterate(0, collect), learner.iterate(1, collect)
    assert set(skipped.metrics) == set(trained.metrics) == set(METRICS)
    assert all(value is not None and math.isfinite(value) for value in trained.metrics.values())
    assert skipped.metrics["loss"] is None


def test_constant_rewards_skip_the_update_leave_the_weights_and_end():
    learner = _learner(loss=DAPO, sampling=DynamicSamplingConfig(3))
    before = _weights(learner.model)
    outcome = learner.iterate(
        0, lambda *_: [random_trajectory(np.random.default_rng(i), sample=i, reward=0.0) for i in range(4)]
    )
    assert (outcome.metrics["skipped"], outcome.metrics["attempts"]) == (1, 3)
    assert outcome.metrics["optimizer_steps"] == 0
    assert outcome.records is None
    assert len(outcome.collected) == 12
    assert torch.equal(_weights(learner.model), before)
    assert learner.next_iteration == 1


def test_the_first_update_sees_ratio_one_and_no_divergence_even_with_dropout():
    learner = _learner(tiny_model(attention_dropout=0.5).train())
    metrics = learner.iterate(0, random_collect(2, 4)).metrics
    assert abs(metrics["kl_loss"]) < 1e-6
    assert metrics["ratio_mean"] == pytest.approx(1, abs=1e-6)
    assert metrics["ratio_max"] == pytest.approx(1, abs=1e-5)
    assert metrics["clip_low_share"] == metrics["clip_high_share"] == 0


def test_the_divergence_is_measured_also_where_it_is_not_in_the_loss():
    learner = _learner(loss=LossConfig(kl_coef=0, entropy_coef=0))
    collect = random_collect(2, 4)
    assert learner.iterate(0, collect).metrics["kl_loss"] < 1e-6
    metrics = learner.iterate(1, collect).metrics
    assert metrics["kl_loss"] > 1e-6
    assert metrics["loss"] == metrics["policy_loss"]


def test_the_number_of_optimiser_steps_depends_on_trajectories_not_on_turns():
    def steps(turns):
        episodes = [
            random_trajectory(np.random.default_rng(i), group=i // 2, sample=i % 2, turns=turns)
            for i in range(4)
        ]
        batch = BatchConfig(2, 2, minibatch_trajectories=2, epochs=3, token_budget=64, chunk=64)
        return _learner(batch=batch).iterate(0, lambda *_: episodes).metrics["optimizer_steps"]

    assert steps(2) == steps(20) == 6


def test_the_step_table_holds_the_method_applied_to_the_batch_by_hand():
    config, model = EmpgConfig(), tiny_model()
    episodes = random_collect(2, 4)(0, 0)
    batch = make_batch(episodes, PAD)
    scores = score(model, batch, temperature=0.8, token_budget=1000, chunk=100)
    entropy = step_entropy(scores.entropy, batch.step_of_token, batch.num_steps)
    raw = group_advantage(batch.reward, batch.group)[batch.trajectory_of_step].float()

    table = _learner(model, empg=config, temperature=0.8).iterate(0, lambda *_: episodes).records.steps
    assert table.entropy == pytest.approx(entropy.tolist(), abs=1e-5)
    assert table.raw_advantage == pytest.approx(raw.tolist())
    assert table.advantage == pytest.approx(
        modulate(raw, entropy, batch.next_step, config).tolist(), abs=1e-4
    )
    expected = [(t.task_id, t.group, t.sample, i) for t in episodes for i in range(len(t.steps))]
    assert list(zip(table.task_id, table.group, table.sample, table.step, strict=True)) == expected
    assert table.tokens == [len(step.action_ids) for t in episodes for step in t.steps]
    assert table.entropy_after is None
    assert {len(column) for column in table.columns().values()} == {batch.num_steps}


def test_scores_and_account_are_taken_before_the_weights_move():
    learner = _learner(rescore_every=2)
    first, second = (learner.iterate(i, random_collect(2, 4)) for i in range(2))
    assert first.records.steps.entropy_after is None
    after = score(
        learner.model,
        make_batch([each.trajectory for each in second.collected], PAD),
        temperature=1.0,
        token_budget=64,
        chunk=16,
    )
    batch = make_batch([each.trajectory for each in second.collected], PAD)
    expected = step_entropy(after.entropy, batch.step_of_token, batch.num_steps)
    assert second.records.steps.entropy_after == pytest.approx(expected.tolist(), abs=1e-6)
    assert second.records.steps.entropy != pytest.approx(expected.tolist(), abs=1e-4)


def test_training_makes_rewarded_tokens_likelier_and_the_reference_stays():
    good = trajectory([make_step([3, 4], [7], continues=False)], sample=0, reward=1.0)
    bad = trajectory([make_step([3, 4], [9], continues=False)], sample=1, reward=0.0)
    model = tiny_model()
    reference = _weights(copy.deepcopy(model))
    learner = Learner(
        model,
        LearnerConfig(
            loss=GRPO, empg=EmpgConfig(), batch=BatchConfig(1, 2), optimizer=OptimizerConfig(lr=3e-3)
        ),
        pad_id=PAD,
    )

    def odds():
        scores = score(model, make_batch([good, bad], PAD), temperature=1.0, token_budget=99, chunk=9)
        return float(scores.logprob[0, 2] - scores.logprob[1, 2])

    before = odds()
    for iteration in range(5):
        learner.iterate(iteration, lambda *_: [good, bad])
    assert odds() > before + 0.1
    assert torch.equal(_weights(learner.reference.model), reference)


def test_a_uniform_group_has_advantage_zero_but_receives_the_bonus():
    episodes = [
        *(
            random_trajectory(np.random.default_rng(i), group=0, sample=i, reward=1.0, turns=3)
            for i in range(2)
        ),
        *(
            random_trajectory(np.random.default_rng(9 + i), group=1, sample=i, reward=i, turns=3)
            for i in range(2)
        ),
    ]
    outcome = _learner(empg=EmpgConfig(centre=False)).iterate(0, lambda *_: episodes)
    assert outcome.metrics["uniform_group_share"] == 0.5
    assert outcome.records.steps.raw_advantage[:6] == [0.0] * 6
    assert outcome.records.steps.advantage[:6] == pytest.approx(
        [0.05 * f for f in outcome.records.steps.f[:6]]
    )
    assert min(outcome.records.steps.f[0:2]) > 0.36
    assert outcome.records.steps.f[2] == outcome.records.steps.f[5] == 0


def test_an_errored_episode_leaves_its_group_smaller_and_out_of_the_step_table():
    episodes = random_collect(1, 4)(0, 0)
    broken = trajectory(episodes[3].steps, group=0, sample=3, end="error")
    outcome = _learner().iterate(0, lambda *_: [*episodes[:3], broken])
    assert outcome.metrics["episodes_errored"] == 1
    assert set(outcome.records.steps.sample) == {0, 1, 2}
    # Rewards 0, 1, 0 of the three that are left.
    two_thirds = group_advantage(torch.tensor([0.0, 1.0, 0.0]), torch.zeros(3)).tolist()
    assert outcome.records.steps.raw_advantage[0] == pytest.approx(two_thirds[0])


def test_the_length_penalty_shapes_the_advantage_but_not_the_reported_reward():
    short = trajectory([make_step([1], [2] * 5, continues=False)], sample=0, reward=1.0)
    long = trajectory([make_step([1], [2] * 15, continues=False)], sample=1, reward=1.0)
    fail = trajectory([make_step([1], [2], continues=False)], sample=2, reward=0.0)
    outcome = _learner(overlong=OverlongConfig(20, 10)).iterate(0, lambda *_: [short, long, fail])
    expected = group_advantage(torch.tensor([1.0, 0.5, 0.0]), torch.zeros(3)).tolist()
    assert outcome.records.steps.raw_advantage == pytest.approx(expected)
    assert outcome.records.steps.reward == [1.0, 1.0, 0.0]
    assert outcome.metrics["reward"] == pytest.approx(2 / 3)


def test_groups_of_different_attempts_with_one_number_do_not_share_a_baseline():
    def collect(iteration, attempt):
        return [
            random_trajectory(
                np.random.default_rng((attempt, i)), group=0, sample=i, reward=10.0 * attempt + i % 2
            )
            for i in range(2)
        ]

    batch = BatchConfig(groups_per_batch=2, group_size=2)
    steps = _learner(batch=batch, sampling=DynamicSamplingConfig(2)).iterate(0, collect).records.steps
    assert set(steps.attempt) == {0, 1}
    assert sorted({round(value, 3) for value in steps.raw_advantage}) == [-0.707, 0.707]


def test_outcome_advantages_are_plus_and_minus_one():
    outcome = _learner(advantage="outcome").iterate(0, random_collect(2, 4))
    expected = [1.0 if reward == 1.0 else -1.0 for reward in outcome.records.steps.reward]
    assert outcome.records.steps.raw_advantage == expected


def test_the_mismatch_between_what_sampled_and_the_trainer_is_measured_by_hand():
    model = tiny_model()
    plain = random_collect(1, 2)(0, 0)
    batch = make_batch(plain, PAD)
    own = score(model, batch, temperature=1.0, token_budget=99, chunk=9).logprob[batch.step_of_token >= 0]
    shift = torch.tensor([0.0, math.log(3), -math.log(2)])[torch.arange(len(own)) % 3]  # ratios 1, 3 and 1/2
    given = iter((own - shift).tolist())
    episodes = [
        replace(
            each,
            steps=tuple(
                replace(step, action_logprobs=tuple(next(given) for _ in step.action_ids))
                for step in each.steps
            ),
        )
        for each in plain
    ]
    ratios = shift.exp()
    expected = {
        "rollout_logprob_gap": float(shift.abs().mean()),
        "rollout_logprob_gap_max": math.log(3),
        "rollout_kl": float((ratios - 1 - shift).mean()),
        "rollout_ratio_mean": float(ratios.mean()),
        "rollout_truncated_share": float((ratios > 2).double().mean()),
    }
    found = _learner(model).iterate(0, lambda *_: episodes).metrics
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-5)
    capped = _learner(tiny_model(), loss=replace(GRPO, importance_cap=4.0)).iterate(0, lambda *_: episodes)
    assert capped.metrics["rollout_truncated_share"] == 0.0


def test_where_engine_and_trainer_agree_the_measured_mismatch_is_exactly_none():
    batch = make_batch(random_collect(1, 2)(0, 0), PAD)
    old = score(tiny_model(), batch, temperature=1.0, token_budget=99, chunk=9)
    agreeing = replace(batch, sampled_logprobs=old.logprob)
    steps = torch.zeros(batch.num_steps)
    found = score_metrics(Scored(agreeing, steps, steps, old.logprob, old.logprob, old.entropy))
    names = ("logprob_gap", "logprob_gap_max", "kl", "ratio_mean", "truncated_share")
    assert [found[f"rollout_{name}"] for name in names] == [0.0, 0.0, 0.0, 1.0, 0.0]


def test_a_token_that_the_engine_all_but_excluded_leaves_the_measured_mismatch_finite():
    batch = make_batch(random_collect(1, 2)(0, 0), PAD)
    old = score(tiny_model(), batch, temperature=1.0, token_budget=99, chunk=9)
    far = replace(batch, sampled_logprobs=torch.full_like(old.logprob, -1e4))
    steps = torch.zeros(batch.num_steps)
    found = score_metrics(Scored(far, steps, steps, old.logprob, old.logprob, old.entropy))
    assert all(value is not None and math.isfinite(value) for value in found.values())
    assert found["rollout_ratio_mean"] == pytest.approx(math.exp(20))


def test_sampled_tokens_count_every_episode_and_add_up_over_iterations():
    learner, collect = _learner(), random_collect(2, 4)
    counts = [
        sum(len(step.action_ids) for t in collect(iteration, 0) for step in t.steps) for iteration in range(2)
    ]
    first, second = (learner.iterate(iteration, collect).metrics for iteration in range(2))
    assert (first["sampled_tokens"], second["sampled_tokens"]) == tuple(counts)
    assert second["sampled_tokens_total"] == sum(counts)


def test_weights_that_are_not_numbers_stop_the_iteration_by_name():
    learner, collect = _learner(), random_collect(2, 4)
    learner.iterate(0, collect)
    with torch.no_grad():
        next(learner.model.parameters()).fill_(math.nan)
    with pytest.raises(
        NonFiniteError, match="iteration 1: a log-probability of a sampled token is not finite"
    ):
        learner.iterate(1, collect)


def test_a_gradient_that_is_not_a_number_never_reaches_the_weights():
    learner = _learner()
    learner.model.lm_head.weight.register_hook(lambda grad: grad * math.nan)
    before = _weights(learner.model)
    with pytest.raises(NonFiniteError, match="iteration 0, optimiser step 0: the gradient norm is nan"):
        learner.iterate(0, random_collect(2, 4))
    assert torch.equal(_weights(learner.model), before)


def test_iterations_come_in_order_and_the_reference_must_be_another_module():
    learner = _learner()
    with pytest.raises(ValueError, match="iteration 3 asked for, but 0 comes next"):
        learner.iterate(3, random_collect(2, 4))
    model = tiny_model()
    with pytest.raises(ValueError, match="another module"):
        Learner(model, LearnerConfig(), pad_id=PAD, reference=model)


def test_a_model_with_nothing_to_train_is_refused():
    with pytest.raises(ValueError, match="no parameter that requires a gradient"):
        _learner(tiny_model().requires_grad_(False))


@pytest.mark.parametrize("empg", [None, EmpgConfig(), EmpgConfig(scope="minibatch", form="inverse")])
@pytest.mark.parametrize("loss", [GRPO, DAPO])
def test_every_variant_runs_and_moves_the_weights(empg, loss):
    batch = BatchConfig(2, 4, minibatch_trajectories=4, epochs=2, token_budget=64, chunk=8)
    learner = _learner(empg=empg, loss=loss, batch=batch)
    before = _weights(learner.model)
    metrics = learner.iterate(0, random_collect(2, 4)).metrics
    assert metrics["optimizer_steps"] == 4
    assert not torch.equal(_weights(learner.model), before)
    assert (metrics["g_min"] < 1 < metrics["g_max"]) is (empg is not None)
    assert (metrics["bonus_mean"] > 0) is (empg is not None)
