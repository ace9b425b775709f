"""The paper's own numbers, read from `benchmarks/paper/`; nothing of it is typed into code."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "paper"

BASES = ("Qwen2.5-1.5B-Instruct", "Qwen2.5-7B-Instruct")
METHODS = ("grpo", "grpo+empg", "dapo", "dapo+empg")


@dataclass(frozen=True)
class PaperRow:
    """WebShop results of one method in the paper's Table 1, in percent, mean and std over 3 seeds."""

    base: str
    method: str
    success: float
    success_std: float
    score: float
    score_std: float


@dataclass(frozen=True)
class EntropyChangeBin:
    """One bar of the paper's Figure 3, read from the image by eye."""

    low: float
    """Percentile of initial step entropy where the bin begins."""
    high: float
    change: float
    """Average change of step entropy after RL; the paper does not state its unit."""


def webshop_rows(folder: Path = FOLDER) -> tuple[PaperRow, ...]:
    """The authors' own four methods on both Qwen2.5 models.

    Raises `ValueError` when one of them is not in the file.
    """
    path = folder / "table1.csv"
    rows = {(row["base"], row["method"]): row for row in _read(path)}
    wanted = [(base, method) for base in BASES for method in METHODS]
    if missing := [key for key in wanted if key not in rows]:
        raise ValueError(f"{path}: no row for {missing[0]}; expected all of {METHODS} for both of {BASES}")
    return tuple(_paper_row(rows[key]) for key in wanted)


def _paper_row(row: dict[str, str]) -> PaperRow:
    return PaperRow(
        base=row["base"],
        method=row["method"],
        success=float(row["webshop_success"]),
        success_std=float(row["webshop_success_std"]),
        score=float(row["webshop_score"]),
        score_std=float(row["webshop_score_std"]),
    )


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
