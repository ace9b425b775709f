"""Keyword search: Lucene's BM25 over title, description, first bullet point and options of each product.

The numbers are Lucene's to the last bit that matters for the order: float32 weights, document lengths rounded
as in its one-byte norms, contributions summed in double and cut to float32, ties by asin. `bm25s` keeps exact
lengths, so its order differs from the official one; hence a small index of our own. Documents are indexed by
ascending asin, which makes a stable sort break ties rightly.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs.webshop.analysis import analyse
from envs.webshop.catalogue import Catalogue, Product

K1, B = 0.9, 0.4
RESULTS = 50
"""How many products a search returns at most."""
KEPT_QUERIES = 4096


class SearchIndex:
    """An immutable inverted index; the answers to recent queries are kept."""

    def __init__(self, catalogue: Catalogue) -> None:
        products = sorted(catalogue.products, key=lambda product: product.asin)
        self.products: tuple[Product, ...] = tuple(products)
        self._postings = found_in = invert(products)
        average = np.float32(found_in.lengths.sum() / len(products))
        slow = np.float32(K1) * (
            np.float32(1 - B) + np.float32(B) * rounded_lengths(found_in.lengths) / average
        )
        self._damping = np.float32(1) + found_in.counts * (np.float32(1) / slow)[found_in.docs]  # [postings]
        found = np.diff(found_in.starts)
        self._idf = np.log(1 + (len(products) - found + 0.5) / (found + 0.5)).astype(np.float32)  # [terms]
        self._answers: OrderedDict[str, tuple[Product, ...]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.products)

    def search(self, query: str) -> tuple[Product, ...]:
        """The best products, best first, at most 50; only products that share a term with the query."""
        answer = self._answers.get(query)
        if answer is None:
            answer = tuple(self.products[doc] for doc, _ in self.ranked(query))
            self._answers[query] = answer
            if len(self._answers) > KEPT_QUERIES:
                self._answers.popitem(last=False)
        return answer

    def ranked(self, query: str) -> list[tuple[int, float]]:
        """Document numbers with their scores, best first."""
        postings = self._postings
        score = np.zeros(len(self.products))  # [documents] float64
        for term, times in Counter(analyse(query)).items():
            number = postings.terms.get(term)
            if number is not None:
                span = slice(postings.starts[number], postings.starts[number + 1])
                weight = np.float32(times) * self._idf[number]
                score[postings.docs[span]] += weight - weight / self._damping[span]
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


@dataclass(frozen=True, eq=False)
class Postings:
    """Which documents hold which terms."""

    terms: dict[str, int]
    """Number of each term."""
    starts: NDArray[np.int64]
    """`[terms + 1]` where each term's postings start."""
    docs: NDArray[np.int32]
    """`[postings]` document numbers."""
    counts: NDArray[np.float32]
    """`[postings]` how often the term stands in the document."""
    lengths: NDArray[np.int64]
    """`[documents]` tokens in each."""


def invert(products: Sequence[Product]) -> Postings:
    """The postings of all products' documents."""
    terms: dict[str, int] = {}
    numbers, docs, counts = [], [], []
    lengths = np.zeros(len(products), dtype=np.int64)
    for doc, product in enumerate(products):
        tokens = analyse(document(product))
        lengths[doc] = len(tokens)
        for term, count in Counter(tokens).items():
            numbers.append(terms.setdefault(term, len(terms)))
            docs.append(doc)
            counts.append(count)
    order = np.argsort(np.array(numbers, dtype=np.int64), kind="stable")
    starts = np.zeros(len(terms) + 1, dtype=np.int64)
    np.cumsum(np.bincount(np.array(numbers, dtype=np.int64), minlength=len(terms)), out=starts[1:])
    return Postings(
        terms,
        starts,
        np.array(docs, dtype=np.int32)[order],
        np.array(counts, dtype=np.float32)[order],
        lengths,
    )


def rounded_lengths(lengths: NDArray[np.int64]) -> NDArray[np.float32]:
    """Lengths as Lucene's one-byte norms keep them: exact up to 40, then cut to four leading bits."""
    free = 24  # lengths below this many are stored as they are; the rest is shifted by it
    return np.array([free + four_bits(int(n) - free) if n > free else n for n in lengths], dtype=np.float32)


def four_bits(number: int) -> int:
    """A number with everything below its four leading bits cleared."""
    shift = max(0, number.bit_length() - 4)
    return number >> shift << shift
