"""Official files too large to hold in memory: read once, then mapped by every process from a cache folder.

`webshop-<content>/catalogue` has the products, the look-ups and the search index; `goals-<source>` beside it
has the goals. Everything is made by the code that makes it in memory, so a world is the same either way.
Making it holds the attribute table and the index in memory: a few gigabytes for the full official set.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from envs.base import Progress, silent
from envs.webshop.catalogue import (
    DataError,
    KindField,
    Product,
    Tables,
    find_files,
    from_record,
    read_products,
    read_tables,
    stored_nouns,
    to_record,
)
from envs.webshop.goals import (
    DRAW_SEED,
    SHUFFLE_SEED,
    Goal,
    GoalSet,
    GoalSource,
    check_source,
    drafts_of,
    goal_order,
    sample_prices,
    weight,
)
from envs.webshop.packed import (
    ByName,
    Lazy,
    Names,
    decode,
    encode,
    read_array,
    read_records,
    write_array,
    write_records,
)
from envs.webshop.sealed import Facts, obtain, sha256
from envs.webshop.search import SearchIndex, Table, tabulate

KEPT_PRODUCTS = 1024
"""How many products a process keeps as objects."""
HASHES = "webshop-files.json"
KIND_FIELDS: tuple[KindField, ...] = get_args(KindField)


@dataclass(frozen=True, eq=False)
class MappedCatalogue:
    """A catalogue in files; the products are made when they are asked for."""

    source: str
    products: Sequence[Product]
    asins: Names
    title_nouns: Mapping[str, Sequence[str]] | None
    kinds: Mapping[KindField, tuple[Names, NDArray[np.int32]]]
    """For each field its values' numbers, and `[products]` the number of each product's value."""
    content: str
    """The digest, worked out when the files were written."""

    @property
    def by_asin(self) -> Mapping[str, Product]:
        """The products by asin."""
        return ByName(self.asins, self.products)

    def __len__(self) -> int:
        return len(self.products)

    def sorted_by_asin(self) -> Sequence[Product]:
        """The order in which search numbers its documents."""
        return self._chosen(self.asins.order)

    def of_kind(self, field: KindField, value: str) -> Sequence[Product]:
        """The products whose category or query is just this, in the order of the data."""
        names, number_of = self.kinds[field]
        return self._chosen(np.flatnonzero(number_of == names.get(value, -1)))

    def digest(self) -> str:
        """SHA-256 over everything that environments read; equal for equal data, wherever it is kept."""
        return self.content

    def _chosen(self, places: NDArray[Any]) -> Lazy[Product]:
        return Lazy(len(places), lambda place: self.products[places[place]])


@dataclass(frozen=True, eq=False)
class MappedShop:
    """What a world is made of, in files."""

    catalogue: MappedCatalogue
    index: SearchIndex
    goals: GoalSet


def open_folder(data: Path, source: GoalSource, cache: Path, progress: Progress = silent) -> MappedShop:
    """The shop of a folder of official files, out of the cache or put there first.

    Raises `DataError` for missing or malformed data, and for files that change while they are read.
    """
    check_source(source)
    paths = find_files(data)
    hashes = content_hashes(paths, cache / HASHES, progress)
    key = hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()[:16]
    folder, name = cache / f"webshop-{key}", data.name or str(data)
    origin = {"files": hashes, "PyStemmer": version("PyStemmer"), "Unicode": unicodedata.unidata_version}

    def write(draft: Path) -> Facts:
        facts = write_catalogue(draft, name, paths, progress)
        write_table(draft, tabulate_catalogue(read_catalogue(draft, name, facts), progress))
        if content_hashes(paths, cache / HASHES, progress) != hashes:
            raise DataError(f"{data}: the files changed while they were read; start again")
        return facts

    try:
        facts = obtain(folder / "catalogue", origin, write)
        catalogue = read_catalogue(folder / "catalogue", name, facts)
        index = SearchIndex(catalogue, read_table(folder / "catalogue"))
        draws = {"draws": DRAW_SEED, "shuffle": SHUFFLE_SEED}
        place = folder / f"goals-{source}"
        obtain(place, origin | draws, lambda draft: write_goals(draft, catalogue, source, progress))
        return MappedShop(catalogue, index, read_goals(place, catalogue, source))
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{folder}: {error}; remove it, it will be made again") from error


# Catalogue


def write_catalogue(folder: Path, name: str, paths: Mapping[str, Path], progress: Progress) -> Facts:
    """Read official files and write products and look-ups; `DataError` where there is no usable product."""
    tick = ticker(progress, "reading products", paths["products"].stat().st_size)
    return write_products(folder, name, read_tables(paths, tick))


def write_products(folder: Path, name: str, tables: Tables) -> Facts:
    """Write the products of official tables, in their order, with what finds them."""
    total, asins, nouns = hashlib.sha256(), list[str](), tables.title_nouns
    numbers: dict[KindField, dict[str, int]] = {field: {} for field in KIND_FIELDS}
    number_of = {field: array("i") for field in KIND_FIELDS}

    def records() -> Iterator[bytes]:
        for product in read_products(name, tables.rows, tables.attributes, tables.human):
            asins.append(product.asin)
            for field in KIND_FIELDS:
                known = numbers[field]
                number_of[field].append(known.setdefault(getattr(product, field), len(known)))
            record = to_record(product, None if nouns is None else stored_nouns(name, nouns, product.asin))
            total.update(record)
            yield record

    if write_records(folder, "products", records()) == 0:
        raise DataError(f"{name}: no usable product; expected at least one")
    Names.write(folder, "asins", asins)
    for field in KIND_FIELDS:
        Names.write(folder, field, list(numbers[field]))
        write_array(folder, f"{field}.of-product", np.asarray(number_of[field]))
    return {"products": len(asins), "digest": total.hexdigest(), "nouns": nouns is not None}


def read_catalogue(folder: Path, name: str, facts: Facts) -> MappedCatalogue:
    """The catalogue that was written to a folder."""
    records = read_records(folder, "products")
    asins = Names(folder, "asins")
    kinds = {
        field: (Names(folder, field), read_array(folder, f"{field}.of-product")) for field in KIND_FIELDS
    }
    sizes = {len(records), len(asins), *(len(number_of) for _, number_of in kinds.values())}
    if sizes != {facts["products"]}:
        raise ValueError(f"files of {sorted(sizes)} products, expected {facts['products']}")
    nouns = Lazy(len(records), lambda place: from_record(records[place])[1] or ())
    return MappedCatalogue(
        name,
        Lazy(len(records), lru_cache(KEPT_PRODUCTS)(lambda place: from_record(records[place])[0])),
        asins,
        ByName(asins, nouns) if facts["nouns"] else None,
        kinds,
        facts["digest"],
    )


# Search index


def tabulate_catalogue(catalogue: MappedCatalogue, progress: Progress) -> Table:
    """The search table of a catalogue."""
    tick = ticker(progress, "indexing products", len(catalogue))
    return tabulate(catalogue.sorted_by_asin(), lambda: tick(1))


ARRAYS = ("starts", "idf", "docs", "damping")


def write_table(folder: Path, table: Table) -> None:
    """Write a search table."""
    Names.write(folder, "terms", list(table.terms))
    write_array(folder, "documents", np.array(table.documents))
    for name in ARRAYS:
        write_array(folder, name, getattr(table, name))


def read_table(folder: Path) -> Table:
    """The search table that was written to a folder."""
    arrays = {name: read_array(folder, name) for name in ARRAYS}
    terms = Names(folder, "terms")
    ends = (len(arrays["starts"]) - 1, len(arrays["idf"])), (len(arrays["docs"]), len(arrays["damping"]))
    if ends != ((len(terms),) * 2, (int(arrays["starts"][-1]),) * 2):
        raise ValueError(f"the arrays of {len(terms)} terms do not fit each other")
    return Table(documents=int(read_array(folder, "documents")), terms=terms, **arrays)


# Goals


def write_goals(folder: Path, catalogue: MappedCatalogue, source: GoalSource, progress: Progress) -> Facts:
    """Make the goals of a source and write them; they are packed as drafts, in the order of the products."""
    draw = random.Random(DRAW_SEED)
    prices = sample_prices(catalogue.products, draw)
    asked: list[tuple[str, ...]] = []
    with_options = array("b")
    tick = ticker(progress, f"writing {source} goals", len(catalogue))

    def records() -> Iterator[bytes]:
        for place, (product, price) in enumerate(zip(catalogue.products, prices, strict=True)):
            for draft in drafts_of(product, price, source, draw):
                asked.append(draft.attributes)
                with_options.append(bool(draft.options))
                facts = [place, draft.instruction, draft.attributes, draft.options, draft.price_upper]
                yield encode(json.dumps(facts, ensure_ascii=False))
            tick(1)

    order = np.asarray(goal_order(write_records(folder, "drafts", records()), catalogue, source))
    count = Counter(attribute for attributes in asked for attribute in attributes)
    weights = np.array([weight(source, attributes, count) for attributes in asked])
    write_array(folder, "order", order)
    write_array(folder, "weights", weights[order])
    write_array(folder, "with-options", np.asarray(with_options)[order].astype(np.bool_))
    write_array(folder, "prices", np.array(prices))
    return {"goals": len(order)}


def read_goals(folder: Path, catalogue: MappedCatalogue, source: GoalSource) -> GoalSet:
    """The goals that were written to a folder."""
    drafts, order = read_records(folder, "drafts"), read_array(folder, "order")
    weights, prices = read_array(folder, "weights"), read_array(folder, "prices")
    if len({len(drafts), len(order), len(weights)}) > 1 or len(prices) != len(catalogue):
        raise ValueError(f"the arrays of {len(drafts)} goals do not fit each other")

    def draft(index: int) -> list[Any]:
        facts: list[Any] = json.loads(decode(drafts[order[index]]))
        return facts

    def goal(index: int) -> Goal:
        place, instruction, attributes, options, price_upper = draft(index)
        chosen = tuple(tuple(pair) for pair in options) if source == "synthetic" else tuple(options)
        product = catalogue.products[place]
        return Goal(
            index,
            source,
            product,
            instruction,
            tuple(attributes),
            chosen,
            price_upper,
            float(weights[index]),
        )

    return GoalSet(
        ByName(catalogue.asins, Lazy(len(prices), lambda place: float(prices[place]))),
        Lazy(len(drafts), goal),
        Lazy(len(drafts), lambda index: str(draft(index)[1])),
        read_array(folder, "with-options"),
    )


# What the data is


def content_hashes(paths: Mapping[str, Path], memo: Path, progress: Progress) -> dict[str, str]:
    """SHA-256 of each file; one whose size and times are those of an earlier call is not read again."""
    known = _read_memo(memo)
    before, found = dict(known), {}
    for kind, path in paths.items():
        state = path.stat()
        stamp = [state.st_size, state.st_mtime_ns, state.st_ctime_ns]
        entry = known.get(str(path.resolve()))
        if entry is None or entry["stamp"] != stamp:
            tick = ticker(progress, f"hashing {path.name}", state.st_size)
            entry = {"stamp": stamp, "sha256": sha256(path, tick)}
        known[str(path.resolve())] = entry
        found[kind] = str(entry["sha256"])
    if known == before:
        return found
    memo.parent.mkdir(parents=True, exist_ok=True)
    draft = memo.with_name(f".{memo.name}.{os.getpid()}")
    draft.write_text(json.dumps(known, indent=2), encoding="utf-8")
    os.replace(draft, memo)
    return found


def _read_memo(memo: Path) -> dict[str, dict[str, Any]]:
    """What earlier calls found out; nothing where it cannot be read, since it can be found out again."""
    try:
        known = json.loads(memo.read_text(encoding="utf-8"))
        return {path: {"stamp": entry["stamp"], "sha256": entry["sha256"]} for path, entry in known.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def ticker(progress: Progress, stage: str, total: int) -> Callable[[int], None]:
    """A function that hears how much more is done, and reports every half per cent."""
    done, shown = 0, 0

    def tick(more: int) -> None:
        nonlocal done, shown
        done += more
        if done - shown >= total / 200 or done >= total:
            shown = done
            progress(stage, done, total)

    return tick
