"""The products of a shop: the official raw files, checked and turned into frozen records.

The raw form is that of the official data (princeton-nlp/WebShop): a list of product rows, a table of
attributes and synthetic instructions by product, and a table of human instructions by product. A generated
catalogue uses the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal, Protocol

from envs.webshop import stream

DEFAULT_PRICE = 100.0
"""What the official shop asks for a product without a price (dollars)."""
NO_ATTRIBUTES = ("DUMMY_ATTR",)
"""The official stand-in for a product without a row in the attribute table."""
KINDS = {
    "products": "items_shuffle*.json",
    "attributes": "items_ins_v2*.json",
    "human": "items_human_ins.json",
}
NOUNS_FILE = "title_nouns.json"


class DataError(ValueError):
    """Catalogue data that is missing or not in the official form; the message is one line."""


@dataclass(frozen=True, slots=True)
class Human:
    """One instruction that a person wrote for a product."""

    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """One product as the shop knows it; texts are kept as they are, option names and values lower-cased."""

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    category: str
    query: str
    product_category: str
    pricing: tuple[float, ...]
    """One price, two ends of a range (dollars; not always in order), or nothing."""
    price_tag: str
    options: tuple[tuple[str, tuple[str, ...]], ...]
    attributes: tuple[str, ...]
    instruction: str | None = None
    instruction_attributes: tuple[str, ...] = ()
    human: tuple[Human, ...] = ()


def to_record(product: Product, nouns: Sequence[str] | None) -> bytes:
    """A product with its stored title nouns as one line of JSON: the form that is hashed and cached."""
    values = [getattr(product, name) for name in Product.__slots__ if name != "human"]
    people = [[human.instruction, human.attributes, human.options] for human in product.human]
    return json.dumps([values, people, nouns], ensure_ascii=False).encode("utf-8", "surrogatepass")


def from_record(record: bytes) -> tuple[Product, tuple[str, ...] | None]:
    """The product and the nouns of a record."""
    values, people, nouns = json.loads(record.decode("utf-8", "surrogatepass"))
    asin, title, description, bullets, category, query, product_category = values[:7]
    pricing, tag, options, attributes, instruction, asked = values[7:]
    product = Product(
        asin,
        title,
        description,
        tuple(bullets),
        category,
        query,
        product_category,
        tuple(pricing),
        tag,
        tuple([(name, tuple(offered)) for name, offered in options]),
        tuple(attributes),
        instruction,
        tuple(asked),
        tuple([Human(text, tuple(wanted), tuple(chosen)) for text, wanted, chosen in people]),
    )
    return product, None if nouns is None else tuple(nouns)


KindField = Literal["category", "query"]


class AnyCatalogue(Protocol):
    """All products, in the order of the data; shared by every environment and never changed."""

    @property
    def source(self) -> str:
        """Where it came from, for the run record."""
        ...

    @property
    def products(self) -> Sequence[Product]:
        """In the order of the data."""
        ...

    @property
    def by_asin(self) -> Mapping[str, Product]:
        """The same by asin."""
        ...

    @property
    def title_nouns(self) -> Mapping[str, Sequence[str]] | None:
        """Lower-cased nouns of each title, in order and with repeats, where they were stored with the data."""
        ...

    def __len__(self) -> int: ...

    def sorted_by_asin(self) -> Sequence[Product]:
        """The order in which search numbers its documents."""
        ...

    def of_kind(self, field: KindField, value: str) -> Sequence[Product]:
        """The products whose category or query is just this, in the order of the data."""
        ...

    def digest(self) -> str:
        """SHA-256 over everything that environments read; equal for equal data, wherever it is kept."""
        ...


@dataclass(frozen=True, eq=False)
class Catalogue:
    """A catalogue held in memory."""

    source: str
    """Where it came from, for the run record."""
    products: tuple[Product, ...] = field(repr=False)
    title_nouns: Mapping[str, tuple[str, ...]] | None = field(default=None, repr=False)
    """Lower-cased nouns of each title, in order and with repeats, where they were stored with the data."""
    by_asin: Mapping[str, Product] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.products:
            raise DataError(f"{self.source}: no usable product; expected at least one")
        object.__setattr__(self, "by_asin", {product.asin: product for product in self.products})

    def __len__(self) -> int:
        return len(self.products)

    def sorted_by_asin(self) -> tuple[Product, ...]:
        """The order in which search numbers its documents."""
        return tuple(sorted(self.products, key=lambda product: product.asin))

    def of_kind(self, field: KindField, value: str) -> tuple[Product, ...]:
        """The products whose category or query is just this, in the order of the data."""
        return tuple(product for product in self.products if getattr(product, field) == value)

    def digest(self) -> str:
        """SHA-256 over everything that environments read; equal for a generated catalogue and its files."""
        total, nouns = hashlib.sha256(), self.title_nouns
        for product in self.products:
            total.update(to_record(product, None if nouns is None else nouns.get(product.asin)))
        return total.hexdigest()


class RawCatalogue(Protocol):
    """A catalogue in the official raw form, as the generator makes it."""

    @property
    def items(self) -> list[dict[str, Any]]:
        """Rows of `items_shuffle.json`."""
        ...

    @property
    def attributes(self) -> dict[str, dict[str, Any]]:
        """The table of `items_ins_v2.json`."""
        ...

    @property
    def human(self) -> dict[str, list[dict[str, Any]]]:
        """The table of `items_human_ins.json`."""
        ...

    @property
    def title_nouns(self) -> Mapping[str, Sequence[str]] | None:
        """Lower-cased nouns of each title by asin."""
        ...


def from_raw(raw: RawCatalogue, source: str) -> Catalogue:
    """The catalogue of a generator's raw tables."""
    return build(source, raw.items, raw.attributes, raw.human, raw.title_nouns)


def read_folder(folder: Path) -> Catalogue:
    """The catalogue in a folder of official files of any size (`items_shuffle_1000.json` or
    `items_shuffle.json`).

    Raises `DataError` when a kind of file is missing, is there twice, or is malformed.
    """
    tables = read_tables(find_files(folder))
    return build(folder.name or str(folder), tables.rows, tables.attributes, tables.human, tables.title_nouns)


@dataclass(frozen=True, eq=False)
class Tables:
    """What a folder of official files holds; the rows are read from the file as they are asked for, once."""

    rows: Iterable[Any]
    attributes: dict[str, Any]
    human: dict[str, Any]
    title_nouns: dict[str, Any] | None


def read_tables(paths: Mapping[str, Path], on_bytes: Callable[[int], None] = lambda count: None) -> Tables:
    """The tables of official files; `on_bytes` hears how many bytes of the product rows were read."""
    return Tables(
        product_rows(paths["products"], on_bytes),
        read_object(paths["attributes"]),
        read_object(paths["human"]),
        read_object(paths["nouns"]) if "nouns" in paths else None,
    )


def product_rows(path: Path, on_bytes: Callable[[int], None]) -> Iterator[Any]:
    """The product rows of a file of any size; `DataError` where it is no JSON list."""
    try:
        yield from stream.read_array(path, on_bytes)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {error}") from error


def find_files(folder: Path) -> dict[str, Path]:
    """The one file of each kind, and the stored nouns where there are some.

    `DataError` names the folder, what was expected and what was found.
    """
    if not folder.is_dir():
        raise DataError(
            f"no WebShop data: {folder} is not a folder; expected one with {', '.join(KINDS.values())}"
        )
    files = {}
    for kind, pattern in KINDS.items():
        found = sorted(folder.glob(pattern))
        if len(found) != 1:
            names = ", ".join(path.name for path in found) or "none"
            raise DataError(f"{folder}: expected exactly one {pattern}, found {names}")
        files[kind] = found[0]
    if (folder / NOUNS_FILE).is_file():
        files["nouns"] = folder / NOUNS_FILE
    return files


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file whose outermost value is an object; `DataError` otherwise."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected an object at the top, found {type(value).__name__}")
    return value


def build(
    source: str,
    rows: Iterable[Mapping[str, Any]],
    attributes: Mapping[str, Mapping[str, Any]],
    human: Mapping[str, Sequence[Mapping[str, Any]]],
    title_nouns: Mapping[str, Sequence[str]] | None = None,
) -> Catalogue:
    """The catalogue of raw tables, held in memory."""
    products = tuple(read_products(source, rows, attributes, human))
    nouns = None
    if title_nouns is not None:
        nouns = {product.asin: stored_nouns(source, title_nouns, product.asin) for product in products}
    return Catalogue(source, products, nouns)


def read_products(
    source: str,
    rows: Iterable[Mapping[str, Any]],
    attributes: Mapping[str, Mapping[str, Any]],
    human: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Iterator[Product]:
    """Checked products in row order; repeated, over-long and `nan` asins are left out, as officially."""
    seen = set()
    for number, row in enumerate(rows):
        try:
            asin = row["asin"]
            if asin == "nan" or len(asin) > 10 or asin in seen:
                continue
            product = read_product(row, attributes.get(asin), human.get(asin, ()))
        except DataError as error:
            raise DataError(f"{source}: product row {number}: {error}") from error
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            fault = f"{type(error).__name__}: {error}"
            raise DataError(f"{source}: product row {number} is not in the official form: {fault}") from error
        seen.add(asin)
        yield product


def stored_nouns(source: str, nouns: Mapping[str, Sequence[str]], asin: str) -> tuple[str, ...]:
    """The nouns of one title; `DataError` where a product has none."""
    if asin not in nouns:
        raise DataError(
            f"{source}: the stored title nouns lack product {asin}; expected one list per product"
        )
    return tuple(nouns[asin])


def read_product(
    row: Mapping[str, Any], known: Mapping[str, Any] | None, human: Sequence[Mapping[str, Any]]
) -> Product:
    """One raw row with its entries in the attribute and human tables."""
    bullets = row["small_description"]
    pricing, tag = read_price(row.get("pricing"))
    known = known or {}
    instruction = known.get("instruction")
    asked = tuple(known.get("instruction_attributes") or ())
    if instruction is not None and not asked:
        raise DataError(
            f"{row['asin']} has an instruction but no instruction_attributes; expected at least one"
        )
    return Product(
        asin=text(row, "asin"),
        title=text(row, "name"),
        description=text(row, "full_description"),
        bullets=tuple(bullets) if isinstance(bullets, list) else (bullets,),
        category=text(row, "category"),
        query=text(row, "query").lower().strip(),
        product_category=text(row, "product_category"),
        pricing=pricing,
        price_tag=tag,
        options=read_options(row.get("customization_options")),
        attributes=tuple(known["attributes"]) if "attributes" in known else NO_ATTRIBUTES,
        instruction=instruction,
        instruction_attributes=asked,
        human=tuple(
            Human(
                entry["instruction"],
                tuple(entry["instruction_attributes"]),
                tuple(entry["instruction_options"]),
            )
            for entry in human
        ),
    )


def text(row: Mapping[str, Any], key: str) -> str:
    """A field that must be a string."""
    value = row[key]
    if not isinstance(value, str):
        raise DataError(f"{key} is {value!r}, expected a string")
    return value


def read_price(pricing: str | None) -> tuple[tuple[float, ...], str]:
    """Prices in dollars and the shown tag: `$14.9`, `$7.99 to $12.5`, or `$100.0` when there is none."""
    if not pricing:
        return (DEFAULT_PRICE,), f"${DEFAULT_PRICE}"
    try:
        prices = tuple(float(Decimal(re.sub(r"[^\d.]", "", part))) for part in pricing.split("$")[1:])
    except InvalidOperation:
        prices = ()
    if not prices:
        raise DataError(f"pricing is {pricing!r}, expected dollars such as '$14.90' or '$7.99 - $12.50'")
    if len(prices) == 1:
        return prices, f"${prices[0]}"
    return prices[:2], f"${prices[0]} to ${prices[1]}"


def read_options(raw: Mapping[str, Any] | str | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Option names with their values, in the order of the data; contents that are null are dropped."""
    if not raw:
        return ()
    if not isinstance(raw, Mapping):
        raise DataError(f"customization_options is {raw!r}, expected an object or nothing")
    options = {}
    for name, contents in raw.items():
        if contents is not None:
            # Two spaces can appear around the bar; the official shop shows them, and they must be clicked so.
            options[name.lower()] = tuple(
                entry["value"].strip().replace("/", " | ").lower() for entry in contents
            )
    return tuple(options.items())
