"""The generated encyclopedia as a whole: corpus, graph and questions, with what identifies them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from envs.deepsearch.corpus import Passage
from envs.deepsearch.encyclopedia.graph import build
from envs.deepsearch.encyclopedia.known import Known
from envs.deepsearch.encyclopedia.questions import ask
from envs.deepsearch.encyclopedia.render import write
from envs.deepsearch.encyclopedia.schema import Entity, Fact, MultiHopQuestion, Settings

TWO_PASSAGES = 0.2
"""How many of the passages are the second one of their page."""


@dataclass(frozen=True)
class Encyclopedia:
    """Everything that was generated from some settings."""

    settings: Settings
    passages: tuple[Passage, ...] = field(repr=False)
    """The corpus; ids are positions, titles are names of things."""
    entities: tuple[Entity, ...] = field(repr=False)
    """Everything that has a page."""
    facts: tuple[Fact, ...] = field(repr=False)
    """The relation graph, in the order of the corpus; each fact is stated once."""
    questions: Mapping[str, tuple[MultiHopQuestion, ...]] = field(repr=False)
    """By split: train, dev, test, ood_dev, ood_test."""

    @cached_property
    def corpus_digest(self) -> str:
        """SHA-256 of the passages; questions do not change it."""
        return _sha256([[one.id, one.title, one.text] for one in self.passages])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of passages and questions."""
        asked = {split: [asdict(one) for one in found] for split, found in self.questions.items()}
        return _sha256([self.corpus_digest, asked])

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record."""
        words = [len(one.text.split()) for one in self.passages]
        return {
            "data": "generated encyclopedia",
            "data_digest": self.digest,
            "corpus_digest": self.corpus_digest,
            "seed": self.settings.seed,
            "passages": len(self.passages),
            "pages": len(self.entities),
            "facts": len(self.facts),
            "words_per_passage": round(sum(words) / len(words), 1),
            "kinds": dict(Counter(one.kind for one in self.entities)),
            "questions": {
                split: dict(Counter(one.form for one in found)) for split, found in self.questions.items()
            },
        }


def generate(settings: Settings | None = None) -> Encyclopedia:
    """The encyclopedia of these settings (the default ones where None); equal settings give equal ones.

    Raises `EncyclopediaError` where the passages are too few for so many questions.
    """
    settings = settings or Settings()
    graph = build(settings.seed, settings.passages - round(TWO_PASSAGES * settings.passages))
    book = write(settings.seed, graph, settings.passages)
    known = Known(settings.seed, graph, book)
    return Encyclopedia(settings, book.passages, graph.entities, book.facts, ask(settings, known))


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()
