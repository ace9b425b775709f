"""The elements of a JSON array that is too large to hold, read a piece at a time.

The standard decoder does the work, so values are those of `json.loads` to the last bit; a streaming parser
from outside would be a dependency for the forty lines below.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CHUNK = 1 << 20
"""Bytes read at a time."""
LONGEST = 1 << 26
"""Characters after which an element that cannot be read is given up; official ones have thousands."""

_DECODER = json.JSONDecoder()
_SPACE = " \t\n\r"
_ENDS = tuple(_SPACE + ",]")


def read_array(path: Path, on_bytes: Callable[[int], None] = lambda count: None) -> Iterator[Any]:
    """The elements of the array in a file, in order; `on_bytes` hears how many bytes were read.

    Raises `ValueError`, saying at which element, for text that is no JSON array; `OSError` as files do.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()

    def pieces() -> Iterator[str]:
        with path.open("rb") as file:
            while data := file.read(CHUNK):
                on_bytes(len(data))
                yield decoder.decode(data)
            yield decoder.decode(b"", final=True)

    return elements(pieces())


def elements(pieces: Iterator[str]) -> Iterator[Any]:
    """The elements of the array that consecutive pieces of text spell."""
    window = _Window(pieces)
    if (first := window.take()) != "[":
        found = {"": "nothing", "{": "an object"}.get(first, repr(first))
        raise ValueError(f"expected a list at the top, found {found}")
    number = 0
    sign = window.take() if window.peek() == "]" else ","
    while sign == ",":
        try:
            value = window.value()
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"cannot be read as JSON: element {number}: {error}") from error
        yield value
        number, sign = number + 1, window.take()
    if sign != "]":
        found = repr(sign) if sign else "the end"
        raise ValueError(
            f"cannot be read as JSON: expected ',' or ']' after {number} elements, found {found}"
        )
    if rest := window.take():
        raise ValueError(f"cannot be read as JSON: found {rest!r} after the end of the list")


class _Window:
    """The part of the text that is looked at."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text, self._place = "", 0

    def peek(self) -> str:
        """Move to the next character that is no white space and return it; nothing at the end."""
        while True:
            while self._place < len(self._text):
                if self._text[self._place] not in _SPACE:
                    return self._text[self._place]
                self._place += 1
            if not self._extend():
                return ""

    def take(self) -> str:
        """The same, and step over it."""
        sign = self.peek()
        self._place += len(sign)
        return sign

    def value(self) -> Any:
        """The next value. It counts once a sign ends it: at the window's edge a number may go on."""
        self.peek()
        while True:
            long = len(self._text) - self._place > LONGEST
            try:
                value, end = _DECODER.raw_decode(self._text, self._place)
                if self._text[end : end + 1] in _ENDS or long or not self._extend():
                    break
            except json.JSONDecodeError:
                if long or not self._extend():
                    raise
        self._place = end
        return value

    def _extend(self) -> bool:
        """Double what is left of the window at least, so that long elements are tried again seldom.

        False, with the window as it was, when there is no more.
        """
        left = self._text[self._place :]
        parts, length = [left], 0
        for piece in self._pieces:
            parts.append(piece)
            length += len(piece)
            if length > len(left):
                break
        if length:
            self._text, self._place = "".join(parts), 0
        return length > 0
