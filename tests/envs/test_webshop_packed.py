"""The streaming reader against `json.loads`, and mapped sequences and look-ups against lists and dicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.webshop import stream
from envs.webshop.catalogue import Human, Product, from_record, to_record
from envs.webshop.packed import ByName, Lazy, Names, read_records, write_records
from envs.webshop.stream import elements

TEXT = st.text(st.characters(exclude_categories=()), max_size=8)  # lone surrogates too
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def pieces(text: str, cuts: list[int]) -> Iterator[str]:
    ends = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    return (text[start:end] for start, end in pairwise(ends))


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@given(st.lists(JSON, max_size=6), st.sampled_from([None, 1]), CUTS)
def test_a_list_in_pieces_has_the_elements_that_json_finds(
    values: list[Any], indent: int | None, cuts: list[int]
) -> None:
    text = json.dumps(values, indent=indent)
    assert list(elements(pieces(text, cuts))) == list(elements(iter(text))) == json.loads(text)


@given(
    st.lists(JSON, max_size=3), st.integers(0, 200), st.sampled_from(["", ",", "]", "[", "1", '"', "x"]), CUTS
)
def test_a_list_is_refused_exactly_when_json_refuses_it(
    values: list[Any], place: int, sign: str, cuts: list[int]
) -> None:
    text = json.dumps(values)
    text = text[:place] + sign + text[place + 1 :]
    try:
        expected = json.loads(text)
    except json.JSONDecodeError:
        expected = None
    if isinstance(expected, list):
        assert list(elements(pieces(text, cuts))) == expected
    else:
        with pytest.raises(ValueError, match=r"cannot be read as JSON|expected a list at the top"):
            list(elements(pieces(text, cuts)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a list at the top, found nothing"),
        ('{"a": 1}', "expected a list at the top, found an object"),
        ("[1, 2", r"expected ',' or '\]' after 2 elements, found the end"),
        ("[1 2]", r"expected ',' or '\]' after 1 elements, found '2'"),
        ("[1, {]", "element 1: Expecting property name"),
        ("[1]]", r"found '\]' after the end"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_where(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(elements(iter([text])))


def test_a_number_that_a_piece_cuts_is_read_whole() -> None:
    text = "[-0.0, 1e5, 12.5e-3, -7]"
    assert list(elements(iter(text))) == [-0.0, 1e5, 12.5e-3, -7]


def test_elements_come_before_the_rest_is_read() -> None:
    def endless() -> Iterator[str]:
        yield "["
        while True:
            yield '{"a": 1}, '

    found = elements(endless())
    assert [next(found) for _ in range(1000)] == [{"a": 1}] * 1000


def test_an_unreadable_element_is_given_up_before_the_whole_file_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "LONGEST", 1000)
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        yield '["no end'
        while True:
            read += 1
            yield "x" * 100

    with pytest.raises(ValueError, match="element 0: Unterminated string"):
        list(elements(endless()))
    assert read < 100


def test_a_file_is_read_in_chunks_whose_bytes_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "CHUNK", 7)
    values = ["\u00e9\u65e5\U0001f339" * 5, {"a": [1.5, None]}, 123456789012]
    path = tmp_path / "list.json"
    path.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
    counts: list[int] = []
    assert list(stream.read_array(path, counts.append)) == values
    assert sum(counts) == path.stat().st_size
    path.write_bytes(b'["\xff"]')
    with pytest.raises(ValueError, match="utf-8"):
        list(stream.read_array(path))


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_records_are_a_sequence_of_the_byte_strings(records: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        assert write_records(Path(folder), "some", records) == len(records)
        read = read_records(Path(folder), "some")
        assert list(read) == records
        assert read[1:-1] == tuple(records[1:-1])
        assert [read[-1 - place] for place in range(len(records))] == records[::-1]
        with pytest.raises(IndexError):
            read[len(records)]


def test_records_whose_offsets_do_not_fit_are_refused(tmp_path: Path) -> None:
    write_records(tmp_path, "some", [b"ab", b"c"])
    (tmp_path / "some.bin").write_bytes(b"ab")
    with pytest.raises(ValueError, match=r"some\.bin has 2 bytes, which do not fit its offsets"):
        read_records(tmp_path, "some")


@given(st.lists(TEXT, unique=True, max_size=20), TEXT)
def test_names_are_found_as_in_a_dict(names: list[str], other: str) -> None:
    expected = {name: place for place, name in enumerate(names)}
    with TemporaryDirectory() as folder:
        Names.write(Path(folder), "names", names)
        found = Names(Path(folder), "names")
        assert dict(found) == expected
        assert list(found) == sorted(names)
        assert found.get(other) == expected.get(other)
        assert (other in found) == (other in expected)
        assert dict(ByName(found, names)) == {name: name for name in names}


def test_a_lazy_sequence_makes_only_what_is_asked_for() -> None:
    asked: list[int] = []

    def square(place: int) -> int:
        asked.append(place)
        return place * place

    squares = Lazy(1_000_000, square)
    assert (len(squares), squares[-1], squares[2:5]) == (1_000_000, 999_999**2, (4, 9, 16))
    assert squares[np.int64(7)] == 49  # type: ignore[call-overload]
    assert asked == [999_999, 2, 3, 4, 7]


TEXTS = st.lists(TEXT, max_size=3).map(tuple)
PRICES = st.lists(st.floats(0, 1e6), min_size=1, max_size=2).map(tuple)
PRODUCTS = st.builds(
    Product,
    *(TEXT, TEXT, TEXT, TEXTS, TEXT, TEXT, TEXT, PRICES, TEXT),
    options=st.lists(st.tuples(TEXT, TEXTS), max_size=3).map(tuple),
    attributes=TEXTS,
    instruction=st.none() | TEXT,
    instruction_attributes=TEXTS,
    human=st.lists(st.builds(Human, TEXT, TEXTS, TEXTS), max_size=2).map(tuple),
)


@given(PRODUCTS, st.none() | TEXTS)
def test_a_product_comes_back_from_its_record(product: Product, nouns: tuple[str, ...] | None) -> None:
    assert from_record(to_record(product, nouns)) == (product, nouns)
