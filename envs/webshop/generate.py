"""Writes shops of any size in the official WebShop file format, for use without a download.

The tasks are solvable from what the pages show. Products come in *families*: the same kind and attributes (so the
same search finds them) but other prices, brands and option values. A family's members stand together on the first
result page; which of them satisfies a goal depends on its price cap and on the option values it offers.

Everything is a pure function of `(products, seed)`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from envs.webshop.assortment import BRANDS, DEPARTMENTS, Department, Kind

FAMILY_SIZE = (4, 6)
HUMAN_SHARE = 0.5
"""Share of wanted products that have a human instruction beside the synthetic one."""
RANGE_SHARE = 0.04
"""Share of products whose price is shown as a range (official data: 9%)."""
ANGLE = " \u203a "
CENTS = (0.99, 0.95, 0.49)
ACRONYMS = ("usb", "usda", "gmo", "led")
SERIES = ("", "", "", "Classic Series", "New Edition", "Gift Ready", "Home Series")

HUMAN_FORMS = (
    "i am looking for {adjectives} {query} with {features} for {purposes}{wanted}",
    "i need {query} for {purposes} that are {adjectives} and come with {features}{wanted}",
    "looking for some {adjectives} {query}, {features}, to use for {purposes}{wanted}",
    "please find {query} with {features}, {adjectives}, good for {purposes}{wanted}",
)


@dataclass(frozen=True)
class Generated:
    """A shop in the three official raw forms, and the nouns of its titles."""

    items: list[dict[str, Any]]
    """Rows of `items_shuffle*.json`."""
    attributes: dict[str, dict[str, Any]]
    """`items_ins_v2*.json`: attributes, and the synthetic instruction where there is one, by asin."""
    human: dict[str, list[dict[str, Any]]]
    """`items_human_ins.json`: instructions in free wording, by asin."""
    title_nouns: dict[str, list[str]]
    """Lower-cased nouns of each title, in order, for the type reward."""

    def write(self, folder: Path) -> None:
        """Save as official files, plus `title_nouns.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        files = {
            "items_shuffle.json": self.items,
            "items_ins_v2.json": self.attributes,
            "items_human_ins.json": self.human,
            "title_nouns.json": self.title_nouns,
        }
        for name, value in files.items():
            draft = folder / f"{name}.tmp"
            draft.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
            draft.replace(folder / name)


@dataclass(frozen=True)
class Family:
    """Products that one search finds together."""

    department: Department
    kind: Kind
    adjectives: tuple[str, ...]
    features: tuple[str, ...]
    purposes: tuple[str, ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        """All attributes that every member has."""
        return self.adjectives + self.features + self.purposes


@dataclass(frozen=True)
class Member:
    """One product of a family."""

    family: Family
    price: float
    wanted: bool
    """Whether goals may ask for it: the cheaper half, so that a family's dear members exceed the price cap."""


def generate(products: int, seed: int = 0) -> Generated:
    """A shop of exactly `products` products; `ValueError` for fewer than 50."""
    if products < 50:
        raise ValueError(f"a generated shop needs at least 50 products, got {products}")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(products,)))
    asins = _asins(products, rng)
    rows = list(islice(_products(rng), products))
    shop = Generated([], {}, {}, {})
    for place in rng.permutation(products):
        _add_product(shop, asins[place], rows[place], rng)
    return shop


def _products(rng: np.random.Generator) -> Iterator[Member]:
    """Family after family, the kinds in turn."""
    kinds = [(department, kind) for department in DEPARTMENTS for kind in department.kinds]
    while True:
        for department, kind in kinds:
            family = _family(department, kind, rng)
            size = int(rng.integers(FAMILY_SIZE[0], FAMILY_SIZE[1] + 1))
            low, high = kind.price
            # Even spacing on a log scale, so that a family always has cheap and dear members.
            for step in rng.permutation(size):
                place = (step + float(rng.uniform(0.1, 0.9))) / size
                whole = int(low * (high / low) ** place)
                yield Member(family, whole + float(rng.choice(CENTS)), wanted=2 * step < size)


def _family(department: Department, kind: Kind, rng: np.random.Generator) -> Family:
    def some(pool: Sequence[str], most: int) -> tuple[str, ...]:
        count = int(rng.integers(1, most + 1))
        return tuple(pool[i] for i in sorted(rng.choice(len(pool), size=count, replace=False)))

    return Family(department, kind, some(kind.adjectives, 2), some(kind.features, 1), some(kind.purposes, 1))


def _asins(count: int, rng: np.random.Generator) -> list[str]:
    """Distinct ids of ten letters, `B0` and two four-letter chunks from a list no longer than needed.

    The chunks repeat across products, so that a byte-pair tokenizer trained on the shop spells an id in few tokens.
    """
    syllables = [consonant + vowel for consonant in "BDFGHJKLMNPRSTVWXZ" for vowel in "AEIOU"]
    chunks = [first + second for first in syllables for second in syllables]
    wanted = min(len(chunks), max(40, math.isqrt(4 * count)))
    chosen = [chunks[i] for i in rng.choice(len(chunks), size=wanted, replace=False)]
    codes = rng.choice(wanted * wanted, size=count, replace=False)
    return [f"B0{chosen[code // wanted]}{chosen[code % wanted]}" for code in codes]


def _add_product(shop: Generated, asin: str, member: Member, rng: np.random.Generator) -> None:
    family, price, kind = member.family, member.price, member.family.kind
    brand, series = str(rng.choice(BRANDS)), str(rng.choice(SERIES))
    name = _title(brand, family, series)
    options = _options(kind, rng)
    ranged = rng.random() < RANGE_SHARE
    shop.items.append(
        {
            "name": name,
            "full_description": f"{_sentence(family)} Made by {brand}, who stand behind it.",
            "images": [],
            "product_category": ANGLE.join((*family.department.path, *kind.path)),
            "average_rating": "",
            "small_description": _bullets(brand, family),
            "customization_options": {
                group: [{"is_selected": False, "is_available": True, "value": value} for value in values]
                for group, values in options.items()
            },
            "asin": asin,
            "category": family.department.category,
            "query": kind.query,
            "page": 1,
            "pricing": f"${price:.2f} - ${price + 10:.2f}" if ranged else f"${price:.2f}",
        }
    )
    nouns = [brand, *kind.head.split(), *_words(family.features), *_words(family.purposes), *series.split()]
    shop.title_nouns[asin] = [word.lower() for word in nouns]
    shop.attributes[asin] = {"attributes": list(family.attributes)}
    if ranged or not member.wanted:
        return  # of a range, the price that the reward uses is not shown, so no goal may hang on it
    shop.attributes[asin] |= _instruction(family, rng)
    if rng.random() < HUMAN_SHARE:
        shop.human[asin] = [_human_instruction(asin, family, options, rng)]


def _words(phrases: Sequence[str]) -> list[str]:
    return [word for phrase in phrases for word in phrase.split()]


def _title(brand: str, family: Family, series: str) -> str:
    words = [brand, *(_capital(phrase) for phrase in family.adjectives), family.kind.head]
    words += ["with", " and ".join(_capital(phrase) for phrase in family.features)]
    words += ["for", " and ".join(_capital(phrase) for phrase in family.purposes)]
    return " ".join(words) + (f", {series}" if series else "")


def _capital(phrase: str) -> str:
    return " ".join(word.upper() if word in ACRONYMS else word.capitalize() for word in phrase.split())


def _sentence(family: Family) -> str:
    what = f"{', '.join(family.adjectives)} {family.kind.head.lower()}"
    return f"This {what} comes with {' and '.join(family.features)} and is right for {' and '.join(family.purposes)}."


def _bullets(brand: str, family: Family) -> list[str]:
    head = family.kind.head.lower()
    lines = [f"{phrase.upper()}: {brand} {head} that is {phrase} " for phrase in family.adjectives]
    lines += [f"WITH {phrase.upper()}: thought through to the last detail " for phrase in family.features]
    lines += [f"FOR {phrase.upper()}: a gift that is welcome " for phrase in family.purposes]
    return [*lines, f"WHAT YOU GET: one {head} and friendly service "]


def _options(kind: Kind, rng: np.random.Generator) -> dict[str, list[str]]:
    """Each group without one or two of its values, in the group's order."""
    offered = {}
    for name, values in kind.options:
        count = max(2, len(values) - int(rng.integers(1, 3)))
        offered[name] = [values[i] for i in sorted(rng.choice(len(values), size=count, replace=False))]
    return offered


def _instruction(family: Family, rng: np.random.Generator) -> dict[str, Any]:
    """A synthetic instruction that names all but at most one of the family's attributes."""
    parts = {"adjectives": family.adjectives, "features": family.features, "purposes": family.purposes}
    if rng.random() < 0.5:
        parts[str(rng.choice(list(parts)))] = ()
    text = "Find me " + "".join(f"{phrase}, " for phrase in parts["adjectives"]).removesuffix(", ")
    text = f"{text.strip()} {family.kind.query}"
    text += f" with {', '.join(parts['features'])}" if parts["features"] else ""
    text += f" for {', '.join(parts['purposes'])}" if parts["purposes"] else ""
    return {"instruction": text, "instruction_attributes": [p for phrases in parts.values() for p in phrases]}


def _human_instruction(
    asin: str, family: Family, options: dict[str, list[str]], rng: np.random.Generator
) -> dict[str, Any]:
    chosen = {name.lower(): str(rng.choice(values)) for name, values in options.items()}
    wanted = "".join(f", {value}" if name != "size" else f", in {value}" for name, value in chosen.items())
    text = str(rng.choice(HUMAN_FORMS)).format(
        adjectives=" and ".join(family.adjectives),
        features=" and ".join(family.features),
        purposes=" and ".join(family.purposes),
        query=family.kind.query,
        wanted=wanted,
    )
    return {
        "asin": asin,
        "instruction": f"{text}.",
        "attributes": list(family.attributes),
        "options": [f"{name}: {value}" for name, value in chosen.items()],
        "instruction_attributes": list(family.attributes),
        "instruction_options": list(chosen.values()),
    }
