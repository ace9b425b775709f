"""Keyword search: Lucene's BM25 over title, description, first bullet point and options of each product.

The numbers are Lucene's to the last bit that matters for the order: float32 weights, document lengths rounded
as in its one-byte norms, contributions summed in double and cut to float32, ties by asin. `bm25s` keeps exact
lengths, so its order differs from the official one; hence a small index of our own. Documents are indexed by
ascending asin, which makes a stable sort break ties rightly.
"""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from envs.webshop.analysis import analyse
from envs.webshop.catalogue import AnyCatalogue, DataError, Product

K1, B = 0.9, 0.4
RESULTS = 50
"""How many products a search returns at most."""
KEPT_QUERIES = 4096

SearchKind = Literal["bm25", "lucene"]


class Search(Protocol):
    """A search engine over one catalogue."""

    def search(self, query: str) -> Sequence[Product]:
        """The best products for a lower-cased query, best first, at most 50."""
        ...

    def describe(self) -> str:
        """The engine in words, for the run record."""
        ...


@dataclass(frozen=True, eq=False)
class Table:
    """Which documents hold which terms, with all of their scores that does not depend on the query."""

    documents: int
    terms: Mapping[str, int]
    """Number of each term."""
    starts: NDArray[np.int64]
    """`[terms + 1]` where each term's postings start."""
    idf: NDArray[np.float32]
    """`[terms]` weight by rarity."""
    docs: NDArray[np.int32]
    """`[postings]` document numbers."""
    damping: NDArray[np.float32]
    """`[postings]` 1 + how often the term stands in the document, against the document's length."""


class SearchIndex:
    """An immutable inverted index; the answers to recent queries are kept."""

    def __init__(self, catalogue: AnyCatalogue, table: Table | None = None) -> None:
        """`table` is that of `catalogue` where it was made before; `DataError` where it cannot be."""
        self.products = catalogue.sorted_by_asin()
        self._table = table or tabulate(self.products)
        if self._table.documents != len(catalogue):
            raise DataError(
                f"{catalogue.source}: the search index has {self._table.documents} documents, "
                f"expected one for each of {len(catalogue)} products"
            )
        self._answers: OrderedDict[str, tuple[int, ...]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.products)

    def search(self, query: str) -> tuple[Product, ...]:
        """The best products, best first, at most 50; only products that share a term with the query."""
        answer = self._answers.get(query)
        if answer is None:
            answer = tuple(doc for doc, _ in self.ranked(query))
            self._answers[query] = answer
            if len(self._answers) > KEPT_QUERIES:
                self._answers.popitem(last=False)
        return tuple(self.products[doc] for doc in answer)

    def describe(self) -> str:
        """The engine in words."""
        return f"bm25 (Lucene's, k1 {K1}, b {B})"

    def ranked(self, query: str) -> list[tuple[int, float]]:
        """Document numbers with their scores, best first."""
        table = self._table
        score = np.zeros(table.documents)  # [documents] float64
        for term, times in Counter(analyse(query)).items():
            number = table.terms.get(term)
            if number is not None:
                span = slice(table.starts[number], table.starts[number + 1])
                weight = np.float32(times) * table.idf[number]
                score[table.docs[span]] += weight - weight / table.damping[span]
        final = score.astype(np.float32)
        return [(int(doc), float(final[doc])) for doc in best(final, RESULTS)]


def best(score: NDArray[np.float32], wanted: int) -> NDArray[np.int64]:
    """Positions of the largest positive scores, largest first, equal ones by position."""
    found = np.flatnonzero(score)
    if len(found) > 4 * wanted:
        least = np.partition(score, len(score) - wanted)[len(score) - wanted]
        found = np.flatnonzero(score >= least) if least > 0 else found
    return found[np.argsort(-score[found], kind="stable")[:wanted]]


def document(product: Product) -> str:
    """The text that is indexed for a product; only the first bullet point counts, as officially."""
    options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in product.options)
    first = product.bullets[0] if product.bullets else ""
    return f"{product.title} {product.description} {first} {options}".lower()


def tabulate(products: Sequence[Product], on_document: Callable[[], None] = lambda: None) -> Table:
    """The table of the products' documents, which are numbered as they come."""
    terms: dict[str, int] = {}
    numbers, docs, counts = array("i"), array("i"), array("i")  # [postings] document by document
    lengths = np.zeros(len(products), dtype=np.int64)
    for doc, product in enumerate(products):
        tokens = analyse(document(product))
        lengths[doc] = len(tokens)
        for term, count in Counter(tokens).items():
            numbers.append(terms.setdefault(term, len(terms)))
            docs.append(doc)
            counts.append(count)
        on_document()
    order = np.argsort(np.asarray(numbers), kind="stable")
    found = np.bincount(np.asarray(numbers), minlength=len(terms))  # [terms] documents that hold each
    idf = np.log(1 + (len(products) - found + 0.5) / (found + 0.5)).astype(np.float32)
    average = np.float32(lengths.sum() / len(products))
    slow = np.float32(K1) * (np.float32(1 - B) + np.float32(B) * rounded_lengths(lengths) / average)
    of_term = np.asarray(docs)[order]
    damping = np.float32(1) + np.asarray(counts)[order].astype(np.float32) * (np.float32(1) / slow)[of_term]
    starts = np.concatenate([[0], np.cumsum(found)]).astype(np.int64)
    return Table(len(products), terms, starts, idf, of_term, damping)


def rounded_lengths(lengths: NDArray[np.int64]) -> NDArray[np.float32]:
    """Lengths as Lucene's one-byte norms keep them: exact up to 40, then cut to four leading bits."""
    free = 24  # lengths below this many are stored as they are; the rest is shifted by it
    return np.array([free + four_bits(int(n) - free) if n > free else n for n in lengths], dtype=np.float32)


def four_bits(number: int) -> int:
    """A number with everything below its four leading bits cleared."""
    shift = max(0, number.bit_length() - 4)
    return number >> shift << shift
