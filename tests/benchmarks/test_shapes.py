"""Sizes computed from configurations against published numbers and real, tiny models."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from agents.policies.adapters import add_lora
from agents.rollout import RolloutConfig
from benchmarks.config import LoraSettings, PolicySettings, load_suite
from benchmarks.estimate import BYTES, Habits, activations, kept_bytes, memory
from benchmarks.shapes import configuration, known_models, measure, shape_of
from empg.modes import calculating

TINY = {
    "model_type": "qwen2",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 160,
    "vocab_size": 97,
    "tie_word_embeddings": True,
}
UNTIED_LLAMA = TINY | {"model_type": "llama", "tie_word_embeddings": False, "num_key_value_heads": 4}


def bytes_of(tensors: Any) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)


def policy(**changes: Any) -> Any:
    base = load_suite("webshop").base
    return base.model_copy(update={"policy": PolicySettings(max_context=256, **changes)})


@pytest.mark.parametrize("name", known_models())
def test_counting_a_known_model_s_configuration_gives_the_number_that_its_page_states(name):
    known = known_models()[name]
    assert measure(configuration(known["architecture"])).parameters == known["parameters"]


def test_the_paper_s_models_are_known_by_their_published_sizes():
    published = {"1.5B": 1_543_714_304, "7B": 7_615_616_512, "32B": 32_763_876_352}
    found = {name: known_models()[f"Qwen/Qwen2.5-{name}-Instruct"]["parameters"] for name in published}
    assert found == published


@pytest.mark.parametrize("facts", [TINY, UNTIED_LLAMA])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rank", [None, 3])
def test_weights_gradients_and_optimiser_have_the_bytes_that_a_real_model_holds_after_a_step(
    facts, dtype, rank
):
    lora = None if rank is None else LoraSettings(rank=rank)
    shape = measure(configuration(facts), lora)
    model = AutoModelForCausalLM.from_config(configuration(facts)).to(getattr(torch, dtype))
    if rank is not None:
        add_lora(model, rank=rank, alpha=2 * rank)
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained)
    model(torch.arange(8)[None]).logits.sum().backward()
    optimizer.step()
    states = [value for state in optimizer.state.values() for value in state.values()]
    weights, reference, gradients, kept = kept_bytes(shape, policy(dtype=dtype, lora=lora))
    assert weights == bytes_of(model.parameters())
    assert gradients == bytes_of(one.grad for one in trained)
    assert kept == bytes_of(states)
    assert reference == (weights if rank is None else 0)


@pytest.mark.parametrize("facts", [TINY, UNTIED_LLAMA])
@pytest.mark.parametrize(
    ("dtype", "precision"), [("float32", "float32"), ("bfloat16", "float32"), ("float32", "bfloat16")]
)
def test_activations_are_within_2_percent_of_what_autograd_saves(facts, dtype, precision):
    model = AutoModelForCausalLM.from_config(configuration(facts)).to(getattr(torch, dtype)).eval()
    parameters = {one.untyped_storage().data_ptr() for one in model.parameters()}
    saved: dict[int, int] = {}
    alive = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        alive.append(tensor)
        storage = tensor.untyped_storage()
        weights = storage.data_ptr() in parameters or (tensor.ndim == 2 and 512 not in tensor.shape)
        if not weights:  # nor their copies in bfloat16
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with hooks, calculating(torch.device("cpu"), precision):
        model.model(torch.zeros((2, 256), dtype=torch.int64), use_cache=False)
    shape = measure(configuration(facts))
    mixed = precision != "float32"
    expected = activations(shape, 512, BYTES[dtype], mixed=mixed, checkpointing=False)
    assert sum(saved.values()) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("facts", [TINY, UNTIED_LLAMA])
def test_keys_and_values_have_the_bytes_of_a_real_cache(facts):
    model = AutoModelForCausalLM.from_config(configuration(facts)).eval()
    cache = model(torch.zeros((1, 256), dtype=torch.int64), use_cache=True).past_key_values
    real = sum(bytes_of((layer.keys, layer.values)) for layer in cache.layers)
    alone = policy().model_copy(update={"rollout": RolloutConfig(parallel=1, layout="window")})
    short = Habits(*[1.0] * 6)  # less than the 256 tokens that one conversation may have
    learner = load_suite("webshop").learners["grpo"]
    assert memory(measure(configuration(facts)), alone, learner, short, sharded=False).cache == real


def test_a_small_policy_has_the_shape_of_its_warm_start():
    shape = shape_of(load_suite("webshop").base)
    assert shape is not None
    assert (shape.hidden, shape.layers, shape.vocabulary) == (128, 4, 2048)


def test_a_model_that_is_neither_known_nor_here_has_no_shape():
    settings = {"model": "somebody/some-model-that-is-not-here"}
    assert shape_of(policy(**settings)) is None


def test_a_model_in_a_folder_is_measured_by_its_config(tmp_path):
    configuration(TINY).save_pretrained(tmp_path)
    shape = shape_of(policy(model=str(tmp_path)))
    assert shape == measure(configuration(TINY))
