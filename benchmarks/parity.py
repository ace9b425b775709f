"""Recorded transcripts of the official environment against ours: how much is equal, and the first difference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.config import ConfigError
from benchmarks.launch import printable
from benchmarks.prepare import one_line
from benchmarks.progress import Status, display
from envs.webshop.catalogue import KINDS, DataError
from envs.webshop.parity import REPLAYS, Check, check_rows, golden_file, open_official, read_rows

SHOWN, BEFORE = 200, 60
"""Characters of a differing value that are shown, and how many of them stand before the difference."""


@dataclass(frozen=True)
class Outcome:
    """What the replay of one golden file gave."""

    name: str
    equal: int
    total: int
    first: Check | None
    """The first difference."""


def data_of(golden: Path) -> Path:
    """Where the official files of a golden folder are looked for: in it, else in the folder above."""
    return golden if any(golden.glob(KINDS["products"])) else golden.resolve().parent


def replay_webshop(golden: Path, data: Path, console: Console) -> tuple[Outcome, ...]:
    """Replay every file of a golden folder on the official files in `data`, and print how much is equal.

    Raises `ConfigError` when a file is missing or malformed, or when the folder has no golden file.
    """
    names = [name for name in REPLAYS if golden_file(golden, name).is_file()]
    if not names:
        wanted = ", ".join(f"{name}.jsonl.gz" for name in REPLAYS)
        raise ConfigError(f"golden: no transcript in {golden}, expected at least one of {wanted}")
    outcomes = []
    try:
        with display(console) as shown:
            official = open_official(data, golden)
            for name in names:
                rows, checks = read_rows(golden, name), list[Check]()
                for number, row in enumerate(rows):
                    checks += check_rows(name, official, row, number)
                    shown.update("parity", Status(name, number + 1, len(rows)))
                wrong = [check for check in checks if check.differing]
                outcomes.append(
                    Outcome(name, len(checks) - len(wrong), len(checks), wrong[0] if wrong else None)
                )
    except (DataError, OSError) as error:
        raise ConfigError(one_line(error)) from error
    console.print(outcome_table(outcomes))
    for outcome in outcomes:
        for line in first_difference(outcome):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    absent = [name for name in REPLAYS if name not in names]
    if absent:
        console.print(f"not in the folder: {', '.join(absent)}", markup=False, highlight=False)
    return tuple(outcomes)


def outcome_table(outcomes: list[Outcome]) -> Table:
    """A row for each file."""
    table = Table("file", box=SIMPLE_HEAD, show_edge=False)
    for column in ("equal", "of"):
        table.add_column(column, justify="right")
    for outcome in outcomes:
        table.add_row(escape(outcome.name), f"{outcome.equal:,}", f"{outcome.total:,}")
    return table


def first_difference(outcome: Outcome) -> list[str]:
    """Lines that show where a file first differs, and how; none where it does not."""
    check = outcome.first
    if check is None:
        return []
    lines = [f"{outcome.name}: first difference at {printable(check.where)}"]
    for part in check.differing:
        # ASCII cannot steer a terminal
        expected, found = (ascii(side.get(part, "nothing")) for side in (check.expected, check.found))
        same = next((n for n, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b), 0)
        start = max(0, same - BEFORE)
        lines.append(f"  {part} expected: {excerpt(expected, start)}")
        lines.append(f"  {part} found:    {excerpt(found, start)}")
    return lines


def excerpt(text: str, start: int) -> str:
    """What a reader can use of a long text."""
    end = start + SHOWN
    return ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")
