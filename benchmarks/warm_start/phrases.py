"""Fixed strings of an interface, found by how many episodes show them, so that each can become one token.

A page of a text world is mostly furniture: button rows, separators, labels. Furniture stands in nearly every
episode; what a task is about (titles, option values, prices) stands in few. That is the whole criterion, so a
value that has to be copied from a page does not hide inside a furniture token.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

SEPARATOR = " [SEP] "
"""Between the segments of an official WebShop `text` observation."""


def find_phrases(
    episodes: Sequence[Iterable[str]], *, separator: str = SEPARATOR, min_share: float = 0.8, most: int = 24
) -> tuple[str, ...]:
    """Runs of constant segments, with the separators around them: the `most` that save most words.

    A segment is constant when at least `min_share` of the episodes show it. Pages without the separator yield
    nothing.
    """
    pages = [[page.split(separator) for page in set(episode) if separator in page] for episode in episodes]
    shown_in = Counter[str]()
    for episode in pages:
        shown_in.update({segment for page in episode for segment in page})
    needed = min_share * len(pages)
    constant = {segment for segment, count in shown_in.items() if count >= needed}
    runs = Counter(run for episode in pages for page in episode for run in _runs(page, constant, separator))
    if not runs:
        return ()
    runs[separator] = sum(len(page) for episode in pages for page in episode)
    saved = {run: count * len(run.split()) for run, count in runs.items()}
    return tuple(sorted(saved, key=lambda run: (-saved[run], run))[:most])


def _runs(page: Sequence[str], constant: set[str], separator: str) -> list[str]:
    """Maximal runs of constant segments; each owns the separators that part it from its neighbours."""
    runs: list[str] = []
    start: int | None = None
    for place, segment in enumerate([*page, None]):
        if segment in constant:
            start = place if start is None else start
        elif start is not None:
            before = separator if start > 0 else ""
            after = separator if segment is not None else ""
            runs.append(before + separator.join(page[start:place]) + after)
            start = None
    return runs


_UNIT = re.compile(r"\s*(?:[A-Za-z']+|\d+|[^\sA-Za-z\d]+)")


def find_wordings(
    episodes: Sequence[Iterable[str]], *, min_share: float = 0.8, most: int = 48, read: int = 400
) -> tuple[str, ...]:
    """Constant wordings of prose, such as `you arrive at` or `, you see a`: the pairs of neighbours that occur most
    are joined, again and again, while at least `min_share` of the first `read` episodes show what is joined.

    Numbers are never part of one. For worlds whose pages have no separator.
    """
    pages = [[_UNIT.findall(page) for page in episode] for episode in episodes[:read]]
    needed = min_share * len(pages)
    for _ in range(most):
        pairs, shown_in = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for episode in pages:
            found = [
                (left, right)
                for page in episode
                for left, right in pairwise(page)
                if not (left.strip().isdigit() or right.strip().isdigit())
            ]
            pairs.update(found)
            shown_in.update(set(found))
        usual = {pair: count for pair, count in pairs.items() if shown_in[pair] >= needed}
        if not usual:
            break
        best = min(usual, key=lambda pair: (-usual[pair], pair))
        pages = [[_join(page, best) for page in episode] for episode in pages]
    used = Counter(
        unit.strip() for episode in pages for page in episode for unit in page if len(_UNIT.findall(unit)) > 1
    )
    return tuple(sorted(used, key=lambda text: (-used[text], text)))


def _join(page: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """The page with every such pair as one unit."""
    joined: list[str] = []
    for unit in page:
        if joined and (joined[-1], unit) == pair:
            joined[-1] += unit
        else:
            joined.append(unit)
    return joined


def find_commands(episodes: Sequence[Iterable[str]], *, min_share: float = 0.5) -> tuple[str, ...]:
    """What constant actions begin with, or are: `search[`, `click[`, `click[buy now]`, by falling use.

    A whole action, or a verb with its bracket, is constant when `min_share` of the episodes or more use it.
    """
    used_in = Counter[str]()
    for episode in episodes:
        actions = set(episode)
        used_in.update(actions | {action[: action.index("[") + 1] for action in actions if "[" in action})
    needed = min_share * len(episodes)
    frequent = [text for text, count in used_in.items() if count >= needed]
    return tuple(sorted(frequent, key=lambda text: (-used_in[text], text)))
