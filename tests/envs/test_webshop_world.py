"""Worlds: panels, run records, sources of nouns, and loading."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest

from envs.base import EnvError
from envs.webshop import load_world
from envs.webshop import nouns as nouns_module
from envs.webshop.catalogue import Catalogue, DataError, build
from envs.webshop.nouns import TitleNouns, title_words
from tests.envs import shops


def test_panels_take_the_first_goals_of_a_split_in_order() -> None:
    world = shops.world()
    assert world.panel("test").task_ids == ("synthetic-0",)
    assert world.panel("dev").task_ids == ("synthetic-1", "synthetic-2")
    assert world.panel("train").task_ids == ("synthetic-3", "synthetic-4", "synthetic-5", "synthetic-6")
    assert world.panel("train", 2).task_ids == ("synthetic-3", "synthetic-4")
    assert world.panel("train", 2).task_texts == tuple(goal.instruction for goal in world.goals[3:5])


@pytest.mark.parametrize("size", [0, -1, 5, 200])
def test_an_impossible_panel_size_is_refused_with_the_sizes(size: int) -> None:
    message = f"a panel of {size} webshop train tasks was asked for, but there are 4 .7 synthetic goals"
    with pytest.raises(ValueError, match=message):
        shops.world().panel("train", size)


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown split 'valid', expected one of train, dev, test"):
        shops.world().panel("valid")  # type: ignore[arg-type]


def test_the_run_record_states_what_decides_tasks_and_rewards() -> None:
    record = shops.world("human").describe()
    assert json.loads(json.dumps(record)) == record
    assert (record["products"], record["goals"], record["goal_source"]) == (7, 3, "human")
    assert record["data_digest"] == shops.catalogue().digest()
    assert (record["nouns"], record["reward"]) == ("stored with the catalogue", "official")
    assert {split: part["tasks"] for split, part in record["splits"].items()} == {
        "train": 1,
        "dev": 1,
        "test": 1,
    }
    parts = shops.world().describe()["splits"]
    assert [parts[split]["share_with_options"] for split in ("test", "dev", "train")] == [
        sum(bool(goal.options) for goal in goals) / len(goals)
        for goals in (shops.world().goals[:1], shops.world().goals[1:3], shops.world().goals[3:])
    ]


def test_the_strict_reward_is_chosen_by_name_judges_purchases_and_is_recorded(tmp_path: Path) -> None:
    data = shops.write(tmp_path)
    wrong_size = (
        "search[cotton shirt]",
        "click[b000000001]",
        "click[red]",
        "click[large]",
        "click[buy now]",
    )
    paid = {}
    for kind in ("official", "strict"):
        world = load_world(data, nouns="stored", reward=kind)  # type: ignore[arg-type]
        assert world.describe()["reward"] == kind
        goal = next(goal for goal in world.goals if goal.options == (("color", "red"), ("size", "x-large")))
        env = world.make_env()
        env.reset(options={"task": goal.task_id})
        paid[kind] = [env.step(action)[1] for action in wrong_size][-1]
    assert paid == {"official": 1.0, "strict": 0.8}  # the wrong size is one part of five
    assert load_world(data, nouns="stored").describe()["reward"] == "official"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"reward": "fair"}, "reward is 'fair', expected 'official' or 'strict'"),
        ({"search": "google"}, "search is 'google', expected 'bm25' or 'lucene'"),
    ],
)
def test_a_reward_or_search_that_does_not_exist_is_refused_before_data_is_read(
    setting: dict[str, str], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        load_world("nowhere", **setting)  # type: ignore[arg-type]


def test_a_folder_gives_the_same_tasks_as_the_catalogue_it_was_written_from(tmp_path: Path) -> None:
    world = load_world(shops.write(tmp_path, "_1000"), nouns="stored")
    assert world.panel("train").digest == shops.world().panel("train").digest
    assert world.describe()["data_digest"] == shops.world().describe()["data_digest"]


def test_a_generated_world_is_a_function_of_its_size_and_seed() -> None:
    first, again, other = load_world(products=60), load_world(products=60), load_world(products=60, seed=1)
    assert first.describe() == again.describe()
    assert first.panel("test").digest == again.panel("test").digest
    assert first.panel("test").digest != other.panel("test").digest
    assert (first.describe()["products"], first.describe()["nouns"]) == (60, "stored with the catalogue")


def test_a_generated_shop_plays_the_same_from_its_files(tmp_path: Path) -> None:
    from envs.webshop.generate import generate

    generate(60, 0).write(tmp_path)
    made, read = load_world(products=60), load_world(tmp_path, nouns="stored")
    assert made.catalogue.products == read.catalogue.products
    assert made.panel("dev").digest == read.panel("dev").digest


def test_title_words_are_words_of_three_letters_or_more_that_are_no_function_words() -> None:
    assert title_words("The Acme 4K TV-Stand for 2 Beds & \u00e9t\u00e9s, 10in") == (
        "acme",
        "stand",
        "beds",
        "\u00e9t\u00e9s",
    )


def without_nouns() -> Catalogue:
    return build("toy", [shops.row("B1", "Acme Cotton Shirt")], {}, {})


def test_nouns_come_from_storage_else_from_title_words_where_no_tagger_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nouns_module, "spacy_model", lambda: None)
    assert TitleNouns(shops.catalogue()).source == "stored"
    plain = TitleNouns(without_nouns())
    assert (plain.source, plain.describe()) == ("words", "title words (no tagger)")
    assert plain(without_nouns().products[0]) == ("acme", "cotton", "shirt")


def fake_tagger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that tags capitalised words as nouns, under a name of its own."""
    model = types.ModuleType("fake_model")

    def tag(title: str) -> list[types.SimpleNamespace]:
        if title == "broken":
            raise ValueError("no vectors")
        return [types.SimpleNamespace(text=w, pos_="PROPN" if w.istitle() else "ADJ") for w in title.split()]

    model.load = lambda: tag  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_model", model)
    monkeypatch.setattr(nouns_module, "spacy_model", lambda: "fake_model")


def test_an_installed_tagger_comes_first_and_its_nouns_are_lower_cased(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_tagger(monkeypatch)
    nouns = TitleNouns(shops.catalogue())
    assert nouns.source == "spacy"
    assert nouns(build("toy", [shops.row("B1", "soft Wool Sock")], {}, {}).products[0]) == ("wool", "sock")


def test_a_failing_tagger_is_a_failure_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tagger(monkeypatch)
    with pytest.raises(EnvError, match="could not tag 'broken'"):
        TitleNouns(shops.catalogue())(build("toy", [shops.row("B1", "broken")], {}, {}).products[0])


def test_a_source_of_nouns_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nouns_module, "spacy_model", lambda: None)
    with pytest.raises(DataError, match=r"no title nouns are stored; expected title_nouns\.json"):
        TitleNouns(without_nouns(), "stored")
    with pytest.raises(DataError, match="need spaCy and its model"):
        TitleNouns(without_nouns(), "spacy")
    with pytest.raises(ValueError, match="nouns is 'guess', expected one of"):
        TitleNouns(without_nouns(), "guess")  # type: ignore[arg-type]
