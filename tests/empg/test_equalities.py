"""Length-sorted micro-batches under a token budget give what one row at a time gives, for each kind of model.

The other side is the model's own forward pass over single unpadded rows, with whole logits: none of our code.
Tolerances: 1e-5 in float32, relative to 1. In bfloat16 weights a number has 8 binary digits, and a product of other
shapes may round each of them another way; see `HALF`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import Gemma2Config, Gemma2ForCausalLM, Qwen2Config, Qwen2ForCausalLM

from empg.batch import make_batch, micro_batches
from empg.config import BatchConfig, LearnerConfig
from empg.losses import LossConfig
from empg.scores import open_model, score
from empg.update import Scored, accumulate_gradient
from tests.empg.helpers import PAD, VOCABULARY, random_trajectory, tiny_model

EXACT = 1e-5
HALF = 0.1
"""Nats, for log-probabilities down to -9 and entropies; and as a part of the norm of a parameter's gradient."""
TEMPERATURE = 0.8
LOSS = LossConfig(kl_coef=0.1, entropy_coef=0.05, aggregation="token-mean")
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
}


def _llama() -> Any:
    return tiny_model(num_hidden_layers=2)


def _qwen2() -> Any:
    """With attention biases that are not 0, as trained ones are not."""
    model = Qwen2ForCausalLM(Qwen2Config(**SIZES, tie_word_embeddings=True))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def _gemma2() -> Any:
    """Soft caps on attention and logits, alternating sliding windows, and its own norms."""
    caps = {"final_logit_softcapping": 3.0, "attn_logit_softcapping": 5.0, "sliding_window": 8}
    return Gemma2ForCausalLM(Gemma2Config(**SIZES, **caps, head_dim=8, attn_implementation="eager"))


MODELS = {"llama": _llama, "qwen2": _qwen2, "gemma2": _gemma2}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return MODELS[request.param]().eval()


def _batch():
    rng = np.random.default_rng(2)
    return make_batch([random_trajectory(rng, sample=i, window=i % 2 == 1) for i in range(7)], PAD)


def _alone(model: Any, batch: Any, row: int) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities and entropies of a row's sampled tokens, with gradient, and their places."""
    length = int(batch.lengths[row])
    logits = model(input_ids=batch.token_ids[row : row + 1, :length]).logits[0].float() / TEMPERATURE
    logp = torch.log_softmax(logits, -1)
    places = torch.nonzero(batch.step_of_token[row, :length] >= 0).flatten()
    before = logp[places - 1]
    chosen = before.gather(-1, batch.token_ids[row, places][:, None]).squeeze(-1)
    return chosen, -(before.exp() * before).sum(-1), places


def _row_at_a_time(model: Any, batch: Any) -> tuple[Tensor, Tensor]:
    logprob, entropy = torch.zeros(batch.token_ids.shape), torch.zeros(batch.token_ids.shape)
    with torch.no_grad():
        for row in range(batch.num_rows):
            chosen, spread, places = _alone(model, batch, row)
            logprob[row, places], entropy[row, places] = chosen, spread
    return logprob, entropy


def _scored(model: Any, batch: Any) -> Scored:
    """Old and reference policies near the model, on neither clip's edge."""
    logprob, entropy = _row_at_a_time(model, batch)
    shift = 0.05 * (batch.step_of_token >= 0)
    advantage = torch.randn(batch.num_steps, generator=torch.Generator().manual_seed(1))
    return Scored(
        batch, advantage, torch.ones(batch.num_steps), logprob + shift, logprob - 2 * shift, entropy
    )


def _gradients(model: Any, scored: Scored, budget: int) -> dict[str, Tensor]:
    config = LearnerConfig(
        loss=LOSS, batch=BatchConfig(token_budget=budget, chunk=5), temperature=TEMPERATURE
    )
    everyone = torch.arange(scored.batch.num_trajectories)
    model.zero_grad()
    accumulate_gradient(open_model(model), scored, scored.raw_advantage, everyone, config)
    return {name: one.grad.clone() for name, one in model.named_parameters()}


def _gradients_alone(model: Any, scored: Scored) -> dict[str, Tensor]:
    """The same loss: each token's surrogate, KL and entropy by their definitions, added up row by row."""
    batch = scored.batch
    tokens = int((batch.step_of_token >= 0).sum())
    model.zero_grad()
    for row in range(batch.num_rows):
        logprob, entropy, places = _alone(model, batch, row)
        advantage = scored.raw_advantage[batch.step_of_token[row, places]]
        ratio = (logprob - scored.old_logprob[row, places]).exp()
        gap = scored.reference_logprob[row, places] - logprob
        kl = gap.exp() - gap - 1
        policy = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        ((policy + LOSS.kl_coef * kl - LOSS.entropy_coef * entropy).sum() / tokens).backward()
    return {name: one.grad.clone() for name, one in model.named_parameters()}


@pytest.mark.parametrize("budget", [1, 30, 60, 10_000])
def test_scores_and_gradients_of_micro_batches_equal_one_row_at_a_time_to_1e_5(model, budget):
    batch = _batch()
    scores = score(model, batch, temperature=TEMPERATURE, token_budget=budget, chunk=5)
    logprob, entropy = _row_at_a_time(model, batch)
    torch.testing.assert_close(scores.logprob, logprob, rtol=EXACT, atol=EXACT)
    torch.testing.assert_close(scores.entropy, entropy, rtol=EXACT, atol=EXACT)
    scored = _scored(model, batch)
    expected = _gradients_alone(model, scored)
    for name, one in _gradients(model, scored, budget).items():
        torch.testing.assert_close(one, expected[name], rtol=EXACT, atol=EXACT, msg=name)


@pytest.mark.parametrize("budget", [1, 30, 10_000])
def test_with_bfloat16_weights_they_agree_to_the_rounding_of_bfloat16(model, budget):
    batch = _batch()
    model = model.bfloat16()
    scores = score(model, batch, temperature=TEMPERATURE, token_budget=budget, chunk=5)
    logprob, entropy = _row_at_a_time(model, batch)
    torch.testing.assert_close(scores.logprob, logprob, rtol=0, atol=HALF)
    torch.testing.assert_close(scores.entropy, entropy, rtol=0, atol=HALF)
    scored = _scored(model, batch)
    expected = _gradients_alone(model, scored)
    for name, one in _gradients(model, scored, budget).items():
        gap = (one.float() - expected[name].float()).norm() / expected[name].float().norm()
        assert float(gap) < HALF, name


def test_rows_come_back_in_their_places_although_they_are_scored_by_length(model):
    batch = _batch()
    order = torch.cat(micro_batches(batch.lengths, 30))
    assert order.tolist() != list(range(batch.num_rows))
    straight = score(model, batch, temperature=TEMPERATURE, token_budget=30, chunk=5)
    turned = replace(
        batch,
        token_ids=batch.token_ids.flip(0),
        lengths=batch.lengths.flip(0),
        step_of_token=batch.step_of_token.flip(0),
    )
    found = score(model, turned, temperature=TEMPERATURE, token_budget=30, chunk=5)
    torch.testing.assert_close(found.logprob.flip(0), straight.logprob, rtol=EXACT, atol=EXACT)
    torch.testing.assert_close(found.entropy.flip(0), straight.entropy, rtol=EXACT, atol=EXACT)
