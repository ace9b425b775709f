"""Rows in the form of official transcripts for the shop of seven products, made by hand."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.envs import shops

Rows = Mapping[str, Sequence[Mapping[str, Any]]]

GOALS = shops.world().goals
"""Only the place of a goal in the shuffled order and its drawn price cap are taken from here."""
LAMP = next(goal for goal in GOALS if goal.product.asin == "B000000003")
DEAR_LAMP = next(goal for goal in GOALS if goal.product.asin == "B000000004")


def product(asin: str, price: float, tag: str, nouns: str, **options: list[str]) -> dict[str, Any]:
    return {
        "asin": asin,
        "price": price,
        "price_tag": tag,
        "options": options,
        "title_nouns": nouns.split(),
    }


def products() -> list[dict[str, Any]]:
    drawn = random.Random(0).uniform(19.99, 30.5)  # the only price range, so the first draw
    return [
        product(
            "B000000001",
            25.0,
            "$25.0",
            "acme cotton shirt",
            size=["large", "x-large"],
            color=["red", "navy | white"],
        ),
        product("B000000002", drawn, "$19.99 to $30.5", "bolt linen shirt", a=["one"], b=["one"]),
        product("B000000003", 100.0, "$100.0", "acme desk lamp"),
        product("B000000004", 1985.0, "$1985.0", "bolt desk lamp"),
        product("B000000005", 5.0, "$5.0", "wool socks"),
        product("B000000007", 25.0, "$25.0", ""),
        product("B000000008", 25.0, "$25.0", 'socks "quoted"', size=['9"', "10"], mood=["\u00e9t\u00e9"]),
    ]


def goal() -> dict[str, Any]:
    """The lamp above every price cap; two goals ask for `led`, so its weight is a half."""
    return {
        "index": DEAR_LAMP.index,
        "instruction_text": "Find me led lamps",
        "asin": "B000000004",
        "attributes": ["led"],
        "goal_options": {},
        "price_upper": 1000000,
        "weight": 0.5,
        "category": "garden",
        "query": "desk lamps",
        "product_category": "Home \u203a Lighting \u203a Lamps",
        "name": "Bolt Desk Lamp",
    }


def search() -> dict[str, Any]:
    """One of seven documents has the term, once among 6 tokens; all have 12 + 6 + 4 + 3 + 2 + 2 + 7 = 36."""
    idf = math.log(1 + (7 - 1 + 0.5) / (1 + 0.5))
    score = idf / (1 + 0.9 * (1 - 0.4 + 0.4 * 6 / (36 / 7)))
    return {"query": "Linen", "tokens": ["linen"], "asins": ["B000000002"], "scores": [score]}


def reward() -> dict[str, Any]:
    """The target itself, within its cap: one attribute and the price, each a half."""
    info = {
        "r_type": 1.0,
        "r_att": 1.0,
        "w_att": 0.5,
        "query_match": True,
        "category_match": True,
        "title_score": 1.0,
        "r_price": True,
        "w_price": 0.5,
    }
    return {
        "id": 3,
        "mode": "synthetic",
        "goal_index": LAMP.index,
        "asin": "B000000003",
        "options": {},
        "price": 100.0,
        "reward": 1.0,
        "info": info,
    }


def episode() -> dict[str, Any]:
    wish = LAMP.instruction
    results = [
        *("Instruction:", wish, "Back to Search", "Page 1 (Total results: 1)", "Next >"),
        *("B000000002", "Bolt Linen Shirt", "$19.99 to $30.5"),
    ]
    rich = (
        f"Instruction:\n{wish}\n[button] Back to Search [button_]\nPage 1 (Total results: 1)\n"
        "[button] Next > [button_]\n\n[button] B000000002 [button_]\nBolt Linen Shirt\n$19.99 to $30.5\n"
    )
    opening = {
        "observation": f"WebShop [SEP] Instruction: [SEP] {wish} [SEP] Search",
        "observation_rich": f"WebShop\nInstruction: \n{wish}\n[button] Search [button_]\n",
        "available_actions": {"has_search_bar": True, "clickables": ["search"]},
        "reward": 0,
        "done": False,
    }
    found = {
        "observation": " [SEP] ".join(results),
        "observation_rich": rich,
        "available_actions": {
            "has_search_bar": False,
            "clickables": ["back to search", "next >", "b000000002"],
        },
        "reward": 0,
        "done": False,
    }
    steps = [
        {"action": None, **opening},
        {"action": "click[nothing of the kind]", **opening},
        {"action": "search[linen]", **found},
    ]
    return {
        "id": 7,
        "mode": "synthetic",
        "goal_index": LAMP.index,
        "show_attrs": False,
        "steps": steps,
    }


def rows() -> dict[str, list[dict[str, Any]]]:
    """Every kind of row except human goals."""
    return {
        "products": products(),
        "goals_synthetic": [goal()],
        "index_tokens": [{"asin": "B000000004", "tokens": ["bolt", "desk", "lamp"]}],
        "search": [search()],
        "rewards": [reward()],
        "episodes": [episode()],
    }


def write(folder: Path, files: Rows) -> Path:
    """Write a golden folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    return folder
