"""How the page's tables find the number that a cell sorts by."""

from __future__ import annotations

import pytest

from benchmarks.reporting.page.cells import Cell, grid, sort_value
from benchmarks.reporting.tables import Table


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("41.5 [34.9, 48.4]", 41.5),
        ("58.2 ± 2.4", 58.2),
        ("+2.6", 2.6),
        ("-0.5 [-1.5, +0.0]", -0.5),
        ("−0.5", -0.5),
        ("1,234", 1234.0),
        ("4/40", 0.1),
        ("(2/4 seeds)", 0.5),
        ("1/1, n=1", 1.0),
        ("0/0", None),
        ("200 × 1", 200.0),
        ("12%", 12.0),
        ("63.7ᵃ", 63.7),
        ("+3.9ᵇ [1.0, 5.0]", 3.9),
        ("—", None),
        ("", None),
        ("not significant", None),
        ("82a1a12398a3", None),
        ("3rd", None),
    ],
)
def test_a_cell_sorts_by_the_number_that_it_begins_with(cell: str, value: float | None) -> None:
    assert sort_value(cell) == value


def test_a_bound_sorts_just_beside_its_number() -> None:
    below, above = sort_value("< 0.001"), sort_value("> 0.999")
    assert below is not None
    assert above is not None
    assert 0.00099 < below < 0.001
    assert 0.999 < above < 0.99901


def of_column(*cells: str) -> bool:
    table = Table("t", ("name", "value"), tuple(("row", cell) for cell in cells), "")
    return grid(table).columns[1].numeric


def test_a_column_is_numeric_if_every_cell_is_a_number_or_missing() -> None:
    assert of_column("1.0", "—", "2/3")
    assert not of_column("1.0", "none of it")


def test_a_column_without_any_number_is_text() -> None:
    assert not of_column("—", "—")


def test_the_first_column_is_text_even_where_names_are_numbers() -> None:
    shown = grid(Table("t", ("seed", "value"), (("3", "1.0"), ("12", "2.0")), ""))
    assert not shown.columns[0].numeric
    assert shown.rows[0][0] == Cell("3", "", None)


def test_an_estimate_is_kept_apart_from_its_interval_and_remarks() -> None:
    rows = (("a", "41.5 ± 2.1 [34.9, 48.4]"), ("b", "7.0 (2/3 seeds)"), ("c", "(2/3 seeds)"))
    shown = [row[1] for row in grid(Table("t", ("name", "value"), rows, "")).rows]
    assert [(cell.text, cell.detail) for cell in shown] == [
        ("41.5", "± 2.1 [34.9, 48.4]"),
        ("7.0", "(2/3 seeds)"),
        ("(2/3 seeds)", ""),
    ]


def test_control_characters_of_foreign_names_are_spelled_out() -> None:
    assert grid(Table("t", ("name",), (("a\x1b[31m\nb",),), "")).rows[0][0].text == "a\\x1b[31m b"
