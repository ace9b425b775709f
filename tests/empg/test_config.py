"""The learner's settings: schedules by hand, and impossible values refused."""

from __future__ import annotations

import pytest

from empg.config import BatchConfig, DynamicSamplingConfig, LearnerConfig, OptimizerConfig
from empg.losses import OverlongConfig


def _rates(**settings):
    config = OptimizerConfig(lr=1.0, **settings)
    return [config.lr_at(iteration) for iteration in range(7)]


def test_a_constant_rate_rises_over_the_warm_up_and_stays():
    assert _rates(warmup_iterations=4) == [0.25, 0.5, 0.75, 1, 1, 1, 1]
    assert _rates() == [1.0] * 7


def test_a_linear_rate_falls_to_its_final_fraction_and_stays_there():
    actual = _rates(schedule="linear", warmup_iterations=1, total_iterations=5, final_fraction=0.2)
    assert actual == pytest.approx([1, 1, 0.8, 0.6, 0.4, 0.2, 0.2])


def test_a_cosine_rate_is_half_way_down_in_the_middle():
    assert _rates(schedule="cosine", total_iterations=4)[::2] == pytest.approx([1, 0.5, 0, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OptimizerConfig(lr=0.0), "lr must be a finite number above 0, got 0.0"),
        (lambda: OptimizerConfig(schedule="step"), "schedule must be"),
        (lambda: OptimizerConfig(schedule="linear"), "'linear' needs total_iterations"),
        (
            lambda: OptimizerConfig(warmup_iterations=5, total_iterations=5),
            "must exceed warmup_iterations=5, got 5",
        ),
        (lambda: OptimizerConfig(warmup_iterations=-1), "warmup_iterations must be at least 0, got -1"),
        (lambda: OptimizerConfig(final_fraction=1.5), "final_fraction must lie in"),
        (lambda: OptimizerConfig(weight_decay=-0.1), "weight_decay must be"),
        (lambda: DynamicSamplingConfig(0), "max_attempts must be at least 1, got 0"),
        (lambda: BatchConfig(group_size=0), "group_size must be"),
        (lambda: BatchConfig(minibatch_trajectories=0), "minibatch_trajectories must be"),
        (lambda: LearnerConfig(temperature=0.0), "temperature must be"),
        (lambda: LearnerConfig(advantage="gae"), "advantage must be 'group' or 'outcome', got 'gae'"),
        (lambda: LearnerConfig(rescore_every=-1), "rescore_every must be at least 0"),
        (
            lambda: LearnerConfig(advantage="outcome", overlong=OverlongConfig(20, 10)),
            "overlong penalty shapes rewards",
        ),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
