"""A learner whose model has adapters: the reference is the model without them, and only they move and are kept."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from agents.policies.adapters import add_lora, merged_weights
from empg import checkpoint
from empg.batch import make_batch
from empg.checkpoint import CheckpointError
from empg.config import BatchConfig, LearnerConfig, OptimizerConfig
from empg.losses import GRPO
from empg.scores import score
from empg.sharding import take_over
from empg.trainer import Learner
from tests.empg.helpers import PAD, random_collect, tiny_model

pytest.importorskip("peft")
CONFIG = LearnerConfig(
    loss=replace(GRPO, kl_coef=0.1),
    batch=BatchConfig(2, 4, token_budget=64, chunk=16, minibatch_trajectories=4),
    optimizer=OptimizerConfig(lr=1e-2),
)
COLLECT = random_collect(2, 4, seed=3)


def _adapted(seed=0, moved=True, **changes):
    """A model with adapters; `moved` makes them change what it says."""
    model = tiny_model(seed, **changes)
    add_lora(model, rank=2, alpha=4)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if moved and "lora_B" in name:
            parameter.data = 0.2 * torch.randn(parameter.shape, generator=generator)
    return model


def _learner(model=None, **changes):
    return Learner(_adapted() if model is None else model, replace(CONFIG, **changes), pad_id=PAD)


def _bits(learner):
    return {name: one.numpy().tobytes() for name, one in checkpoint.model_tensors(learner.model).items()}


def test_the_reference_scores_as_the_base_model_does_bit_for_bit_and_adapters_are_on_again():
    learner, batch = _learner(), make_batch(COLLECT(0, 0), PAD)
    sizes = {"temperature": 1.0, "token_budget": 64, "chunk": 16}
    expected = score(tiny_model(), batch, **sizes, entropy=False).logprob
    adapted = score(learner.model, batch, **sizes).logprob
    assert torch.equal(learner.reference.logprob(batch, CONFIG, learner._processes), expected)
    assert float((adapted - expected).abs().max()) > 0.1
    assert torch.equal(score(learner.model, batch, **sizes).logprob, adapted)


def test_no_second_model_is_held():
    learner = _learner()
    assert learner.reference.model is learner.model


def test_adapters_are_on_again_when_scoring_the_reference_fails(monkeypatch):
    learner, batch = _learner(), make_batch(COLLECT(0, 0), PAD)
    before = score(learner.model, batch, temperature=1.0, token_budget=64, chunk=16).logprob

    def fail(*_args, **_kwargs):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(learner.model.model, "forward", fail)
        with pytest.raises(MemoryError):
            learner.reference.logprob(batch, CONFIG, learner._processes)
    after = score(learner.model, batch, temperature=1.0, token_budget=64, chunk=16).logprob
    assert torch.equal(after, before)


def test_the_reference_is_known_by_the_weights_of_the_base_alone():
    plain = Learner(tiny_model(), CONFIG, pad_id=PAD)
    assert _learner().reference.sha256() == plain.reference.sha256()
    assert _learner(_adapted(moved=False)).reference.sha256() == plain.reference.sha256()
    assert _learner(_adapted(seed=1)).reference.sha256() != plain.reference.sha256()


def test_an_update_is_that_of_a_learner_with_a_copied_base_as_reference_and_moves_only_adapters():
    learner = _learner()
    copied = Learner(_adapted(), CONFIG, pad_id=PAD, reference=tiny_model())
    before = {name: one.clone() for name, one in checkpoint.model_tensors(learner.model).items()}
    outcome = learner.iterate(0, COLLECT)
    assert outcome.metrics == copied.iterate(0, COLLECT).metrics
    assert outcome.metrics["kl_loss"] > 0.01
    assert _bits(learner) == _bits(copied)
    for name, one in checkpoint.model_tensors(learner.model).items():
        assert torch.equal(one, before[name]) is ("lora_" not in name), name


def test_fresh_adapters_have_no_divergence():
    metrics = _learner(_adapted(moved=False), optimizer=OptimizerConfig(lr=1e-12)).iterate(0, COLLECT).metrics
    assert abs(metrics["kl_loss"]) < 1e-6


def test_a_checkpoint_holds_adapters_alone_says_so_and_goes_on_bit_for_bit(tmp_path):
    straight = _learner()
    expected = [straight.iterate(i, COLLECT) for i in range(4)]
    first = _learner()
    actual = [first.iterate(i, COLLECT) for i in range(2)]
    first.save(tmp_path)
    second = _learner()
    assert second.restore(tmp_path) == 2
    actual += [second.iterate(i, COLLECT) for i in (2, 3)]
    assert [one.metrics for one in actual] == [one.metrics for one in expected]
    assert _bits(second) == _bits(straight)

    saved = tmp_path / "iteration-000002"
    names = load_file(saved / "model.safetensors").keys()
    assert names == {name for name in checkpoint.model_tensors(first.model) if ".lora_" in name}
    scalars = json.loads((saved / "state.json").read_text())["scalars"]
    assert scalars["holds"] == "adapters"
    assert scalars["base"] == scalars["reference"] == first.reference.sha256()


def test_a_checkpoint_of_adapters_on_another_base_is_refused(tmp_path):
    _learner().save(tmp_path)
    with pytest.raises(CheckpointError, match="was made with reference"):
        _learner(_adapted(seed=1)).restore(tmp_path)


def test_another_base_is_refused_also_where_the_reference_is_a_model_of_its_own(tmp_path):
    Learner(_adapted(), CONFIG, pad_id=PAD, reference=tiny_model(seed=5)).save(tmp_path)
    other = Learner(_adapted(seed=1), CONFIG, pad_id=PAD, reference=tiny_model(seed=5))
    with pytest.raises(CheckpointError, match="was made with base"):
        other.restore(tmp_path)


def test_a_checkpoint_of_adapters_and_one_of_a_whole_model_are_told_apart(tmp_path):
    _learner().save(tmp_path / "adapters")
    plain = Learner(tiny_model(), CONFIG, pad_id=PAD)
    plain.save(tmp_path / "whole")
    with pytest.raises(CheckpointError, match=r"base .*, but this learner's is none \(no adapters\)"):
        plain.restore(tmp_path / "adapters")
    with pytest.raises(CheckpointError, match=r"base none \(no adapters\), but this learner's is "):
        _learner().restore(tmp_path / "whole")


def test_another_model_with_the_same_base_takes_over_the_adapters():
    learner, batch = _learner(), make_batch(COLLECT(0, 0), PAD)
    learner.iterate(0, COLLECT)
    copied = _adapted(moved=False)
    take_over(copied, learner.weights())
    sizes = {"temperature": 1.0, "token_budget": 64, "chunk": 16}
    theirs, ours = (score(model, batch, **sizes).logprob for model in (copied, learner.model))
    assert torch.equal(theirs, ours)


def test_merged_weights_of_a_trained_learner_are_those_of_a_plain_model_that_says_the_same():
    learner, batch = _learner(), make_batch(COLLECT(0, 0), PAD)
    learner.iterate(0, COLLECT)
    before = _bits(learner)
    plain = tiny_model(seed=9)
    plain.load_state_dict(dict(merged_weights(learner.model)), strict=False)
    sizes = {"temperature": 1.0, "token_budget": 64, "chunk": 16}
    merged, adapted = (score(model, batch, **sizes).logprob for model in (plain, learner.model))
    torch.testing.assert_close(merged, adapted, rtol=1e-5, atol=1e-5)
    assert _bits(learner) == before


def test_weights_that_are_trained_beside_adapters_need_a_reference_of_their_own():
    model = _adapted()
    model.model.norm.weight.requires_grad_(True)
    with pytest.raises(ValueError, match=r"\['model.norm.weight'\] are trained beside the adapters"):
        _learner(model)
