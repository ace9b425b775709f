"""What is loaded into vLLM's worker: one entry for new weights, for an engine in this process or another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from safetensors import safe_open
from torch import Tensor


class SyncExtension:
    """Mixed into the worker through `worker_extension_cls`; the other methods are the worker's own."""

    reload_weights: Any
    get_model: Any

    def empg_sync(self, weights: Iterable[tuple[str, Tensor]] | None = None, path: str | None = None) -> None:
        """Load weights under their Hugging Face names, given one by one or as a safetensors file.

        On a CPU vLLM packs linear layers and drops the originals. An output head that is tied to the embedding gets
        no weight of its own, so its packed copy is made anew; elsewhere that does nothing.
        """
        self.reload_weights(weights_iterator=weights if path is None else _read(path))
        head = getattr(self.get_model(), "lm_head", None)
        method = getattr(head, "quant_method", None)
        if method is not None:
            method.process_weights_after_loading(head)


def _read(path: str) -> Iterator[tuple[str, Tensor]]:
    with safe_open(path, "pt") as file:
        for name in file.keys():  # noqa: SIM118  the file itself cannot be iterated
            yield name, file.get_tensor(name)
