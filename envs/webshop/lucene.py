"""The official search engine itself: a Lucene index through pyserini, which needs Java (extra `lucene`).

The built-in search gives the official order without either, so this is for those who want to see the official
engine at work on an index that they made by the official steps. It could not be run where this project is
tested: its errors and its handling of hits are tested with a stand-in for pyserini's searcher.
"""

from __future__ import annotations

import importlib
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from envs.base import EnvError
from envs.webshop.catalogue import AnyCatalogue, DataError, Product
from envs.webshop.search import RESULTS

FOLDER = "indexes"
"""Where the index lies in a folder of official files."""
_MADE_BY = "convert_product_file_format.py, then run_indexing.sh, in search_engine of princeton-nlp/WebShop"


class Searcher(Protocol):
    """What is used of pyserini's `LuceneSearcher`."""

    num_docs: int

    def search(self, query: str, k: int) -> list[Any]:
        """The best `k` hits, best first; each has the asin as its `docid`."""
        ...


def open_searcher(data: Path | None) -> Searcher:
    """The Lucene index in a folder of official files.

    Raises `DataError`: no folder of official files, no index in it, no pyserini, or no Java that it can use.
    """
    if data is None:
        raise DataError(
            "search 'lucene' needs a folder of official files, but the shop is generated; use 'bm25'"
        )
    folder = data / FOLDER
    if not any(folder.glob("segments_*")):
        raise DataError(
            f"{folder}: no Lucene index, expected one made by {_MADE_BY}; search 'bm25' needs none"
        )
    try:
        found: Searcher = importlib.import_module("pyserini.search.lucene").LuceneSearcher(str(folder))
    except ImportError as error:
        raise DataError(
            f"search 'lucene' needs pyserini ({error}): pip install 'empg-bench[lucene]'; search 'bm25' needs none"
        ) from error
    except Exception as error:  # pyjnius raises classes of its own, which exist only once Java was found
        raise DataError(f"{folder}: pyserini cannot open it: {' '.join(str(error).split())}") from error
    return found


class LuceneSearch:
    """The products of a catalogue as a Lucene index ranks them."""

    def __init__(self, catalogue: AnyCatalogue, searcher: Searcher) -> None:
        """Raises `DataError` when the index is not of this catalogue."""
        if searcher.num_docs != len(catalogue):
            raise DataError(
                f"{catalogue.source}: the Lucene index has {searcher.num_docs} documents, "
                f"expected one for each of {len(catalogue)} products"
            )
        self._by_asin = catalogue.by_asin
        self._searcher = searcher

    def search(self, query: str) -> tuple[Product, ...]:
        """The best products, best first, at most 50; `EnvError` where the engine fails, as for 1,025 terms."""
        try:
            hits = self._searcher.search(query, k=RESULTS)
            return tuple(self._by_asin[hit.docid] for hit in hits)
        except KeyError as error:
            raise EnvError(
                f"the Lucene index found product {error}, which the catalogue does not have"
            ) from error
        except Exception as error:  # Java's exceptions, whose classes pyjnius makes on the fly
            raise EnvError(
                f"Lucene could not search {query[:80]!r}: {' '.join(str(error).split())}"
            ) from error

    def describe(self) -> str:
        """The engine in words, with its version."""
        try:
            return f"lucene (pyserini {metadata.version('pyserini')})"
        except metadata.PackageNotFoundError:
            return "lucene (pyserini of unknown version)"
