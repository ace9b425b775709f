"""The files of the page: the lens data first, one by one, and `index.html` last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.reporting.load import Suite
from benchmarks.reporting.page import lens
from benchmarks.reporting.page.document import render
from benchmarks.reporting.tables import Table

PAGE = "index.html"


def build(
    suite: Suite,
    tables: Sequence[Table],
    figures: Mapping[str, bytes],
    facts: Mapping[str, str],
) -> Iterator[tuple[str, bytes]]:
    """Every file of the page as (path below the report's folder, content), to be written as they come.

    `figures`: PNG, SVG and CSV files by name, which lie beside the page; those of one stem are one figure, and
    title and caption are what its SVG says of itself. `facts`: where the numbers come from, a line each.
    The same records give the same files. Raises `RecordError`.
    """
    yield from lens.files(suite)
    yield PAGE, render(suite, tables, figures, facts).encode()
