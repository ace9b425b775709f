"""Run folders made by hand, in the form that the runner writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks import records
from benchmarks.evaluate import totals
from benchmarks.plan import UNTRAINED
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
    kind = UNTRAINED.get(variant, "train")
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
        write_steps(folder, step_columns(seed, variant) if steps is None else steps)
        write_tokens(folder, token_columns(seed))
        write_gradients(folder, gradient_columns(seed), variance_rows(seed))
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


def write_steps(folder: Path, columns: Mapping[str, Sequence[float | None]]) -> None:
    """A step table; columns that are not given say that EMPG is off."""
    size = max(map(len, columns.values()), default=0)
    off = {"g": [1.0] * size, "f": [0.0] * size, "raw_advantage": [0.0] * size, "advantage": [0.0] * size}
    records.write_parquet(folder / "steps.parquet", off | dict(columns))


def step_columns(seed: int, variant: str) -> dict[str, Sequence[float | None]]:
    random = np.random.default_rng(seed)
    before = random.gamma(2.0, 0.2, size=200)
    after = before + 0.1 * before + random.normal(0.0, 0.05, size=200)
    columns: dict[str, Sequence[float | None]] = {
        "iteration": [0] * 100 + [1] * 100,
        "entropy": before.tolist(),
        "entropy_after": [None if place % 4 == 0 else value for place, value in enumerate(after.tolist())],
    }
    if "+" in variant:
        normalised = (before - before.min()) / np.ptp(before)
        g = np.exp(-normalised) / np.exp(-normalised).mean()
        f = np.where(np.arange(200) % 4 == 3, 0.0, np.roll(np.exp(-normalised), -1))
        raw = random.choice([-1.0, 0.0, 1.0], size=200)
        final = raw * g + 0.05 * f
        modulated = {"g": g, "f": f, "raw_advantage": raw, "advantage": final - final.mean()}
        columns |= {name: values.tolist() for name, values in modulated.items()}
    return columns


def write_tokens(folder: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    records.write_parquet(folder / "tokens.parquet", columns)


def token_columns(seed: int) -> dict[str, Sequence[Any]]:
    """40 steps of three tokens each in four groups; every other step was scored again."""
    random = np.random.default_rng(seed)
    before = random.gamma(1.0, 0.2, size=(40, 3))
    return {
        "iteration": [0] * 20 + [1] * 20,
        "attempt": [0] * 40,
        "group": [place // 10 % 2 for place in range(40)],
        "sample": [place // 5 % 2 for place in range(40)],
        "step": [place % 5 for place in range(40)],
        "text": [["look", " up", " it"]] * 40,
        "logprob": [[-0.1, -0.2, -0.3]] * 40,
        "entropy": before.tolist(),
        "entropy_after": [None if place % 2 else (1.1 * row).tolist() for place, row in enumerate(before)],
    }


def write_gradients(
    folder: Path, columns: Mapping[str, Sequence[float]], rows: Sequence[Mapping[str, Any]]
) -> None:
    records.write_parquet(folder / "gradients.parquet", columns)
    records.write_jsonl(folder / "gradients.jsonl", rows)


def gradient_columns(seed: int) -> dict[str, Sequence[float]]:
    """40 steps of 20 trajectories, on average as the proposition says."""
    random = np.random.default_rng(seed)
    renyi2 = random.gamma(2.0, 0.2, size=40)
    expected = -np.expm1(-renyi2)
    return {
        "iteration": [0] * 20 + [2] * 20,
        "attempt": [0] * 40,
        "group": [place % 20 // 10 for place in range(40)],
        "sample": [place % 10 // 2 for place in range(40)],
        "step": [place % 2 for place in range(40)],
        "tokens": random.integers(1, 9, size=40).tolist(),
        "renyi2": renyi2.tolist(),
        "logit_gradient_sq": (expected + random.normal(0.0, 0.05, size=40)).tolist(),
        "logit_gradient_expected": expected.tolist(),
        "gradient_norm": (2.0 * renyi2).tolist(),
    }


def variance_rows(seed: int) -> list[dict[str, Any]]:
    return [
        {
            "iteration": iteration,
            "steps": 20,
            "plain_variance": 2.0,
            "plain_mean_sq": 0.5,
            "scaled_variance": 1.5 + 0.1 * seed,
            "scaled_mean_sq": 0.5,
        }
        for iteration in (0, 2)
    ]


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
