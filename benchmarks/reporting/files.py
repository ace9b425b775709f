"""The files of a report on disk: each whole or not at all, and none of an earlier report left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath

from benchmarks import records
from benchmarks.reporting.places import RUNS
from benchmarks.reporting.schema import Record, parse, read

MANIFEST = "files.json"
JOURNAL = ".writing"


class _Manifest(Record):
    files: tuple[str, ...]


def write_report_files(
    folder: Path,
    contents: Mapping[str, bytes],
    *,
    streamed: Iterable[tuple[str, bytes]] = (),
    keep: Iterable[str] = (),
) -> tuple[Path, ...]:
    """Write files, named by their path below `folder`, and remove those of an earlier report that are not among them.

    streamed: what is too large to hold at once; it is written first, since making it may fail. keep: files of an
    earlier report that stay although they are not written. What no report wrote stays too, and nothing below `runs`
    is touched. Raises `ValueError` for a name that leads elsewhere.
    """
    for name in contents:
        _check(name)
    old = written_before(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, None] = {}
    with (folder / JOURNAL).open("a", encoding="utf-8") as journal:
        for name, content in chain(streamed, contents.items()):
            _check(name)
            journal.write(f"{json.dumps(name)}\n")  # first, so that a kill leaves no file that nobody knows
            journal.flush()
            write_whole(folder / name, content)
            written[name] = None
    names = {*written, *(old & set(keep))}
    for name in old - names:
        _remove(folder, name)
    records.write_json(folder / MANIFEST, {"files": sorted(names)})
    (folder / JOURNAL).unlink()
    return tuple(folder / name for name in written)


def written_before(folder: Path) -> frozenset[str]:
    """The files that earlier reports left in a folder; `RecordError` when their list is unreadable."""
    path, journal = folder / MANIFEST, folder / JOURNAL
    found = set(parse(_Manifest, read(path), str(path)).files) if path.exists() else set[str]()
    if journal.exists():  # a report that was killed
        *lines, _unfinished = read(journal).split(b"\n")
        found |= {str(json.loads(line)) for line in lines}
    return frozenset(filter(_belongs, found))


def write_whole(path: Path, content: bytes) -> None:
    """A file with this content, or the old one: never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_bytes(content)
    os.replace(draft, path)


def _remove(folder: Path, name: str) -> None:
    """A file, and the folders that are empty without it."""
    path = folder / name
    path.unlink(missing_ok=True)
    for parent in path.parents:
        if parent == folder or not parent.is_dir() or any(parent.iterdir()):
            return
        parent.rmdir()


def _check(name: str) -> None:
    if not _belongs(name):
        raise ValueError(f"a report's file named {name!r}; expected a path within its folder, not in {RUNS}")


def _belongs(name: str) -> bool:
    """Whether a name is a path below the report's folder that is a report's to write."""
    path = PurePosixPath(name)
    return (
        bool(path.parts)
        and not path.is_absolute()
        and str(path) == name
        and not any(part.startswith(".") or "\\" in part or "\0" in part for part in path.parts)
        and path.parts[0] != RUNS
        and name != MANIFEST
    )
