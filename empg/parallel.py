"""Several processes that train one policy: what each does by itself, and what they tell each other.

Every process holds the same batch and takes the same optimiser steps; only rows are divided. Advantages, step
entropies, EMPG's statistics and the loss's weights are computed from the whole batch on each of them, so they are the
same as in one process. Tables of scores and gradients are sums over processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

Kind = Literal["ddp", "fsdp2"]
"""Whether each process holds all weights, or a part of every one."""
T = TypeVar("T")

_BUCKET = 1 << 26
"""Numbers that one reduction of gradients moves; a bound on the memory that it takes."""


class PeerLost(RuntimeError):
    """Another process ended, or does something else than this one."""


class Processes:
    """A process on its own; `Launched` is one of several."""

    rank = 0
    count = 1
    shards = False
    """Whether weights, gradients and the optimiser's state are divided between the processes."""

    @property
    def is_main(self) -> bool:
        """Whether it writes and reports."""
        return self.rank == 0

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """The part of this process: contiguous, in the order of rank, lengths differing by one at most."""
        least, longer = divmod(len(items), self.count)
        start = self.rank * least + min(self.rank, longer)
        return items[start : start + least + (self.rank < longer)]

    def sum_tensor(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, the same on each; shapes must agree."""
        return tensor

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace each `.grad` by its sum over all processes; sharded ones have been summed by then."""

    def gather_objects(self, value: T) -> list[T]:
        """Everybody's value, in the order of rank."""
        return [value]

    def from_main(self, value: T) -> T:
        """The main process's value."""
        return self.gather_objects(value)[0]

    def barrier(self) -> None:
        """Wait until all are here."""

    @contextmanager
    def main_first(self) -> Iterator[None]:
        """The others enter the block when the main process has left it, and find what it prepared."""
        if not self.is_main:
            self.barrier()
        yield
        if self.is_main:
            self.barrier()


ALONE = Processes()


class Launched(Processes):
    """One of several processes that a launcher started, joined by accelerate.

    accelerator: an `accelerate.Accelerator`, made by the caller, which has joined the group and chosen the device.
    """

    def __init__(self, accelerator: Any, kind: Kind = "ddp") -> None:
        if kind not in ("ddp", "fsdp2"):
            raise ValueError(f"kind is {kind!r}, expected 'ddp' or 'fsdp2'")
        self.rank = int(accelerator.process_index)
        self.count = int(accelerator.num_processes)
        self.shards = kind == "fsdp2"
        self._accelerator = accelerator

    def sum_tensor(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, on the tensor's own device."""
        there = tensor.to(self._accelerator.device)
        with _meeting():
            summed: Tensor = self._accelerator.reduce(there, "sum")
        return summed.to(tensor.device)

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Sum in float32, whatever the gradients are: half precision would lose what each process adds."""
        if self.shards:
            return
        for bucket in _buckets([parameter.grad for parameter in parameters if parameter.grad is not None]):
            flat = torch.cat([gradient.reshape(-1).float() for gradient in bucket])
            parts = torch.split(self.sum_tensor(flat), [gradient.numel() for gradient in bucket])
            for gradient, part in zip(bucket, parts, strict=True):
                gradient.copy_(part.view_as(gradient))

    def gather_objects(self, value: T) -> list[T]:
        """Values travel pickled, between these processes alone."""
        from accelerate.utils import gather_object

        with _meeting():
            return list(gather_object([value]))

    def barrier(self) -> None:
        """Wait until all are here."""
        with _meeting():
            self._accelerator.wait_for_everyone()


@contextmanager
def _meeting() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo and NCCL have no class of their own for it
        raise PeerLost(f"the processes did not meet: {error}") from error


def _buckets(gradients: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    held = 0
    for gradient in gradients:
        if bucket and held + gradient.numel() > _BUCKET:
            yield bucket
            bucket, held = [], 0
        bucket.append(gradient)
        held += gradient.numel()
    if bucket:
        yield bucket
