"""Tables of a run that grow by a part with every iteration and become one file when the run is complete.

A part is written whole, so a killed try leaves parts that can be told from the checkpoint's by their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks import records
from empg.tables import GradientTable, StepTable, TokenTable
from empg.trainer import Records

TextOf = Callable[[Sequence[int]], list[str]]
"""What each of a text's tokens says."""

STEPS, TOKENS, GRADIENTS = "steps", "tokens", "gradients"
COLUMNS = {
    name: tuple(field.name for field in fields(table))
    for name, table in ((STEPS, StepTable), (TOKENS, TokenTable), (GRADIENTS, GradientTable))
}


def write_parts(folder: Path, run: str, iteration: int, found: Records, text_of: TextOf) -> None:
    """The tables of one iteration."""
    for name, columns in _tables(found, text_of):
        (folder / name).mkdir(exist_ok=True)
        place: dict[str, Any] = {"run": run, "iteration": iteration}
        repeated = {key: [value] * len(columns["step"]) for key, value in place.items()}
        records.write_part(_part(folder, name, iteration), repeated | columns)


def _tables(found: Records, text_of: TextOf) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    yield STEPS, found.steps.columns()
    if found.tokens is not None:
        yield TOKENS, found.tokens.columns() | {"text": [text_of(row) for row in found.tokens.token_ids]}
    if found.gradients is not None:
        yield GRADIENTS, found.gradients.columns()


def forget_parts(folder: Path, start: int) -> None:
    """Remove what a killed try wrote of iterations that its checkpoint does not hold."""
    for name in COLUMNS:
        for part in (folder / name).glob("*.parquet"):
            if int(part.stem) >= start:
                part.unlink()


def join_parts(folder: Path) -> None:
    """One file of each table that was recorded; the step table is there even when every update was skipped."""
    for name in COLUMNS:
        path, parts = folder / f"{name}.parquet", sorted((folder / name).glob("*.parquet"))
        if parts:
            records.join_parquet(parts, path)
        elif name == STEPS:
            records.write_parquet(path, dict.fromkeys(("run", "iteration", *COLUMNS[name]), ()))


def _part(folder: Path, name: str, iteration: int) -> Path:
    """Where the table of one iteration lies until the run is complete."""
    return folder / name / f"{iteration:06d}.parquet"
