r"""The passages that an agent can search: in memory, or in a file of which only what is asked for is read.

A corpus file has a JSON object a line, `{"id": "12", "contents": "\\"Title\\"\\ntext"}`, as Search-R1 and FlashRAG
publish them. The first line of `contents` is the title, with or without quotes; without a second line the text is
empty. Passages of one title are the page of that title, in the order of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from envs.base import EnvError, Progress, silent
from envs.deepsearch.cache import kept

REPORTED = 50_000
"""Lines between two reports of progress."""


class CorpusError(EnvError):
    """A corpus is missing, empty or malformed."""


@dataclass(frozen=True)
class Passage:
    """A piece of text that a search can find."""

    id: str
    title: str
    text: str

    @property
    def contents(self) -> str:
        """Title and text as corpus files hold them."""
        return f'"{self.title}"\n{self.text}'


class Corpus(Protocol):
    """Passages in a fixed order."""

    @property
    def digest(self) -> str:
        """SHA-256 of all ids and contents."""
        ...

    def __len__(self) -> int: ...

    def passages(self) -> Iterator[Passage]:
        """All, in order."""
        ...

    def passage(self, number: int) -> Passage:
        """The passage at a position."""
        ...

    def number_of(self, passage_id: str) -> int:
        """The position of a passage; `KeyError` where there is none of this id."""
        ...

    def titled(self, title: str) -> Sequence[int]:
        """Positions of a page's passages, in order; case, accents and white space do not matter unless two pages
        differ in nothing else.
        """
        ...

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record."""
        ...


def folded(title: str) -> str:
    """A title without what does not matter when it is looked up."""
    plain = unicodedata.normalize("NFKD", title)
    return " ".join("".join(c for c in plain if not unicodedata.combining(c)).casefold().split())


class MemoryCorpus:
    """A corpus that is held as it is."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = tuple(passages)
        if not self._passages:
            raise CorpusError("the corpus is empty, expected at least one passage")
        self._numbers: dict[str, int] = {}
        for number, passage in enumerate(self._passages):
            if self._numbers.setdefault(passage.id, number) != number:
                raise CorpusError(f"two passages have the id {passage.id!r}, expected each once")
        self._titles: dict[str, dict[str, list[int]]] = {}
        digest = hashlib.sha256()
        for number, passage in enumerate(self._passages):
            pages = self._titles.setdefault(folded(passage.title), {})
            pages.setdefault(passage.title, []).append(number)
            digest.update(_identity(passage))
        self.digest = digest.hexdigest()

    def __len__(self) -> int:
        return len(self._passages)

    def passages(self) -> Iterator[Passage]:
        """All, in order."""
        return iter(self._passages)

    def passage(self, number: int) -> Passage:
        """The passage at a position; `IndexError` where there is none."""
        if number < 0:
            raise IndexError(f"position {number}, expected 0 to {len(self) - 1}")
        return self._passages[number]

    def number_of(self, passage_id: str) -> int:
        """The position of a passage; `KeyError` where there is none of this id."""
        return self._numbers[passage_id]

    def titled(self, title: str) -> Sequence[int]:
        """Positions of a page's passages, in order."""
        pages = self._titles.get(folded(title), {})
        return pages.get(title) or next(iter(pages.values()), [])

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record."""
        return {"passages": len(self), "sha256": self.digest}


def _identity(passage: Passage) -> bytes:
    return json.dumps([passage.id, passage.title, passage.text], ensure_ascii=False).encode() + b"\n"


def parse_passage(line: bytes, where: str) -> Passage:
    """A line of a corpus file; `CorpusError` says where it is wrong."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{where}: not JSON: {error}") from None
    return passage_of(row, where)


def passage_of(row: Any, where: str) -> Passage:
    """A passage from `{"id", "contents"}`; `CorpusError` says where it is wrong."""
    if not isinstance(row, Mapping) or not isinstance(row.get("contents"), str):
        found = sorted(row) if isinstance(row, Mapping) else type(row).__name__
        raise CorpusError(f"{where}: found {found}, expected the keys id and contents")
    if not isinstance(row.get("id"), str | int) or isinstance(row["id"], bool):
        raise CorpusError(f"{where}: id is {row.get('id')!r}, expected a string or a whole number")
    if not _encodable(str(row["id"])) or not _encodable(row["contents"]):
        raise CorpusError(f"{where}: half of a surrogate pair in id or contents, expected valid Unicode")
    title, _, text = row["contents"].partition("\n")
    title = title.strip()
    if len(title) > 1 and title[0] == title[-1] == '"':
        title = title[1:-1]
    return Passage(str(row["id"]), title, text.strip())


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Offsets:
    """Where everything stands in a corpus file."""

    lines: NDArray[np.int64]
    """`[passages + 1]` where each line begins, and the end of the last."""
    ids: NDArray[np.uint64]
    """`[passages]` hashes of the ids, sorted."""
    id_numbers: NDArray[np.int32]
    """`[passages]` the position that each of `ids` belongs to."""
    titles: NDArray[np.uint64]
    """`[passages]` hashes of the folded titles, sorted; equal ones by position."""
    title_numbers: NDArray[np.int32]
    """`[passages]` the position that each of `titles` belongs to."""


class FileCorpus:
    """A corpus in a file: positions are kept, in the cache where there is one, and passages are read when asked for.

    A passage costs 32 bytes of memory-mapped positions, whatever its length.
    """

    def __init__(self, path: Path, cache: Path | None = None, progress: Progress = silent) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                stat = os.fstat(file.fileno())
        except OSError as error:
            raise CorpusError(
                f"{path}: cannot be read: {error.strerror}, expected a corpus of JSON lines"
            ) from None
        self._offsets, self.digest = _offsets(path, stat, cache, progress)
        self._data: NDArray[np.uint8] = np.memmap(path, mode="r")

    def __len__(self) -> int:
        return len(self._offsets.ids)

    def passages(self) -> Iterator[Passage]:
        """All, in order."""
        return (self.passage(number) for number in range(len(self)))

    def passage(self, number: int) -> Passage:
        """The passage at a position; `IndexError` where there is none."""
        if not 0 <= number < len(self):
            raise IndexError(f"position {number}, expected 0 to {len(self) - 1}")
        start, end = self._offsets.lines[number : number + 2]
        return parse_passage(self._data[start:end].tobytes(), f"{self.path}: line {number + 1}")

    def number_of(self, passage_id: str) -> int:
        """The position of a passage; `KeyError` where there is none of this id."""
        for number in _found(self._offsets.ids, self._offsets.id_numbers, passage_id):
            if self.passage(number).id == passage_id:
                return number
        raise KeyError(passage_id)

    def titled(self, title: str) -> Sequence[int]:
        """Positions of a page's passages, in order."""
        pages: dict[str, list[int]] = {}
        for number in _found(self._offsets.titles, self._offsets.title_numbers, folded(title)):
            own = self.passage(number).title
            if folded(own) == folded(title):
                pages.setdefault(own, []).append(number)
        return pages.get(title) or next(iter(pages.values()), [])

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record."""
        return {"file": self.path.name, "passages": len(self), "sha256": self.digest}


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _found(hashes: NDArray[np.uint64], numbers: NDArray[np.int32], text: str) -> list[int]:
    wanted = np.uint64(_hashed(text))
    span = slice(np.searchsorted(hashes, wanted, "left"), np.searchsorted(hashes, wanted, "right"))
    return [int(number) for number in numbers[span]]


_ARRAYS = ("lines", "ids", "id_numbers", "titles", "title_numbers")
_FORMAT = 1


def _offsets(path: Path, stat: os.stat_result, cache: Path | None, progress: Progress) -> tuple[Offsets, str]:
    """Positions and digest, from the cache where the file has not changed since."""
    key = {"format": _FORMAT, "path": str(path.resolve()), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    if cache is None:
        return _scan(path, stat.st_size, progress)

    def fill(folder: Path) -> dict[str, Any]:
        offsets, digest = _scan(path, stat.st_size, progress)
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(offsets, name))
        return {"digest": digest, "passages": len(offsets.ids)}

    folder, manifest = kept(cache, "corpus", key, fill)
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}
    return Offsets(**arrays), str(manifest["digest"])


def _scan(path: Path, size: int, progress: Progress) -> tuple[Offsets, str]:
    lines, ids, titles, digest = [0], list[int](), list[int](), hashlib.sha256()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                raise CorpusError(f"{path}: line {number} is empty, expected a JSON object")
            passage = parse_passage(line, f"{path}: line {number}")
            lines.append(lines[-1] + len(line))
            ids.append(_hashed(passage.id))
            titles.append(_hashed(folded(passage.title)))
            digest.update(_identity(passage))
            if number % REPORTED == 0:
                progress("reading passages", lines[-1], size)
    if not ids:
        raise CorpusError(f"{path}: no passages, expected a JSON object a line")
    of_id, of_title = (np.array(found, dtype=np.uint64) for found in (ids, titles))
    by_id, by_title = (np.argsort(found, kind="stable") for found in (of_id, of_title))
    found = Offsets(
        np.array(lines), of_id[by_id], by_id.astype(np.int32), of_title[by_title], by_title.astype(np.int32)
    )
    _check_unique(path, found)
    return found, digest.hexdigest()


def _check_unique(path: Path, offsets: Offsets) -> None:
    """Equal hashes are told apart by the ids themselves."""
    data: NDArray[np.uint8] = np.memmap(path, mode="r")
    alike: dict[str, int] = {}  # ids of one hash
    for place in np.flatnonzero(offsets.ids[1:] == offsets.ids[:-1]):
        if not place or offsets.ids[place - 1] != offsets.ids[place]:
            alike = {}
        for number in map(int, offsets.id_numbers[place : place + 2]):
            line = data[offsets.lines[number] : offsets.lines[number + 1]].tobytes()
            own = parse_passage(line, str(path)).id
            if alike.setdefault(own, number) != number:
                raise CorpusError(
                    f"{path}: lines {alike[own] + 1} and {number + 1} have the id {own!r}, expected each once"
                )
