from __future__ import annotations

from typing import Any

import pytest

from benchmarks.config import Evaluation
from benchmarks.evaluate import episodes_of, evaluate_demonstrator, totals
from envs.base import EnvError
from envs.webshop import load_world


def row(success: bool, score: float, end: str = "terminated", mode: str = "sampled") -> dict[str, Any]:
    return {"split": "test", "mode": mode, "success": success, "score": score, "end": end}


def test_an_errored_episode_is_counted_in_its_own_column_and_in_no_rate():
    rows = [row(True, 1.0), row(False, 0.5), row(False, 0.0, "error"), row(False, 0.0, "truncated")]
    assert totals(rows) == {
        "test": {
            "sampled": {"n": 3, "errored": 1, "successes": 1, "success": pytest.approx(1 / 3), "score": 0.5}
        }
    }


def test_rates_are_absent_where_no_episode_was_finished():
    found = totals([row(False, 0.0, "error", "greedy")])["test"]["greedy"]
    assert (found["n"], found["errored"], found["success"], found["score"]) == (0, 1, None, None)


def test_modes_are_never_mixed():
    found = totals([row(True, 1.0, mode="sampled"), row(False, 0.0, mode="greedy")])["test"]
    assert (found["sampled"]["success"], found["greedy"]["success"]) == (1.0, 0.0)


@pytest.fixture(scope="module")
def world():
    return load_world(products=50)


def test_more_samples_multiply_sampled_episodes_only_and_each_has_its_own_randomness(world):
    panel = world.panel("test", 4)
    sampled = episodes_of("sampled", panel, Evaluation(samples=3))
    greedy = episodes_of("greedy", panel, Evaluation(samples=3))
    assert (len(sampled), len(greedy)) == (12, 4)
    assert len({episode.place for episode in [*sampled, *greedy]}) == 16


def test_the_demonstrator_plays_each_task_of_the_panel_and_wins_nearly_all(world):
    panel = world.panel("test", 20)
    done: list[Any] = []
    rows = evaluate_demonstrator(world, panel, Evaluation(modes=("greedy",)), seed=0, on_done=done.append)
    assert [each["task_id"] for each in rows] == list(panel.task_ids)
    assert done == rows
    assert totals(rows)["test"]["greedy"]["success"] >= 0.9
    assert all(each["steps"] > 0 for each in rows)


def test_an_environment_that_fails_under_the_demonstrator_is_an_errored_episode(world, monkeypatch):
    def fail(*_: object) -> None:
        raise EnvError("the index is gone")

    monkeypatch.setattr(type(world.make_env()), "step", fail)
    rows = evaluate_demonstrator(world, world.panel("test", 2), Evaluation(modes=("greedy",)), seed=0)
    assert [each["end"] for each in rows] == ["error", "error"]
    assert rows[0]["error"] == "the index is gone"
    assert totals(rows)["test"]["greedy"]["n"] == 0
