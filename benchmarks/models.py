"""Models that users bring: a folder, a name on the Hugging Face hub, or the small one that a package ships.

What comes back is a plain causal language model, with adapters inside where they are asked for. Nothing of a model's
folder is run, and weights are read from safetensors alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import constants, save_torch_state_dict, snapshot_download
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import is_flash_attn_2_available

from agents.policies.adapters import add_lora, has_adapters, merged_weights
from benchmarks import smollm2
from benchmarks.config import ConfigError, PolicySettings
from benchmarks.overrides import model_name

WEIGHTS, WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_WANTED = ("*.json", "*.safetensors", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt")
"""What of a model on the hub is downloaded: no code, no pickled weights."""


def load_model(
    settings: PolicySettings, cache: Path, say: Callable[[str], None] = lambda _: None
) -> tuple[Any, Any, dict[str, Any]]:
    """(model, tokenizer, origin) of `settings.model`, on the CPU.

    cache: where a converted model is kept. say: is told what takes long. Origin: its name, and where known the commit
    on the hub. Raises `ConfigError`: settings that this machine cannot serve, no such model, one that cannot be
    loaded.
    """
    assert settings.model is not None
    check_settings(settings)
    folder, origin = find_model(settings.model, cache, say)
    say(f"loading {origin['name']}")
    model, tokenizer = _load(folder, settings)
    adapt(model, settings)
    return model, tokenizer, origin


def adapt(model: Any, settings: PolicySettings) -> None:
    """Give a model its attention, adapters and gradient checkpointing, as the settings say.

    Raises `ConfigError` where it has no such modules.
    """
    lora = settings.lora
    if settings.attention is not None:
        model.set_attn_implementation(settings.attention)
    if lora is not None:
        alpha = 2 * lora.rank if lora.alpha is None else lora.alpha
        try:
            add_lora(model, rank=lora.rank, alpha=alpha, target_modules=lora.target_modules, seed=lora.seed)
        except (ValueError, ImportError) as error:
            raise ConfigError(f"policy.lora: {_one_line(error)}") from error
    if settings.gradient_checkpointing:
        _checkpoint_layers(model)


def _checkpoint_layers(model: Any) -> None:
    """Switch on transformers' own gradient checkpointing; its method has another name in older versions."""
    name = "activation_checkpointing_enable"
    enable = getattr(model, name, None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})
    model.disable_input_require_grads()  # only the older form of checkpointing wants inputs with gradients


def check_settings(settings: PolicySettings) -> None:
    """Raises `ConfigError` where a package is missing for what is asked, or two settings exclude each other."""
    if settings.lora is not None and find_spec("peft") is None:
        raise ConfigError("policy.lora: peft is not installed, expected `pip install 'empg-bench[lora]'`")
    if settings.attention == "flash_attention_2":
        if not is_flash_attn_2_available():
            raise ConfigError(
                "policy.attention: flash_attention_2 needs the package flash-attn and a GPU, expected "
                '`pip install flash-attn`, or attention = "sdpa"'
            )
        if settings.dtype == "float32":
            raise ConfigError(
                "policy.attention: flash_attention_2 has no float32, expected dtype bfloat16 or float16"
            )


def find_model(model: str, cache: Path, say: Callable[[str], None]) -> tuple[Path, dict[str, Any]]:
    """The folder of a model, and its origin; `ConfigError` if there is none."""
    if model == smollm2.NAME:
        return smollm2.obtain(cache / "models", say)
    folder = Path(model)
    if folder.is_dir():
        if (folder / "config.json").is_file():
            return folder, {"name": model_name(model)}
        raise ConfigError(
            f"policy.model: no model in {folder}, expected a folder with config.json and safetensors"
        )
    if not _HUB_ID.fullmatch(model):
        raise ConfigError(
            f"policy.model: no model in {model}, expected a folder, a hub id such as "
            f"Qwen/Qwen2.5-1.5B-Instruct, or {smollm2.NAME}"
        )
    folder = _from_hub(model, say)
    # A snapshot's folder is called by its commit.
    return folder, {"name": model, "revision": folder.name}


def local_copy(model: str) -> Path | None:
    """The folder of a model on this machine, whole or not: its own, or a snapshot in the hub's cache."""
    if Path(model).is_dir() or not _HUB_ID.fullmatch(model):
        return Path(model) if Path(model).is_dir() else None
    try:
        return Path(snapshot_download(model, local_files_only=True))
    except OSError:
        return None


def _from_hub(model: str, say: Callable[[str], None]) -> Path:
    """A model's snapshot in the local cache, downloaded first where it is not whole and the network allows."""
    found = local_copy(model)
    if found is not None and is_whole(found):
        return found
    lacking = (
        f"none is in the cache {constants.HF_HUB_CACHE}"
        if found is None
        else f"its copy in {found} is not whole"
    )
    remedy = f"expected `hf download {model}` where there is a network, or the folder of a model"
    if constants.is_offline_mode():
        raise ConfigError(f"policy.model: no folder {model}, {lacking}, and HF_HUB_OFFLINE is set; {remedy}")
    say(f"downloading {model}")
    try:
        folder = Path(snapshot_download(model, allow_patterns=list(_WANTED)))
    except Exception as error:  # the hub's client raises whatever its transport does
        reason = f"downloading it failed: {type(error).__name__}: {_one_line(error)[:200]}"
        raise ConfigError(f"policy.model: no folder {model}, {lacking}, and {reason}; {remedy}") from error
    if not is_whole(folder):
        raise ConfigError(f"policy.model: {model} has no safetensors; {remedy}")
    return folder


def is_whole(folder: Path) -> bool:
    """Whether a folder holds a model's config and all parts of its weights."""
    if not (folder / "config.json").is_file():
        return False
    index = folder / WEIGHTS_INDEX
    if not index.is_file():
        return (folder / WEIGHTS).is_file()
    parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    return all((folder / part).is_file() for part in parts)


def _load(folder: Path, settings: PolicySettings) -> tuple[Any, Any]:
    try:
        model = AutoModelForCausalLM.from_pretrained(
            folder,
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=True,
            dtype=getattr(torch, settings.dtype),
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ConfigError(f"policy.model: cannot load {folder}: {_one_line(error)}") from error
    return model, tokenizer


def save_model(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model in the form that `policy.model` and other programs read; adapters are merged into it."""
    if has_adapters(model):
        folder.mkdir(parents=True, exist_ok=True)
        save_torch_state_dict(
            {name: tensor.contiguous() for name, tensor in merged_weights(model)},
            folder,
            filename_pattern="model{suffix}.safetensors",
            metadata={"format": "pt"},
        )
        model.config.save_pretrained(folder)
    else:
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _one_line(error: BaseException) -> str:
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return " ".join(text.split()) or type(error).__name__
