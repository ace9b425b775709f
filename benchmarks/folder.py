"""The folder of a run: one process at a time works in it, and `run.json` says which experiment it holds."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from benchmarks import records
from benchmarks.config import ConfigError
from benchmarks.plan import Run
from benchmarks.prepare import ROOT, LoadedPolicy, Tasks, check_unchanged, choose_device, identity
from empg.parallel import Processes

RUN, EVAL, SUMMARY = "run.json", "eval.jsonl", "summary.json"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second process out of a run's folder; the system lifts the lock when this one ends."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"{folder}: another process is working on this run; wait for it or stop it"
            ) from None
        yield


def open_record(run: Run, tasks: Tasks, policy: LoadedPolicy | None, processes: Processes) -> dict[str, Any]:
    """Write the `run.json` of a run in this process, or find the one of an earlier try."""
    device = choose_device()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return keep_record(
        run,
        identity(run, tasks, None if policy is None else policy.record),
        device={"type": device.type, "name": name, "threads": torch.get_num_threads()} | team(processes),
        origin=None if policy is None else policy.origin,
    )


def keep_record(
    run: Run, new: dict[str, Any], *, device: Mapping[str, Any], origin: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Write `run.json`, or find the one of an earlier try; `ConfigError` where that was another experiment.

    new: the run's identity; device: where its numbers are computed; origin: how its policy came to be.
    """
    if (old := check_unchanged(run, new)) is not None:
        return old
    record = {
        "format": 1,
        "suite": run.suite,
        "run": run.name,
        "kind": run.config.kind,
        "variant": run.config.variant,
        "seed": run.config.seed,
        "scale": run.scale,
        "variants": list(run.variants),
        "digest": records.digest(new),
        "device": dict(device),
        "policy_origin": None if origin is None else dict(origin),
        **new,
        **records.provenance(ROOT),
    }
    records.write_json(run.folder / RUN, record)
    return record


def team(processes: Processes) -> dict[str, Any]:
    """How many processes take part, for the records; nothing for one."""
    if processes.count == 1:
        return {}
    return {"processes": processes.count, "parallel": "fsdp2" if processes.shards else "ddp"}
