"""The `data` command, large data through the command line, and the measurement of large catalogues."""

from __future__ import annotations

import hashlib
import json

import pytest
from rich.console import Console

from benchmarks import bench_catalogue
from benchmarks.config import ConfigError, load_suite
from benchmarks.prepare import open_tasks, open_world
from envs.alfworld import games as games_module
from envs.webshop import world as world_module
from envs.webshop.generate import generate
from tests.benchmarks.test_cli import call
from tests.envs.alfworlds import COUNTS, write_tree


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A generated shop of 400 products as official files."""
    folder = tmp_path_factory.mktemp("official")
    generate(400).write(folder)
    return folder


def test_without_a_folder_the_needed_files_and_their_origin_are_named(capsys):
    code, out, _ = call(capsys, "data", "webshop")
    assert code == 0
    for wanted in (
        "items_shuffle.json",
        "items_ins_v2_1000.json",
        "items_human_ins.json",
        "setup.sh",
        "1.18 million",
    ):
        assert wanted in out


def test_a_folder_is_described_by_hashes_and_counts_of_what_is_there(capsys, folder, tmp_path):
    code, out, _ = call(capsys, "data", "webshop", "--data", folder, "--results", tmp_path)
    assert code == 0
    for name in ("items_shuffle.json", "items_ins_v2.json", "items_human_ins.json"):
        content = (folder / name).read_bytes()
        assert f"{hashlib.sha256(content).hexdigest()}  {len(content):>13,} bytes  {name}" in out
    world = world_module.load_world(folder)
    assert f"400 products; {len(world.goals):,} synthetic goals" in out
    for split, numbers in world.splits.items():
        share = sum(bool(world.goals[number].options) for number in numbers) / len(numbers)
        assert f"{len(numbers):,} {split} ({share:.0%} with options)" in out
    assert not list(tmp_path.glob("cache/webshop-*/catalogue"))


def test_large_data_is_put_into_the_cache_of_the_results_with_progress(capsys, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(world_module.load_world.__kwdefaults__, "mapped_from", 0)
    code, out, _ = call(capsys, "data", "webshop", "--data", folder, "--results", tmp_path)
    assert code == 0
    assert "indexing products" in out
    assert len(list(tmp_path.glob("cache/webshop-*/catalogue/manifest.json"))) == 1
    assert len(list(tmp_path.glob("cache/webshop-*/goals-synthetic/manifest.json"))) == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("items_ins_v2.json", None, "expected exactly one items_ins_v2*.json, found none"),
        ("items_shuffle.json", "[]", "no usable product; expected at least one"),
        ("items_human_ins.json", "[", "items_human_ins.json: cannot be read as JSON"),
    ],
)
@pytest.mark.parametrize("mapped_from", [0, 1 << 40])
def test_data_that_cannot_be_used_is_refused_in_one_line(
    capsys, tmp_path, monkeypatch, name, content, said, mapped_from
):
    monkeypatch.setitem(world_module.load_world.__kwdefaults__, "mapped_from", mapped_from)
    generate(50).write(tmp_path / "data")
    (tmp_path / "data" / name).unlink()
    if content is not None:
        (tmp_path / "data" / name).write_text(content)
    code, _, errors = call(capsys, "data", "webshop", "--data", tmp_path / "data", "--results", tmp_path)
    refusals = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert code == 2
    assert len(refusals) == 1
    assert said in refusals[0]
    assert errors.splitlines()[-1] == refusals[0]


def test_an_absent_folder_is_refused(capsys, tmp_path):
    code, _, errors = call(capsys, "data", "webshop", "--data", tmp_path / "no", "--results", tmp_path)
    assert code == 2
    assert errors.splitlines()[-1].startswith("error: ")
    assert "no is not a folder" in errors


def test_runs_record_the_same_data_mapped_and_held(folder, tmp_path, monkeypatch):
    config = load_suite("webshop", "smoke").base
    held = open_tasks(config, folder, tmp_path).record()
    monkeypatch.setitem(world_module.load_world.__kwdefaults__, "mapped_from", 0)
    stages = []
    mapped = open_tasks(config, folder, tmp_path, lambda status: stages.append(status.stage)).record()
    assert json.dumps(mapped) == json.dumps(held)
    assert stages[-1] == "writing synthetic goals"


def test_a_whole_split_that_is_too_large_to_list_is_refused_before_it_is_listed(folder, monkeypatch):
    monkeypatch.setattr(world_module, "MOST_LISTED", 100)
    config = load_suite("webshop", "smoke").base
    panels = config.panels.model_copy(update={"train": None})
    with pytest.raises(ConfigError, match=r"all \d+ webshop train tasks .* expected a size of the panel"):
        open_tasks(config.model_copy(update={"panels": panels}), folder)
    assert open_world(config, folder).panel("train", 120)


def test_both_sides_of_the_catalogue_measurement_give_equal_answers_and_all_figures(tmp_path):
    console = Console(width=140, record=True, file=(tmp_path / "screen").open("w"))
    measured = bench_catalogue.run_bench(console, 60, episodes=2)
    assert len({side["answers"] for side in measured["sides"].values()}) == 1
    for side in measured["sides"].values():
        assert all(
            wall > 0 and cpu >= 0 for wall, cpu in (side["open"], side["first_search"], side["median_search"])
        )
    shown = console.export_text()
    for wanted in ("makes the cache", "mapped", "held in memory", "median search", "60 products"):
        assert wanted in shown


def test_a_mapped_catalogue_adds_a_small_part_of_the_memory_of_a_held_one(tmp_path):
    generate(2000).write(tmp_path / "data")
    bench_catalogue.measure_apart(tmp_path / "data", tmp_path / "cache", episodes=0)
    mapped, held = (
        bench_catalogue.measure_apart(tmp_path / "data", cache, episodes=0)["added_bytes"]
        for cache in (tmp_path / "cache", None)
    )
    if mapped is None:
        pytest.skip("this system does not say how much memory is anonymous")
    assert mapped < held / 2


def test_a_failing_catalogue_measurement_reports_the_childs_last_words(tmp_path):
    with pytest.raises(RuntimeError, match=r"ended with 1: .*nowhere is not a folder"):
        bench_catalogue.measure_apart(tmp_path / "nowhere", None, 1)


@pytest.fixture
def games(tmp_path, monkeypatch):
    """A small tree of games that counts as whole."""
    monkeypatch.setitem(games_module.OfficialGames.__init__.__kwdefaults__, "counts", COUNTS)
    return write_tree(tmp_path)


def test_the_needed_games_and_the_package_that_downloads_them_are_named(capsys):
    code, out, _ = call(capsys, "data", "alfworld")
    assert code == 0
    for wanted in (
        "game.tw-pddl",
        "traj_data.json",
        "alfworld-download",
        "ALFWORLD_DATA",
        "3,553 + 140 + 134",
    ):
        assert wanted in out


def test_games_are_counted_by_type_and_one_of_each_is_walked_through(capsys, games, tmp_path):
    code, out, _ = call(capsys, "data", "alfworld", "--data", games, "--results", tmp_path)
    assert code == 0
    for part, count in (("train", 12), ("valid_seen", 6), ("valid_unseen", 6)):
        assert f"{count} games in {part}: " in out
    assert "look 2, pick 2, clean 2, cool 2, heat 2, pick2 2" in out
    assert "18 walkthroughs won; content " in out


def test_a_game_that_its_walkthrough_does_not_win_is_one_line(capsys, games, tmp_path):
    path = games_module.list_games(games, "train")[-1].path
    path.write_text(json.dumps(json.loads(path.read_text()) | {"walkthrough": ["look"]}))
    code, _, err = call(capsys, "data", "alfworld", "--data", games, "--results", tmp_path)
    assert code == 2
    assert "its walkthrough does not win it" in err


def test_a_partial_tree_is_one_line_that_names_the_variable(capsys, games, tmp_path):
    games_module.list_games(games, "seen")[0].path.unlink()
    code, _, err = call(capsys, "data", "alfworld", "--data", games, "--results", tmp_path)
    assert code == 2
    assert "valid_seen has 5 games, expected 6" in err
    assert "ALFWORLD_DATA" in err
