"""Passes without dropout, with layers calculated again, and in bfloat16: what changes and what must not."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from transformers import OPTConfig, OPTForCausalLM

from empg.batch import make_batch
from empg.config import BatchConfig, LearnerConfig, OptimizerConfig
from empg.losses import LossConfig
from empg.modes import differentiating
from empg.scores import open_model, score
from empg.trainer import Learner
from empg.update import Scored, accumulate_gradient
from tests.empg.helpers import PAD, VOCABULARY, random_collect, random_trajectory, tiny_model

LOSS = LossConfig(kl_coef=0.1, entropy_coef=0.05)


def _opt(dropout=0.0):
    """A model whose layers themselves call dropout: their own train mode would switch it on."""
    sizes = {"hidden_size": 16, "ffn_dim": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = OPTConfig(
        vocab_size=VOCABULARY, max_position_embeddings=64, word_embed_proj_dim=16, dropout=dropout, **sizes
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return OPTForCausalLM(config)


def _llama(dropout=0.0):
    return tiny_model(num_hidden_layers=2, attention_dropout=dropout)


def _scored(model):
    rng = np.random.default_rng(1)
    batch = make_batch([random_trajectory(rng, sample=i, window=i % 2 == 1) for i in range(5)], PAD)
    own = score(model, batch, temperature=1.0, token_budget=64, chunk=16)
    noise = torch.randn(own.logprob.shape, generator=torch.Generator().manual_seed(0))
    old = own.logprob + 0.1 * noise * (batch.step_of_token >= 0)
    advantage = torch.randn(batch.num_steps, generator=torch.Generator().manual_seed(1))
    return Scored(batch, advantage, torch.rand(batch.num_steps), old, old, own.entropy)


def _gradients(model, scored, precision="float32"):
    config = LearnerConfig(loss=LOSS, batch=BatchConfig(token_budget=64, chunk=16), precision=precision)
    everyone = torch.arange(scored.batch.num_trajectories)
    model.zero_grad()
    stats = accumulate_gradient(open_model(model, precision), scored, scored.raw_advantage, everyone, config)
    return stats, {name: one.grad.clone() for name, one in model.named_parameters()}


def _checkpointing(model):
    model.activation_checkpointing_enable({"use_reentrant": False})
    return model


@pytest.mark.parametrize("make", [_llama, _opt])
def test_gradients_with_layers_calculated_again_equal_those_without_also_of_a_model_with_dropout(make):
    plain = make()
    scored = _scored(plain)
    stats, expected = _gradients(plain, scored)
    again, actual = _gradients(_checkpointing(make(dropout=0.5)).train(), scored)
    assert again.loss == pytest.approx(stats.loss, abs=1e-6)
    for name, one in expected.items():
        torch.testing.assert_close(actual[name], one, rtol=0, atol=1e-6, msg=name)


@pytest.mark.parametrize("make", [_llama, _opt])
def test_layers_are_calculated_twice_in_the_training_pass_and_once_in_scoring(make):
    calls = []

    def counted(model):
        layers = [m for m in model.modules() if type(m).__name__.endswith("DecoderLayer")]
        assert len(layers) == 2
        part = next(m for m in layers[0].modules() if isinstance(m, nn.Linear))
        part.register_forward_hook(lambda *_: calls.append(1))
        return model

    plain, again = counted(make()), counted(_checkpointing(make()))
    scored = _scored(plain)

    def count(work):
        calls.clear()
        work()
        return len(calls)

    passes = count(lambda: _gradients(plain, scored))
    opening = count(lambda: open_model(plain))
    assert passes - opening > 1
    assert count(lambda: _gradients(again, scored)) - opening == 2 * (passes - opening)
    scoring = [
        count(lambda m=m: score(m, scored.batch, temperature=1.0, token_budget=64, chunk=16))
        for m in (plain, again)
    ]
    assert scoring[0] == scoring[1]


def test_a_layers_own_forward_pass_and_mode_come_back_also_after_an_error():
    model = _checkpointing(_llama()).train()
    layer = model.model.layers[0]
    layer.forward = own = layer.forward
    seen = []

    def fail():
        with differentiating(model):
            seen.append((layer.forward is own, layer.training))
            raise MemoryError

    with pytest.raises(MemoryError):
        fail()
    assert seen == [(False, False)]
    assert layer.forward is own
    assert "forward" not in vars(model.model.layers[1])
    assert layer.training
    assert model.training


def test_gradient_checkpointing_without_layers_that_do_it_is_refused():
    model = tiny_model()
    model.model.layers = nn.ModuleList()
    model.model.gradient_checkpointing = True
    with pytest.raises(
        ValueError, match=r"on in LlamaModel, expected layers of .*GradientCheckpointingLayer"
    ):
        open_model(model)


def test_bfloat16_passes_stay_near_float32_and_leave_weights_and_gradients_in_it():
    # A bfloat16 number is off by up to 1 part in 256; log-probabilities here reach -5.
    model = _llama()
    scored = _scored(model)
    sizes = {"temperature": 1.0, "token_budget": 64, "chunk": 16}
    exact, half = (score(open_model(model, p), scored.batch, **sizes) for p in ("float32", "bfloat16"))
    assert half.logprob.dtype == half.entropy.dtype == torch.float32
    assert 1e-4 < float((half.logprob - exact.logprob).abs().max()) < 0.1
    assert 1e-4 < float((half.entropy - exact.entropy).abs().max()) < 0.1
    _, expected = _gradients(model, scored)
    _, actual = _gradients(model, scored, "bfloat16")
    assert {one.dtype for one in model.parameters()} == {torch.float32}
    for name, one in expected.items():
        assert actual[name].dtype == torch.float32
        assert float((actual[name] - one).norm() / one.norm()) < 0.1, name


def test_log_probabilities_and_entropies_of_bfloat16_passes_are_taken_in_float32():
    model = _llama()
    scored = _scored(model)
    shown = []
    model.lm_head.register_forward_hook(lambda _m, _i, logits: shown.append(logits))
    lm = open_model(model, "bfloat16")
    shown.clear()
    scores = score(lm, scored.batch, temperature=0.7, token_budget=10_000, chunk=10_000)
    assert [one.dtype for one in shown] == [torch.bfloat16]
    p = torch.softmax(shown[0].double() / 0.7, -1)
    entropy = scores.entropy[scored.batch.step_of_token >= 0].double()
    # the pass has the rows by length
    expected = -(p * p.log()).sum(-1)
    torch.testing.assert_close(entropy.sort().values, expected.sort().values, rtol=1e-5, atol=1e-5)


def test_bfloat16_and_layers_calculated_again_work_together():
    plain = _llama()
    scored = _scored(plain)
    _, expected = _gradients(plain, scored, "bfloat16")
    _, actual = _gradients(_checkpointing(_llama()), scored, "bfloat16")
    assert all(torch.equal(actual[name], one) for name, one in expected.items())


@pytest.mark.parametrize("checkpointing", [False, True])
def test_all_passes_of_a_learner_have_one_precision_so_the_first_ratio_is_exactly_one(checkpointing):
    # lr is too small to move a float32 weight; one optimiser step, so ratio and divergence are of equal policies.
    config = LearnerConfig(
        batch=BatchConfig(2, 4, token_budget=64, chunk=16),
        optimizer=OptimizerConfig(lr=1e-12),
        precision="bfloat16",
    )
    model = _checkpointing(_llama()) if checkpointing else _llama()
    metrics = Learner(model, config, pad_id=PAD).iterate(0, random_collect(2, 4)).metrics
    assert (metrics["ratio_mean"], metrics["ratio_max"], metrics["kl_loss"]) == (1.0, 1.0, 0.0)


def test_a_learner_in_bfloat16_learns_over_float32_weights():
    config = LearnerConfig(
        batch=BatchConfig(2, 4, token_budget=64, chunk=16),
        optimizer=OptimizerConfig(lr=1e-4),
        precision="bfloat16",
    )
    moved = {}
    for precision in ("float32", "bfloat16"):
        model = _llama()
        Learner(model, replace(config, precision=precision), pad_id=PAD).iterate(0, random_collect(2, 4))
        assert {one.dtype for one in model.parameters()} == {torch.float32}
        moved[precision] = model.model.layers[0].mlp.up_proj.weight.detach()
    start = _llama().model.layers[0].mlp.up_proj.weight.detach()
    assert not torch.equal(moved["bfloat16"], start)
    assert float((moved["bfloat16"] - moved["float32"]).norm() / (moved["float32"] - start).norm()) < 0.5


def test_weights_in_half_precision_are_trained_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        Learner(_llama().bfloat16(), LearnerConfig(), pad_id=PAD)
    assert "trained weights are torch.bfloat16" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        Learner(_llama(), LearnerConfig(), pad_id=PAD)
    assert "trained weights" not in caplog.text


def test_an_unknown_precision_is_refused_with_what_was_expected():
    with pytest.raises(ValueError, match="precision must be 'float32' or 'bfloat16', got 'fp8'"):
        LearnerConfig(precision="fp8")
