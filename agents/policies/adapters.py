"""Low-rank adapters inside an ordinary model: its class, its forward pass and its own weights stay what they are.

They are peft's, injected under the name `default`; `adapters_off` gives the model that they started from. The methods
of transformers' models for adapters are not used: they refuse every version of peft but the newest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

ADAPTER = "default"


def add_lora(
    model: Any,
    *,
    rank: int,
    alpha: int,
    target_modules: str | tuple[str, ...] = "all-linear",
    seed: int = 0,
) -> None:
    """Put LoRA adapters (Hu et al. 2021, no dropout) into a Hugging Face model, in place; needs peft.

    Afterwards only they require gradients. The layer's output gains `alpha / rank * B A x`; B starts at 0, and A is
    drawn from `seed` alone, where the model lies on the CPU. Both are float32, whatever the model is. Raises
    `ValueError` where no module of the model is meant.
    """
    from peft import LoraConfig, inject_adapter_in_model

    targets = target_modules if isinstance(target_modules, str) else list(target_modules)
    config = LoraConfig(
        r=rank, lora_alpha=alpha, lora_dropout=0.0, target_modules=targets, task_type="CAUSAL_LM"
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        inject_adapter_in_model(config, model, ADAPTER)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()


def has_adapters(model: Any) -> bool:
    """Whether `add_lora` was here."""
    return any(_is_adapted(module) for module in model.modules())


@contextmanager
def adapters_off(model: Any) -> Iterator[None]:
    """Within the block the model is the one that adapters were put into; `ValueError` if it has none."""
    layers = [module for module in model.modules() if _is_adapted(module)]
    if not layers:
        raise ValueError(f"{type(model).__name__} has no adapters to switch off")
    try:
        for layer in layers:
            layer.enable_adapters(False)
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


def merged_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Name and value of each parameter and buffer of the plain model that computes the same.

    One by one, so that a merged copy of the whole model is never held; names are those without adapters. Of tied
    weights only the first name comes.
    """
    for name, tensor, layer in _plain(model):
        value = tensor.detach()
        if layer is not None:
            with torch.no_grad():
                delta = layer.get_delta_weight(ADAPTER).detach()
                value = (value.to(delta.dtype) + delta).to(value.dtype)
        yield name, value


def base_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Each parameter and buffer of the model that adapters were put into, by the names that it has there.

    Of tied weights only the first name comes.
    """
    for name, tensor, _ in _plain(model):
        yield name, tensor


def _plain(model: Any) -> Iterator[tuple[str, Tensor, Any]]:
    """The tensors that are no adapter's, by their names without adapters, and the adapted layer of its weight."""
    adapted = {name: module for name, module in model.named_modules() if _is_adapted(module)}
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if ".lora_" in name or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        module, layered, rest = name.rpartition(".base_layer.")
        if layered:
            yield f"{module}.{rest}", tensor, adapted[module] if rest == "weight" else None
        else:
            yield name, tensor, None


def _is_adapted(module: Any) -> bool:
    return hasattr(module, "base_layer") and hasattr(module, "get_delta_weight")
