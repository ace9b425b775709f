"""Unicode word boundaries (UAX #29) with the token kinds of Lucene's standard tokeniser.

Each character is first replaced by the letter of its word-break class, so that the boundary rules become one
small regular expression over classes:

A letter · N digit · E connector such as `_` · L, D, B what may stand inside letters, digits, both · X
combining mark · Z zero-width joiner · K katakana · S scripts without spaces such as Thai · C scripts of one
token a character · P pictograph · F half of a flag · O anything else.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

MAX_TOKEN_LENGTH = 255
"""Longer tokens are cut into pieces of this length (UTF-16 units in Lucene, characters here)."""

Ranges = tuple[tuple[int, int], ...]


def ranges(listed: str) -> Ranges:
    """First and last code points of hexadecimal items such as `2194-2199` or `A9`."""
    ends = [item.split("-") for item in listed.split()]
    return tuple((int(item[0], 16), int(item[-1], 16)) for item in ends)


def within(code: int, listed: Ranges) -> bool:
    """Whether a code point lies in one of the ranges."""
    return any(first <= code <= last for first, last in listed)


MID_LETTER = ":\u00b7\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a"
MID_NUMBER = ",;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b"
MID_BOTH = ".'\u2018\u2019\u2024\ufe52\uff07\uff0e"
# Symbols that count as letters, marks outside the mark categories, and scripts with rules of their own.
LETTER_SIGNS = ranges(
    """2C2-2C5 2D2-2D7 2DE-2DF 2E5-2EB 2ED 2EF-2FF 55A-55C 55E 58A 5F3 24B6-24E9 A708-A716 A720-A721 A789-A78A
    AB5B"""
)
MARKS = ranges("FEFF FF9E-FF9F 1F3FB-1F3FF")
KATAKANA = ranges("3031-3035 309B-309C 30A0-30FA 30FC-30FF 31F0-31FF 32D0-32FE 3300-3357 FF66-FF9D 1B000")
ONE_BY_ONE = ranges(
    """3005-3007 3021-3029 3040-309F 3400-4DBF 4E00-9FFF F900-FAFF 1B001-1B11F 1B150-1B152 20000-3FFFF"""
)
NO_SPACES = ranges("E00-EFF 1000-109F 1780-17FF 1950-19DF 1A20-1AAF A9E0-A9FF AA60-AADF 11700-1173F")
NEITHER = ranges("17000-18CD5 18D00-18D08 1B170-1B2FB")
# Extended_Pictographic as of Unicode 12, which Lucene 9 uses.
PICTOGRAPHS = ranges(
    """A9 AE 203C 2049 2122 2139 2194-2199 21A9-21AA 231A-231B 2328 2388 23CF 23E9-23F3 23F8-23FA 24C2
    25AA-25AB 25B6 25C0 25FB-25FE 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271D 2721 2728
    2733-2734 2744 2747 274C 274E 2753-2755 2757 2763-2767 2795-2797 27A1 27B0 27BF 2934-2935 2B05-2B07
    2B1B-2B1C 2B50 2B55 3030 303D 3297 3299 1F000-1F0FF 1F10D-1F10F 1F12F 1F16C-1F171 1F17E-1F17F 1F18E
    1F191-1F19A 1F1AD-1F1E5 1F201-1F20F 1F21A 1F22F 1F232-1F23A 1F23C-1F23F 1F249-1F3FA 1F400-1F53D
    1F546-1F64F 1F680-1F6FF 1F774-1F77F 1F7D5-1F7FF 1F80C-1F80F 1F848-1F84F 1F85A-1F85F 1F888-1F88F
    1F8AE-1F8FF 1F90C-1F93A 1F93C-1F945 1F947-1FAFF 1FC00-1FFFD"""
)
FLAG_HALVES = ranges("1F1E6-1F1FF")

_LETTERS = r"(?:A[XZ]*+)++(?:[LB][XZ]*+(?:A[XZ]*+)++)*+"
_DIGITS = r"(?:N[XZ]*+)++(?:[DB][XZ]*+(?:N[XZ]*+)++)*+"
_KANA = r"(?:K[XZ]*+)++"
_JOINT = r"(?:E[XZ]*+)"
_JOINED = rf"(?:{_JOINT}++(?:{_LETTERS}|{_DIGITS}|{_KANA})++)*+"
_PLAIN = r"A++(?=[OD]|\Z)|N++(?=[OL]|\Z)"  # most tokens, found faster than by the full rule
_TOKEN = re.compile(
    rf"{_PLAIN}|{_JOINT}*+(?:(?:{_LETTERS}|{_DIGITS})++{_JOINED}|{_KANA}{_JOINED}){_JOINT}*+"
    r"|(?:S[XZ]*+)++|C[XZ]*+|PX*+(?:ZPX*+)*+|FF"
)


class _Classes(dict[int, str]):
    """Word-break class of each code point, worked out when first seen."""

    def __missing__(self, code: int) -> str:
        self[code] = found = word_break_class(chr(code))
        return found


_CLASSES = _Classes()


def word_break_class(char: str) -> str:
    """The letter of a character's class; see the module's list."""
    for letter, members in (("L", MID_LETTER), ("D", MID_NUMBER), ("B", MID_BOTH)):
        if char in members:
            return letter
    code, category = ord(char), unicodedata.category(char)
    if code == 0x200D:
        return "Z"
    for letter, listed in (("K", KATAKANA), ("C", ONE_BY_ONE), ("F", FLAG_HALVES), ("O", NEITHER)):
        if within(code, listed) and category[0] != "M":
            return letter
    if category[0] == "M" or within(code, MARKS) or (category == "Cf" and code != 0x200B):
        return "X"
    if category == "Nd" or code == 0x66B:
        return "N"
    if category == "Pc" or code == 0x202F:
        return "E"
    if category[0] == "L" or category == "Nl" or within(code, LETTER_SIGNS):
        return "S" if within(code, NO_SPACES) else "A"
    return "P" if within(code, PICTOGRAPHS) else "O"


def tokens(text: str) -> Iterator[str]:
    """Tokens between word boundaries, as written."""
    for match in _TOKEN.finditer(text.translate(_CLASSES)):
        start, end = match.span()
        while end - start > MAX_TOKEN_LENGTH:
            yield text[start : start + MAX_TOKEN_LENGTH]
            start += MAX_TOKEN_LENGTH
        yield text[start:end]
