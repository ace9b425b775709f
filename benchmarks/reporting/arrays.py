"""Columns of a run's Parquet files as checked arrays; only the columns that are asked for are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.reporting.schema import RecordError
from benchmarks.reporting.stats import Array


def load_numbers(path: Path, columns: Sequence[str], nullable: Sequence[str] = ()) -> dict[str, Array]:
    """Columns of numbers as float arrays, all equally long.

    A missing value is NaN in a `nullable` column and a `RecordError` in another.
    """
    table = read_columns(path, (*columns, *nullable))
    return {name: _numbers(path, name, table.column(name), name in nullable) for name in table.column_names}


def load_lists(
    path: Path, columns: Sequence[str], lists: Sequence[str], measured: str
) -> tuple[dict[str, Array], dict[str, Array], NDArray[np.int64]]:
    """Of the rows where the list `measured` is there: plain columns, columns of lists end to end, and lists' lengths.

    Raises `RecordError` when the lists of a row differ in length, and for values that are not finite numbers.
    """
    table = read_columns(path, (*columns, *lists))
    table = table.filter(pc.is_valid(table.column(measured)))
    if not len(table):
        nothing = [{name: np.empty(0) for name in names} for names in (columns, lists)]
        return nothing[0], nothing[1], np.empty(0, dtype=np.int64)
    flat: dict[str, Array] = {}
    for name in lists:
        if not pa.types.is_list(table.column(name).type):
            raise RecordError(f"{path}: column {name} holds {table.column(name).type}; expected lists")
        lengths, known = (pc.list_value_length(table.column(each)) for each in (name, measured))
        if not lengths.equals(known):
            raise RecordError(
                f"{path}: {name} and {measured} differ in length; expected a value for each token"
            )
        flat[name] = _numbers(path, name, pc.list_flatten(table.column(name)))
    plain = {name: _numbers(path, name, table.column(name)) for name in columns}
    return plain, flat, np.asarray(known.to_numpy(), dtype=np.int64)


def read_columns(path: Path, columns: Sequence[str]) -> Any:
    """Some columns of a table, all of them there; raises `RecordError`."""
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns=list(columns))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RecordError(f"{path}: not a readable table: {error}") from error
    if missing := sorted(set(columns) - set(table.column_names)):
        raise RecordError(f"{path}: lacks the columns {missing}; expected {list(columns)}")
    return table


def _numbers(path: Path, name: str, column: Any, nullable: bool = False) -> Array:
    kind = column.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or column.null_count == len(column)):
        raise RecordError(f"{path}: column {name} holds {kind}; expected numbers")
    values = np.asarray(column.to_numpy(), dtype=np.float64)
    wrong = len(values) - int(np.isfinite(values).sum()) - (column.null_count if nullable else 0)
    if wrong:
        raise RecordError(f"{path}: {wrong} values of column {name} are missing or not finite")
    return values
