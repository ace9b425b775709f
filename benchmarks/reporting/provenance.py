"""Where the numbers of a report come from, and what is missing or went wrong, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.reporting.load import Run, Suite
from benchmarks.reporting.schema import EVALUATED_SPLIT
from benchmarks.reporting.tables import one_line

SHOWN_ERRORS = 5
_HASH = re.compile(r"[0-9a-f]{40,}")


def provenance(suite: Suite) -> dict[str, str]:
    """Model, data, panel, training length, code and machine, then what is missing or went wrong."""
    infos = [run.info for run in suite.runs] or list(suite.incomplete)
    panel = infos[0].panels.get(EVALUATED_SPLIT)
    trained = sorted({run.iterations for run in suite.runs if run.info.kind == "train"})
    facts = {
        "model": _distinct(_flat(info.policy) for info in infos if info.policy),
        "data": _flat(infos[0].world),
        "test panel": "none" if panel is None else f"{suite.panel}, sha256 {panel.digest[:12]}",
        "scale": infos[0].scale,
        "training": f"{', '.join(map(str, trained)) or 'no'} iterations; the {suite.judged} is evaluated",
        "seeds": ", ".join(map(str, suite.planned_seeds)) or "none",
        "code": _distinct(
            f"commit {(info.commit or 'unknown')[:12]}{' with uncommitted changes' if info.dirty else ''}"
            for info in infos
        ),
        "hardware": _distinct(
            ", ".join(part for part in (_flat(info.device), _flat(info.machine)) if part) for info in infos
        ),
    }
    missing = [f"{info.run} (started, not complete)" for info in suite.incomplete]
    missing += [f"{name} (no run.json)" for name in suite.strangers]
    if missing:
        facts["left out"] = "; ".join(missing)
    if service := sum((Counter(run.service) for run in suite.runs), Counter[str]()):
        facts["servers"] = _flat(dict(service))
    if errors := _errors(suite.runs):
        facts["errors"] = errors
    return facts


def _errors(runs: Sequence[Run]) -> str:
    """The most frequent environment failures with their counts."""
    counted = Counter(
        error for run in runs for found in run.evaluations.values() for _, error in found.errors
    )
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{count} × {one_line(error)[:200]}" for error, count in ranked[:SHOWN_ERRORS]]
    if len(ranked) > SHOWN_ERRORS:
        shown.append(f"{len(ranked) - SHOWN_ERRORS} further kinds")
    return "; ".join(shown)


def _distinct(values: Iterator[str]) -> str:
    return "; ".join(dict.fromkeys(values)) or "not recorded"


def _flat(value: Any, name: str = "") -> str:
    """A record's facts on one line: `products 1000, search.name bm25`; hashes are cut to twelve digits."""
    if isinstance(value, Mapping):
        parts = (_flat(value[key], f"{name}.{key}" if name else str(key)) for key in sorted(value))
        return ", ".join(part for part in parts if part)
    if value is None:
        return ""
    shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    if _HASH.fullmatch(shown):
        shown = shown[:12]
    return f"{name} {shown}".strip()
