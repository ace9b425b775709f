"""The paper's own numbers, read from `benchmarks/paper/`; nothing of it is typed into code."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.reporting.columns import Columns

FOLDER = Path(__file__).resolve().parent.parent / "paper"


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper, and which of its rows are shown beside ours."""

    name: str
    file: str
    bases: tuple[str, ...]
    says: str
    """What its numbers are."""
    runs: int | None = None
    """How many are behind each mean; None where the paper does not say."""
    methods: tuple[str, ...] = ()
    """Empty: all."""


TABLES = {
    "table1": PaperTable(
        "Table 1",
        "table1.csv",
        ("Qwen2.5-1.5B-Instruct", "Qwen2.5-7B-Instruct"),
        "mean ± std over 3 seeds",
        3,
        ("grpo", "grpo+empg", "dapo", "dapo+empg"),
    ),
    "table2": PaperTable(
        "Table 2",
        "table2.csv",
        ("Qwen2.5-32B-Instruct",),
        "one run each; ID and OOD as printed, means of its data sets",
    ),
    "table5": PaperTable(
        "Table 5",
        "table5_sensitivity.csv",
        ("Qwen2.5-1.5B-Instruct",),
        "mean ± std, by its text over 4 runs each",
        4,
    ),
}
PROMPTED = ("GPT-4o", "Gemini-2.5-Pro")
"""Models that Table 1 shows without training them."""
LABELS = {
    "prompt": "prompted",
    "react": "ReAct",
    "reflexion": "Reflexion",
    "ppo": "PPO with critic",
    "rloo": "RLOO",
}
"""Methods that only the paper's tables have."""
COPIED = "GiGPO"
COPIED_SAYS = "Copied by the paper from the GiGPO paper."


@dataclass(frozen=True)
class PaperNumber:
    """One result in percent."""

    mean: float
    std: float | None
    """Over seeds; None where the paper gives none."""
    remark: str = ""
    """What is wrong with it, if anything."""

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
    runs: int | None = None
    """Behind each mean; None where the paper does not say."""
    remark: str = ""
    """What must be known about the whole row, if anything."""

    def marked(self, marks: Mapping[str, str]) -> dict[str, str]:
        """Cells by measure, each with the mark of its remark."""
        return {name: number.cell + marks[number.remark] for name, number in self.numbers.items()}


@dataclass(frozen=True)
class Slip:
    """A mistake in the paper's own tables, figures or text."""

    artefact: str
    """`table2`, `figure1`."""
    base: str
    method: str
    """Empty where it is not about one."""
    column: str
    """Empty where the whole row or artefact is meant."""
    says: str


@dataclass(frozen=True)
class EntropyChangeBin:
    """One bar of the paper's Figure 3, read from the image by eye."""

    low: float
    """Percentile of initial step entropy where the bin begins."""
    high: float
    change: float
    """Average change of step entropy after RL; the paper does not state its unit."""


def rows_of(columns: Columns, folder: Path = FOLDER, *, every: bool = False) -> tuple[PaperRow, ...]:
    """What the paper printed of the measures in `columns.paper`, for the base models and methods that are shown.

    every: all rows of those base models, and of the models that were only prompted. Raises `ValueError` when one of
    the wanted methods is not in the file.
    """
    table = TABLES[columns.paper_table]
    path = folder / table.file
    rows = {(row["base"], _method(row)): row for row in _read(path)}
    if every or not table.methods:
        wanted = [key for key in rows if key[0] in (*table.bases, *PROMPTED)]
    else:
        wanted = [(base, method) for base in table.bases for method in table.methods]
    if missing := [key for key in wanted if key not in rows]:
        raise ValueError(
            f"{path}: no row for {missing[0]}; expected all of {table.methods} for {table.bases}"
        )
    known = {(slip.base, slip.method, slip.column): slip.says for slip in slips(columns.paper_table, folder)}
    found = []
    for base, method in wanted:
        row = rows[base, method]
        remarks = {column: known.get((base, method, column), "") for column in ("", *columns.paper.values())}
        copied = COPIED_SAYS if row.get("source") == COPIED else ""
        numbers = _numbers(row, columns.paper, remarks)
        found.append(PaperRow(base, method, numbers, table.runs, copied or remarks[""]))
    return tuple(found)


def slips(artefact: str, folder: Path = FOLDER) -> tuple[Slip, ...]:
    """The known mistakes in one table or figure of the paper."""
    return tuple(Slip(**row) for row in _read(folder / "slips.csv") if row["artefact"] == artefact)


def source(base: str) -> str:
    """Where a row is from: `paper (Qwen2.5-7B)`."""
    return f"paper ({base.removesuffix('-Instruct')})"


MARKS = "ᵃᵇᶜᵈᵉᶠᵍ"


def marks_of(rows: Iterable[PaperRow]) -> dict[str, str]:
    """The remarks on some rows, each with the mark that stands for it; an empty remark has an empty mark."""
    said = [remark for row in rows for remark in (row.remark, *(n.remark for n in row.numbers.values()))]
    return {"": ""} | dict(zip(filter(None, dict.fromkeys(said)), MARKS, strict=False))


def footnotes(marks: Mapping[str, str]) -> str:
    """The remarks as paragraphs that follow a table's note."""
    return "".join(f"\n\n{mark} {remark}" for remark, mark in marks.items() if remark)


def _method(row: Mapping[str, str]) -> str:
    """As our variants are called; Table 5 states algorithm and settings instead."""
    return row.get("method") or f"{row['algorithm']}+empg,zeta={row['zeta']},k={row['k']}"


def _numbers(
    row: Mapping[str, str], columns: Mapping[str, str], remarks: Mapping[str, str]
) -> dict[str, PaperNumber]:
    """Columns by measure; the std of one is in `<column>_std` where the table has any."""
    found = {}
    for name, column in columns.items():
        std = row.get(f"{column}_std")
        found[name] = PaperNumber(float(row[column]), float(std) if std else None, remarks[column])
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
