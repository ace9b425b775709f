"""The parity command counts what is equal, shows the first difference, and refuses what it cannot read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.cli import app
from benchmarks.config import ConfigError
from benchmarks.parity import excerpt
from envs.webshop import load_world
from envs.webshop.analysis import analyse
from envs.webshop.catalogue import read_folder
from envs.webshop.generate import generate
from envs.webshop.parity import goal_row
from envs.webshop.search import document

PRODUCTS = 60


def write(golden: Path, name: str, rows: list[dict[str, Any]]) -> None:
    golden.mkdir(exist_ok=True)
    with gzip.open(golden / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("official")
    generate(PRODUCTS).write(folder)
    return folder


@pytest.fixture
def golden(data: Path, tmp_path: Path) -> Path:
    """Transcripts of our own shop, so that all is equal until a test changes something."""
    world = load_world(data)
    write(tmp_path, "goals_synthetic", [goal_row(goal) for goal in world.goals[:20]])
    tokens = [
        {"asin": product.asin, "tokens": analyse(document(product))} for product in read_folder(data).products
    ]
    write(tmp_path, "index_tokens", tokens)
    write(tmp_path, "episodes", [episode(data)])
    return tmp_path


def episode(data: Path) -> dict[str, Any]:
    env, rich = (load_world(data, observation_mode=mode).make_env() for mode in ("text", "text_rich"))
    steps = []
    for action in (None, "search[shoes]", "click[nothing of the kind]", "click[back to search]"):
        if action is None:
            observation, info = env.reset(options={"task": "synthetic-3"})
            rich_observation, _ = rich.reset(options={"task": "synthetic-3"})
        else:
            observation, *_, info = env.step(action)
            rich_observation, *_ = rich.step(action)
        offered = {"has_search_bar": info["has_search_bar"], "clickables": list(info["clickables"])}
        steps.append(
            {"action": action, "observation": observation, "observation_rich": rich_observation}
            | {"available_actions": offered, "reward": 0.0, "done": False}
        )
    return {"id": 7, "mode": "synthetic", "goal_index": 3, "show_attrs": False, "steps": steps}


def run(golden: Path, data: Path) -> Any:
    return CliRunner().invoke(app, ["parity", "webshop", str(golden), "--data", str(data)])


def counts(output: str) -> dict[str, tuple[str, str]]:
    rows = [line.split() for line in output.splitlines()]
    return {
        row[0]: (row[1], row[2])
        for row in rows
        if len(row) == 3 and row[0] in ("goals_synthetic", "index_tokens", "episodes")
    }


def test_equal_transcripts_are_counted_and_end_well(golden: Path, data: Path) -> None:
    result = run(golden, data)
    assert result.exit_code == 0
    assert counts(result.output) == {
        "goals_synthetic": ("20", "20"),
        "index_tokens": ("60", "60"),
        "episodes": ("4", "4"),
    }
    assert "not in the folder: products, goals_human, search, rewards" in result.output


def test_a_planted_difference_is_found_and_shown_where_it_is(golden: Path, data: Path) -> None:
    changed = episode(data)
    changed["steps"][1]["observation"] += "\x1b[31m!"
    changed["steps"][2]["done"] = True
    write(golden, "episodes", [changed])
    result = run(golden, data)
    assert result.exit_code == 1
    assert counts(result.output)["episodes"] == ("2", "4")
    assert "first difference at episode 7, step 1, action 'search[shoes]'" in result.output
    assert "\\x1b[31m!" in result.output
    assert "\x1b" not in result.output


def test_a_missing_part_differs(golden: Path, data: Path) -> None:
    goal = goal_row(load_world(data).goals[0])
    write(golden, "goals_synthetic", [goal | {"colour": "red"}])
    result = run(golden, data)
    assert result.exit_code == 1
    assert "colour expected: 'red'" in result.output
    assert "colour found:    'nothing'" in result.output


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"asin": "B000000000"}], "index_tokens: row 0 does not fit the data or the golden form: KeyError"),
        ([], "index_tokens.jsonl.gz: expected at least one row, each an object"),
    ],
)
def test_rows_that_cannot_be_replayed_are_refused(
    golden: Path, data: Path, rows: list[dict[str, Any]], said: str
) -> None:
    write(golden, "index_tokens", rows)
    result = run(golden, data)
    assert isinstance(result.exception, ConfigError)
    assert said in str(result.exception)


def test_a_file_that_is_not_gzipped_is_refused(golden: Path, data: Path) -> None:
    (golden / "search.jsonl.gz").write_text("{}")
    result = run(golden, data)
    assert isinstance(result.exception, ConfigError)
    assert "search.jsonl.gz: cannot be read as gzipped JSON lines" in str(result.exception)


def test_a_folder_without_transcripts_is_refused(data: Path) -> None:
    result = run(data, data)
    assert isinstance(result.exception, ConfigError)
    assert "no transcript in" in str(result.exception)


def test_other_benchmarks_have_no_transcripts(golden: Path) -> None:
    result = CliRunner().invoke(app, ["parity", "chess", str(golden)])
    assert isinstance(result.exception, ConfigError)
    assert "'chess', expected 'webshop'" in str(result.exception)


@pytest.mark.parametrize(("start", "shown"), [(0, "abc"), (2, "...c")])
def test_an_excerpt_says_where_it_was_cut(start: int, shown: str) -> None:
    assert excerpt("abc", start) == shown
