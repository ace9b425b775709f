"""From text to index terms, as Lucene's English analyser does it.

Standard tokeniser, possessive `'s` off, lower case, Lucene's stop words, Porter stemmer.
"""

from __future__ import annotations

import re
from functools import lru_cache

import Stemmer

from envs.webshop.wordbreak import tokens

_LUCENE_STOP_WORDS = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with
"""
STOP_WORDS = frozenset(_LUCENE_STOP_WORDS.split())

_POSSESSIVES = tuple(mark + letter for mark in "'\u2019\uff07" for letter in "sS")
_LATER_RULES = re.compile(r"(.+)(log|bl)(?:y|i|is|ies|ied|ying)")
_PORTER = Stemmer.Stemmer("porter", 0)


def analyse(text: str) -> list[str]:
    """Index terms of a text, in order, with repeats."""
    words = [(token[:-2] if token.endswith(_POSSESSIVES) else token).lower() for token in tokens(text)]
    return [stem(word) for word in words if word not in STOP_WORDS]


@lru_cache(maxsize=1 << 18)
def stem(word: str) -> str:
    """Porter's stem with the two rules that he added later and Lucene has: -logi to -log, -bli to -ble."""
    if len(word) <= 2:
        return word
    if (match := _LATER_RULES.fullmatch(word)) and has_syllable(
        match[1] + ("lo" if match[2] == "log" else "")
    ):
        word = match[1] + ("log" if match[2] == "log" else "ble")
    return str(_PORTER.stemWord(word))


def has_syllable(prefix: str) -> bool:
    """Porter's m > 0: a vowel with a consonant somewhere after it; `y` after a consonant is a vowel."""
    after_vowel = False
    for place, char in enumerate(prefix):
        vowel = char in "aeiou" or (char == "y" and place > 0 and not after_vowel)
        if after_vowel and not vowel:
            return True
        after_vowel = vowel
    return False
