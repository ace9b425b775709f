"""Estimates of tokens, disk and GPUs, against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.config import Suite, load_suite
from benchmarks.estimate import Habits, Memory, Tokens, disk, disk_of_suite, gpus, memory, tokens
from benchmarks.shapes import Shape, shape_of

HABITS = Habits(
    turns=4.0,
    response_tokens=10.0,
    prompt_tokens=100.0,
    opening_tokens=50.0,
    observation_tokens=20.0,
    attempts=2.0,
)


def paper(name: str = "webshop") -> Suite:
    return load_suite(name, "paper", official=True)


def shape(name: str = "webshop") -> Shape:
    found = shape_of(paper(name).base)
    assert found is not None
    return found


PAPER, SHAPE = paper(), shape()


def config_of(suite: Suite, variant: str):
    learner = suite.learners[variant]
    return suite.base.model_copy(update={"kind": "train", "iterations": suite.iterations, "learner": learner})


def test_tokens_of_a_run_are_episodes_times_what_an_episode_reads_and_writes():
    """150 x 16 x 8 = 19,200 train episodes and 2 x 500 evaluated; 4 x 10 written, 4 x 100 read in each."""
    found = tokens(config_of(paper(), "grpo"), HABITS)
    assert found == Tokens(20_200, 20_200 * 40, 20_200 * 400, 19_200 * 440)


def test_dynamic_sampling_plays_more_and_learns_from_as_much():
    plain, filtered = (tokens(config_of(paper(), name), HABITS) for name in ("grpo", "dapo"))
    assert filtered.episodes == 2 * 19_200 + 1_000
    assert filtered.trained == plain.trained


def test_a_conversation_reads_its_opening_once_and_each_observation_once():
    """220 x 64 x 16 = 225,280 train episodes of 50 + 3 x 20 tokens read; 2 x 500 evaluated."""
    found = tokens(config_of(paper("ablation"), "dapo"), replace(HABITS, attempts=1.0))
    assert found.read == (225_280 + 1_000) * 110
    assert found.trained == 225_280 * (110 + 40)


def test_a_baseline_only_evaluates():
    found = tokens(paper().base, HABITS)
    assert (found.episodes, found.trained) == (1_000, 0)


def test_disk_holds_a_checkpoint_and_the_policy_of_each_run_and_one_more_checkpoint():
    suite = paper()
    weights = 4 * 1_543_714_304
    one = disk(shape(), config_of(suite, "grpo"), Tokens(), HABITS)
    assert (one.records, one.policy) == (0, weights)
    assert one.checkpoint == weights + 2 * weights + 4 * 338  # AdamW counts the steps of each of 338 tensors
    assert disk_of_suite([one, one]) == 3 * one.checkpoint + 2 * one.policy


def test_sharding_divides_weights_and_what_belongs_to_them_and_neither_logits_nor_engine():
    suite = paper()
    alone, shared = (
        memory(shape(), suite.base, suite.learners["grpo"], HABITS, count, sharded=True) for count in (1, 8)
    )
    for name in ("weights", "reference", "gradients", "optimizer"):
        assert getattr(shared, name) == pytest.approx(getattr(alone, name) / 8, abs=8)
    for name in ("logits", "engine"):
        assert getattr(shared, name) == getattr(alone, name)
    assert alone.gathered == 0 < shared.gathered
    assert alone.casts > 0 == shared.casts  # sharded weights are put together in bfloat16


def test_an_engine_that_sleeps_takes_no_memory_from_training():
    suite = paper()
    found = memory(shape(), suite.base, suite.learners["grpo"], HABITS, sharded=False)
    assert found.sleeps
    assert found.training == found.kept + found.activations + found.casts + found.logits
    awake = replace(found, sleeps=False)
    assert awake.training == found.training + found.engine + found.cache


def test_sharded_weights_are_sampled_from_a_whole_copy_that_torch_keeps_while_training():
    suite = paper()
    policy = suite.base.policy.model_copy(update={"rollout": "torch"})
    config = suite.base.model_copy(update={"policy": policy})
    found = memory(shape(), config, suite.learners["grpo"], HABITS, 4, sharded=True)
    assert found.engine == 4 * 1_543_714_304
    assert found.training == found.kept + found.gathered + found.activations + found.logits + found.engine


def test_gradient_checkpointing_needs_less_memory():
    suite = paper()
    base = suite.base
    off = base.policy.model_copy(update={"gradient_checkpointing": False})
    found: list[Memory] = [
        memory(shape(), one, suite.learners["grpo"], HABITS, sharded=False)
        for one in (base, base.model_copy(update={"policy": off}))
    ]
    assert found[0].activations < found[1].activations / 10


def test_seven_billion_parameters_fit_on_a_node_only_when_they_are_sharded():
    suite = load_suite("webshop", "paper", official=True)
    policy = suite.base.policy.model_copy(update={"model": "Qwen/Qwen2.5-7B-Instruct"})
    config = suite.base.model_copy(update={"policy": policy})
    large = shape_of(config)
    assert large is not None
    learner = suite.learners["grpo"]
    assert gpus(large, config, learner, HABITS, 80 * 10**9, sharded=False) is None
    assert gpus(large, config, learner, HABITS, 80 * 10**9, sharded=True) in (2, 4, 8)


@settings(max_examples=50, deadline=None)
@given(st.integers(10, 300), st.integers(1, 200))
def test_a_larger_gpu_is_never_needed_in_greater_number(size, more):
    suite, found = PAPER, SHAPE
    counts = [
        gpus(found, suite.base, suite.learners["grpo"], HABITS, one * 10**9, sharded=True)
        for one in (size, size + more)
    ]
    few, many = (float("inf") if one is None else one for one in reversed(counts))
    assert few <= many
