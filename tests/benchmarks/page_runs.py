"""Runs with recorded episodes, credit and tokens, made by hand in the form that the runner writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import records
from benchmarks.reporting.load import load_suite
from benchmarks.reporting.page import build
from benchmarks.reporting.tables import Table
from tests.benchmarks.report_runs import add_run

Row = dict[str, Any]

TABLE = Table(
    title="Success on the panel (%)",
    columns=("method", "success", "errored", "verdict"),
    rows=(
        ("GRPO", "9.5 [1.0, 20.0]", "0/40", "not significant"),
        ("GRPO+EMPG", "41.5 [34.9, 48.4]", "4/40", "significant"),
        ("DAPO", "—", "—", "—"),
        ("DAPO+EMPG", "100.0 [97.2, 100.0]", "1/40", "significant"),
    ),
    note="Unit of the intervals: tasks, n=20.",
)


def turn(step: int, **changes: Any) -> Row:
    """A turn of five tokens."""
    return {
        "thought": f"think {step}",
        "action": f"search[word {step}]",
        "observation": f"page {step}",
        "well_formed": True,
        "action_valid": True,
        "tokens": 5,
    } | changes


def episode(
    iteration: int, group: int, sample: int, *, turns: Sequence[Row] | None = None, **changes: Any
) -> Row:
    """An episode of the group's task; the first sample solves it."""
    told = [turn(step) for step in range(3)] if turns is None else list(turns)
    solved = sample == 0
    return {
        "iteration": iteration,
        "attempt": 0,
        "kept": True,
        "task_id": f"task-{group}",
        "task_type": "garden" if group == 0 else "kitchen",
        "group": group,
        "sample": sample,
        "success": solved,
        "score": 1.0 if solved else 0.5,
        "reward": 1.0 if solved else 0.0,
        "end": "terminated",
        "error": None,
        "steps": len(told),
        "sampled_tokens": sum(one["tokens"] for one in told),
        "turns": told,
    } | changes


def episodes_of(iterations: int = 2, groups: int = 2, samples: int = 2) -> list[Row]:
    """Every group and sample of every iteration."""
    return [
        episode(iteration, group, sample)
        for iteration in range(iterations)
        for group in range(groups)
        for sample in range(samples)
    ]


def places(played: Sequence[Row], run: str) -> tuple[Row, list[tuple[Row, int, Row]]]:
    """The columns that name steps, and each step as (episode, number, turn)."""
    steps = [(one, step, told) for one in played for step, told in enumerate(one["turns"])]
    columns = {
        name: [one[name] for one, _, _ in steps] for name in ("iteration", "attempt", "group", "sample")
    }
    return {"run": [run] * len(steps), **columns, "step": [step for _, step, _ in steps]}, steps


def credit_columns(played: Sequence[Row], run: str) -> Row:
    """`steps.parquet` of the kept episodes: entropy rises by step; the first sample gains, the others lose."""
    columns, steps = places([one for one in played if one["kept"]], run)
    sign = [1.0 if one["success"] else -1.0 for one, _, _ in steps]
    number = [step for _, step, _ in steps]
    return columns | {
        "task_id": [one["task_id"] for one, _, _ in steps],
        "entropy": [0.25 * (step + 1) for step in number],
        "g": [1.5 - 0.5 * step for step in number],
        "f": [0.8 if step < len(one["turns"]) - 1 else 0.0 for one, step, _ in steps],
        "raw_advantage": [0.7 * each for each in sign],
        "advantage": [each * (1.25 - 0.5 * step) for each, step in zip(sign, number, strict=True)],
        "tokens": [told["tokens"] for _, _, told in steps],
        "entropy_after": [None] * len(steps),
    }


def token_columns(played: Sequence[Row], run: str, text: Callable[[Row], Sequence[str]]) -> Row:
    """`tokens.parquet` of the given episodes; `text` gives a turn's tokens, whose entropies rise from 0 by 0.5."""
    columns, steps = places(played, run)
    texts = [list(text(told)) for _, _, told in steps]
    return columns | {
        "token_ids": [list(range(len(each))) for each in texts],
        "text": texts,
        "logprob": [[-0.4 * place for place in range(len(each))] for each in texts],
        "entropy": [[0.5 * place for place in range(len(each))] for each in texts],
        "entropy_after": [None] * len(texts),
    }


def five_tokens(told: Row) -> list[str]:
    """What a turn says, in five pieces."""
    return ["Thought", f": {told['thought']}", "\n", f"Action: {told['action']}", "<|end|>"]


def add_played_run(
    suite: Path,
    variant: str,
    seed: int = 0,
    *,
    played: Sequence[Row] | None = None,
    with_tokens: Callable[[Row], bool] = lambda one: one["group"] == 0 and one["kept"],
    **changes: Any,
) -> Path:
    """A complete run that recorded its episodes, the credit of the kept ones and the tokens of some."""
    rows = episodes_of() if played is None else played
    folder = add_run(suite, variant, seed, solved=range(8), **changes)
    records.write_jsonl(folder / "episodes.jsonl", rows)
    records.write_parquet(folder / "steps.parquet", credit_columns(rows, folder.name))
    recorded = [one for one in rows if with_tokens(one)]
    (folder / "tokens.parquet").unlink()
    if recorded:
        columns = token_columns(recorded, folder.name, five_tokens)
        records.write_parquet(folder / "tokens.parquet", columns)
    return folder


def write_page(
    suite: Path, out: Path, figures: Mapping[str, bytes] | None = None, facts: Mapping[str, str] | None = None
) -> Path:
    """The page of a suite on disk with its data and figures; returns `index.html`."""
    shown = dict(figures or {})
    said = {"scale": "default", "test panel": "20 tasks, sha256 aaaaaaaaaaaa"} if facts is None else facts
    files = dict(build(load_suite(suite), [TABLE], shown, said))
    for name, content in (shown | files).items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    return out / "index.html"
