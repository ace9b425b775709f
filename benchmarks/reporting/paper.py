"""The paper's own numbers, read from `benchmarks/paper/`; nothing of it is typed into code."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.reporting.columns import Columns

FOLDER = Path(__file__).resolve().parent.parent / "paper"


@dataclass(frozen=True)
class PaperTable:
    """Which rows of a table of the paper are shown beside ours."""

    name: str
    bases: tuple[str, ...]
    methods: tuple[str, ...]
    says: str
    """What its numbers are."""


TABLES = {
    "table1": PaperTable(
        "Table 1",
        ("Qwen2.5-1.5B-Instruct", "Qwen2.5-7B-Instruct"),
        ("grpo", "grpo+empg", "dapo", "dapo+empg"),
        "mean ± std over 3 seeds",
    ),
    "table2": PaperTable(
        "Table 2",
        ("Qwen2.5-32B-Instruct",),
        ("dapo", "dapo+scaling", "dapo+bonus", "dapo+empg"),
        "one run each; ID and OOD as printed, means of its data sets (for DAPO+EMPG the mean OOD is 63.3, not 63.7)",
    ),
}


@dataclass(frozen=True)
class PaperNumber:
    """One result in percent."""

    mean: float
    std: float | None
    """Over 3 seeds; None where the paper gives none."""

    @property
    def cell(self) -> str:
        """`58.2 ± 2.4`."""
        return f"{self.mean:.1f}" + ("" if self.std is None else f" ± {self.std:.1f}")


@dataclass(frozen=True)
class PaperRow:
    """Results of one method in a table of the paper."""

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


def rows_of(columns: Columns, folder: Path = FOLDER) -> tuple[PaperRow, ...]:
    """What the paper printed of the measures in `columns.paper`, for every base model and method that it shows.

    Raises `ValueError` when one of the methods is not in the file.
    """
    path, table = folder / f"{columns.paper_table}.csv", TABLES[columns.paper_table]
    rows = {(row["base"], row["method"]): row for row in _read(path)}
    wanted = [(base, method) for base in table.bases for method in table.methods]
    if missing := [key for key in wanted if key not in rows]:
        raise ValueError(
            f"{path}: no row for {missing[0]}; expected all of {table.methods} for {table.bases}"
        )
    return tuple(PaperRow(*key, _numbers(rows[key], columns.paper)) for key in wanted)


def _numbers(row: dict[str, str], columns: Mapping[str, str]) -> dict[str, PaperNumber]:
    """Columns by measure; the std of one is in `<column>_std` where the table has any."""
    found = {}
    for name, column in columns.items():
        std = row.get(f"{column}_std")
        found[name] = PaperNumber(float(row[column]), None if std is None else float(std))
    return found


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
