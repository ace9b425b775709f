"""Runs of the tiny suite in each of several processes: one that completes, then one in which the second one fails.

`python -m tests.benchmarks.parallel_runs SUITE RESULTS`, under a launcher.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import benchmarks.run
from benchmarks.processes import joined, play
from benchmarks.run import execute
from tests.benchmarks.tiny import planned

FAILS_IN = 1
"""The iteration that the second process does not get through."""


def main(suite: Path, results: Path) -> None:
    with joined("fsdp2") as team:
        execute(planned(suite, results / "whole"), results / "cache", processes=team)
        calls = 0

        def failing(*given: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > FAILS_IN and not team.is_main:
                raise RuntimeError("the second process gives up")
            return play(*given, **named)

        vars(benchmarks.run)["play"] = failing
        execute(planned(suite, results / "broken"), results / "cache", processes=team)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
