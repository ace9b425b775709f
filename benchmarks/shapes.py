"""How large a model is, from its configuration alone: nothing is downloaded, and no weight is read or made."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.config import LoraSettings, RunConfig
from benchmarks.models import local_copy
from empg.sharding import layers as layers_of

KNOWN = Path(__file__).parent / "known_models.toml"


@dataclass(frozen=True)
class Shape:
    """What of a causal language model decides how much memory it takes; numbers are counts, not bytes."""

    parameters: int
    """Of all weights, tied ones once."""
    trained: int
    """Of those that an optimiser moves: all of them, or the adapters."""
    trained_tensors: int
    """How many tensors those are."""
    largest_layer: int
    """Parameters of the largest decoder layer."""
    outside: int
    """Parameters outside of the decoder layers: embedding, output head, last norm."""
    layers: int
    hidden: int
    query: int
    """Width of all query heads together."""
    key_value: int
    """Width of all key heads together, and of all value heads."""
    heads: int
    intermediate: int
    vocabulary: int


def shape_of(config: RunConfig) -> Shape | None:
    """The shape of a run's policy; None for a model that is neither known nor on this machine."""
    found = architecture(config)
    return None if found is None else measure(found, config.policy.lora)


def architecture(config: RunConfig) -> Any | None:
    """The transformers configuration of a run's policy, None where it is not to be had without a network."""
    name = config.policy.model
    if name is None:
        small = config.warm_start.model
        facts = {
            "model_type": small.architecture,
            "hidden_size": small.hidden,
            "num_hidden_layers": small.layers,
            "num_attention_heads": small.heads,
            "num_key_value_heads": small.key_value_heads or small.heads,
            "intermediate_size": small.intermediate,
            "vocab_size": small.vocab_size,
            "tie_word_embeddings": small.tied_embeddings,
        }
        return configuration(facts)
    if name in (known := known_models()):
        return configuration(known[name]["architecture"])
    folder = local_copy(name)
    if folder is None:
        return None
    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError):  # says what is wrong when the run opens it
        return None


def known_models() -> Mapping[str, Any]:
    """The models whose size is known by name: `parameters`, and the `architecture` as in their config.json."""
    return tomllib.loads(KNOWN.read_text(encoding="utf-8"))


def configuration(facts: Mapping[str, Any]) -> Any:
    """A transformers configuration from the keys of a config.json."""
    rest = dict(facts)
    return AutoConfig.for_model(rest.pop("model_type"), **rest)


def measure(config: Any, lora: LoraSettings | None = None) -> Shape:
    """Count a model's parameters on the meta device, where tensors have shapes and no memory."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    parameters = sum(one.numel() for one in model.parameters())
    tensors = len(list(model.parameters()))
    layers = [sum(one.numel() for one in layer.parameters()) for layer in layers_of(model)]
    pairs = [] if lora is None else _adapted(model, lora)
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    return Shape(
        parameters=parameters,
        trained=parameters if lora is None else sum(lora.rank * (one + two) for one, two in pairs),
        trained_tensors=tensors if lora is None else 2 * len(pairs),
        largest_layer=max(layers, default=0),
        outside=parameters - sum(layers),
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        query=heads * size,
        key_value=(getattr(config, "num_key_value_heads", None) or heads) * size,
        heads=heads,
        intermediate=getattr(config, "intermediate_size", None) or 4 * config.hidden_size,
        vocabulary=config.vocab_size,
    )


def _adapted(model: Any, lora: LoraSettings) -> list[tuple[int, int]]:
    """(inputs, outputs) of the linear layers that get adapters; the output head never does."""
    head = model.get_output_embeddings()
    wanted = lora.target_modules
    endings = (wanted,) if isinstance(wanted, str) else wanted
    return [
        (module.in_features, module.out_features)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
        and module is not head
        and (wanted == "all-linear" or name.rpartition(".")[2] in endings)
    ]
