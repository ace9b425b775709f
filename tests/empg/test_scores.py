"""The scoring pass against a plain forward pass, whatever the chunks, micro-batches and the head."""

from __future__ import annotations

import logging
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from transformers import (
    Cohere2Config,
    Cohere2ForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
)

from empg import EmpgConfig, modulate, step_entropy
from empg.batch import make_batch
from empg.modes import evaluating
from empg.scores import entropy_of_logits, flat_scores, open_model, score, token_scores
from tests.empg.helpers import VOCABULARY, Bigram, make_step, random_trajectory, tiny_model, trajectory


def _batch(seed: int = 0, count: int = 6, **kind):
    rng = np.random.default_rng(seed)
    return make_batch([random_trajectory(rng, group=0, sample=i, **kind) for i in range(count)], pad_id=0)


def _row_at_a_time(model, batch, temperature=1.0):
    """Scores from the whole logits of each unpadded row, token by token."""
    logprob, entropy = torch.zeros(batch.token_ids.shape), torch.zeros(batch.token_ids.shape)
    model.eval()
    for row in range(batch.num_rows):
        length = int(batch.lengths[row])
        with torch.no_grad():
            logits = model(input_ids=batch.token_ids[row : row + 1, :length]).logits[0].float()
        for t in range(length):
            if batch.step_of_token[row, t] >= 0:
                distribution = torch.softmax(logits[t - 1] / temperature, -1)
                logprob[row, t] = distribution[batch.token_ids[row, t]].log()
                entropy[row, t] = -(distribution * distribution.log()).sum()
    return logprob, entropy


@pytest.mark.parametrize("token_budget", [1, 40, 100_000])
@pytest.mark.parametrize("window", [False, True])
def test_every_micro_batch_size_gives_the_scores_of_one_row_at_a_time(token_budget, window):
    model, batch = tiny_model(), _batch(window=window)
    scores = score(model, batch, temperature=0.7, token_budget=token_budget, chunk=5)
    logprob, entropy = _row_at_a_time(model, batch, 0.7)
    torch.testing.assert_close(scores.logprob, logprob, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(scores.entropy, entropy, rtol=1e-5, atol=1e-5)


def test_step_entropies_follow_their_trajectories_when_those_are_reordered():
    model, rng = tiny_model(), np.random.default_rng(3)
    trajectories = [random_trajectory(rng, sample=i, turns=2) for i in range(5)]
    order = [3, 0, 4, 2, 1]

    def modulated(batch):
        scores = score(model, batch, temperature=1.0, token_budget=30, chunk=4)
        entropy = step_entropy(scores.entropy, batch.step_of_token, batch.num_steps)
        advantage = batch.reward[batch.trajectory_of_step].float()
        return modulate(advantage, entropy, batch.next_step, EmpgConfig()).view(-1, 2)

    straight = modulated(make_batch(trajectories, 0))
    moved = modulated(make_batch([trajectories[i] for i in order], 0))
    torch.testing.assert_close(moved, straight[order], rtol=1e-4, atol=1e-5)


def test_padding_has_no_influence_whatever_token_fills_it():
    model, rng = tiny_model(), np.random.default_rng(5)
    trajectories = [random_trajectory(rng, sample=i, turns=1 + i) for i in range(3)]
    one, other = (
        score(model, make_batch(trajectories, pad), temperature=1.0, token_budget=500, chunk=50)
        for pad in (0, 9)
    )
    assert torch.equal(one.logprob, other.logprob)
    assert torch.equal(one.entropy, other.entropy)


def test_each_sampled_token_is_predicted_by_the_token_before_it_also_at_turn_boundaries():
    # Two turns in seven tokens: read 10 11, wrote 12 13, read 14, wrote 15 2.
    chat = trajectory(
        [make_step([10, 11], [12, 13], continues=False), make_step([14], [15, 2], continues=True)]
    )
    model = Bigram()
    scores = score(model, make_batch([chat], 0), temperature=1.0, token_budget=99, chunk=99)
    table = torch.log_softmax(model.table.detach(), -1)
    pairs = [(11, 12), (12, 13), (14, 15), (15, 2)]
    expected = torch.zeros(7)
    expected[[2, 3, 5, 6]] = torch.stack([table[before, token] for before, token in pairs])
    torch.testing.assert_close(scores.logprob[0], expected)


def test_gradients_reach_the_logits_before_sampled_tokens_and_no_others():
    chat = trajectory(
        [make_step([10, 11], [12, 13], continues=False), make_step([14], [15, 2], continues=True)]
    )
    model = Bigram()
    lm, batch = open_model(model), make_batch([chat], 0)
    token_scores(
        lm, batch, torch.tensor([0]), temperature=1.0, chunk=9, entropy=False
    ).logprob.sum().backward()
    assert model.table.grad is not None
    touched = torch.nonzero(model.table.grad.abs().sum(1)).flatten().tolist()
    assert touched == [11, 12, 14, 15]  # not 10, 13 or 2: what follows those was read, not sampled


def test_entropy_is_that_of_the_tempered_distribution():
    head = nn.Identity()
    logits = torch.tensor([[2.0, 1.0, 0.0]])
    result = flat_scores(logits, torch.tensor([0]), head, temperature=0.5, chunk=1, entropy=True)
    assert result.entropy is not None
    assert float(result.entropy) == pytest.approx(0.4411, abs=5e-5)
    assert float(entropy_of_logits(logits)) == pytest.approx(0.8324, abs=5e-5)
    assert float(result.logprob) == pytest.approx(float(torch.log_softmax(logits / 0.5, -1)[0, 0]))


@pytest.mark.parametrize("shape", [(9,), (3, 3)])
def test_entropy_over_the_last_dimension_equals_the_definition(shape):
    logits = torch.randn(*shape, 13, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    p = torch.softmax(logits, -1)
    torch.testing.assert_close(entropy_of_logits(logits), -(p * p.log()).sum(-1))


def test_entropy_is_log_n_when_uniform_and_zero_when_certain_with_impossible_tokens():
    assert float(entropy_of_logits(torch.zeros(8))) == pytest.approx(math.log(8))
    logits = torch.tensor([3.0, -math.inf, -math.inf], requires_grad=True)
    entropy = entropy_of_logits(logits)
    entropy.backward()
    assert float(entropy.detach()) == 0
    assert bool(torch.isfinite(logits.grad).all())


@pytest.mark.parametrize("chunk", [1, 7, 24])
def test_chunks_change_neither_values_nor_gradients(chunk):
    generator = torch.Generator().manual_seed(2)
    hidden, head = torch.randn(23, 6, generator=generator), nn.Linear(6, 50)
    targets = torch.randint(0, 50, (23,), generator=generator)

    def run(size):
        states = hidden.clone().requires_grad_()
        head.zero_grad()
        result = flat_scores(states, targets, head, temperature=0.8, chunk=size, entropy=True)
        (result.logprob.sum() + 0.5 * result.entropy.sum()).backward()
        return result.logprob.detach(), result.entropy.detach(), states.grad, head.weight.grad.clone()

    for whole, parts in zip(run(1000), run(chunk), strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6)


def test_memory_kept_for_the_backward_pass_does_not_grow_with_tokens_times_vocabulary():
    vocabulary, chunk = 2_000, 10
    head = nn.Linear(4, vocabulary)
    shown: list[int] = []
    head.register_forward_hook(lambda _m, _i, output: shown.append(output.shape[0]))

    def kept(tokens: int) -> int:
        saved = []
        states = torch.randn(tokens, 4, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
            result = flat_scores(
                states,
                torch.zeros(tokens, dtype=torch.int64),
                head,
                temperature=1.0,
                chunk=chunk,
                entropy=True,
            )
        (result.logprob.sum() + result.entropy.sum()).backward()
        return sum(saved)

    assert kept(200) < 10 * vocabulary  # the logits alone would be 200 * vocabulary
    assert max(shown) == chunk


def test_logits_exist_for_sampled_tokens_only():
    model, batch = tiny_model(), _batch()
    lm = open_model(model)
    rows: list[int] = []
    hook = model.lm_head.register_forward_hook(lambda _m, _i, output: rows.append(output.shape[0]))
    score(lm, batch, temperature=1.0, token_budget=1000, chunk=1000)
    hook.remove()
    assert sum(rows) == int((batch.step_of_token >= 0).sum())


GEMMA = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
}


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (Gemma2Config(**GEMMA, final_logit_softcapping=2.0), Gemma2ForCausalLM),
        (Cohere2Config(**GEMMA, logit_scale=0.25), Cohere2ForCausalLM),
    ],
    ids=["soft cap", "logit scale"],
)
def test_models_that_change_their_logits_after_the_output_layer_are_scored_by_their_own_forward(
    config, kind, caplog
):
    torch.manual_seed(0)
    model, batch = kind(config), _batch()
    with caplog.at_level(logging.WARNING):
        scores = score(model, batch, temperature=1.0, token_budget=60, chunk=6)
    assert "logits of a whole micro-batch" in caplog.text
    logprob, entropy = _row_at_a_time(model, batch)
    torch.testing.assert_close(scores.logprob, logprob, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(scores.entropy, entropy, rtol=1e-4, atol=1e-4)


def test_a_model_with_learned_positions_and_another_base_name_is_scored_alike():
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, n_positions=128, n_embd=16, n_layer=1, n_head=2)
    )
    lm, batch = open_model(model), _batch()
    assert lm.base is model.transformer
    scores = score(lm, batch, temperature=1.0, token_budget=70, chunk=9)
    torch.testing.assert_close(scores.logprob, _row_at_a_time(model, batch)[0], rtol=1e-4, atol=1e-5)


class LooksRight(nn.Module):
    """A model whose every position sees the mean of all unmasked tokens, also of those to its right."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, VOCABULARY)

    def forward(self, input_ids, attention_mask=None, use_cache=False):
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        weight = (mask / mask.sum(1, keepdim=True))[:, :, None]
        return SimpleNamespace(
            logits=self.table(input_ids) + (weight * self.table(input_ids)).sum(1, keepdim=True)
        )


def test_a_model_that_sees_to_its_right_is_given_the_padding_mask():
    torch.manual_seed(0)
    model, batch = LooksRight(), _batch()
    assert open_model(model).needs_mask
    assert not open_model(tiny_model()).needs_mask
    scores = score(model, batch, temperature=1.0, token_budget=500, chunk=50)
    torch.testing.assert_close(scores.logprob, _row_at_a_time(model, batch)[0], rtol=1e-4, atol=1e-5)


def test_dropout_is_off_while_scoring_and_the_models_mode_is_given_back():
    model, batch = tiny_model(attention_dropout=0.5), _batch()
    model.train()
    twice = [score(model, batch, temperature=1.0, token_budget=100, chunk=50) for _ in range(2)]
    assert torch.equal(twice[0].logprob, twice[1].logprob)
    assert model.training
    with evaluating(model):
        assert not model.training
    assert model.training


def test_an_empty_chunk_is_refused():
    with pytest.raises(ValueError, match="chunk must be at least 1 token, got 0"):
        score(tiny_model(), _batch(), temperature=1.0, token_budget=100, chunk=0)
