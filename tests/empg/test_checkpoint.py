"""Stopping and going on: equal to never stopping, whole or not at all, nothing unpickled."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from empg import EmpgConfig, checkpoint
from empg.checkpoint import CheckpointError
from empg.config import BatchConfig, DynamicSamplingConfig, LearnerConfig, OptimizerConfig
from empg.losses import DAPO
from empg.trainer import Learner
from tests.empg.helpers import PAD, random_collect, tiny_model

CONFIG = LearnerConfig(
    loss=DAPO,
    empg=EmpgConfig(),
    sampling=DynamicSamplingConfig(2),
    batch=BatchConfig(3, 4, minibatch_trajectories=6, epochs=2, token_budget=256, chunk=32),
    optimizer=OptimizerConfig(
        lr=3e-3, schedule="cosine", warmup_iterations=2, total_iterations=6, weight_decay=0.01
    ),
    rescore_every=2,
)
COLLECT = random_collect(3, 4, seed=7)


def _learner(config: LearnerConfig = CONFIG, **changes) -> Learner:
    return Learner(tiny_model(**changes), config, pad_id=PAD)


def _bits(learner: Learner) -> dict[str, bytes]:
    return {
        name: tensor.numpy().tobytes() for name, tensor in checkpoint.model_tensors(learner.model).items()
    }


def test_six_iterations_equal_two_and_two_and_two_bit_for_bit(tmp_path):
    straight = _learner()
    expected = [straight.iterate(i, COLLECT) for i in range(6)]

    actual = []
    for start in (0, 2, 4):
        torch.manual_seed(1000 + start)  # a new process has another history of global randomness
        learner = _learner()
        if start:
            assert learner.restore(tmp_path) == start
        for iteration in (start, start + 1):
            actual.append(learner.iterate(iteration, COLLECT))
        learner.save(tmp_path)
    assert [a.metrics for a in actual] == [e.metrics for e in expected]
    assert [a.records for a in actual] == [e.records for e in expected]
    assert _bits(learner) == _bits(straight)


def test_a_restore_takes_the_weights_back_also_within_one_process(tmp_path):
    learner = _learner()
    learner.iterate(0, COLLECT)
    learner.save(tmp_path)
    first = learner.iterate(1, COLLECT).metrics
    learner.iterate(2, COLLECT)
    assert learner.restore(tmp_path) == 1
    assert learner.iterate(1, COLLECT).metrics == first


def test_a_checkpoint_made_before_the_first_update_can_be_restored(tmp_path):
    _learner().save(tmp_path)
    assert _learner().restore(tmp_path) == 0


def test_files_are_safetensors_and_json_and_only_the_newest_stays(tmp_path):
    learner = _learner()
    for iteration in range(2):
        learner.iterate(iteration, COLLECT)
        learner.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["iteration-000002"]
    files = {path.name for path in (tmp_path / "iteration-000002").iterdir()}
    assert files == {"model.safetensors", "optimizer.safetensors", "state.json"}


def test_saving_the_same_iteration_again_replaces_it(tmp_path):
    learner = _learner()
    learner.save(tmp_path)
    learner.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["iteration-000000"]


@pytest.mark.parametrize("moment", ["model.safetensors", "state.json", "rename"])
def test_a_save_cut_at_any_moment_leaves_the_previous_checkpoint(tmp_path, monkeypatch, moment):
    learner = _learner()
    learner.iterate(0, COLLECT)
    learner.save(tmp_path)
    kept = _bits(learner)
    learner.iterate(1, COLLECT)

    class Killed(BaseException):
        pass

    def die(*_args, **_kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "rename":
            patch.setattr(os, "replace", die)
        elif moment == "state.json":
            patch.setattr(Path, "write_text", die)
        else:
            patch.setattr(checkpoint, "save_file", die)
        with pytest.raises(Killed):
            learner.save(tmp_path)
    again = _learner()
    assert again.restore(tmp_path) == 1
    assert _bits(again) == kept
    again.iterate(1, COLLECT)
    again.save(tmp_path)  # and what the cut one left behind is cleared away
    assert [path.name for path in tmp_path.iterdir()] == ["iteration-000002"]


def test_no_checkpoint_is_an_error_that_names_the_folder(tmp_path):
    with pytest.raises(CheckpointError, match=f"no checkpoint in {tmp_path}"):
        _learner().restore(tmp_path)
    assert checkpoint.latest(tmp_path / "absent") is None


def test_a_damaged_file_is_an_error_that_names_it(tmp_path):
    _learner().save(tmp_path)
    file = tmp_path / "iteration-000000" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match="iteration-000000 cannot be read"):
        _learner().restore(tmp_path)


def test_a_checkpoint_of_another_format_is_refused(tmp_path):
    _learner().save(tmp_path)
    file = tmp_path / "iteration-000000" / "state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 9}))
    with pytest.raises(CheckpointError, match="has format 9, expected 1"):
        _learner().restore(tmp_path)


def test_another_reference_is_refused_because_the_divergence_would_be_to_another_policy(tmp_path):
    learner = _learner()
    learner.iterate(0, COLLECT)
    learner.save(tmp_path)
    other = Learner(tiny_model(), CONFIG, pad_id=PAD, reference=tiny_model(seed=5))
    with pytest.raises(CheckpointError, match="was made with reference"):
        other.restore(tmp_path)


def test_another_model_is_refused_and_left_as_it_was():
    model = tiny_model()
    before = {name: tensor.clone() for name, tensor in checkpoint.model_tensors(model).items()}
    with pytest.raises(CheckpointError, match="on one side only"):
        checkpoint.load_tensors(model, {})
    wrong = {name: torch.ones(1) for name in before}
    with pytest.raises(
        CheckpointError, match=r"is \[1\] torch.float32 in the checkpoint, expected \[32, 16\]"
    ):
        checkpoint.load_tensors(model, wrong)
    assert all(torch.equal(before[name], tensor) for name, tensor in checkpoint.model_tensors(model).items())


def test_tied_weights_are_stored_once_and_come_back_tied(tmp_path):
    learner = _learner()
    assert "lm_head.weight" not in checkpoint.model_tensors(learner.model)
    learner.iterate(0, COLLECT)
    learner.save(tmp_path)
    again = _learner()
    again.restore(tmp_path)
    assert again.model.lm_head.weight is again.model.model.embed_tokens.weight
    assert torch.equal(again.model.lm_head.weight, learner.model.lm_head.weight)


def test_the_digest_tells_weights_types_and_names_apart():
    values = torch.tensor([1.0, 2.0])
    digests = {
        checkpoint.digest(tensors)
        for tensors in (
            {"a": values},
            {"b": values},
            {"a": values.double()},
            {"a": values.view(2, 1)},
            {"a": values + 1},
            {"a": values.bfloat16()},
        )
    }
    assert len(digests) == 6
