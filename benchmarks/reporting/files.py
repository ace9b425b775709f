"""The files of a report on disk: each whole or not at all, and none of an earlier report left behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path, PurePosixPath

from benchmarks import records
from benchmarks.reporting.places import RUNS
from benchmarks.reporting.schema import Record, parse, read

MANIFEST = "files.json"


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

    streamed: further files, too large to be held together; when making one fails, nothing has been changed.
    keep: files of an earlier report that stay although they are not written. What no report wrote stays too, and
    nothing below `runs` is touched. Raises `ValueError` for a name that leads elsewhere.
    """
    old = written_before(folder)
    with _drafts(folder) as drafts:
        written = []
        for name, content in chain(contents.items(), streamed):
            _write_draft(drafts, name, content)
            written.append(name)
        names = {*written, *(old & set(keep))}
        folder.mkdir(parents=True, exist_ok=True)
        _write_manifest(
            folder, old | names
        )  # so that a kill leaves no file that the next report does not know
        for name in written:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(drafts / name, folder / name)
    for name in old - names:
        _remove(folder, name)
    _write_manifest(folder, names)
    return tuple(folder / name for name in written)


@contextmanager
def _drafts(folder: Path) -> Iterator[Path]:
    """A folder beside `folder`, on the same disk, that is gone afterwards; what a kill left there goes first."""
    place = folder.resolve()
    drafts = place.with_name(f".{place.name}.drafts")
    shutil.rmtree(drafts, ignore_errors=True)
    try:
        yield drafts
    finally:
        shutil.rmtree(drafts, ignore_errors=True)


def _write_draft(drafts: Path, name: str, content: bytes) -> None:
    if not _belongs(name):
        raise ValueError(f"a report's file named {name!r}; expected a path within its folder, not in {RUNS}")
    path = drafts / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def written_before(folder: Path) -> frozenset[str]:
    """The files that earlier reports left in a folder; `RecordError` when their list is unreadable."""
    path = folder / MANIFEST
    if not path.exists():
        return frozenset()
    return frozenset(filter(_belongs, parse(_Manifest, read(path), str(path)).files))


def write_whole(path: Path, content: bytes) -> None:
    """A file with this content, or the old one: never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_bytes(content)
    os.replace(draft, path)


def _write_manifest(folder: Path, names: Iterable[str]) -> None:
    records.write_json(folder / MANIFEST, {"files": sorted(names)})


def _remove(folder: Path, name: str) -> None:
    """A file, and the folders that are empty without it."""
    path = folder / name
    path.unlink(missing_ok=True)
    for parent in path.parents:
        if parent == folder or not parent.is_dir() or any(parent.iterdir()):
            return
        parent.rmdir()


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
