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
    """The folder for these settings and its manifest; `fill` writes it where it is not there yet.

    `fill` gets an empty folder and returns what the manifest says beside the settings. Of two processes that fill it
    at once, the first one wins and both go on.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    folder = cache / "deepsearch" / f"{kind}-{digest[:16]}"
    manifest = folder / MANIFEST
    if not manifest.is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            said = fill(draft)
            (draft / MANIFEST).write_text(json.dumps({**settings, **said}, indent=1), encoding="utf-8")
            draft.rename(folder)
        except OSError:
            if not manifest.is_file():
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    read: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
    return folder, read
