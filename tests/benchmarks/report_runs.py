"""Run folders made by hand, in the form that the runner writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks import records
from benchmarks.evaluate import totals
from benchmarks.reporting.report import Report, write_report

PANEL = "a" * 64
TASKS = 20


def add_run(
    suite: Path,
    variant: str,
    seed: int = 0,
    *,
    solved: Sequence[int] | Mapping[str, Sequence[int]] = (),
    errored: Mapping[int, str] | None = None,
    tasks: int = TASKS,
    samples: int = 1,
    iterations: Sequence[int] = tuple(range(5)),
    kl: Sequence[float | None] | None = None,
    success: Sequence[float | None] | None = None,
    steps: Mapping[str, Sequence[float | None]] | None = None,
    complete: bool = True,
    **changes: Any,
) -> Path:
    """A run that solved the given task numbers (in every mode, or by mode) on a panel of `tasks` tasks.

    `changes` replace keys of run.json.
    """
    kind = {"warm-start": "warm_start", "expert": "expert"}.get(variant, "train")
    folder = suite / f"webshop-{variant.replace('+', '-')}-s{seed}"
    folder.mkdir(parents=True)
    record: dict[str, Any] = {
        "format": 1,
        "suite": suite.name,
        "run": folder.name,
        "kind": kind,
        "variant": variant,
        "seed": seed,
        "scale": "default",
        "config": {"benchmark": "webshop"},
        "commit": "c" * 40,
        "dirty": False,
        "versions": {"torch": "2.13.0"},
        "device": "cpu",
        "machine": {"cores": 2, "processor": "x86_64"},
        "world": {"name": "webshop", "products": 1000, "goals": 690, "goal_source": "synthetic"},
        "panels": {"test": {"digest": PANEL, "size": tasks}, "train": {"digest": "b" * 64, "size": 500}},
        "policy": None if kind == "expert" else {"parameters": 663_808},
        "prompt": {"version": "1", "digest": "e" * 64},
        "created": "2025-01-01T00:00:00+00:00",
    } | changes
    record["digest"] = records.digest({key: record.get(key) for key in records.IDENTITY})
    records.write_json(folder / "run.json", record)
    by_mode = solved if isinstance(solved, Mapping) else {"sampled": solved, "greedy": solved}
    rows = [
        episode(task, mode, sample, task in wins, (errored or {}).get(task))
        for mode, wins in by_mode.items()
        for task in range(tasks)
        for sample in range(samples if mode == "sampled" else 1)
    ]
    records.write_jsonl(folder / "eval.jsonl", rows)
    if kind == "train":
        records.write_jsonl(folder / "metrics.jsonl", metrics(iterations, kl, success))
        if steps is not None:
            records.write_parquet(folder / "steps.parquet", steps)
        else:
            records.write_parquet(folder / "steps.parquet", step_columns(seed))
    if complete:
        summary = {"iterations": len(iterations) if kind == "train" else 0, "eval": totals(rows)}
        records.write_json(folder / "summary.json", summary)
    return folder


def episode(task: int, mode: str, sample: int, success: bool, error: str | None) -> dict[str, Any]:
    return {
        "iteration": 5,
        "split": "test",
        "mode": mode,
        "task_id": f"synthetic-{task}",
        "task_type": "garden",
        "sample": sample,
        "success": success and error is None,
        "score": 0.0 if error else 1.0 if success else 0.5,
        "end": "error" if error else "terminated",
        "error": error,
        "steps": 4,
        "sampled_tokens": 40,
    }


def metrics(
    iterations: Sequence[int], kl: Sequence[float | None] | None, success: Sequence[float | None] | None
) -> list[dict[str, Any]]:
    return [
        {
            "iteration": iteration,
            "sampled_tokens_total": 1000 * (place + 1),
            "kl_loss": kl[place] if kl is not None else 0.01 * place,
            "success": success[place] if success is not None else 0.2 + 0.02 * place,
        }
        for place, iteration in enumerate(iterations)
    ]


def step_columns(seed: int) -> dict[str, Sequence[float | None]]:
    random = np.random.default_rng(seed)
    before = random.gamma(2.0, 0.2, size=200)
    after = before + 0.1 * before + random.normal(0.0, 0.05, size=200)
    return {
        "iteration": [0] * 100 + [1] * 100,
        "entropy": before.tolist(),
        "entropy_after": [None if place % 4 == 0 else value for place, value in enumerate(after.tolist())],
    }


def full_suite(suite: Path, seeds: Sequence[int] = (0,)) -> Path:
    """All six rows of the table; later variants solve more tasks."""
    add_run(suite, "warm-start", solved=range(4))
    for place, variant in enumerate(("grpo", "grpo+empg", "dapo", "dapo+empg")):
        for seed in seeds:
            add_run(suite, variant, seed, solved=range(8 + 2 * place + seed))
    add_run(suite, "expert", solved=range(19))
    return suite


def report_of(suite: Path, console: Console | None = None, **options: Any) -> Report:
    """The report of a suite folder, beside it under `published`."""
    return write_report(suite, suite.parent / "published" / suite.name, console, **options)


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder by their path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
