"""The rows that the runs of one variant recorded of a kind, column by column, and which runs recorded none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.reporting.figures.arms import Arm
from benchmarks.reporting.load import Run
from benchmarks.reporting.stats import Array

Piece = Mapping[str, Array]
"""Columns of one run, all equally long."""


@dataclass(frozen=True)
class Rows:
    """Rows of one kind of a variant, in the order of its runs."""

    arm: Arm
    pieces: Sequence[Piece | None]
    """One for each run of the variant; None where it recorded nothing of the kind."""

    @property
    def seeds(self) -> int:
        """How many runs recorded something."""
        return sum(piece is not None for piece in self.pieces)

    @property
    def lacking(self) -> list[Run]:
        """The runs that recorded nothing."""
        return [run for run, piece in zip(self.arm.runs, self.pieces, strict=True) if piece is None]

    def measured(self, name: str) -> Rows:
        """A run whose column has no number recorded nothing of the kind."""
        known = [piece is not None and bool(np.isfinite(piece[name]).any()) for piece in self.pieces]
        return Rows(
            self.arm, [piece if there else None for piece, there in zip(self.pieces, known, strict=True)]
        )

    def column(self, name: str) -> Array:
        """All values, run after run."""
        return np.concatenate([np.empty(0), *(piece[name] for piece in self.pieces if piece is not None)])

    def run_of_row(self) -> NDArray[np.int64]:
        """For each row, the place of its run among those of the variant."""
        sizes = [0 if piece is None else len(next(iter(piece.values()))) for piece in self.pieces]
        return np.repeat(np.arange(len(sizes)), sizes)


def rows_of(arm: Arm, file: Callable[[Run], Path], load: Callable[[Path], Piece]) -> Rows:
    """What `load` finds in the file of each run; without the file, or with no row in it, nothing was recorded."""
    found = [load(path) if (path := file(run)).exists() else {} for run in arm.runs]
    return Rows(arm, [piece if any(map(len, piece.values())) else None for piece in found])
