"""Keyword search by bm25s: titles and texts, stemmed, without English stop words."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bm25s
import Stemmer

from envs.base import Progress, silent
from envs.deepsearch.cache import kept
from envs.deepsearch.corpus import Corpus, CorpusError
from envs.deepsearch.retrieval.base import Hit, best

K1, B = 1.5, 0.75
"""The defaults of bm25s."""
METHOD = "lucene"
# Chinese, Japanese and Korean are written without spaces: there a character is a term.
TOKENS = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
STOP_WORDS = "english"
STEMMER = "english"
_FORMAT = 1


class Bm25Retriever:
    """An index that is built once, kept in the cache, and mapped into memory, so that processes share it."""

    def __init__(self, corpus: Corpus, cache: Path | None = None, progress: Progress = silent) -> None:
        self._corpus = corpus
        settings = {
            "format": _FORMAT,
            "corpus": corpus.digest,
            "passages": len(corpus),
            **self.describe(),
        }
        self._index = _index(corpus, settings, cache, progress)
        if self._index.scores["num_docs"] != len(corpus):
            raise CorpusError(
                f"the search index has {self._index.scores['num_docs']} passages, expected the corpus's {len(corpus)}"
            )

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """At most `k` passages for each query that share a term with it, best first, equal ones by position."""
        return [self._search(query, k) for query in queries]

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record."""
        return {
            "name": "bm25",
            "method": METHOD,
            "k1": K1,
            "b": B,
            "stop_words": STOP_WORDS,
            "stemmer": STEMMER,
            "bm25s": version("bm25s"),
        }

    def close(self) -> None:
        """Nothing is held but memory."""

    def _search(self, query: str, k: int) -> tuple[Hit, ...]:
        terms = self._index.get_tokens_ids(tokenize([query])[0])
        if not terms:
            return ()
        scores = self._index.get_scores_from_ids(terms)  # [passages]
        hits = []
        for number in best(scores, k):
            if scores[number] > 0:
                passage = self._corpus.passage(int(number))
                hits.append(Hit(passage.id, passage.title, passage.text, float(scores[number])))
        return tuple(hits)


def tokenize(texts: Sequence[str]) -> list[list[str]]:
    """Terms of each text."""
    found: list[list[str]] = bm25s.tokenize(
        list(texts),
        token_pattern=TOKENS,
        stopwords=STOP_WORDS,
        stemmer=_stemmer(),
        return_ids=False,
        show_progress=False,
    )
    return found


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    return Stemmer.Stemmer(STEMMER)


def _index(corpus: Corpus, settings: dict[str, Any], cache: Path | None, progress: Progress) -> Any:
    if cache is None:
        return _build(corpus, progress)

    def fill(folder: Path) -> dict[str, Any]:
        _build(corpus, progress).save(str(folder), show_progress=False)
        return {}

    folder, _ = kept(cache, "bm25", settings, fill)
    return bm25s.BM25.load(str(folder), mmap=True, show_progress=False)


def _build(corpus: Corpus, progress: Progress) -> Any:
    progress("indexing passages", 0, 2)
    tokens = bm25s.tokenize(
        [f"{passage.title} {passage.text}" for passage in corpus.passages()],
        token_pattern=TOKENS,
        stopwords=STOP_WORDS,
        stemmer=_stemmer(),
        show_progress=False,
    )
    if not any(tokens.vocab):  # bm25s gives texts without a word an empty one
        raise CorpusError(f"none of {len(corpus)} passages has a word that can be searched")
    progress("indexing passages", 1, 2)
    logging.getLogger("bm25s").setLevel(logging.INFO)  # the library sets itself to DEBUG
    index = bm25s.BM25(k1=K1, b=B, method=METHOD)
    index.index(tokens, show_progress=False)
    progress("indexing passages", 2, 2)
    return index
