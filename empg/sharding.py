"""Weights divided between processes (PyTorch's FSDP2), and how they are put together again.

A sharded tensor is a `DTensor`. Whatever puts one together must be called by all processes, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from empg import checkpoint
from empg.parallel import Processes
from empg.scores import LanguageModel

T = TypeVar("T")


class Root(nn.Module):
    """Any computation with a model as the forward pass of one module: sharding acts where a module is called.

    Scoring calls a model's base and its output layer by themselves, so the model's own forward would not do.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, work: Callable[[], T]) -> T:
        """Do it while the weights outside the layers are together; each layer's are when it runs."""
        return work()


def shard(lm: LanguageModel, processes: Processes) -> LanguageModel:
    """Divide a model's weights between all processes, in place; every one holds the same model before.

    Afterwards a process holds its part of each weight, gradient and optimiser state. A layer's weights are put together
    when it runs, and gradients are summed in float32 over processes as they arise. Passes in bfloat16 put the weights
    together in bfloat16: autocast alone would keep a copy of every whole weight for the backward pass.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(_device_type(), (processes.count,))
    together = torch.bfloat16 if lm.precision == "bfloat16" else None
    precision = MixedPrecisionPolicy(param_dtype=together, reduce_dtype=torch.float32)
    for layer in layers(lm.model):
        fully_shard(layer, mesh=mesh, mp_policy=precision)
    root = Root(lm.model)
    fully_shard(root, mesh=mesh, mp_policy=precision)
    for module in root.modules():
        if isinstance(module, FSDPModule):
            # The loss's weights are shares of the whole batch already, so gradients are added, not averaged.
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    return replace(lm, root=root)


def layers(model: nn.Module) -> list[nn.Module]:
    """The blocks of a transformer: what the model itself wants kept whole, else its longest list of modules."""
    named: Any = getattr(model, "_no_split_modules", None) or ()
    found = [module for module in model.modules() if type(module).__name__ in named]
    if found:
        return found
    lists = [list(module) for module in model.modules() if isinstance(module, nn.ModuleList)]
    return max(lists, key=len, default=[])


def full_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """What a checkpoint holds of the model (`checkpoint.learned_tensors`), each tensor whole, one at a time."""
    for name, tensor in checkpoint.learned_tensors(model).items():
        yield name, checkpoint.whole(tensor)


def take_over(model: nn.Module, weights: Iterable[tuple[str, Tensor]]) -> None:
    """Copy `full_weights` of another model into one that holds its own whole, in place."""
    own = checkpoint.learned_tensors(model)
    with torch.no_grad():
        for name, value in weights:
            own[name].copy_(value)


def _device_type() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
