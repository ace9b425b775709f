"""The measurement of retrievers: what it asks, counts and shows; times are never asserted."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.bench_deepsearch import QUERIES, measure, recall, salad, show_costs, word, write_salad
from envs.deepsearch.questions import Question
from tests.envs.libraries import Counting


def test_recall_is_of_titles_and_of_whole_questions() -> None:
    asked = [
        Question("1", "Red Kite", ("x",), "d", "id", ("Red Kite", "Ana Moor")),
        Question("2", "Elmwick", ("x",), "d", "id", ("Elmwick",)),
    ]
    one = recall(Counting(), asked, 1)  # a search for Red Kite finds its own page only
    assert (one.depth, one.titles, one.whole) == (1, pytest.approx(0.75), 0.5)


def test_words_of_different_ranks_differ() -> None:
    assert len({word(number) for number in range(5000)}) == 5000


def test_more_generated_passages_begin_with_the_same_ones_of_other_seeds_with_others() -> None:
    first = list(salad(5))
    assert list(itertools.islice(salad(5), 3)) == first[:3]
    assert list(salad(5, seed=1)) != first


def test_both_parts_are_measured_in_processes_of_their_own_and_shown(tmp_path: Path) -> None:
    [costs] = measure(None, 300, None, tmp_path)
    assert (costs.passages, costs.retriever, costs.searched.recall) == (300, "bm25", ())
    assert costs.built.index_bytes > 0
    out = io.StringIO()
    show_costs(Console(file=out, width=120), [costs])
    assert "300" in out.getvalue()


def test_generated_passages_are_a_corpus_with_questions(tmp_path: Path) -> None:
    corpus, asked = write_salad(tmp_path, 20)
    lines = corpus.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [str(number) for number in range(20)]
    queries = json.loads(asked.read_text(encoding="utf-8"))
    assert len(queries) == 20 < QUERIES
    texts = [json.loads(line)["contents"].partition("\n")[2].split() for line in lines]
    assert all(set(query.split()) <= set(words) for query, words in zip(queries, texts, strict=True))
