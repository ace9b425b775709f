"""`parity alfworld`: which games are played, resuming, and what is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks import parity_alfworld
from benchmarks.cli import app
from benchmarks.config import ConfigError
from benchmarks.parity_alfworld import Shard, read_results, replay_alfworld
from envs.alfworld.engine import Moment
from envs.alfworld.games import list_games
from envs.alfworld.parity import Comparison, Difference
from envs.alfworld.tasks import PARTS
from tests.envs.alfworlds import write_tree

DIFFERENCE = Difference(
    ("go to desk 1", "dance\x1b"),
    "built in",
    Moment("Nothing happens.", ("look",), False, False),
    Moment("You dance.", ("look", "help"), False, False),
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small tree, and a comparison that finds nothing, without the official engine."""
    from contextlib import nullcontext

    monkeypatch.setattr(parity_alfworld, "check_installed", lambda: None)
    monkeypatch.setattr(parity_alfworld, "quick_oracle", nullcontext)
    found(monkeypatch, {})
    return write_tree(tmp_path)


def found(monkeypatch: pytest.MonkeyPatch, differences: dict[str, Difference]) -> list[str]:
    """Let the comparison of some tasks' texts find differences; returns the list of games that are compared."""
    played: list[str] = []

    def compare(content: Any, seed: int) -> Comparison:
        played.append(content.task)
        return Comparison(3, differences.get(content.task))

    monkeypatch.setattr(parity_alfworld, "compare", compare)
    return played


def replay(tree: Path, out: Path, **settings: Any) -> tuple[int, str]:
    console = Console(record=True, width=200, force_terminal=False)
    return replay_alfworld(tree, out, console, **settings), console.export_text()


def test_all_games_are_played_and_counted(tree: Path, tmp_path: Path) -> None:
    differing, said = replay(tree, tmp_path / "out.jsonl")
    assert differing == 0
    assert "24 games, 72 commands, 0 games differ" in said
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["task"] for row in rows] == [ref.task_id for part in PARTS for ref in list_games(tree, part)]


def test_a_run_that_was_stopped_goes_on_and_a_line_that_was_cut_off_is_played_again(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    replay(tree, out)
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:10]) + lines[10][:20])
    played = found(monkeypatch, {})
    assert "24 games, 72 commands, 0 games differ" in replay(tree, out)[1]
    assert len(played) == 14
    assert out.read_text() == "".join(lines)


def test_shards_share_the_games_among_them(tree: Path, tmp_path: Path) -> None:
    parts = []
    for number in (1, 2, 3):
        out = tmp_path / f"{number}.jsonl"
        replay(tree, out, shard=Shard(number, 3), games=20)
        parts.append({json.loads(line)["task"] for line in out.read_text().splitlines()})
    assert [len(part) for part in parts] == [7, 7, 6]
    assert len(set.union(*parts)) == 20


def test_differences_are_counted_and_the_first_is_shown_in_full_and_cannot_steer_the_terminal(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = parity_alfworld.read_game(list_games(tree, "train")[0].path).task
    found(monkeypatch, {text: DIFFERENCE})
    differing, said = replay(tree, tmp_path / "out.jsonl")
    assert differing >= 1
    assert f"{differing} games differ" in said
    assert "  > 'dance\\x1b'" in said
    assert "  feedback official: 'Nothing happens.'" in said
    assert "  feedback native:   'You dance.'" in said
    assert "  admissible native:   ['help']" in said


def test_results_of_another_seed_or_of_something_else_are_refused(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    replay(tree, out, seed=1)
    with pytest.raises(ConfigError, match="holds results of seed 1, not 2; give another file"):
        read_results(out, 2)
    out.write_text("hello\n")
    with pytest.raises(ConfigError, match="has a line that is no result: 'hello'"):
        read_results(out, 1)


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/", "-1/2"])
def test_an_impossible_shard_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected i/n with 1 <= i <= n"):
        Shard.parse(text)


def test_the_command_ends_with_code_1_where_a_game_differs(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["parity", "alfworld", "--data", str(tree), "--results", str(tmp_path), "--shard", "1/2"]
    assert CliRunner().invoke(app, command).exit_code == 0
    text = parity_alfworld.read_game(list_games(tree, "train")[1].path).task
    found(monkeypatch, {text: DIFFERENCE})
    assert CliRunner().invoke(app, [*command[:-1], "2/2"]).exit_code == 1
    assert (tmp_path / "parity" / "alfworld-all-seed0-2of2.jsonl").is_file()


def test_a_missing_tree_is_one_line_that_names_the_variable(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ALFWORLD_DATA"):
        replay(tmp_path / "absent", tmp_path / "out.jsonl")
