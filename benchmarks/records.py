"""Files of a run that are whole or not there: whatever a kill leaves behind can be read again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Row = Mapping[str, Any]

IDENTITY = ("config", "world", "panels", "policy", "prompt")
"""The keys of `run.json` whose digest it states: what decides a run's numbers."""
RECORDED_VERSIONS = (
    "empg-bench", "torch", "transformers", "tokenizers", "numpy", "gymnasium", "PyStemmer",
    "rapidfuzz", "spacy",
)  # fmt: skip


def dumps(value: Any) -> str:
    """One line of strict JSON with sorted keys; the same value always gives the same text.

    Raises `ValueError` for NaN and infinities, which JSON cannot hold.
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, independent of the order of its keys."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write whole or not at all: a killed process leaves the old file, never half of the new one."""
    draft = _draft(path)
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def write_json(path: Path, value: Row) -> None:
    """A JSON object, indented for people, written atomically."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; raises `ValueError` naming the file when it holds something else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds a {type(value).__name__}, expected an object")
    return value


def write_jsonl(path: Path, rows: Iterable[Row]) -> None:
    """All rows of a JSON Lines file at once, atomically."""
    write_text(path, "".join(dumps(row) + "\n" for row in rows))


def append_jsonl(path: Path, rows: Iterable[Row]) -> None:
    """Add rows; a line that an earlier kill left unfinished is cut off first."""
    drop_partial_line(path)
    with path.open("ab") as file:
        file.write("".join(dumps(row) + "\n" for row in rows).encode())


def safe_name(name: str, most: int | None = None) -> str:
    """A name as part of a path, its last `most` characters: nothing that a shell, a path or a terminal reads as more.

    Empty where nothing of it is left.
    """
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", name)
    return (plain if most is None else plain[-most:]).strip("-.")


def drop_partial_line(path: Path) -> None:
    """Cut off what follows the last newline: the rest of a write that was killed."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole != len(content):
            file.truncate(whole)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The complete rows of a file, none where it is absent; an unfinished last line is not a row."""
    if not path.exists():
        return []
    *lines, _unfinished = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines]


def keep_rows(path: Path, keep: Callable[[dict[str, Any]], bool]) -> None:
    """Keep some rows of a file, byte for byte; does nothing where it is absent."""
    if not path.exists():
        return
    *lines, _unfinished = path.read_bytes().split(b"\n")
    kept = [line.decode() + "\n" for line in lines if keep(json.loads(line))]
    write_text(path, "".join(kept))


def write_parquet(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """A table of equally long columns, written atomically; one of None alone holds missing numbers."""
    _replace_table(path, _typed(pa.table(dict(columns))))


def write_part(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Part of a table for `join_parquet`: a column of None alone takes its type from the other parts."""
    _replace_table(path, pa.table(dict(columns)))


def join_parquet(parts: Sequence[Path], path: Path) -> None:
    """Stack parts with the same columns into one table, in the given order."""
    tables = [pq.read_table(part) for part in parts]
    _replace_table(path, _typed(pa.concat_tables(tables, promote_options="default")))


def _typed(table: Any) -> Any:
    """Columns without any value as missing numbers."""
    for place, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.float64()))
    return table


def _replace_table(path: Path, table: Any) -> None:
    draft = _draft(path)
    pq.write_table(table, draft)
    os.replace(draft, path)


def _draft(path: Path) -> Path:
    """Beside the file, so the rename stays on one disk; the next write takes over what a kill left here."""
    return path.with_name(f".{path.name}.tmp")


def provenance(root: Path) -> dict[str, Any]:
    """Where numbers come from: commit and its state, versions, machine, time. `root` is the checkout.

    Reports are written into the checkout's `results`, so what stands there says nothing about the code.
    """
    status = _git(root, "status", "--porcelain", "--", ".", ":(exclude)results")
    return {
        "commit": _git(root, "rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
        "versions": {"python": platform.python_version()} | _versions(),
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _git(root: Path, *command: str) -> str | None:
    """What git answers, or None outside a checkout or without git."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), *command],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _versions() -> dict[str, str]:
    found = {}
    for name in RECORDED_VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
