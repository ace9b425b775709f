"""The grid of zeta and k: named by its settings, which its records must have, and beside the paper's Table 5."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reporting.load import RecordError, load_suite
from benchmarks.reporting.outcomes import label
from benchmarks.reporting.report import Report
from benchmarks.reporting.settings import settings_of
from tests.benchmarks.alfworld_runs import TYPES, add_alfworld
from tests.benchmarks.report_runs import report_of

pytestmark = pytest.mark.usefixtures("undrawn")
GRID = [(0.01, 1.0), (0.05, 1.0), (0.1, 1.0), (0.05, 0.5), (0.05, 1.5)]
NAMES = [f"grpo+empg,zeta={zeta},k={k}" for zeta, k in GRID]


pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "sensitivity"


def add(
    suite: Path, variant: str, zeta: float, k: float, seed: int = 0, k_f: float | None = None, **changes: Any
) -> None:
    empg = {"zeta": zeta, "k": k, "k_f": k if k_f is None else k_f}
    config = {"benchmark": "alfworld", "learner": {"empg": empg}}
    add_alfworld(suite, variant, seed, **{"config": config, "variants": NAMES} | changes)


def table(report: Report) -> dict[str, list[str]]:
    """The rows of the table beside the paper's, by their first cell."""
    text = (report.folder / "table.md").read_text()
    block = next(part for part in text.split("\n## ") if part.startswith("Beside the paper"))
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in block.splitlines()
        if line[:1] == "|"
    ]
    return {name: cells for name, *cells in rows}


def test_every_point_of_the_papers_grid_stands_there_with_ours_or_a_dash(suite: Path) -> None:
    for seed in (0, 1):
        add(suite, NAMES[2], 0.1, 1.0, seed, solved={"pick": 12 + 6 * seed})
    report = report_of(suite)
    rows = table(report)
    names = [name for name in rows if name not in ("method, source", "---|" * 8)]
    labels = [f"GRPO+EMPG, ζ={zeta}, k={k}" for zeta, k in GRID]
    mark = {labels[1]: "ᵃ"}
    assert [name for name in names if name.startswith("GRPO")] == [
        f"{one}, {source}{mark.get(one, '') if 'paper' in source else ''}"
        for one in labels
        for source in ("ours (0.664M params)", "paper (Qwen2.5-1.5B)")
    ]
    assert rows[f"{labels[2]}, ours (0.664M params)"][0] == "62.5 ± 17.7"  # 12 and 18 of 24
    assert rows[f"{labels[0]}, ours (0.664M params)"] == ["—"] * 7
    assert rows[f"{labels[2]}, paper (Qwen2.5-1.5B)"] == [
        "84.5 ± 2.0", "51.0 ± 16.2", "82.4 ± 2.1", "82.2 ± 4.5", "78.0 ± 4.3", "78.5 ± 2.7", "78.5 ± 1.2"
    ]  # fmt: skip
    text = (report.folder / "table.md").read_text()
    assert "ᵃ The row that Table 1 gives for 3 seeds" in text
    assert "Table 5, mean ± std, by its text over 4 runs each" in text


def test_the_long_form_keeps_variants_with_commas_and_the_papers_four_runs(suite: Path) -> None:
    add(suite, NAMES[0], 0.01, 1.0, solved=dict.fromkeys(TYPES, 3))
    report = report_of(suite)
    with (report.folder / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows if row["source"] == "paper"} == set(NAMES)
    theirs = next(row for row in rows if row["source"] == "paper" and row["measure"] == "success")
    assert (theirs["mean"], theirs["sd_over_seeds"], theirs["seeds"]) == ("0.734000", "0.019000", "4")
    assert [
        row["remark"] != "" for row in rows if row["method"] == NAMES[1] and row["source"] == "paper"
    ] == [True] * 7


def test_a_name_cannot_claim_settings_that_the_run_did_not_have(suite: Path) -> None:
    add(suite, NAMES[2], 0.05, 1.0)
    with pytest.raises(
        RecordError, match=r"run\.json: variant is 'grpo\+empg,zeta=0\.1,k=1\.0' but .*zeta=0\.05"
    ):
        load_suite(suite)


def test_k_is_that_of_scale_and_bonus_alike(suite: Path) -> None:
    add(suite, NAMES[3], 0.05, 0.5, k_f=1.0)
    with pytest.raises(RecordError, match=r"k=0\.5 k_f=1\.0"):
        load_suite(suite)


@pytest.mark.parametrize(
    ("variant", "settings", "said"),
    [
        ("grpo+empg,zeta=0.1,k=1.0", {"zeta": "0.1", "k": "1.0"}, "GRPO+EMPG, ζ=0.1, k=1.0"),
        ("other,lr=3", {"lr": "3"}, "other, lr=3"),
        ("grpo", {}, "GRPO"),
        ("grpo+empg,fast", {}, "grpo+empg,fast"),
        ("a,b=c", {}, "a,b=c"),
        ("a,=1", {}, "a,=1"),
        ("", {}, ""),
    ],
)
def test_what_follows_a_method_is_read_as_settings_only_where_all_of_it_is(
    variant: str, settings: dict[str, str], said: str
) -> None:
    assert settings_of(variant) == settings
    assert label(variant) == said


def test_alfworld_without_a_grid_stays_beside_table_1(suite: Path) -> None:
    add_alfworld(suite, "grpo", solved={"pick": 3})
    assert "GRPO+EMPG, paper (Qwen2.5-7B)" in table(report_of(suite))
