"""Folders of files that are made once, whole or not at all, and shared by processes that only read them.

A folder is filled beside its place and moved there when its manifest, written last, says what it holds. What
does not fit its manifest is made again, with a warning that says why.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

Facts = Mapping[str, Any]

MANIFEST = "manifest.json"
FORMAT = 1
"""Of everything in sealed folders; to be raised when what is written, or how it is worked out, changes."""
PROBES, PROBE = 64, 4096
"""How many blocks of a file its fingerprint reads, and their size in bytes."""


def obtain(folder: Path, origin: Facts, write: Callable[[Path], Facts]) -> dict[str, Any]:
    """What the manifest of a finished folder says of its content, after making the folder where need be.

    origin: what the content is made from, as JSON. write: fills an empty folder and returns what to say of it.
    One process writes at a time; the others wait for it. Raises what `write` raises, and leaves nothing then.
    """
    if (facts := _facts_if_sound(folder, origin)) is not None:
        return facts
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _only_writer(folder):
        if (facts := _facts_if_sound(folder, origin)) is not None:
            return facts
        for left in folder.parent.glob(f".{folder.name}.*.draft"):  # a killed process's: the lock was free
            shutil.rmtree(left)
        if folder.exists():
            log.warning("%s: %s; making it again", folder, problem(folder, origin))
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".draft", dir=folder.parent))
        draft.chmod(0o755)
        log.info("making %s", folder)
        try:
            facts = dict(write(draft))
            seal(draft, origin, facts)
            if folder.exists():
                os.replace(folder, draft / "replaced")
            os.replace(draft, folder)
            shutil.rmtree(folder / "replaced", ignore_errors=True)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return facts


def seal(folder: Path, origin: Facts, facts: Facts) -> None:
    """Write the manifest of a folder that is filled."""
    files = {path.name: fingerprint(path) for path in sorted(folder.iterdir())}
    manifest = {"format": FORMAT, "origin": origin, "facts": facts, "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")


def problem(folder: Path, origin: Facts) -> str | None:
    """Why a folder is not the finished content of `origin`; None where it is."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if (made := manifest["format"]) != FORMAT:
            return f"its format is {made}, expected {FORMAT}"
        if manifest["origin"] != origin:
            return "it was made from other data or by other versions"
        for name, print_ in manifest["files"].items():
            if not (folder / name).is_file():
                return f"{name} is missing"
            if fingerprint(folder / name) != print_:
                return f"{name} is not the file that was written"
    except FileNotFoundError:
        return "it has no manifest"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"its manifest cannot be read: {error}"
    return None


def fingerprint(path: Path) -> dict[str, Any]:
    """Size of a file, and SHA-256 over blocks spread evenly over it: quick for files of any size.

    It tells truncated and foreign files, not single wrong bits within a large file.
    """
    size, total = path.stat().st_size, hashlib.sha256()
    with path.open("rb") as file:
        for probe in range(PROBES):
            file.seek(max(0, size - PROBE) * probe // (PROBES - 1))
            total.update(file.read(PROBE))
    return {"bytes": size, "probes": total.hexdigest()}


def sha256(path: Path, on_bytes: Callable[[int], None] = lambda count: None) -> str:
    """SHA-256 of a whole file; `on_bytes` hears how many bytes were read."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            total.update(data)
            on_bytes(len(data))
    return total.hexdigest()


def _facts_if_sound(folder: Path, origin: Facts) -> dict[str, Any] | None:
    if problem(folder, origin) is not None:
        return None
    facts: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["facts"]
    return facts


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Wait until no other process writes this folder; the system lifts the lock of one that is killed."""
    with (folder.parent / f".{folder.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("waiting for another process, which is making %s", folder)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
