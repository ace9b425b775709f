"""Keyword search against a slow, obvious BM25; its index is kept, checked and shared."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.deepsearch.corpus import CorpusError, FileCorpus, MemoryCorpus, Passage
from envs.deepsearch.retrieval import bm25 as bm25_module
from envs.deepsearch.retrieval.base import best
from envs.deepsearch.retrieval.bm25 import K1, B, Bm25Retriever, tokenize

ROOT = Path(__file__).resolve().parents[2]
FOX = Passage("fox", "Red fox", "The fox hunts at night.")
OWL = Passage("owl", "Barn owl", "An owl hunts mice.")
LAMP = Passage("lamp", "Lamp", "")
ANIMALS = (FOX, OWL, LAMP)


def opened(*passages: Passage, cache: Path | None = None) -> Bm25Retriever:
    return Bm25Retriever(MemoryCorpus(passages), cache)


def found(retriever: Bm25Retriever, query: str, k: int = 10) -> list[str]:
    return [hit.id for hit in retriever.search([query], k)[0]]


def slow_scores(documents: Sequence[Sequence[str]], query: Sequence[str]) -> dict[int, float]:
    """Lucene's BM25 from its definition: idf ln(1 + (N - n + 0.5) / (n + 0.5)), a repeated query term counts again."""
    average = sum(map(len, documents)) / len(documents)
    scores: dict[int, float] = {}
    for number, words in enumerate(documents):
        for term in query:
            if term in words:
                holding = sum(term in other for other in documents)
                idf = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
                count = words.count(term)
                gain = idf * count / (count + K1 * (1 - B + B * len(words) / average))
                scores[number] = scores.get(number, 0.0) + gain
    return scores


# Words that neither the stemmer changes nor the stop words contain.
WORDS = ["red", "blue", "lamp", "wool", "sock", "fox"]
LINE = st.lists(st.sampled_from(WORDS), max_size=7)


@settings(max_examples=80, deadline=None)
@given(st.lists(LINE.filter(bool), min_size=1, max_size=10), LINE, st.integers(1, 12))
def test_scores_are_bm25_by_definition_and_ties_go_by_position(
    documents: list[list[str]], query: list[str], k: int
) -> None:
    # A title is part of what is searched: the first word stands in it.
    retriever = opened(*(Passage(str(n), one[0], " ".join(one[1:])) for n, one in enumerate(documents)))
    hits = retriever.search([" ".join(query)], k)[0]
    expected = slow_scores(documents, query)
    assert len(hits) == min(k, len(expected))
    for hit in hits:
        assert hit.score == pytest.approx(expected[int(hit.id)], rel=1e-5)
    assert [int(hit.id) for hit in hits] == sorted(
        (int(hit.id) for hit in hits),
        key=lambda number: (-next(h.score for h in hits if h.id == str(number)), number),
    )
    left_out = [score for number, score in expected.items() if str(number) not in {hit.id for hit in hits}]
    assert not hits or max(left_out, default=0.0) <= hits[-1].score * (1 + 1e-5)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=30), st.integers(1, 35))
def test_the_best_are_those_of_a_stable_sort(scores: list[float], k: int) -> None:
    expected = sorted(range(len(scores)), key=lambda number: (-scores[number], number))[:k]
    assert best(np.array(scores, dtype=np.float32), k).tolist() == expected


def test_equal_passages_come_in_the_order_of_the_corpus_whatever_their_ids() -> None:
    twins = [Passage(name, "Red fox", "It hunts.") for name in ("z", "a", "m")]
    assert found(opened(*twins, OWL), "fox") == ["z", "a", "m"]
    assert found(opened(*twins, OWL), "fox", k=2) == ["z", "a"]


def test_a_hit_is_the_passage_with_its_score() -> None:
    (hit,) = opened(*ANIMALS).search(["mice"], 3)[0]
    assert (hit.id, hit.title, hit.text) == (OWL.id, OWL.title, OWL.text)
    assert hit.score > 0


@pytest.mark.parametrize("query", ["", "   ", "?!", "the of and", "zebra", "\0", "\ud800"])
def test_a_query_without_a_known_word_has_no_hits(query: str) -> None:
    assert opened(*ANIMALS).search([query], 3) == [()]


def test_no_queries_have_no_results_and_each_query_has_its_own() -> None:
    retriever = opened(*ANIMALS)
    assert retriever.search([], 3) == []
    queries = ["fox", "zebra", "owl mice", "hunts"]
    assert retriever.search(queries, 3) == [retriever.search([query], 3)[0] for query in queries]


def test_case_inflections_and_punctuation_do_not_matter() -> None:
    retriever = opened(*ANIMALS)
    for query in ("hunts", "HUNTING!", "hunt", '"hunted"'):
        assert found(retriever, query) == ["fox", "owl"], query


def test_a_title_is_searched_even_where_there_is_no_text() -> None:
    assert found(opened(*ANIMALS), "lamps") == ["lamp"]


def test_chinese_japanese_and_korean_are_searched_by_character() -> None:
    retriever = opened(Passage("1", "北京", "中国的首都。"), Passage("2", "Tokyo", "日本の首都。"), FOX)
    assert found(retriever, "中国") == ["1"]
    assert found(retriever, "首都 日本") == ["2", "1"]
    assert tokenize(["GDP增长"]) == [["gdp", "增", "长"]]


def test_numbers_and_short_names_are_words() -> None:
    retriever = opened(Passage("1", "U2", "A band, since 1976."), Passage("2", "X", "A letter."), FOX)
    assert found(retriever, "1976") == ["1"]
    assert found(retriever, "x") == ["2"]


def test_a_corpus_without_a_single_word_is_an_error() -> None:
    with pytest.raises(CorpusError, match="none of 2 passages has a word that can be searched"):
        opened(Passage("1", "", ""), Passage("2", "the", "?!"))


# The cache


def no_build(*_: object) -> None:
    pytest.fail("the index was built again")


def test_an_index_that_is_kept_is_not_built_again_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = opened(*ANIMALS).search(["fox", "hunts", "owl lamp"], 3)
    opened(*ANIMALS, cache=tmp_path)
    monkeypatch.setattr(bm25_module, "_build", no_build)
    again = opened(*ANIMALS, cache=tmp_path)
    assert again.search(["fox", "hunts", "owl lamp"], 3) == expected
    assert isinstance(again._index.scores["data"], np.memmap)


def test_other_passages_or_settings_get_an_index_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(*ANIMALS, cache=tmp_path)
    assert found(opened(FOX, LAMP, cache=tmp_path), "owl") == []
    monkeypatch.setattr(bm25_module, "K1", 0.9)
    other = opened(*ANIMALS, cache=tmp_path)
    assert other.describe()["k1"] == 0.9
    assert len(list((tmp_path / "deepsearch").glob("bm25-*"))) == 3


def test_the_manifest_says_what_decides_the_results(tmp_path: Path) -> None:
    retriever = opened(*ANIMALS, cache=tmp_path)
    (path,) = tmp_path.rglob("manifest.json")
    said = json.loads(path.read_text())
    assert said.items() >= retriever.describe().items()
    assert (said["corpus"], said["passages"]) == (MemoryCorpus(ANIMALS).digest, 3)


def test_a_build_that_dies_leaves_nothing_that_counts_as_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(bm25_module.bm25s.BM25, "save", die)
        with pytest.raises(MemoryError):
            opened(*ANIMALS, cache=tmp_path)
    assert list(tmp_path.rglob("manifest.json")) == []
    assert found(opened(*ANIMALS, cache=tmp_path), "fox") == ["fox"]


@pytest.mark.parametrize("name", ["manifest.json", "vocab.index.json", "data.csc.index.npy"])
def test_an_index_that_is_damaged_is_built_again(tmp_path: Path, name: str) -> None:
    expected = opened(*ANIMALS, cache=tmp_path).search(["fox"], 3)
    (path,) = tmp_path.rglob(name)
    path.write_bytes(path.read_bytes()[:-3])
    assert opened(*ANIMALS, cache=tmp_path).search(["fox"], 3) == expected
    assert len(list((tmp_path / "deepsearch").iterdir())) == 1


PROCESS = """
import sys
from pathlib import Path
from envs.deepsearch.corpus import MemoryCorpus, Passage
from envs.deepsearch.retrieval.bm25 import Bm25Retriever
passages = [Passage(str(n), f"Page {n}", f"word{n % 7} common") for n in range(500)]
print([hit.id for hit in Bm25Retriever(MemoryCorpus(passages), Path(sys.argv[1])).search(["word3"], 5)[0]])
"""


def test_processes_that_build_at_once_end_with_one_index_and_equal_results(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROCESS, str(tmp_path)]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], outputs
    assert {out for out, _ in outputs} == {"['3', '10', '17', '24', '31']\n"}
    assert len(list((tmp_path / "deepsearch").iterdir())) == 1


# Real passages


@pytest.mark.shared
def test_bm25_finds_most_supporting_passages_of_the_real_questions(shared: Path) -> None:
    folder = shared / "data" / "deepsearch"
    retriever = Bm25Retriever(FileCorpus(folder / "corpus.jsonl"))
    lines = (folder / "hotpotqa_dev100.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    results = retriever.search([row["question"] for row in rows], 10)
    recalls = []
    for row, hits in zip(rows, results, strict=True):
        wanted = set(row["metadata"]["supporting_titles"])
        recalls.append(len(wanted & {hit.title for hit in hits}) / len(wanted))
    assert sum(recalls) / len(recalls) > 0.7
