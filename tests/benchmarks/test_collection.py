"""Collections of suites: what ships, strict checks, running part by part."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import suite as suites
from benchmarks.collection import collection_names, open_collection
from benchmarks.config import ConfigError
from benchmarks.overrides import Overrides


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", collection_names())
def test_every_collection_that_ships_opens_with_all_its_suites(name):
    collection = open_collection(name)
    assert all(part.suite.scale == "paper" for part in collection.parts)


def test_table_1_is_two_models_on_two_benchmarks_with_three_seeds():
    collection = open_collection("table1")
    parts = {(one.suite.benchmark, one.suite.base.policy.model) for one in collection.parts}
    assert collection.seeds == 3
    assert parts == {
        (benchmark, f"Qwen/Qwen2.5-{size}-Instruct")
        for benchmark in ("webshop", "alfworld")
        for size in ("1.5B", "7B")
    }
    for part in collection.parts:
        assert part.suite.variants == ("grpo", "grpo+empg", "dapo", "dapo+empg")


def test_each_part_of_table_1_has_a_folder_of_its_own():
    from benchmarks.plan import suite_folder

    folders = {suite_folder(one.suite, None, Path()).name for one in open_collection("table1").parts}
    assert len(folders) == 4
    assert {name for name in folders if "7B" in name} == {
        "webshop-Qwen2.5-7B-Instruct-paper",
        "alfworld-Qwen2.5-7B-Instruct-paper",
    }


def test_a_suite_is_a_collection_of_itself(tiny_suite):
    collection = open_collection(str(tiny_suite), "short")
    assert [part.suite.scale for part in collection.parts] == ["short"]
    assert (collection.seeds, collection.table) == (1, None)


def test_another_model_replaces_that_of_every_part_and_parts_that_become_alike_are_one():
    collection = open_collection("table1", overrides=Overrides(model="smollm2"))
    assert [(one.suite.name, one.suite.base.policy.model) for one in collection.parts] == [
        ("webshop", "smollm2"),
        ("alfworld", "smollm2"),
    ]


def test_a_scale_other_than_the_default_replaces_that_of_every_part():
    assert {one.suite.scale for one in open_collection("table1", "smoke").parts} == {"smoke"}


def test_official_data_of_a_collection_lie_in_a_folder_for_each_benchmark(tmp_path):
    collection = open_collection("table1", data=tmp_path)
    assert {part.data for part in collection.parts} == {tmp_path / "webshop", tmp_path / "alfworld"}
    assert {part.suite.base.panels.test for part in collection.parts} == {500, 140}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('title = "x"\nparts = []', "mine.parts: "),
        (
            'title = "x"\n[[parts]]\nsuit = "webshop"',
            "mine.parts.0.suit: unknown key, expected one of: model, scale, suite",
        ),
        ('title = "x"\nseed = 3\n[[parts]]\nsuite = "webshop"', "mine.seed: unknown key, expected one of: "),
        ('title = "x"\nseeds = 0\n[[parts]]\nsuite = "webshop"', "mine.seeds: "),
        ('title = "x"\ntable = "table9"\n[[parts]]\nsuite = "webshop"', "mine.table: "),
        ('title = "x"\n[[parts]]\nsuite = "webshot"', "no suite 'webshot', expected one of: "),
        ('title = "x"\n[[parts]]\nsuite = "webshop"\nscale = "huge"', "webshop: no scale 'huge'"),
    ],
)
def test_what_is_wrong_in_a_collection_is_one_line(tmp_path, text, said):
    with pytest.raises(ConfigError) as caught:
        open_collection(write(tmp_path, text))
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_is_refused_with_suites_and_collections():
    with pytest.raises(ConfigError, match=r"^no suite 'table9', expected one of: .*webshop, table1, table2"):
        open_collection("table9")


def test_parts_are_completed_in_order_with_the_collection_s_seeds_and_one_failure_stops_no_other(
    tmp_path, tiny_suite, monkeypatch
):
    name = write(
        tmp_path,
        'title = "x"\nseeds = 2\ntable = "table1"\n'
        '[[parts]]\nsuite = "tiny.toml"\n[[parts]]\nsuite = "tiny.toml"\nscale = "short"',
    )
    seen = []

    def complete(suite, source, seeds, *_):
        seen.append((suite.scale, source, list(seeds)))
        if suite.scale == "default":
            raise SystemExit(1)

    published = []
    monkeypatch.setattr(suites, "complete_suite", complete)
    monkeypatch.setattr(suites, "publish_joint", lambda name, *_: published.append(name))
    collection = open_collection(name)
    with pytest.raises(SystemExit) as left:
        suites.complete_collection(collection, None, tmp_path, None, Console(quiet=True))
    assert left.value.code == 1
    assert published == ["table1"]
    assert seen == [("default", str(tiny_suite), [0, 1]), ("short", str(tiny_suite), [0, 1])]
