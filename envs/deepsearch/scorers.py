"""Whether an answer is right: exact match, token F1, containment, or the word of a judge.

Texts are compared as SQuAD's evaluation does: in lower case, without punctuation, articles and extra white space. Kept
apart from it, because data met it: a text of nothing but articles or punctuation (a gold `A`, a gold `!!!`) keeps them;
Unicode forms, quotes and dashes are unified; Chinese, Japanese and Korean, which have no spaces, are
compared by character. Only the answer is judged, which the agent wrote itself: no prompt, passage or earlier text.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

THRESHOLD = 0.8
"""Least F1 of a success under the scorer `f1`."""
MOST_EXTRA_TOKENS = 10
"""Tokens beside the gold that an answer may have under the scorer `contains`: else it would pay to recite passages."""
_DECIDED = frozenset({"yes", "no", "noanswer"})

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_SEPARATORS = str.maketrans(
    {**dict.fromkeys("‐‑‒–—―−", "-"), **dict.fromkeys("‘’‚‛′`", "'"), **dict.fromkeys("“”„‟″", '"')}
)


@dataclass(frozen=True)
class Verdict:
    """How an answer was judged."""

    success: bool
    score: float
    """In [0, 1]."""
    scorer: str
    matched: str | None
    """The accepted answer that it was judged by: the one that fits best; None for an empty answer."""
    detail: Mapping[str, Any] = field(default_factory=dict)


class Scorer(Protocol):
    """Judges answers."""

    def __call__(self, question: str, answer: str, golds: Sequence[str]) -> Verdict:
        """Judge an answer by the accepted ones; `ValueError` where there is none, `EnvError` for a failing judge."""
        ...

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record: what decides the verdicts."""
        ...


def normalize(text: str) -> str:
    """A text as it is compared; it is empty only where nothing but white space was there."""
    text = unicodedata.normalize("NFKC", text).translate(_SEPARATORS).casefold()
    bare = "".join(character for character in text if not _is_punctuation(character))
    for candidate in (_ARTICLES.sub(" ", bare), bare, text):
        if joined := " ".join(candidate.split()):
            return joined
    return ""


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def tokens(text: str) -> list[str]:
    """The tokens of a normalised text."""
    return _TOKEN.findall(normalize(text))


def exact(answer: str, gold: str) -> float:
    """1 where both are the same text."""
    found = normalize(answer)
    return float(bool(found) and found == normalize(gold))


def f1(answer: str, gold: str) -> float:
    """Harmonic mean of precision and recall of the gold's tokens; 0 where either is a yes or no that differs."""
    one, other = normalize(answer), normalize(gold)
    if not one or (one != other and not _DECIDED.isdisjoint((one, other))):
        return 0.0
    found, wanted = Counter(tokens(answer)), Counter(tokens(gold))
    shared = sum((found & wanted).values())
    return 2 * shared / (sum(found.values()) + sum(wanted.values()))


def contains(answer: str, gold: str) -> float:
    """1 where the gold's tokens stand in the answer in one piece, with few others; yes and no must stand alone."""
    found, wanted = tokens(answer), tokens(gold)
    if not wanted or len(found) > len(wanted) + MOST_EXTRA_TOKENS:
        return 0.0
    if not _DECIDED.isdisjoint(wanted):
        return exact(answer, gold)
    places = range(len(found) - len(wanted) + 1)
    return float(any(found[place : place + len(wanted)] == wanted for place in places))


@dataclass(frozen=True)
class TextScorer:
    """The best of a comparison with each accepted answer."""

    name: str
    compare: Callable[[str, str], float]
    least: float = 1.0
    """From which score on it is a success."""

    def __call__(self, question: str, answer: str, golds: Sequence[str]) -> Verdict:
        """Judge an answer; the question plays no part."""
        if not golds:
            raise ValueError(f"no accepted answers to {question!r}, expected at least one")
        if not normalize(answer):
            return Verdict(False, 0.0, self.name, None)
        score, place = max((self.compare(answer, gold), -place) for place, gold in enumerate(golds))
        return Verdict(score >= self.least, score, self.name, golds[-place])

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record."""
        return {"name": self.name, "least": self.least}


def make_scorer(name: str, **settings: Any) -> Scorer:
    """`em`, `f1` (setting `threshold`), `contains`, or `judge` (settings of `judge.Judge`).

    Raises `ValueError` for another name or a setting that it does not have.
    """
    if name == "judge":
        from envs.deepsearch.judge import Judge

        return Judge(**settings)
    threshold = settings.pop("threshold", THRESHOLD) if name == "f1" else 1.0
    if settings:
        raise ValueError(f"scorer {name!r} has no settings {sorted(settings)}")
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is {threshold}, expected a number in (0, 1]")
    comparisons = {"em": exact, "f1": f1, "contains": contains}
    if name not in comparisons:
        raise ValueError(f"unknown scorer {name!r}, expected em, f1, contains or judge")
    return TextScorer(name, comparisons[name], threshold)
