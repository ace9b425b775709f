"""The page of a suite: `index.html`, and beside it the data of the credit lens. Opens from disk, needs no network."""

from benchmarks.reporting.page.build import build

__all__ = ["build"]
