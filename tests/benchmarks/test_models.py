"""Models that users bring: where they come from, in what form they are held, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants

from agents.policies.scripted import byte_tokenizer
from agents.policies.torch_policy import TorchPolicy
from benchmarks import models
from benchmarks.config import ConfigError, PolicySettings, validate
from benchmarks.models import load_model, save_model
from tests.agents.toys import tiny_model

IDS = torch.tensor([[5, 80, 200, 7, 31]])
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def settings(model: Path | str, **changes: Any) -> PolicySettings:
    return validate(PolicySettings, {"model": str(model), "max_context": 100, **changes}, "policy")


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=IDS).logits


def write(folder: Path, **changes: Any) -> Path:
    tiny_model("qwen2", **changes).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "Tiny-Qwen")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub, and no network."""
    cache = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return cache


def snapshot(hub: Path, model: str) -> Path:
    """Where the cache keeps a model's commit."""
    repository = hub / f"models--{model.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "snapshots" / COMMIT).mkdir(parents=True)
    return repository / "snapshots" / COMMIT


def test_a_folder_is_loaded_in_the_dtype_asked_for_and_named_by_its_last_part(folder, tmp_path):
    model, tokenizer, origin = load_model(settings(folder, dtype="bfloat16"), tmp_path)
    assert model.dtype == torch.bfloat16
    assert origin == {"name": "Tiny-Qwen"}
    assert tokenizer.chat_template == byte_tokenizer().chat_template


def test_weights_that_were_saved_in_half_precision_are_held_in_float32_unless_told_otherwise(tmp_path):
    model, _, _ = load_model(settings(write(tmp_path / "half", dtype=torch.bfloat16)), tmp_path)
    assert model.dtype == torch.float32


def test_attention_and_gradient_checkpointing_are_those_asked_for(folder, tmp_path):
    asked = settings(folder, attention="eager", gradient_checkpointing=True)
    model, tokenizer, _ = load_model(asked, tmp_path)
    assert model.config._attn_implementation == "eager"
    assert model.model.layers[0].gradient_checkpointing
    TorchPolicy(model, tokenizer, max_context=100)  # samples a few tokens and compares
    assert model.config._attn_implementation == "eager"


def test_a_hub_model_in_the_local_cache_needs_no_network_and_its_commit_is_recorded(hub, tmp_path):
    write(snapshot(hub, "Someone/Tiny-1B"))
    model, _, origin = load_model(settings("Someone/Tiny-1B"), tmp_path)
    assert origin == {"name": "Someone/Tiny-1B", "revision": COMMIT}
    torch.testing.assert_close(logits(model), logits(tiny_model("qwen2")))


def test_a_cached_model_that_lacks_a_part_of_its_weights_is_not_taken_for_whole(hub, tmp_path):
    place = snapshot(hub, "Someone/Tiny-1B")
    write(place)
    (place / "model.safetensors").rename(place / "model-00001-of-00002.safetensors")
    index = {"weight_map": {f"w{n}": f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ConfigError, match="is not whole, and HF_HUB_OFFLINE is set"):
        load_model(settings("Someone/Tiny-1B"), tmp_path)


def test_a_hub_model_that_cannot_be_had_is_one_line_that_says_what_was_tried_and_what_to_do(hub, tmp_path):
    with pytest.raises(ConfigError) as refused:
        load_model(settings("Qwen/Qwen2.5-7B-Instruct"), tmp_path)
    said = str(refused.value)
    assert said.startswith("policy.model: no folder Qwen/Qwen2.5-7B-Instruct, none is in the cache ")
    assert "HF_HUB_OFFLINE is set" in said
    assert "`hf download Qwen/Qwen2.5-7B-Instruct`" in said
    assert "\n" not in said


def test_a_download_that_fails_is_one_line_with_its_reason(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    real = models.snapshot_download

    def download(model: str, **options: Any) -> str:
        if options.get("local_files_only"):
            return str(real(model, **options))
        assert "*.py" not in options["allow_patterns"]
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(models, "snapshot_download", download)
    with pytest.raises(ConfigError, match="failed: ConnectionError: no route to host; expected `hf download"):
        load_model(settings("Someone/Tiny-1B"), tmp_path)


@pytest.mark.parametrize("name", ["/nowhere", "no such thing", "gpt2", "../model", "a/b/c"])
def test_what_is_neither_a_folder_nor_a_hub_id_is_refused(name, tmp_path):
    with pytest.raises(ConfigError, match=r"policy\.model: no model in .*, expected a folder, a hub id"):
        load_model(settings(name), tmp_path)


def test_flash_attention_without_its_package_is_refused_before_anything_is_loaded(tmp_path):
    asked = settings("/nowhere", attention="flash_attention_2", dtype="bfloat16")
    with pytest.raises(ConfigError, match="needs the package flash-attn"):
        load_model(asked, tmp_path)


def test_flash_attention_in_float32_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "is_flash_attn_2_available", lambda: True)
    with pytest.raises(ConfigError, match="no float32, expected dtype bfloat16 or float16"):
        load_model(settings("/nowhere", attention="flash_attention_2"), tmp_path)


def test_adapters_without_their_package_are_refused_by_the_name_of_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda _: None)
    with pytest.raises(
        ConfigError, match=r"peft is not installed, expected `pip install 'empg-bench\[lora\]'`"
    ):
        load_model(settings("/nowhere", lora={"rank": 8}), tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dtype": "fp32"}, "policy.dtype: "),
        ({"attention": "flash"}, "policy.attention: "),
        ({"lora": {"rank": 0}}, "policy.lora.rank: "),
        ({"lora": {"rank": 8, "dropout": 0.1}}, "policy.lora.dropout: unknown key"),
        ({"path": "/model"}, "policy.path: unknown key"),
    ],
)
def test_settings_that_nobody_can_serve_name_their_key(changes, said):
    with pytest.raises(ConfigError) as refused:
        settings("/nowhere", **changes)
    assert str(refused.value).startswith(said)


def test_adapters_are_part_of_the_model_and_merged_into_what_is_saved(folder, tmp_path):
    pytest.importorskip("peft")
    model, tokenizer, _ = load_model(settings(folder, lora={"rank": 4}), tmp_path)
    scaling = {
        m.scaling["default"] for m in model.modules() if hasattr(m, "scaling") and hasattr(m, "lora_A")
    }
    assert scaling == {2.0}  # alpha is twice the rank
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.constant_(parameter, 0.05)
    save_model(model, tokenizer, tmp_path / "saved")
    again, _, _ = load_model(settings(tmp_path / "saved"), tmp_path)
    assert not any("lora" in name for name, _ in again.named_parameters())
    torch.testing.assert_close(logits(again), logits(model), rtol=1e-4, atol=1e-4)
    assert (logits(again) - logits(tiny_model("qwen2"))).abs().max() > 0.1


def test_adapters_for_modules_that_the_model_lacks_are_refused(folder, tmp_path):
    pytest.importorskip("peft")
    with pytest.raises(ConfigError, match=r"policy\.lora: .*nowhere_proj"):
        load_model(settings(folder, lora={"rank": 4, "target_modules": ["nowhere_proj"]}), tmp_path)
