"""Adapters inside ordinary models: what they train, what they compute, and what is left when they are merged."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from agents.policies.adapters import adapters_off, add_lora, has_adapters, merged_weights
from agents.policies.base import Sampling
from agents.policies.scripted import byte_tokenizer
from agents.policies.torch_policy import TorchPolicy
from tests.agents.test_torch_policy import forward_logprobs, turn
from tests.agents.toys import tiny_model

pytest.importorskip("peft")
IDS = tuple(range(40, 70))


def adapted(kind: str = "llama", **changes: Any) -> Any:
    """Adapters whose both halves are random, so that they change what the model says."""
    model = tiny_model(kind, **changes)
    add_lora(model, rank=4, alpha=8)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data = 0.2 * torch.randn(parameter.shape, generator=generator)
    return model


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=torch.tensor([IDS])).logits.float()


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_fresh_adapters_change_nothing_and_are_all_that_is_trained(kind):
    model = tiny_model(kind)
    before = logits(model)
    plain = {name: value.clone() for name, value in model.state_dict().items()}
    kept_class = type(model)
    add_lora(model, rank=4, alpha=8)
    assert type(model) is kept_class
    assert has_adapters(model)
    torch.testing.assert_close(logits(model), before, rtol=0, atol=0)
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    # two layers, each with q, k, v, o, gate, up and down, and two halves of each adapter; not the output head
    assert len(trained) == 2 * 7 * 2
    assert all(".lora_A.default." in name or ".lora_B.default." in name for name in trained)
    assert {
        name: (value == plain[name]).all() for name, value in merged_weights(model)
    }.keys() == plain.keys()


def test_the_random_half_depends_on_its_seed_alone_and_draws_from_no_global_generator():
    def drawn(seed: int) -> dict[str, torch.Tensor]:
        model = tiny_model()
        state = torch.random.get_rng_state()
        add_lora(model, rank=2, alpha=4, seed=seed)
        assert torch.equal(torch.random.get_rng_state(), state)
        return {name: value for name, value in model.state_dict().items() if "lora_A" in name}

    first, again, other = drawn(0), drawn(0), drawn(1)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_policy_with_adapters_samples_what_the_adapted_forward_pass_says(kind):
    model = adapted(kind)
    policy = TorchPolicy(model, byte_tokenizer(), max_context=200)
    written = policy.open(1, Sampling(0.8)).generate([turn(0, IDS, True)])[0]
    expected = forward_logprobs(model, IDS, written.token_ids, 0.8)
    assert written.logprobs == pytest.approx(expected, abs=1e-4)
    with adapters_off(model):
        base = forward_logprobs(model, IDS, written.token_ids, 0.8)
    assert max(abs(one - two) for one, two in zip(expected, base, strict=True)) > 0.1


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_without_adapters_the_model_is_the_one_they_were_put_into(kind):
    model = adapted(kind)
    changed = logits(model)
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    with adapters_off(model):
        torch.testing.assert_close(logits(model), logits(tiny_model(kind)), rtol=0, atol=0)
    torch.testing.assert_close(logits(model), changed, rtol=0, atol=0)
    assert trained == [name for name, parameter in model.named_parameters() if parameter.requires_grad]


def test_a_model_without_adapters_has_none_to_switch_off():
    model = tiny_model()
    assert not has_adapters(model)
    with pytest.raises(ValueError, match="has no adapters"), adapters_off(model):
        pass


@pytest.mark.parametrize("tied", [False, True])
def test_merged_weights_are_those_of_a_plain_model_that_computes_the_same(tied):
    model = adapted(tie_word_embeddings=tied)
    plain = tiny_model(seed=5, tie_word_embeddings=tied)
    left_out = plain.load_state_dict(dict(merged_weights(model)), strict=False)
    assert left_out.unexpected_keys == []
    assert left_out.missing_keys == (["lm_head.weight"] if tied else [])
    torch.testing.assert_close(logits(plain), logits(model), rtol=1e-4, atol=1e-4)


def test_adapters_of_a_bfloat16_model_are_float32():
    model = adapted(dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in model.parameters() if parameter.requires_grad} == {torch.float32}
    assert model(input_ids=torch.tensor([IDS])).logits.dtype == torch.bfloat16


def test_modules_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="query_key_value"):
        add_lora(tiny_model(), rank=4, alpha=8, target_modules=("query_key_value",))
