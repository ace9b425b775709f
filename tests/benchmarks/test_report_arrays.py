"""Columns of Parquet files: only finite numbers of the right shape come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import records
from benchmarks.reporting.arrays import load_lists, load_numbers
from benchmarks.reporting.schema import RecordError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "steps.parquet"


def write(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    records.write_parquet(path, columns)
    return path


def test_numbers_come_as_floats_and_missing_ones_stay_missing(path: Path) -> None:
    write(path, {"tokens": [1, 2], "after": [None, 0.5], "task": ["a", "b"]})
    found = load_numbers(path, ("tokens",), nullable=("after",))
    assert list(found) == ["tokens", "after"]
    assert found["tokens"].tolist() == [1.0, 2.0]
    assert str(found["after"].tolist()) == "[nan, 0.5]"


def test_a_column_of_nothing_but_missing_values_is_one_of_nan(path: Path) -> None:
    write(path, {"after": [None, None]})
    assert np.isnan(load_numbers(path, (), nullable=("after",))["after"]).tolist() == [True, True]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"g": [1.0]}, r"lacks the columns \['entropy'\]"),
        ({"entropy": [0.5, None]}, "1 values of column entropy are missing or not finite"),
        ({"entropy": [0.5, float("inf"), float("nan")]}, "2 values of column entropy"),
        ({"entropy": ["high"]}, "column entropy holds string; expected numbers"),
        ({"entropy": [[0.5]]}, "column entropy holds list.*; expected numbers"),
    ],
)
def test_other_values_are_an_error_that_names_file_and_column(
    path: Path, columns: dict[str, Any], problem: str
) -> None:
    with pytest.raises(RecordError, match=rf"steps\.parquet: {problem}"):
        load_numbers(write(path, columns), ("entropy",))


def test_an_infinite_value_is_refused_where_a_missing_one_is_not(path: Path) -> None:
    write(path, {"after": [None, float("inf")]})
    with pytest.raises(RecordError, match="1 values of column after"):
        load_numbers(path, (), nullable=("after",))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"{}"])
def test_what_is_not_parquet_is_an_error_that_names_the_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(RecordError, match=r"steps\.parquet: not a readable table"):
        load_numbers(path, ("entropy",))


def lists(path: Path, columns: Mapping[str, Sequence[Any]]) -> tuple[Any, ...]:
    return load_lists(write(path, columns), ("group",), ("before", "after"), measured="after")


def test_lists_come_end_to_end_with_their_lengths_without_rows_that_were_not_measured(path: Path) -> None:
    plain, flat, lengths = lists(
        path, {"group": [7, 8, 9], "before": [[1.0, 2.0], [3.0], [4.0]], "after": [[5.0, 6.0], None, [7.0]]}
    )
    assert plain["group"].tolist() == [7.0, 9.0]
    assert {name: values.tolist() for name, values in flat.items()} == {
        "before": [1.0, 2.0, 4.0], "after": [5.0, 6.0, 7.0],
    }  # fmt: skip
    assert lengths.tolist() == [2, 1]


def test_lists_that_were_never_measured_are_empty(path: Path) -> None:
    plain, flat, lengths = lists(path, {"group": [7], "before": [[1.0]], "after": [None]})
    assert [plain["group"].size, flat["before"].size, flat["after"].size, lengths.size] == [0] * 4


@pytest.mark.parametrize(
    ("before", "problem"),
    [
        ([[1.0]], "before and after differ in length; expected a value for each token"),
        ([[1.0, 2.0], None], "before and after differ in length"),
        ([[1.0, None]], "1 values of column before"),
        ([1.0], "column before holds double; expected lists"),
    ],
)
def test_lists_that_do_not_fit_are_an_error_that_names_file_and_column(
    path: Path, before: list[Any], problem: str
) -> None:
    with pytest.raises(RecordError, match=rf"steps\.parquet: {problem}"):
        lists(path, {"group": [7] * len(before), "before": before, "after": [[5.0, 6.0]] * len(before)})
