"""The page of a suite: `index.html`, and beside it the data of the credit lens. Opens from disk, needs no network."""

from benchmarks.reporting.page.build import build
from benchmarks.reporting.page.lens import of_lens, recorded

__all__ = ["build", "of_lens", "recorded"]
