"""What an agent may command: `search[query]`, `open[title or id]`, `next` and `answer[text]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Verb = Literal["search", "open", "next", "answer"]

_BRACKETED = re.compile(r"(search|open|answer)\s*\[", re.IGNORECASE)
_NEXT = re.compile(r"next(\s*\[\s*\])?", re.IGNORECASE)


@dataclass(frozen=True)
class Command:
    """An action that was understood."""

    verb: Verb
    argument: str
    """What stands in the brackets, without outer white space; empty for `next`."""


def parse_action(text: str) -> Command | None:
    """Read an action; None where it is not understood.

    The action stands at the start, and ends with the bracket that closes its own: what follows is ignored, so of
    `search[a] answer[b]` only the search counts. Brackets inside must be balanced. `search[]` and `open[]` ask for
    nothing and are not understood; `answer[]` is an answer, and a wrong one.
    """
    text = text.strip()
    if _NEXT.fullmatch(text):
        return Command("next", "")
    begun = _BRACKETED.match(text)
    if begun is None:
        return None
    depth = 1
    for at in range(begun.end(), len(text)):
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        if depth == 0:
            argument = text[begun.end() : at].strip()
            verb: Verb = begun[1].lower()  # type: ignore[assignment]  # the pattern has no other words
            return Command(verb, argument) if argument or verb == "answer" else None
    return None
