"""Which weights of a run are judged when it is not the last: those with most success on the dev panel.

The test panel never takes part. Weights are kept for the best look of all, and for the best before the newest
one, so that a run that is killed between two writes finds what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from benchmarks import records
from empg import checkpoint, config

DEV = "dev.jsonl"
WEIGHTS = "best_on_dev"
Row = dict[str, Any]


def due(iteration: int, every: int, iterations: int) -> bool:
    """Whether what is done `every` so many iterations, and always after the last one, is done after this one."""
    return config.due(iteration, every) or iteration + 1 == iterations


def best(looks: Sequence[Row]) -> Row | None:
    """The look with most success, the earliest of equal ones; None where every episode of all looks failed."""
    known = [look for look in looks if look["success"] is not None]
    return max(known, key=lambda look: float(look["success"]), default=None)


def note(folder: Path, look: Row, model: Any) -> None:
    """Add a look to `dev.jsonl`, and keep the weights if it is the best."""
    before = records.read_jsonl(folder / DEV)
    looks = [*before, look]
    weights = folder / WEIGHTS
    if best(looks) is look:
        weights.mkdir(exist_ok=True)
        draft = weights / "draft.tmp"
        save_file(checkpoint.plain(checkpoint.learned_tensors(model)), draft)
        draft.replace(_file(folder, look))
    records.append_jsonl(folder / DEV, [look])
    needed = {_file(folder, one) for one in (best(before), best(looks)) if one is not None}
    for path in set(weights.glob("*.safetensors")) - needed:
        path.unlink()


def load_best(folder: Path, model: Any) -> int | None:
    """Give the model the chosen weights; the iteration they are from, None (and no change) where there are none.

    Raises `OSError` where their file is gone, `CheckpointError` where it is of another model.
    """
    chosen = best(records.read_jsonl(folder / DEV))
    if chosen is None:
        return None
    checkpoint.load_tensors(model, load_file(_file(folder, chosen)))
    return int(chosen["iteration"])


def _file(folder: Path, look: Row) -> Path:
    return folder / WEIGHTS / f"{look['iteration']:06d}.safetensors"
