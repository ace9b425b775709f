"""Folders of prepared data: named by all that decides their content, and there whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"


def kept(
    cache: Path, kind: str, settings: Mapping[str, Any], fill: Callable[[Path], Mapping[str, Any]]
) -> tuple[Path, dict[str, Any]]:
    """The folder for these settings and its manifest; `fill` writes it where it is not there yet, or not whole.

    `fill` gets an empty folder and returns what the manifest says beside the settings. Of two processes that fill it
    at once, the first one wins and both go on.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    folder = cache / "deepsearch" / f"{kind}-{digest[:16]}"
    if _whole(folder) is None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            said = fill(draft)
            sizes = {path.name: path.stat().st_size for path in draft.iterdir()}
            manifest = json.dumps({**settings, **said, "files": sizes}, indent=1)
            (draft / MANIFEST).write_text(manifest, encoding="utf-8")
            if folder.exists() and _whole(folder) is None:
                damaged = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
                folder.rename(damaged)
                shutil.rmtree(damaged, ignore_errors=True)
            draft.rename(folder)
        except OSError:
            if _whole(folder) is None:
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    read = _whole(folder)
    assert read is not None
    return folder, read


def _whole(folder: Path) -> dict[str, Any] | None:
    """The manifest, where all files are as long as it says."""
    try:
        read: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        sizes = {name: (folder / name).stat().st_size for name in read["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return read if sizes == read["files"] else None
