from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.config import ConfigError, load_suite
from benchmarks.prepare import open_tasks
from benchmarks.tasks import check_disjoint, train_episodes, train_tasks
from benchmarks.worlds import BENCHMARKS, DeepSearchSettings, elsewhere
from envs.base import TaskPanel


def panel(size: int, split: str = "train", start: int = 0) -> TaskPanel:
    ids = tuple(f"t{number}" for number in range(start, start + size))
    return TaskPanel("toy", split, ids, ids)


@given(size=st.integers(1, 12), groups=st.integers(1, 7), attempt=st.integers(0, 2))
def test_every_epoch_trains_on_each_task_exactly_once(size, groups, attempt):
    walked = [
        task
        for iteration in range(size)  # `groups` whole epochs
        for task in train_tasks(panel(size), 0, iteration, attempt, groups)
    ]
    for epoch in range(groups):
        assert sorted(walked[epoch * size : (epoch + 1) * size]) == sorted(panel(size).task_ids)


def test_tasks_depend_on_data_seed_and_place_alone():
    many = panel(200)
    straight = [train_tasks(many, 5, iteration, 0, 8) for iteration in range(6)]
    backwards = [train_tasks(many, 5, iteration, 0, 8) for iteration in reversed(range(6))]
    assert straight == backwards[::-1]
    assert straight[0] != train_tasks(many, 6, 0, 0, 8)
    assert straight[0] != train_tasks(many, 5, 0, 1, 8)


def test_episodes_of_an_iteration_have_places_of_their_own_and_groups_unique_over_attempts():
    episodes = [
        episode
        for attempt in range(3)
        for episode in train_episodes(panel(50), 0, 4, attempt, groups=5, group_size=3)
    ]
    assert len({episode.place for episode in episodes}) == len(episodes) == 45
    tasks_of_group = {(episode.group, episode.task_id) for episode in episodes}
    assert len(tasks_of_group) == len({group for group, _ in tasks_of_group}) == 15


def test_a_task_in_both_panels_is_refused_and_named():
    with pytest.raises(ConfigError, match=r"2 tasks .* such as 't4'; expected none"):
        check_disjoint(panel(6), panel(6, "test", start=4))


def test_no_test_task_is_ever_trained_on():
    tasks = open_tasks(load_suite("webshop", "smoke").base.model_copy(update={"panels": WHOLE}), None)
    trained = {task for i in range(200) for task in train_tasks(tasks.train, 0, i, i % 3, 12)}
    assert len(trained) > 300
    assert not trained & set(tasks.test.task_ids)


WHOLE = load_suite("webshop", "smoke").base.panels.model_copy(update={"train": None})


def test_the_test_panel_is_the_same_each_time_it_is_opened():
    base = load_suite("webshop", "smoke").base
    first, second = (open_tasks(base, None) for _ in range(2))
    assert first.record() == second.record()


def test_an_impossible_panel_size_is_refused_with_the_size_of_the_split():
    base = load_suite("webshop", "smoke").base
    panels = base.panels.model_copy(update={"test": 10_000})
    with pytest.raises(ConfigError, match="10000") as caught:
        open_tasks(base.model_copy(update={"panels": panels}), None)
    assert "\n" not in str(caught.value)


def test_missing_and_malformed_data_are_refused_in_one_line(tmp_path):
    base = load_suite("webshop", "smoke").base
    with pytest.raises(ConfigError, match="no folder"):
        open_tasks(base, tmp_path / "absent")
    with pytest.raises(ConfigError, match="items"):
        open_tasks(base, tmp_path)
    (tmp_path / "items_shuffle.json").write_text("[{]")
    with pytest.raises(ConfigError) as caught:
        open_tasks(base, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["webshop", "alfworld", "deepsearch"])
def test_other_worlds_differ_from_this_one_and_from_each_other_in_their_seed_alone(name):
    here = BENCHMARKS[name].settings()
    others = [elsewhere(here, number) for number in range(20)]
    assert len({here.seed, *(other.seed for other in others)}) == 21
    assert all(replace(other, seed=here.seed) == here for other in others)
    assert elsewhere(here, 7) == others[7]


def test_other_worlds_do_not_ask_a_server_that_has_the_passages_of_this_one():
    here = DeepSearchSettings(retriever="http://localhost:8000/retrieve")
    assert elsewhere(here, 0).retriever == "bm25"
