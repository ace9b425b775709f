"""What measurements share: processes of their own, what a process holds, and how a figure is written."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_STATUS = Path("/proc/self/status")


def run_apart(
    module: str, arguments: Sequence[str], what: str, environment: Mapping[str, str] | None = None
) -> Any:
    """What `python -m module arguments` prints as JSON: memory that a process used once may stay with it.

    environment: variables beside those of this process. Raises `RuntimeError`, which says `what` failed and the
    child's last words.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{what} ended with {done.returncode}: {last}")
    return json.loads(done.stdout)


def peak_bytes() -> int:
    """Most memory this process has held.

    Linux's own counter for this program is preferred to `ru_maxrss`, which a child inherits from its parent.
    """
    if held := _held():
        return held["VmHWM"]
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def resident_bytes() -> int | None:
    """Memory of this process now; None where the system does not say."""
    held = _held()
    return held["VmRSS"] if held else None


def anonymous_bytes() -> int | None:
    """Memory of this process now that is no mapped file; None where the system does not say."""
    return _held().get("RssAnon")


def _held() -> dict[str, int]:
    """What Linux says of this process's memory, in bytes; empty elsewhere."""
    if not _STATUS.exists():
        return {}
    parts = (line.split() for line in _STATUS.read_text().splitlines())
    return {part[0].rstrip(":"): int(part[1]) * 1024 for part in parts if part[-1:] == ["kB"]}


def figure(value: float) -> str:
    """Three significant digits without exponents."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
