"""The parity command counts what is equal, shows the first difference, and refuses what it cannot read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.cli import app
from benchmarks.config import ConfigError
from benchmarks.parity import excerpt
from tests.envs import golden_rows, shops

COUNTS = {
    "products": ("7", "7"),
    "goals_synthetic": ("1", "1"),
    "index_tokens": ("1", "1"),
    "search": ("1", "1"),
    "rewards": ("1", "1"),
    "episodes": ("3", "3"),
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return shops.write(tmp_path)


@pytest.fixture
def golden(data: Path) -> Path:
    return golden_rows.write(data / "golden", golden_rows.rows())


def planted(name: str, **changes: Any) -> dict[str, list[dict[str, Any]]]:
    """The rows of one file with a change in the first."""
    first, *others = golden_rows.rows()[name]
    return {name: [first | changes, *others]}


def run(golden: Path, data: Path) -> Any:
    return CliRunner().invoke(app, ["parity", "webshop", str(golden), "--data", str(data)])


def counts(output: str) -> dict[str, tuple[str, str]]:
    rows = [line.split() for line in output.splitlines()]
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3 and row[0] in COUNTS}


def test_hand_made_transcripts_of_the_official_behaviour_are_equal(golden: Path, data: Path) -> None:
    result = run(golden, data)
    assert (result.exit_code, counts(result.output)) == (0, COUNTS)
    assert "difference" not in result.output
    assert "not in the folder: goals_human" in result.output


def test_data_is_looked_for_beside_the_transcripts_then_above_them(golden: Path, data: Path) -> None:
    above = CliRunner().invoke(app, ["parity", "webshop", str(golden)])
    beside = CliRunner().invoke(app, ["parity", "webshop", str(golden_rows.write(data, golden_rows.rows()))])
    assert (counts(above.output), counts(beside.output)) == (COUNTS, COUNTS)


@pytest.mark.parametrize(
    ("name", "changes", "where", "part"),
    [
        ("products", {"price_tag": "$25"}, "product B000000001", "price_tag"),
        ("goals_synthetic", {"weight": 1.0}, f"goal {golden_rows.DEAR_LAMP.index}", "weight"),
        ("index_tokens", {"tokens": ["bolt", "desk", "lamps"]}, "product B000000004", "tokens"),
        ("search", {"asins": ["B000000001"]}, "search 'linen'", "asins"),
        ("search", {"scores": [0.5]}, "search 'linen'", "scores"),
        ("rewards", {"reward": 0.5}, "reward 3", "reward"),
    ],
)
def test_a_planted_difference_in_any_file_is_counted_and_shown_where_it_is(
    golden: Path, data: Path, name: str, changes: dict[str, Any], where: str, part: str
) -> None:
    result = run(golden_rows.write(golden, planted(name, **changes)), data)
    equal, total = COUNTS[name]
    assert result.exit_code == 1
    assert counts(result.output) == COUNTS | {name: (str(int(equal) - 1), total)}
    assert f"{name}: first difference at {where}" in result.output
    assert f"{part} expected:" in result.output
    assert f"{part} found:" in result.output


def test_only_the_first_differing_step_of_an_episode_is_shown_and_cannot_steer_the_terminal(
    golden: Path, data: Path
) -> None:
    changed = golden_rows.episode()
    changed["steps"][1]["observation"] += "\x1b[31m!"
    changed["steps"][2]["done"] = True
    result = run(golden_rows.write(golden, {"episodes": [changed]}), data)
    assert result.exit_code == 1
    assert counts(result.output)["episodes"] == ("1", "3")
    assert "first difference at episode 7, step 1, action 'click[nothing of the kind]'" in result.output
    assert "done expected" not in result.output
    assert "\\x1b[31m!" in result.output
    assert "\x1b" not in result.output


def test_a_missing_part_differs(golden: Path, data: Path) -> None:
    result = run(golden_rows.write(golden, planted("goals_synthetic", colour="red")), data)
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
    result = run(golden_rows.write(golden, {"index_tokens": rows}), data)
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
    assert "'chess' is known, expected webshop or alfworld" in str(result.exception)


@pytest.mark.parametrize(("start", "shown"), [(0, "abc"), (2, "...c")])
def test_an_excerpt_says_where_it_was_cut(start: int, shown: str) -> None:
    assert excerpt("abc", start) == shown
