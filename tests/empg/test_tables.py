"""Recorded tokens and gradients belong to the steps that they are filed under."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from empg import EmpgConfig
from empg.config import BatchConfig, DynamicSamplingConfig, LearnerConfig, OptimizerConfig, ProbeConfig
from empg.losses import GRPO
from empg.trainer import Learner
from tests.empg.helpers import PAD, random_collect, random_trajectory, tiny_model

CONFIG = LearnerConfig(
    loss=GRPO,
    empg=EmpgConfig(),
    batch=BatchConfig(3, 2, minibatch_trajectories=2, token_budget=64, chunk=16),
    optimizer=OptimizerConfig(lr=1e-3),
    rescore_every=1,
    token_groups=2,
    probe=ProbeConfig(every=2, steps=4),
)


def _learner(config=CONFIG):
    return Learner(tiny_model(), config, pad_id=PAD)


@pytest.mark.parametrize("window", [False, True])
def test_recorded_tokens_are_those_of_the_first_groups_and_average_to_their_steps_entropies(window):
    episodes = [
        random_trajectory(
            np.random.default_rng(i), group=5 + i // 2, sample=i % 2, reward=i % 2, window=window
        )
        for i in range(6)
    ]
    found = _learner().iterate(0, lambda *_: episodes).records
    tokens, steps = found.tokens, found.steps
    assert set(tokens.group) == {5, 6}  # of 5, 6 and 7
    row_of = {key: n for n, key in enumerate(zip(steps.group, steps.sample, steps.step, strict=True))}
    sampled = {(e.group, e.sample, i): s for e in episodes for i, s in enumerate(e.steps)}
    for n, key in enumerate(zip(tokens.group, tokens.sample, tokens.step, strict=True)):
        assert tuple(tokens.token_ids[n]) == sampled[key].action_ids
        assert np.mean(tokens.entropy[n]) == pytest.approx(steps.entropy[row_of[key]], abs=1e-5)
        assert np.mean(tokens.entropy_after[n]) == pytest.approx(steps.entropy_after[row_of[key]], abs=1e-5)
        assert len(tokens.logprob[n]) == len(tokens.token_ids[n])
        assert max(tokens.logprob[n]) < 0
    assert len(tokens.step) == sum(len(e.steps) for e in episodes[:4])


def test_groups_of_different_attempts_with_one_number_are_different_groups():
    config = replace(CONFIG, sampling=DynamicSamplingConfig(max_attempts=3), token_groups=3)

    def collect(iteration, attempt):
        return [
            random_trajectory(np.random.default_rng(attempt), group=0, sample=i, reward=float(i))
            for i in (0, 1)
        ]

    tokens = _learner(config).iterate(0, collect).records.tokens
    assert set(zip(tokens.attempt, tokens.group, strict=True)) == {(0, 0), (1, 0), (2, 0)}


def test_gradients_are_measured_every_so_often_and_carry_their_steps_entropy_and_scale():
    learner = _learner()
    first, second = (learner.iterate(i, random_collect(3, 2)).records for i in range(2))
    assert first.gradients is None
    assert first.variances is None
    table, steps = second.gradients, second.steps
    rows = list(zip(steps.group, steps.sample, steps.step, strict=True))
    places = [rows.index(key) for key in zip(table.group, table.sample, table.step, strict=True)]
    assert len(places) == 4
    assert table.entropy == [steps.entropy[n] for n in places]
    assert table.g == pytest.approx([steps.g[n] for n in places])
    assert table.raw_advantage == [steps.raw_advantage[n] for n in places]
    assert second.variances["iteration"] == 1
    assert second.variances["steps"] == 4
    assert second.variances["plain_variance"] > 0


def test_what_is_recorded_changes_nothing_that_is_learned():
    plain = _learner(replace(CONFIG, token_groups=0, probe=None, rescore_every=0))
    watched = _learner()
    for iteration in range(2):
        ours = watched.iterate(iteration, random_collect(3, 2)).metrics
        assert ours == plain.iterate(iteration, random_collect(3, 2)).metrics
    for one, other in zip(plain.model.parameters(), watched.model.parameters(), strict=True):
        assert torch.equal(one, other)
