"""Questions about a written encyclopedia, with the way to their answers.

Every thing belongs to one split, as a place where questions start, and to one of two sides, training or not. A question
starts at things of its split and goes on by things of its side. So no two splits share a start, and no fact that a
training question needs is needed by a question of another split.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from envs.deepsearch.encyclopedia.bridges import Chain, chains, in_turns
from envs.deepsearch.encyclopedia.chance import Dice
from envs.deepsearch.encyclopedia.known import Known, domain_of
from envs.deepsearch.encyclopedia.phrases import WHEN
from envs.deepsearch.encyclopedia.schema import (
    ASKED_DATES,
    ASKED_LINKS,
    EncyclopediaError,
    MultiHopQuestion,
    Settings,
    Step,
)
from envs.deepsearch.encyclopedia.wordings import (
    links_of,
    write_bridge,
    write_comparison,
    write_gap,
    write_intersection,
    write_same,
)

CYCLES: Mapping[str, tuple[str, ...]] = {
    "id": ("bridge", "comparison", "bridge", "same"),
    "ood": ("pair", "bridge3", "intersection", "bridge4", "gap"),
}
"""Forms of a domain, in turns; so any few questions in a row have all of them."""
HOPS: Mapping[str, int] = {"bridge": 2, "pair": 2, "bridge3": 3, "bridge4": 4}
MOST_YEARS = 150
"""Between the two events of a counting question."""
INTERSECTED = (
    *("novel", "film", "painting", "song", "company", "school", "orchestra", "club", "festival", "battle"),
    "expedition",
)
"""Kinds that an intersection may ask for."""
NOT_SHARED = ("spouse", "mother", "father")
"""Not compared: who has the same parents has the same surname."""
_TRIES = 100

Used = set[tuple[str, frozenset[int]]]
"""Relations and pairs that were asked about."""


@dataclass(frozen=True)
class _Draft:
    """A question without its place."""

    text: str
    golds: tuple[str, ...]
    relations: tuple[str, ...]
    steps: tuple[Step, ...]


def ask(settings: Settings, known: Known) -> dict[str, tuple[MultiHopQuestion, ...]]:
    """All splits. A split's first questions are the same however many are wanted of it or of others.

    Raises `EncyclopediaError` where the encyclopedia is too small for so many.
    """
    return {
        split: tuple(itertools.islice(_questions(settings.seed, known, split), count))
        for split, count in settings.questions.items()
    }


def _questions(seed: int, known: Known, split: str) -> Iterator[MultiHopQuestion]:
    domain = domain_of(split)
    drafts = {form: _drafts(seed, known, split, form) for form in CYCLES[domain]}
    for number, form in enumerate(itertools.cycle(CYCLES[domain])):
        draft = next(drafts[form], None)
        if draft is None:
            raise EncyclopediaError(
                f"no more than {number} {split} questions can be asked, then there is no {form} question left; "
                "expected fewer questions or more passages"
            )
        titles = tuple(dict.fromkeys(step.title for step in draft.steps))
        yield MultiHopQuestion(
            id=f"{split}-{number:05d}",
            text=draft.text,
            golds=draft.golds,
            form=form,
            relations=draft.relations,
            hops=HOPS.get(form, 2),
            domain=domain,
            split=split,
            supporting_titles=titles,
            steps=draft.steps,
        )


def _drafts(seed: int, known: Known, split: str, form: str) -> Iterator[_Draft]:
    dice = Dice(seed, "questions", split, form)
    if form in HOPS:
        found = chains(seed, known, split, HOPS[form], kept=form == "pair")
        return (_bridge(known, chain, dice) for chain in found)
    others = {"comparison": _comparisons, "same": _same, "intersection": _intersections, "gap": _gaps}
    return others[form](known, known.starts(split), dice)


def _bridge(known: Known, chain: Chain, dice: Dice) -> _Draft:
    start, relations, nodes = chain
    pages = (start, *nodes[:-1])
    steps = tuple(known.step(page, relation) for page, relation in zip(pages, relations, strict=True))
    text = write_bridge(known.name(start), relations, dice)
    return _Draft(text, known.golds(pages[-1], relations[-1]), relations, steps)


def _comparisons(known: Known, starts: Sequence[int], dice: Dice) -> Iterator[_Draft]:
    """Two things of one kind and a year of each; which one is asked for, and where it stands, is balanced."""
    having = {relation: [one for one in starts if relation in known.facts[one]] for relation in ASKED_DATES}
    used: Used = set()
    left = list(ASKED_DATES)
    turn = 0
    while left:
        relation = left[turn % len(left)]
        pair = _dated_pair(known, relation, having[relation], used, dice)
        if pair is None:
            left.remove(relation)
            continue
        used.add((relation, frozenset(pair)))
        full_turn = turn // len(ASKED_DATES)
        asked_later, asked_first = full_turn % 2, full_turn // 2 % 2
        wanted, other = pair[asked_later], pair[1 - asked_later]
        first, second = (wanted, other) if asked_first else (other, wanted)
        text = write_comparison(relation, WHEN[asked_later], known.name(first), known.name(second), dice)
        steps = (known.step(first, relation), known.step(second, relation))
        yield _Draft(text, known.entities[wanted].names, (relation,), steps)
        turn += 1


def _dated_pair(
    known: Known, relation: str, among: Sequence[int], used: Used, dice: Dice
) -> tuple[int, int] | None:
    """The earlier and the later of two things of one kind, not of one year."""
    for _ in range(_TRIES if among else 0):
        one, other = sorted((dice.pick(among), dice.pick(among)), key=lambda it: known.facts[it][relation])
        alike = known.entities[one].kind == known.entities[other].kind
        differ = known.facts[one][relation] != known.facts[other][relation]
        if alike and differ and (relation, frozenset((one, other))) not in used:
            return one, other
    return None


def _same(known: Known, starts: Sequence[int], dice: Dice) -> Iterator[_Draft]:
    """For each relation in turn, two things that share its value and two that do not."""
    having: dict[str, list[int]] = {}
    for relation in ASKED_LINKS:
        if relation not in NOT_SHARED:
            having[relation] = [one for one in starts if relation in known.facts[one]]
    used: Used = set()
    left = dice.shuffled(tuple(having))
    turn = 0
    while left:
        relation = left[turn % len(left)]
        yes = _sharing_pair(known, relation, having[relation], used, dice, shared=True)
        no = _sharing_pair(known, relation, having[relation], used, dice, shared=False)
        if yes is None or no is None:
            left.remove(relation)
            continue
        for pair, gold in dice.shuffled(((yes, "yes"), (no, "no"))):
            used.add((relation, frozenset(pair)))
            text = write_same(relation, known.name(pair[0]), known.name(pair[1]), dice)
            steps = (known.step(pair[0], relation), known.step(pair[1], relation))
            yield _Draft(text, (gold,), (relation,), steps)
        turn += 1


def _sharing_pair(
    known: Known,
    relation: str,
    among: Sequence[int],
    used: Used,
    dice: Dice,
    *,
    shared: bool,
) -> tuple[int, int] | None:
    """Two things of one kind, whose values are the same and called the same, or not the same."""
    called = defaultdict[tuple[str, str], list[int]](list)
    if shared:
        for one in among:
            called[known.entities[one].kind, known.stated[one][relation]].append(one)
    groups = [group for group in called.values() if len(group) > 1] if shared else [list(among)]
    for _ in range(_TRIES if groups and among else 0):
        group = dice.pick(groups)
        one, other = dice.pick(group), dice.pick(group)
        alike = known.entities[one].kind == known.entities[other].kind and one != other
        differ = known.facts[one][relation] != known.facts[other][relation]
        if alike and differ != shared and (relation, frozenset((one, other))) not in used:
            return one, other
    return None


def _intersections(known: Known, starts: Sequence[int], dice: Dice) -> Iterator[_Draft]:
    """Two conditions that only one thing of its kind meets, although several meet each of them."""
    alone, both = known.conditions()
    groups = defaultdict[tuple[str, str, str], list[int]](list)
    for one in starts:
        kind, own = known.entities[one].kind, known.facts[one]
        links = [name for name in links_of(kind) if name in own] if kind in INTERSECTED else []
        for first, second in itertools.combinations(links, 2):
            several = all(alone[kind, name, own[name]] > 1 for name in (first, second))
            unique = both[kind, first, own[first], second, own[second]] == 1
            titled = all(known.stated[one][name] == known.name(own[name]) for name in (first, second))
            if several and unique and titled:
                groups[kind, first, second].append(one)
    for (kind, *pair), one in in_turns({key: dice.shuffled(group) for key, group in sorted(groups.items())}):
        relations = tuple(dice.shuffled(pair))
        steps = tuple(known.step(one, relation) for relation in relations)
        text = write_intersection(kind, relations, [step.answer for step in steps])
        yield _Draft(text, known.entities[one].names, relations, steps)


def _gaps(known: Known, starts: Sequence[int], dice: Dice) -> Iterator[_Draft]:
    """Two dated things of different kinds, or of one."""
    dated = [(one, name) for one in starts for name in ASKED_DATES if name in known.facts[one]]
    of_relation = defaultdict[str, list[int]](list)
    for one, name in dated:
        of_relation[name].append(one)
    used = set[frozenset[int]]()
    missed = 0
    while missed < _TRIES and len(dated) > 1:
        ends = []
        for relation in (dice.pick(tuple(of_relation)), dice.pick(tuple(of_relation))):
            ends.append((relation, dice.pick(of_relation[relation])))
        ends.sort(key=lambda end: known.facts[end[1]][end[0]])
        years = [known.facts[one][relation] for relation, one in ends]
        pair = frozenset(one for _, one in ends)
        if len(pair) < 2 or pair in used or not 0 < years[1] - years[0] <= MOST_YEARS:
            missed += 1
            continue
        missed = 0
        used.add(pair)
        relations = tuple(relation for relation, _ in ends)
        text = write_gap(relations, [known.name(one) for _, one in ends], dice)
        steps = tuple(known.step(one, relation) for relation, one in ends)
        count = years[1] - years[0]
        yield _Draft(text, (str(count), f"{count} year{'s' * (count > 1)}"), relations, steps)
