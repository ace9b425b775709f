"""Corpora: the same passages in memory and in a file; whatever is wrong with a file is said with its line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.base import EnvError
from envs.deepsearch import corpus as corpus_module
from envs.deepsearch.corpus import (
    Corpus,
    CorpusError,
    FileCorpus,
    MemoryCorpus,
    Passage,
    folded,
    parse_passage,
)

PASSAGES = (
    Passage("a", "Café Central", "It opened in 1876."),
    Passage("b", "Titanic", "A ship."),
    Passage("c", "TITANIC", "A film about the ship."),
    Passage("d", "Café Central", "It closed in 1943."),
    Passage("e", '"Heroes" (album)', 'It begins with "Beauty and the Beast".'),
    Passage("f", "Empty page", ""),
)
Opened = Callable[[Sequence[Passage]], Corpus]


def write(path: Path, passages: Iterable[Passage]) -> Path:
    rows = (json.dumps({"id": one.id, "contents": one.contents}, ensure_ascii=False) for one in passages)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(params=["memory", "file", "cached file", "cached file opened again"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    def open_corpus(passages: Sequence[Passage]) -> Corpus:
        if request.param == "memory":
            return MemoryCorpus(passages)
        path = write(tmp_path / "corpus.jsonl", passages)
        cache = None if request.param == "file" else tmp_path / "cache"
        if request.param == "cached file opened again":
            FileCorpus(path, cache)
        return FileCorpus(path, cache)

    return open_corpus


def test_passages_come_in_order_and_are_found_by_position_and_id(opened: Opened) -> None:
    corpus = opened(PASSAGES)
    assert len(corpus) == len(PASSAGES)
    assert list(corpus.passages()) == list(PASSAGES)
    for number, passage in enumerate(PASSAGES):
        assert corpus.passage(number) == passage
        assert corpus.number_of(passage.id) == number


def test_an_unknown_id_is_a_key_error_and_an_unknown_title_has_no_passages(opened: Opened) -> None:
    corpus = opened(PASSAGES)
    with pytest.raises(KeyError, match="absent"):
        corpus.number_of("absent")
    assert list(corpus.titled("absent")) == []
    assert list(corpus.titled("")) == []


def test_a_page_is_all_passages_of_its_title_in_order(opened: Opened) -> None:
    assert list(opened(PASSAGES).titled("Café Central")) == [0, 3]


@pytest.mark.parametrize("asked", ["cafe central", "CAFÉ  CENTRAL", " Cafe\u0301 central\n"])
def test_case_accents_and_white_space_of_a_title_do_not_matter(opened: Opened, asked: str) -> None:
    assert list(opened(PASSAGES).titled(asked)) == [0, 3]


def test_pages_that_differ_in_case_alone_are_told_apart_and_else_the_first_is_taken(opened: Opened) -> None:
    corpus = opened(PASSAGES)
    assert list(corpus.titled("Titanic")) == [1]
    assert list(corpus.titled("TITANIC")) == [2]
    assert list(corpus.titled("titanic")) == [1]


def test_the_digest_is_of_the_content_and_equal_wherever_the_passages_are(opened: Opened) -> None:
    expected = MemoryCorpus(PASSAGES).digest
    assert opened(PASSAGES).digest == expected
    assert opened(PASSAGES).describe()["sha256"] == expected


@pytest.mark.parametrize(
    "changed",
    [
        PASSAGES[::-1],
        PASSAGES[:-1],
        (Passage("A", PASSAGES[0].title, PASSAGES[0].text), *PASSAGES[1:]),
        (Passage("a", PASSAGES[0].title, PASSAGES[0].text + " "), *PASSAGES[1:]),
    ],
)
def test_another_order_id_or_text_has_another_digest(changed: Sequence[Passage]) -> None:
    assert MemoryCorpus(changed).digest != MemoryCorpus(PASSAGES).digest


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TITLES = TEXT.map(lambda text: " ".join(text.split()))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(TITLES, TEXT.map(str.strip)), min_size=1, max_size=8))
def test_what_is_written_to_a_file_is_read_from_it(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, str]]
) -> None:
    passages = [Passage(str(number), *pair) for number, pair in enumerate(drawn)]
    path = write(tmp_path_factory.mktemp("written") / "corpus.jsonl", passages)
    found, memory = FileCorpus(path), MemoryCorpus(passages)
    assert list(found.passages()) == passages
    assert found.digest == memory.digest
    for passage in passages:
        for asked in (passage.title, folded(passage.title)):
            assert list(found.titled(asked)) == list(memory.titled(asked))


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [
        ('"Title"\ntext', "Title", "text"),
        ("Title\ntext", "Title", "text"),
        ('"Title"\nfirst\nsecond', "Title", "first\nsecond"),
        ('""Heroes" (album)"\ntext', '"Heroes" (album)', "text"),
        ("Only a line", "Only a line", ""),
        ("Title\r\ntext\r", "Title", "text"),
        ('"\ntext', '"', "text"),
        ("\ntext", "", "text"),
    ],
)
def test_the_first_line_of_the_contents_is_the_title(contents: str, title: str, text: str) -> None:
    row = json.dumps({"id": "1", "contents": contents}).encode()
    assert parse_passage(row, "here") == Passage("1", title, text)


def test_a_number_as_id_is_a_text_here() -> None:
    assert parse_passage(b'{"id": 7, "contents": "T"}', "here").id == "7"


# Files that are no corpora


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no passages, expected a JSON object a line"),
        (b'{"id": "1", "contents": "T"}\n\n', "line 2 is empty, expected a JSON object"),
        (b'{"id": "1", "contents": "T"}\n{"id"', "line 2: not JSON"),
        (b'{"id": "1", "contents": "\xff"}\n', "line 1: not JSON"),
        (b'["a"]\n', "line 1: found list, expected the keys id and contents"),
        (b'{"id": "1", "text": "T"}\n', r"line 1: found \['id', 'text'\], expected the keys id and contents"),
        (b'{"contents": "T"}\n', "line 1: id is None, expected a string or a whole number"),
        (b'{"id": 1.5, "contents": "T"}\n', "line 1: id is 1.5, expected a string or a whole number"),
        (b'{"id": true, "contents": "T"}\n', "line 1: id is True, expected a string or a whole number"),
        (b'{"id": "1", "contents": "\\ud800"}\n', "line 1: .*surrogate"),
        (b'{"id": "\\ud800", "contents": "T"}\n', "line 1: .*surrogate"),
        (b"[" * 100_000 + b"\n", "line 1: not JSON"),
        (
            b'{"id": "1", "contents": "T"}\n{"id": "2", "contents": "T"}\n{"id": 1, "contents": "U"}\n',
            "lines 1 and 3 have the id '1', expected each once",
        ),
    ],
)
@pytest.mark.parametrize("cached", [False, True])
def test_a_malformed_file_is_an_error_with_its_name_and_line(
    tmp_path: Path, content: bytes, said: str, cached: bool
) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(content)
    cache = tmp_path / "cache" if cached else None
    with pytest.raises(CorpusError, match=said) as raised:
        FileCorpus(path, cache)
    assert str(path) in str(raised.value)
    assert isinstance(raised.value, EnvError)
    with pytest.raises(CorpusError, match=said):  # nothing of the first look was kept
        FileCorpus(path, cache)


def test_a_missing_file_or_a_folder_is_an_error_that_says_what_was_expected(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(CorpusError, match=r"cannot be read: .*expected a corpus of JSON lines"):
            FileCorpus(path)


def test_a_corpus_in_memory_is_checked_like_a_file() -> None:
    with pytest.raises(CorpusError, match="the corpus is empty"):
        MemoryCorpus([])
    with pytest.raises(CorpusError, match="two passages have the id 'a'"):
        MemoryCorpus([PASSAGES[0], PASSAGES[1], PASSAGES[0]])


@pytest.mark.parametrize("number", [-1, len(PASSAGES), 10**6])
def test_a_position_that_does_not_exist_is_an_index_error(opened: Opened, number: int) -> None:
    with pytest.raises(IndexError):
        opened(PASSAGES).passage(number)


# Hashes that collide


def test_ids_and_titles_whose_hashes_collide_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_module, "_hashed", lambda text: len(text) % 2)
    corpus = FileCorpus(write(tmp_path / "corpus.jsonl", PASSAGES))
    for number, passage in enumerate(PASSAGES):
        assert corpus.number_of(passage.id) == number
        assert number in corpus.titled(passage.title)
    assert list(corpus.titled("Titanic")) == [1]
    with pytest.raises(KeyError):
        corpus.number_of("z")


def test_a_repeated_id_is_found_among_other_ids_of_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_module, "_hashed", lambda text: 0)
    passages = [PASSAGES[0], PASSAGES[1], PASSAGES[2], PASSAGES[0]]
    with pytest.raises(CorpusError, match="lines 1 and 4 have the id 'a'"):
        FileCorpus(write(tmp_path / "corpus.jsonl", passages))


# The cache


def no_scan(*_: object) -> None:
    pytest.fail("the file was read again")


def test_a_file_that_has_not_changed_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = write(tmp_path / "corpus.jsonl", PASSAGES), tmp_path / "cache"
    first = FileCorpus(path, cache)
    monkeypatch.setattr(corpus_module, "_scan", no_scan)
    assert FileCorpus(path, cache).describe() == first.describe()


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "corpus.jsonl", PASSAGES), tmp_path / "cache"
    FileCorpus(path, cache)
    write(path, PASSAGES[1:])
    found = FileCorpus(path, cache)
    assert list(found.passages()) == list(PASSAGES[1:])
    assert found.digest == MemoryCorpus(PASSAGES[1:]).digest


def test_opening_costs_arrays_in_files_of_32_bytes_a_passage(tmp_path: Path) -> None:
    passages = [Passage(str(number), f"Page {number}", "text") for number in range(2000)]
    corpus = FileCorpus(write(tmp_path / "corpus.jsonl", passages), tmp_path / "cache")
    arrays = [np.load(path, mmap_mode="r") for path in (tmp_path / "cache").rglob("*.npy")]
    assert sum(array.nbytes for array in arrays) == 32 * 2000 + 8
    assert isinstance(corpus._offsets.lines, np.memmap)


# Real passages


@pytest.mark.shared
def test_the_real_passages_are_all_read_and_found_by_id_and_title(shared: Path, tmp_path: Path) -> None:
    path = shared / "data" / "deepsearch" / "corpus.jsonl"
    corpus = FileCorpus(path, tmp_path)
    memory = MemoryCorpus(corpus.passages())
    assert len(corpus) == 7119
    assert corpus.digest == memory.digest
    for number in range(0, len(corpus), 97):
        passage = corpus.passage(number)
        assert corpus.number_of(passage.id) == number
        assert list(corpus.titled(passage.title)) == list(memory.titled(passage.title))


@pytest.mark.shared
def test_every_supporting_title_of_the_real_questions_is_a_page(shared: Path) -> None:
    folder = shared / "data" / "deepsearch"
    corpus = FileCorpus(folder / "corpus.jsonl")
    lines = (folder / "hotpotqa_dev100.jsonl").read_text(encoding="utf-8").splitlines()
    titles = [title for line in lines for title in json.loads(line)["metadata"]["supporting_titles"]]
    assert len(titles) >= 200
    assert [title for title in titles if not corpus.titled(title)] == []
