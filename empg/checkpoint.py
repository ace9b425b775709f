"""Checkpoints: tensors as safetensors, scalars as JSON, nothing pickled; written whole or not at all.

A folder holds one sub-folder per checkpoint, `iteration-000012`, named by the iteration that comes next. It
is written under another name and renamed when complete, and only then are older ones removed: a process
killed at any moment leaves a complete checkpoint behind. `model.safetensors` has the model's own parameter
names; of a model with adapters it holds what is trained alone, and `state.json` has the digest of the rest.

Sharded tensors (see `empg.sharding`) are put together before they are written, and divided again when they are
read, so a checkpoint does not know how many processes made it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from agents.policies.adapters import has_adapters

FORMAT = 1
_NAME = re.compile(r"iteration-(\d{6,})")
_DRAFT = ".writing-"


class CheckpointError(RuntimeError):
    """A checkpoint is missing, damaged, or belongs to another model."""


@dataclass(frozen=True)
class Checkpoint:
    """Everything a learner needs to go on, apart from its configuration and its reference."""

    next_iteration: int
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    scalars: Mapping[str, Any]
    """JSON-ready."""


def whole(tensor: Tensor) -> Tensor:
    """A sharded tensor put together, which all processes must ask for alike; another one as it is."""
    together: Tensor = tensor.full_tensor() if _is_sharded(tensor) else tensor  # type: ignore[attr-defined]
    return together


def gathered(tensors: Mapping[str, Tensor], *, keep: bool) -> dict[str, Tensor]:
    """Sharded tensors put together one by one, on the CPU, and others as they are; nothing without `keep`.

    All processes must call it alike; only the one that writes needs what comes out.
    """
    found = {}
    for name, tensor in tensors.items():
        together = whole(tensor)
        if keep:
            found[name] = together.cpu() if _is_sharded(tensor) else together
    return found


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers by name; of tied ones only the first name."""
    tensors: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            tensors[name] = tensor.detach()
    return tensors


def learned_tensors(model: nn.Module) -> dict[str, Tensor]:
    """What a checkpoint holds of a model: everything, or with adapters what requires a gradient."""
    if has_adapters(model):
        return {name: one.detach() for name, one in model.named_parameters() if one.requires_grad}
    return model_tensors(model)


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: Mapping[Tensor, str]) -> dict[str, Tensor]:
    """AdamW's state as `parameter name/key`; a parameter that never had a gradient has none."""
    return {
        f"{names[parameter]}/{key}": value
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
    }


def load_tensors(into: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy a model's `learned_tensors` back in place.

    Raises `CheckpointError` unless names, shapes and types are the same.
    """
    own = learned_tensors(into)
    if own.keys() != tensors.keys():
        odd = sorted(own.keys() ^ tensors.keys())[:4]
        raise CheckpointError(f"the checkpoint is of another model: {odd} are on one side only")
    for name, tensor in own.items():
        saved = tensors[name]
        if (saved.shape, saved.dtype) != (tensor.shape, tensor.dtype):
            raise CheckpointError(
                f"{name} is {list(saved.shape)} {saved.dtype} in the checkpoint, "
                f"expected {list(tensor.shape)} {tensor.dtype}"
            )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(_laid_out_like(tensor, tensors[name]))


def load_optimizer(
    into: torch.optim.Optimizer, tensors: Mapping[str, Tensor], parameters: Mapping[str, Tensor]
) -> None:
    """Give an optimiser the saved state of each named parameter."""
    into.state.clear()
    for full_name, value in tensors.items():
        name, key = full_name.rsplit("/", 1)
        if name not in parameters:
            raise CheckpointError(
                f"the checkpoint's optimiser knows {name!r}, which this model does not train"
            )
        into.state[parameters[name]][key] = (
            value if key == "step" else _laid_out_like(parameters[name], value)
        )


def digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = whole(tensors[name].detach()).cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def write(folder: Path, checkpoint: Checkpoint) -> Path:
    """Add a checkpoint, then remove the older ones; returns its own folder."""
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"iteration-{checkpoint.next_iteration:06d}"
    draft = folder / f"{_DRAFT}{final.name}"
    for leftover in folder.glob(f"{_DRAFT}*"):
        shutil.rmtree(leftover)
    draft.mkdir()
    save_file(plain(checkpoint.model), draft / "model.safetensors", metadata={"format": "pt"})
    save_file(plain(checkpoint.optimizer), draft / "optimizer.safetensors")
    state = {"format": FORMAT, "next_iteration": checkpoint.next_iteration, "scalars": checkpoint.scalars}
    (draft / "state.json").write_text(json.dumps(state, indent=2, sort_keys=True, allow_nan=False) + "\n")
    for file in [*draft.iterdir(), draft]:
        _sync(file)
    if final.exists():
        # The same iteration again: the old one steps aside under a draft's name, so that a reader never mixes
        # the two.
        os.replace(final, folder / f"{_DRAFT}old-{final.name}")
    os.replace(draft, final)
    _sync(folder)
    for other in folder.iterdir():
        if other != final and (_NAME.fullmatch(other.name) or other.name.startswith(_DRAFT)):
            shutil.rmtree(other)
    return final


def read(folder: Path) -> Checkpoint:
    """The newest checkpoint; `CheckpointError` if there is none or it is damaged."""
    found = latest(folder)
    if found is None:
        raise CheckpointError(f"no checkpoint in {folder}; expected a sub-folder like iteration-000012")
    try:
        state = json.loads((found / "state.json").read_text())
        model, optimizer = load_file(found / "model.safetensors"), load_file(found / "optimizer.safetensors")
    except Exception as error:  # safetensors raises its own class for a cut file, JSON and the system theirs
        raise CheckpointError(f"{found} cannot be read: {error}") from error
    if state.get("format") != FORMAT:
        raise CheckpointError(f"{found} has format {state.get('format')!r}, expected {FORMAT}")
    return Checkpoint(state["next_iteration"], model, optimizer, state["scalars"])


def latest(folder: Path) -> Path | None:
    """The newest complete checkpoint's folder, if there is one."""
    if not folder.is_dir():
        return None
    numbered = {int(m[1]): path for path in folder.iterdir() if (m := _NAME.fullmatch(path.name))}
    return numbered[max(numbered)] if numbered else None


def plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Clones that safetensors can write: it refuses tensors that share memory, and buffers may."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def _is_sharded(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")


def _laid_out_like(own: Tensor, value: Tensor) -> Tensor:
    """A whole tensor where another one lies, and divided as that one is; every process has the whole."""
    value = value.to(own.device)
    if not _is_sharded(own):
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value, own.device_mesh, own.placements, src_data_rank=None)  # type: ignore[attr-defined]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
