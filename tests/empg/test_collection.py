"""Dynamic sampling: which groups are trained on, when it stops, and what is counted."""

from __future__ import annotations

import logging

import pytest

from empg.collection import gather
from empg.config import BatchConfig, DynamicSamplingConfig
from empg.metrics import collection_metrics
from tests.empg.helpers import make_step, trajectory

BATCH = BatchConfig(groups_per_batch=2, group_size=4)


def _episode(group, sample, reward, *, end="terminated", tokens=2):
    step = make_step([1], [2] * tokens, continues=False)
    return trajectory([step], group=group, sample=sample, reward=reward, end=end)


def _group(number, rewards):
    return [_episode(number, sample, reward) for sample, reward in enumerate(rewards)]


def test_constant_rewards_stop_after_exactly_the_allowed_attempts_with_a_message(caplog):
    asked = []

    def collect(iteration, attempt):
        asked.append((iteration, attempt))
        return _group(0, [0, 0, 0, 0]) + _group(1, [1, 1, 1, 1])

    with caplog.at_level(logging.WARNING):
        collection = gather(5, collect, BATCH, DynamicSamplingConfig(max_attempts=3))
    assert asked == [(5, 0), (5, 1), (5, 2)]
    assert collection.kept == ()
    assert "0 of 2 groups have unequal rewards after 3 attempts; the update is skipped" in caplog.text
    assert len(collection.listed()) == 24
    assert not any(each.kept for each in collection.listed())


def test_sampling_goes_on_until_enough_groups_differ_and_leaves_the_surplus(caplog):
    attempts = [
        _group(0, [1, 1, 1, 1]) + _group(1, [0, 1, 0, 0]),
        _group(0, [0, 0, 1, 1]) + _group(1, [1, 0, 0, 0]),
    ]
    collection = gather(0, lambda _, attempt: attempts[attempt], BATCH, DynamicSamplingConfig(5))
    assert collection.attempts == 2
    assert [(group.attempt, group.members[0].group) for group in collection.kept] == [(0, 1), (1, 0)]
    assert [member.group for member in collection.renumbered()] == [0] * 4 + [1] * 4
    assert [each.kept for each in collection.listed()] == [False] * 4 + [True] * 8 + [False] * 4
    assert not caplog.records


def test_too_few_groups_are_trained_on_with_a_message(caplog):
    with caplog.at_level(logging.WARNING):
        collection = gather(
            0, lambda *_: _group(0, [0, 0]) + _group(1, [0, 1]), BatchConfig(3, 4), DynamicSamplingConfig(2)
        )
    assert len(collection.kept) == 2
    assert "2 of 3 groups have unequal rewards after 2 attempts; training on those" in caplog.text


def test_the_filter_reads_raw_rewards_so_failures_of_different_length_are_dropped():
    failures = [_episode(0, sample, 0.0, tokens=n) for sample, n in enumerate((10, 150, 300, 400))]
    assert gather(0, lambda *_: failures, BATCH, DynamicSamplingConfig(1)).kept == ()


def test_without_dynamic_sampling_one_attempt_is_made_and_uniform_groups_stay():
    asked = []

    def collect(iteration, attempt):
        asked.append(attempt)
        return _group(0, [0, 0, 0, 0])

    assert len(gather(0, collect, BATCH, None).training) == 4
    assert asked == [0]


def test_a_broken_environment_shrinks_its_group_and_is_counted_in_no_rate():
    episodes = [*_group(0, [1, 0, 0]), _episode(0, 3, 0.0, end="error")]
    collection = gather(0, lambda *_: episodes, BATCH, None)
    metrics = collection_metrics(0, collection)
    assert len(collection.training) == 3
    assert metrics["episodes"] == 4
    assert metrics["episodes_errored"] == 1
    assert metrics["episodes_kept"] == 3
    assert metrics["success"] == pytest.approx(1 / 3)


def test_a_group_that_errors_down_to_one_member_has_nothing_to_compare():
    episodes = [_episode(0, 0, 1.0), *(_episode(0, s, 0.0, end="error") for s in (1, 2, 3))]
    assert gather(0, lambda *_: episodes, BATCH, DynamicSamplingConfig(1)).kept == ()


def test_success_over_all_episodes_and_over_kept_ones_are_different_numbers():
    episodes = _group(0, [1, 1, 1, 1]) + _group(1, [1, 0, 0, 0])
    metrics = collection_metrics(0, gather(0, lambda *_: episodes, BATCH, DynamicSamplingConfig(1)))
    assert metrics["success"] == pytest.approx(5 / 8)
    assert metrics["success_kept"] == pytest.approx(1 / 4)
    assert metrics["uniform_group_share"] == 0.5
    assert (metrics["groups"], metrics["groups_kept"]) == (2, 1)


def test_rates_over_nothing_are_missing_not_zero():
    metrics = collection_metrics(0, gather(0, lambda *_: [], BATCH, None))
    assert metrics["episodes"] == 0
    assert metrics["success"] is None
    assert metrics["uniform_group_share"] is None


def test_a_group_larger_than_configured_is_refused():
    with pytest.raises(ValueError, match="group 0 holds 5 trajectories, expected at most 4"):
        gather(0, lambda *_: _group(0, [0, 1, 0, 1, 0]), BATCH, None)
