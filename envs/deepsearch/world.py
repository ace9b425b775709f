"""What all environments of a process share: the corpus, its retriever, the questions and their scorer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs.base import Demonstrator, Split, TaskPanel
from envs.client import Counted
from envs.deepsearch.corpus import Corpus, Passage
from envs.deepsearch.env import DeepSearchEnv
from envs.deepsearch.questions import Question
from envs.deepsearch.retrieval.base import Hit, QueryFailed, Retriever
from envs.deepsearch.scorers import Scorer, Verdict

NAME = "deepsearch"
HELD_SEARCHES = 8192
"""Searches whose results a process keeps: samples of one task often ask alike."""


class DeepSearchWorld:
    """Built once, never changed. The test split has questions of both domains, `id` ones first."""

    name = NAME

    def __init__(
        self,
        corpus: Corpus,
        retriever: Retriever,
        questions: Mapping[Split, Sequence[Question]],
        scorer: Scorer,
        *,
        source: Mapping[str, Any],
        settings: Mapping[str, int] | None = None,
    ) -> None:
        """`source`: where corpus and questions come from; `settings`: of the environments, see `DeepSearchEnv`."""
        self.corpus = corpus
        self._retriever, self._scorer, self._source = retriever, scorer, dict(source)
        self._questions = {split: tuple(found) for split, found in questions.items()}
        self._settings: dict[str, Any] = dict(settings or {})
        self._held: OrderedDict[tuple[str, int], tuple[Hit, ...]] = OrderedDict()
        self._by_id: dict[str, Question] = {}
        for found in self._questions.values():
            for question in found:
                if self._by_id.setdefault(question.id, question) is not question:
                    raise ValueError(f"question {question.id!r} is there twice, expected each in one split")
        self.make_env()  # checks the settings before any work starts

    def make_env(self) -> DeepSearchEnv:
        """A fresh environment over the shared data."""
        return DeepSearchEnv(self, **self._settings)

    # What environments ask for

    def questions(self, split: Split) -> Sequence[Question]:
        """The questions of a split; `ValueError` for one that does not exist."""
        if split not in self._questions:
            raise ValueError(f"unknown split {split!r}, expected one of {', '.join(self._questions)}")
        return self._questions[split]

    def question(self, task_id: str) -> Question:
        """A question by its id; `KeyError` says how many there are."""
        try:
            return self._by_id[task_id]
        except (KeyError, TypeError):
            raise KeyError(
                f"unknown task {task_id!r}: this world has {len(self._by_id)}, such as {next(iter(self._by_id))}"
            ) from None

    def fetch(self, queries: Sequence[str], k: int) -> None:
        """Search for all of these at once and keep what is found; a query that fails is left to its own search."""
        missing = [query for query in dict.fromkeys(queries) if (query, k) not in self._held]
        if len(missing) < 2:
            return
        try:
            self._hold(missing, k, self._retriever.search(missing, k))
        except QueryFailed:
            return

    def search(self, query: str, k: int) -> tuple[Hit, ...]:
        """The `k` best passages; `QueryFailed` and `RetrieverDown` come from the retriever."""
        if (query, k) not in self._held:
            self._hold([query], k, self._retriever.search([query], k))
        self._held.move_to_end((query, k))
        return self._held[query, k]

    def page(self, wanted: str) -> Sequence[Passage]:
        """All passages of the page with this title, or of the page that the passage with this id is from."""
        numbers = self.corpus.titled(wanted)
        if not numbers:
            try:
                numbers = self.corpus.titled(self.corpus.passage(self.corpus.number_of(wanted)).title)
            except KeyError:
                return ()
        return [self.corpus.passage(number) for number in numbers]

    def judge(self, question: Question, answer: str) -> Verdict:
        """Whether an answer is right; a failing judge raises `EnvError`."""
        return self._scorer(question.text, answer, question.golds)

    # What runs ask for

    def panel(self, split: Split, size: int | None = None) -> TaskPanel:
        """`size` questions of a split, evenly spaced in their order, so that all kinds are in it."""
        found = self.questions(split)
        if size is not None and not 0 < size <= len(found):
            raise ValueError(
                f"a panel of {size} {NAME} {split} tasks was asked for, but there are {len(found)}"
            )
        count = len(found) if size is None else size
        chosen = [found[number * len(found) // count] for number in range(count)]
        return TaskPanel(NAME, split, tuple(one.id for one in chosen), tuple(_asked(one) for one in chosen))

    def demonstrator(
        self, seed: Sequence[int], carelessness: Mapping[str, float] | None = None
    ) -> Demonstrator:
        """A scripted player for one episode; its draws depend on `seed` alone."""
        from envs.deepsearch.expert import DeepSearchDemonstrator

        rng = np.random.default_rng(np.random.SeedSequence(list(seed)))
        return DeepSearchDemonstrator(rng, carelessness or {})

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record."""
        return {
            "name": NAME,
            **self._source,
            "corpus": self.corpus.describe(),
            "retriever": self._retriever.describe(),
            "scorer": self._scorer.describe(),
            "splits": {split: len(found) for split, found in self._questions.items()},
            "task_types": _types(self._questions["test"]),
            **self._settings,
        }

    def counts(self) -> dict[str, int]:
        """Requests to a retrieval server or a judge, and what failed; empty without either."""
        return {
            f"{name}_{kind}": count
            for name, part in (("retriever", self._retriever), ("judge", self._scorer))
            if isinstance(part, Counted)
            for kind, count in part.counts().items()
        }

    def close(self) -> None:
        """Give back what the retriever holds."""
        self._retriever.close()

    def _hold(self, queries: Sequence[str], k: int, found: Sequence[tuple[Hit, ...]]) -> None:
        for query, hits in zip(queries, found, strict=True):
            self._held[query, k] = hits
        while len(self._held) > HELD_SEARCHES:
            self._held.popitem(last=False)


def _asked(question: Question) -> str:
    """What identifies a task: the question and what counts as its answer."""
    return "\n".join((question.text, *question.golds))


def _types(questions: Sequence[Question]) -> dict[str, str]:
    """Kind of question -> its domain, in the order in which they come."""
    return {question.dataset: question.domain for question in questions}
