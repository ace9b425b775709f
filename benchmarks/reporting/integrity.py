"""Whether a run's files agree with one another: its digest, its names, its panel and its length."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks import records
from benchmarks.reporting.schema import IterationRow, RecordError, RunInfo, Summary
from benchmarks.reporting.settings import settings_of


def check_info(path: Path, content: bytes, info: RunInfo) -> None:
    """Refuse a `run.json` whose digest is not that of its content, or whose names are not those of its config.

    path: where `content`, parsed as `info`, was read. Raises `RecordError`.
    """
    try:
        record = json.loads(content)
        found = records.digest({key: record.get(key) for key in records.IDENTITY})
    except ValueError as error:
        raise RecordError(f"{path}: holds what no run writes: {error}") from None
    if found != info.digest:
        raise RecordError(
            f"{path}: states digest {info.digest} but {', '.join(records.IDENTITY)} have {found}; "
            "something was changed after the run began"
        )
    for name in ("kind", "variant", "seed"):
        said, configured = getattr(info, name), getattr(info.config, name)
        if configured is not None and said != configured:
            raise RecordError(f"{path}: {name} is {said!r} but config.{name} is {configured!r}")
    _check_settings(path, info)


def _check_settings(path: Path, info: RunInfo) -> None:
    """A variant that is named after its settings must have them."""
    if info.empg is None:
        return
    used = {"zeta": {info.empg.zeta}, "k": {info.empg.k, info.empg.k_f}}
    for name, value in settings_of(info.variant).items():
        if name in used and used[name] != {float(value)}:
            raise RecordError(f"{path}: variant is {info.variant!r} but config.learner.empg has {info.empg}")


def check_summary(path: Path, summary: Summary, info: RunInfo) -> None:
    """Refuse a summary of other tasks or of another length of training than `run.json` says."""
    for split, digest in summary.panels.items():
        known = info.panels.get(split)
        if known is None or digest != known.digest:
            said = "none" if known is None else known.digest
            raise RecordError(f"{path}: {split} panel {digest} but run.json has {said}")
    planned = info.config.iterations
    if info.kind == "train" and planned is not None and summary.iterations != planned:
        raise RecordError(f"{path}: {summary.iterations} iterations but run.json plans {planned}")


def check_metrics(path: Path, metrics: Sequence[IterationRow], iterations: int) -> None:
    """Refuse metrics that lack some of a complete run's iterations; it has none where nothing was trained."""
    if len(metrics) != iterations:
        raise RecordError(
            f"{path}: {len(metrics)} iterations but summary.json says {iterations}; a part is missing"
        )
