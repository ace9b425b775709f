"""How a model is set while it calculates: without dropout, in which precision, and what it keeps for gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

Precision = Literal["float32", "bfloat16"]
"""What the passes of a model calculate in; see `calculating`."""
_LAYER = "GradientCheckpointingLayer"
"""transformers' class of layers that may be calculated again; a model also marks parts that may not."""


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode inside, the previous mode afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@contextmanager
def differentiating(model: nn.Module) -> Iterator[None]:
    """Gradients inside, in eval mode; layers whose gradient checkpointing is on calculate again for them.

    transformers' own checkpointing asks for train mode, and with that comes dropout, also within the layers. Here a
    layer's forward pass is wrapped instead.
    """
    layers = recomputed_layers(model)
    before = [vars(layer).get("forward") for layer in layers]
    try:
        for layer in layers:
            again = partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False)
            vars(layer)["forward"] = again
        with evaluating(model), torch.enable_grad():
            yield
    finally:
        for layer, own in zip(layers, before, strict=True):
            if own is None:
                vars(layer).pop("forward", None)
            else:
                vars(layer)["forward"] = own


def recomputed_layers(model: nn.Module) -> list[nn.Module]:
    """The layers whose gradient checkpointing is on; `ValueError` where the model asks for it and has none."""
    marked = [module for module in model.modules() if getattr(module, "gradient_checkpointing", False)]
    layers = [module for module in marked if _LAYER in (kind.__name__ for kind in type(module).__mro__)]
    if marked and not layers:
        raise ValueError(
            f"gradient checkpointing is on in {type(marked[0]).__name__}, expected layers of transformers' "
            f"{_LAYER}, of which it has none"
        )
    return layers


def calculating(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """Within it, matrix products are in bfloat16 if that is asked for; the weights stay what they are.

    Otherwise everything is in the type of the weights. What calls for float32 (norms, softmax) PyTorch's autocast
    leaves in it.
    """
    return nullcontext() if precision == "float32" else torch.autocast(device.type, dtype=torch.bfloat16)
