"""Trees of official game files: found, counted, hashed; whatever is wrong with them is said before any episode."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from envs.alfworld import games as games_module
from envs.alfworld import load_world
from envs.alfworld.games import OfficialGames, find_tree, list_games, read_game
from envs.alfworld.generate import plan
from envs.alfworld.problem import GameError
from envs.alfworld.tasks import OFFICIAL_TYPES, PARTS
from envs.base import EnvError
from tests.envs.alfworlds import COUNTS, write_game, write_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path)


@pytest.fixture
def small_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree of the tests counts as whole."""
    monkeypatch.setitem(games_module.OfficialGames.__init__.__kwdefaults__, "counts", COUNTS)


def opened(tree: Path, **settings: object) -> OfficialGames:
    return OfficialGames(tree, counts=COUNTS, **settings)  # type: ignore[arg-type]


def test_every_game_of_a_part_is_listed_once_by_sorted_id_with_type_and_sentence(tree: Path) -> None:
    found = opened(tree)
    for part in PARTS:
        planned = sorted(plan(0, part, number, 14).task for number in range(COUNTS[part]))
        assert list(found.tasks(part)) == planned


def test_the_hash_says_what_is_in_the_files_and_not_where_they_are(tree: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(tree, moved)
    before = opened(tree).describe()["data_digest"]
    assert opened(moved).describe()["data_digest"] == before
    path = next(moved.rglob("game.tw-pddl"))
    path.write_text(path.read_text().replace("bedroom", "bedroom") + "\n")
    assert opened(moved).describe()["data_digest"] != before


def test_the_folder_may_be_the_tree_or_what_holds_it_or_be_named_by_the_variable(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_tree(tree) == tree
    assert find_tree(tree.parent) == tree
    monkeypatch.setenv("ALFWORLD_DATA", str(tree.parent))
    assert find_tree() == tree


def test_a_missing_folder_is_an_error_that_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GameError, match=r"no folders train, valid_seen, valid_unseen in .*ALFWORLD_DATA"):
        find_tree(tmp_path)
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    with pytest.raises(GameError, match="no folder is named; set DATA or ALFWORLD_DATA"):
        find_tree()


def test_an_empty_tree_is_an_error_that_names_the_variable_and_no_count_of_zero_is_accepted(
    tmp_path: Path,
) -> None:
    for name in ("train", "valid_seen", "valid_unseen"):
        (tmp_path / name).mkdir()
    with pytest.raises(GameError, match=r"train has 0 games, expected 3553; .*ALFWORLD_DATA"):
        OfficialGames(find_tree(tmp_path))
    with pytest.raises(GameError, match="train has 0 games"):
        load_world(tmp_path)


def test_a_partial_tree_is_an_error_that_says_which_part_lacks_how_many(tree: Path) -> None:
    shutil.rmtree(next((tree / "valid_seen").iterdir()))
    with pytest.raises(GameError, match="valid_seen has 5 games, expected 6"):
        opened(tree)


def test_sliced_and_movable_and_unsolvable_games_and_trials_without_a_game_are_left_out(tree: Path) -> None:
    planned = plan(0, "seen", 50, 14)
    folder = tree / "valid_seen"
    write_game(folder / "pick_and_place_simple-AppleSliced-None-Fridge-1" / "trial", planned)
    write_game(folder / "pick_and_place_with_movable_recep-Mug-Pan-Sink-1" / "trial", planned)
    write_game(folder / "pick_and_place_simple-Mug-None-Desk-1" / "trial", planned, solvable=False)
    write_game(folder / "pick_and_place_simple-Mug-None-Desk-2" / "trial", planned)
    (folder / "pick_and_place_simple-Mug-None-Desk-2" / "trial" / "game.tw-pddl").unlink()
    assert len(opened(tree).tasks("seen")) == COUNTS["seen"]


def test_the_record_says_how_the_games_spell_putting(tmp_path: Path) -> None:
    for name, put in (("old", "put {o} in/on {r}"), ("new", "move {o} to {r}")):
        assert opened(write_tree(tmp_path / name, put=put)).describe()["putting"] == put


def test_files_that_have_not_changed_are_not_read_again(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memo = tmp_path / "cache" / "games.json"
    first = opened(tree, memo=memo)
    with monkeypatch.context() as patch:
        patch.setattr(games_module, "_read_table", lambda path: pytest.fail(f"read {path}"))
        assert opened(tree, memo=memo).describe() == first.describe()
    path = next((tree / "train").rglob("game.tw-pddl"))
    path.write_text(path.read_text() + " ")
    assert opened(tree, memo=memo).describe() != first.describe()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}', '{"games": {"stamp": 3}}'])
def test_a_broken_memo_is_made_again(tree: Path, tmp_path: Path, content: str) -> None:
    memo = tmp_path / "games.json"
    expected = opened(tree, memo=memo).describe()
    good = memo.read_text()
    memo.write_text(content)
    assert opened(tree, memo=memo).describe() == expected
    assert json.loads(memo.read_text()) == json.loads(good)


def test_a_trials_folder_stands_for_its_game_file(tree: Path) -> None:
    path = list_games(tree, "train")[0].path
    assert read_game(path.parent) == read_game(path)
    with pytest.raises(GameError, match=r"no game\.tw-pddl in .*, expected the folder of one trial"):
        read_game(tree)
    with pytest.raises(GameError, match=r"no file .*absent.*ALFWORLD_DATA"):
        read_game(tree / "absent")


def test_a_file_that_is_no_game_is_named_before_any_episode(tree: Path) -> None:
    path = list_games(tree, "unseen")[2].path
    path.write_text("{")
    with pytest.raises(GameError, match=f"{path.parent.name}.*is no game file"):
        opened(tree)
    path.write_text('{"grammar": ""}')
    with pytest.raises(GameError, match="has no 'pddl_problem', expected an official game file"):
        opened(tree)
    path.write_text('{"grammar": "", "pddl_problem": ""}')
    with pytest.raises(GameError, match=f"{path.parent.name}.*the grammar has no rule"):
        opened(tree)


def test_an_unknown_task_type_is_refused_with_those_that_exist(tree: Path) -> None:
    path = list_games(tree, "train")[0].path.parent / "traj_data.json"
    path.write_text('{"task_type": "juggle"}')
    with pytest.raises(GameError, match=f"task type 'juggle', expected one of {next(iter(OFFICIAL_TYPES))}"):
        opened(tree)


@pytest.mark.usefixtures("small_counts")
def test_a_tree_is_opened_without_a_solver(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a program was started"))
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: pytest.fail("a library was loaded"))
    world = load_world(tree)
    for split in ("train", "dev", "test"):
        for task in world.tasks(split):
            world.check(task.task_id)


@pytest.mark.usefixtures("small_counts")
def test_files_of_two_versions_mixed_up_fail_before_any_episode(tree: Path) -> None:
    """As where problems of one download lie beside the plans of another: no command does anything."""
    assert load_world(tree).describe()["games"] == sum(COUNTS.values())
    refs = list_games(tree, "unseen")
    table = json.loads(refs[0].path.read_text())
    table["walkthrough"] = ["put mug 1 in/on desk 1"]
    refs[0].path.write_text(json.dumps(table))
    with pytest.raises(
        EnvError, match="its walkthrough does not win it, so its files do not belong together"
    ):
        load_world(tree)
