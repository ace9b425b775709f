"""A shop of seven products, small enough to know every answer by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from envs.webshop.catalogue import Catalogue, build
from envs.webshop.goals import GoalSource
from envs.webshop.world import WebShopWorld

SHIRTS = "Clothing \u203a Men \u203a Shirts"


def row(asin: str, name: str, **fields: Any) -> dict[str, Any]:
    """A product in the official raw form."""
    return {
        "asin": asin,
        "name": name,
        "full_description": "",
        "small_description": [],
        "customization_options": "",
        "category": "fashion",
        "query": "Men's Shirts ",
        "product_category": SHIRTS,
        "pricing": "$25.00",
        "images": ["a.jpg"],
        **fields,
    }


def choices(**options: list[str]) -> dict[str, list[dict[str, Any]]]:
    """`customization_options` in the official raw form."""
    return {name: [{"value": value, "image": None} for value in values] for name, values in options.items()}


def items() -> list[dict[str, Any]]:
    garden = {
        "category": "garden",
        "query": "desk lamps",
        "product_category": "Home \u203a Lighting \u203a Lamps",
    }
    shirt = choices(Size=["Large", "X-Large"], Color=[" Red ", "Navy/White"])
    return [
        row("B000000001", "Acme Cotton Shirt", customization_options=shirt, small_description=["soft ", ""]),
        row(
            "B000000002",
            "Bolt Linen Shirt",
            pricing="$19.99$30.50",
            customization_options=choices(a=["one"], b=["one"]),
        ),
        row("B000000003", "Acme Desk Lamp", pricing="", full_description="A lamp.", **garden),
        row("B000000004", "Bolt Desk Lamp", pricing="$1,985.00", **garden),
        row(
            "B000000005",
            "Wool Socks",
            query="socks",
            product_category="Clothing \u203a Men \u203a Socks",
            pricing="$5",
        ),
        row("B000000001", "A second row of the first product"),
        row("nan", "A row without a number"),
        row("B0000000061", "A row with too long a number"),
        row(
            "B000000007",
            "",
            small_description="one bullet",
            full_description=" ",
            query="nothing",
            product_category="",
        ),
        row(
            "B000000008",
            'Socks "Quoted"',
            customization_options=choices(size=['9"', "10"], Mood=["\u00e9t\u00e9"]),
        ),
    ]


def attributes() -> dict[str, dict[str, Any]]:
    shirt = ["machine wash", "long sleeve"]
    return {
        "B000000001": {
            "attributes": ["long sleeve", "machine wash"],
            "instruction": "Find me machine wash men's shirts with long sleeve",
            "instruction_attributes": shirt,
        },
        "B000000002": {
            "attributes": ["linen"],
            "instruction": "Find me linen shirts",
            "instruction_attributes": ["linen"],
        },
        "B000000003": {
            "attributes": ["led"],
            "instruction": "Find me led lamps",
            "instruction_attributes": ["led"],
        },
        "B000000004": {
            "attributes": ["led"],
            "instruction": "Find me led lamps",
            "instruction_attributes": ["led"],
        },
        "B000000005": {"attributes": ["wool"]},
        "B000000008": {"attributes": []},
    }


def human() -> dict[str, list[dict[str, Any]]]:
    def asked(instruction: str, wanted: list[str], options: list[str]) -> dict[str, Any]:
        return {"instruction": instruction, "instruction_attributes": wanted, "instruction_options": options}

    return {
        "B000000001": [
            asked("i want a red shirt.", ["long sleeve"], ["red"]),
            asked("a big shirt", ["machine wash"], ["large"]),
        ],
        "B000000003": [asked("a lamp without a wish", [], [])],
        "B000000005": [asked("warm wool socks", ["wool"], [])],
    }


def nouns() -> dict[str, list[str]]:
    return {entry["asin"]: entry["name"].lower().split() for entry in reversed(items())}


def catalogue() -> Catalogue:
    return build("seven products", items(), attributes(), human(), nouns())


def world(source: GoalSource = "synthetic", **settings: Any) -> WebShopWorld:
    return WebShopWorld(catalogue(), source, nouns="stored", **settings)


def write(folder: Path, suffix: str = "") -> Path:
    """The shop as official files of some size, such as `_1000`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        f"items_shuffle{suffix}.json": items(),
        f"items_ins_v2{suffix}.json": attributes(),
        "items_human_ins.json": human(),
        "title_nouns.json": nouns(),
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder
