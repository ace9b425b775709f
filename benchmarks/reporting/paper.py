"""The paper's own numbers, read from `benchmarks/paper/`; nothing of it is typed into code."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "paper"

BASES = ("Qwen2.5-1.5B-Instruct", "Qwen2.5-7B-Instruct")
METHODS = ("grpo", "grpo+empg", "dapo", "dapo+empg")


@dataclass(frozen=True)
class PaperNumber:
    """One result in percent, over 3 seeds."""

    mean: float
    std: float

    @property
    def cell(self) -> str:
        """`58.2 ± 2.4`."""
        return f"{self.mean:.1f} ± {self.std:.1f}"


@dataclass(frozen=True)
class PaperRow:
    """Results of one method on one benchmark in the paper's Table 1."""

    base: str
    method: str
    numbers: Mapping[str, PaperNumber]
    """By measure: `success`, `success:pick`."""


@dataclass(frozen=True)
class EntropyChangeBin:
    """One bar of the paper's Figure 3, read from the image by eye."""

    low: float
    """Percentile of initial step entropy where the bin begins."""
    high: float
    change: float
    """Average change of step entropy after RL; the paper does not state its unit."""


def table1_rows(columns: Mapping[str, str], folder: Path = FOLDER) -> tuple[PaperRow, ...]:
    """The authors' own four methods on both Qwen2.5 models.

    `columns`: measure -> its column of the file; the std is in `<column>_std`.
    Raises `ValueError` when one of the methods is not in the file.
    """
    path = folder / "table1.csv"
    rows = {(row["base"], row["method"]): row for row in _read(path)}
    wanted = [(base, method) for base in BASES for method in METHODS]
    if missing := [key for key in wanted if key not in rows]:
        raise ValueError(f"{path}: no row for {missing[0]}; expected all of {METHODS} for both of {BASES}")
    return tuple(_paper_row(rows[key], columns) for key in wanted)


def _paper_row(row: dict[str, str], columns: Mapping[str, str]) -> PaperRow:
    numbers = {
        name: PaperNumber(float(row[column]), float(row[f"{column}_std"])) for name, column in columns.items()
    }
    return PaperRow(row["base"], row["method"], numbers)


def entropy_change(folder: Path = FOLDER) -> tuple[EntropyChangeBin, ...]:
    """The 20 bars of Figure 3, from low to high entropy."""
    return tuple(
        EntropyChangeBin(
            float(row["percentile_low"]), float(row["percentile_high"]), float(row["average_entropy_change"])
        )
        for row in _read(folder / "figure3_entropy_change.csv")
    )


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
