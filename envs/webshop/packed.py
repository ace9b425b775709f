"""Sequences and look-ups over files that every process maps and none holds: read on demand, never changed.

Many byte strings lie one after the other in a `.bin` file, with their offsets beside it; arrays are plain
`.npy` files. The system keeps the pages that are in use, once for all processes.
"""

from __future__ import annotations

import mmap
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class Lazy(Sequence[T], Generic[T]):
    """A sequence whose elements are made when they are asked for; a slice is a tuple."""

    def __init__(self, length: int, get: Callable[[int], T]) -> None:
        self._places = range(length)
        self._get = get

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...

    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            return tuple(self._get(one) for one in self._places[place])
        return self._get(self._places[place])


def write_records(folder: Path, name: str, records: Iterable[bytes]) -> int:
    """Pack byte strings into `name.bin`; returns how many there were."""
    starts = array("q", [0])
    with (folder / f"{name}.bin").open("wb") as file:
        for record in records:
            file.write(record)
            starts.append(starts[-1] + len(record))
    write_array(folder, f"{name}.starts", np.frombuffer(starts, dtype=np.int64))
    return len(starts) - 1


def read_records(folder: Path, name: str) -> Lazy[bytes]:
    """The byte strings that `write_records` packed; `ValueError` where offsets and bytes do not fit."""
    starts, path = read_array(folder, f"{name}.starts"), folder / f"{name}.bin"
    size = path.stat().st_size
    if len(starts) == 0 or starts[-1] != size:
        raise ValueError(f"{path.name} has {size} bytes, which do not fit its offsets")
    if size == 0:  # an empty file cannot be mapped
        return Lazy(len(starts) - 1, lambda place: b"")
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return Lazy(len(starts) - 1, lambda place: mapped[starts[place] : starts[place + 1]])


def write_array(folder: Path, name: str, values: NDArray[Any]) -> None:
    """Save an array as `name.npy`."""
    np.save(folder / f"{name}.npy", values, allow_pickle=False)


def read_array(folder: Path, name: str) -> NDArray[Any]:
    """A mapped array; `ValueError` for a file that is none."""
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))


def encode(text: str) -> bytes:
    """UTF-8 that keeps the lone surrogates JSON can hold; sorts as the text does."""
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> str:
    """The text that was encoded."""
    return data.decode("utf-8", "surrogatepass")


class Names(Mapping[str, int]):
    """The number of each name, found by bisection among the sorted names of a file."""

    def __init__(self, folder: Path, name: str) -> None:
        self._sorted = read_records(folder, name)
        self.order: NDArray[np.int32] = read_array(folder, f"{name}.order")
        """`[names]` the numbers, in the order of the sorted names."""
        if len(self.order) != len(self._sorted):
            raise ValueError(f"{name}: {len(self._sorted)} names but {len(self.order)} numbers")

    @staticmethod
    def write(folder: Path, name: str, names: Sequence[str]) -> None:
        """Save distinct names; each one's number is its place in `names`."""
        order = sorted(range(len(names)), key=names.__getitem__)
        write_records(folder, name, (encode(names[place]) for place in order))
        write_array(folder, f"{name}.order", np.array(order, dtype=np.int32))

    def __getitem__(self, name: str) -> int:
        wanted = encode(name)
        place = bisect_left(self._sorted, wanted)
        if place == len(self._sorted) or self._sorted[place] != wanted:
            raise KeyError(name)
        return int(self.order[place])

    def __iter__(self) -> Iterator[str]:
        return map(decode, self._sorted)

    def __len__(self) -> int:
        return len(self._sorted)


class ByName(Mapping[str, T], Generic[T]):
    """The element with each name's number."""

    def __init__(self, names: Mapping[str, int], elements: Sequence[T]) -> None:
        self._names = names
        self._elements = elements

    def __getitem__(self, name: str) -> T:
        return self._elements[self._names[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
