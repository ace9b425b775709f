"""The view of a run while it trains: exactly what its records hold, each row at its own iteration, once."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from benchmarks import live, records
from benchmarks.config import ConfigError
from benchmarks.live import Live, TensorBoard, WeightsAndBiases, live_view
from benchmarks.run import execute, forget_after
from benchmarks.suite import job
from tests.benchmarks.tiny import planned, write_suite

Points = dict[str, list[tuple[int, float]]]


class Board:
    """Remembers what it was told."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.rows: list[tuple[int, Mapping[str, float]]] = []

    def add(self, iteration: int, numbers: Mapping[str, float]) -> None:
        self.rows.append((iteration, numbers))


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    records.write_json(
        tmp_path / "run.json",
        {
            "digest": "d" * 64,
            "created": "2025-01-01",
            "run": "grpo-s0",
            "suite": "webshop",
            "config": {"seed": 0},
        },
    )
    return tmp_path / "metrics.jsonl"


def row(iteration: int, success: float | None) -> dict[str, Any]:
    return {"iteration": iteration, "success": success, "episodes": 8}


def drawn(run: Path) -> Points:
    """Every point of the run's event files, read by TensorBoard's own reader, nothing thinned out."""
    found = EventAccumulator(
        str(run / "tensorboard"), size_guidance={"scalars": 0}, purge_orphaned_data=False
    )
    found.Reload()
    return {
        tag: [(event.step, pytest.approx(event.value)) for event in found.Scalars(tag)]
        for tag in found.Tags()["scalars"]
    }


def test_rows_are_shown_as_they_are_recorded_and_what_is_undefined_is_no_point(metrics: Path) -> None:
    opened: list[Board] = []
    view = Live([lambda run: opened.append(Board(run)) or opened[-1]])  # type: ignore[func-returns-value]
    view.follow(metrics)
    (board,) = opened
    assert (board.run, board.rows) == (metrics.parent, [])
    records.append_jsonl(metrics, [row(0, 0.25)])
    view.follow(metrics)
    records.append_jsonl(metrics, [row(1, None) | {"skipped": True, "note": "x"}])
    view.follow(metrics)
    view.follow(metrics)
    assert board.rows == [(0, {"success": 0.25, "episodes": 8.0}), (1, {"episodes": 8.0})]


def test_without_boards_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b"not json\n")
    Live().follow(tmp_path / "metrics.jsonl")


def test_event_files_hold_every_number_at_its_iteration_whenever_it_was_written(metrics: Path) -> None:
    records.write_jsonl(metrics, [row(0, 0.1), row(5, 0.2)])
    view = Live([TensorBoard])
    view.follow(metrics)
    records.append_jsonl(metrics, [row(6, None), row(10, 0.4)])
    view.follow(metrics)
    assert drawn(metrics.parent) == {
        "success": [(0, 0.1), (5, 0.2), (10, 0.4)],
        "episodes": [(0, 8.0), (5, 8.0), (6, 8.0), (10, 8.0)],
    }


def test_a_run_that_goes_on_doubles_and_shifts_no_point_of_its_event_files(metrics: Path) -> None:
    records.write_jsonl(metrics, [row(0, 0.1), row(1, 0.2), row(2, 0.3)])
    Live([TensorBoard]).follow(metrics)
    forget_after(metrics.parent, 2)  # the killed try had not saved what iteration 2 taught
    view = Live([TensorBoard])
    view.follow(metrics)
    records.append_jsonl(metrics, [row(2, 0.7), row(3, 0.8)])
    view.follow(metrics)
    assert drawn(metrics.parent)["success"] == [(0, 0.1), (1, 0.2), (2, 0.7), (3, 0.8)]


class FakeWandB(types.ModuleType):
    """Of the package, what is used of it."""

    class Error(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("wandb")
        self.settings: list[dict[str, Any]] = []
        self.sent: list[tuple[int, dict[str, float]]] = []

    def init(self, **settings: Any) -> FakeWandB:
        self.settings.append(settings)
        return self

    def log(self, numbers: dict[str, float], step: int) -> None:
        self.sent.append((step, numbers))


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> FakeWandB:
    fake = FakeWandB()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    return fake


def test_a_run_that_goes_on_is_the_same_run_of_weights_and_biases_and_sends_no_step_twice(
    metrics: Path, wandb: FakeWandB
) -> None:
    records.write_jsonl(metrics, [row(0, 0.1), row(1, 0.2), row(2, 0.3)])
    Live([WeightsAndBiases]).follow(metrics)
    forget_after(metrics.parent, 2)
    view = Live([WeightsAndBiases])
    view.follow(metrics)
    records.append_jsonl(metrics, [row(2, 0.3), row(3, 0.8)])
    view.follow(metrics)
    assert [(step, sent["success"]) for step, sent in wandb.sent] == [(0, 0.1), (1, 0.2), (2, 0.3), (3, 0.8)]
    first, second = wandb.settings
    assert first == second
    assert (first["project"], first["name"], first["group"]) == ("empg-bench", "grpo-s0", "webshop")
    assert (first["resume"], first["config"], first["dir"]) == ("allow", {"seed": 0}, str(metrics.parent))


def test_runs_of_equal_settings_begun_at_another_time_are_other_runs(metrics: Path, wandb: FakeWandB) -> None:
    Live([WeightsAndBiases]).follow(metrics)
    record = records.read_json(metrics.parent / "run.json")
    records.write_json(metrics.parent / "run.json", record | {"created": "2025-01-02"})
    Live([WeightsAndBiases]).follow(metrics)
    assert wandb.settings[0]["id"] != wandb.settings[1]["id"]


def test_what_weights_and_biases_refuses_is_one_line_before_any_training(
    metrics: Path, wandb: FakeWandB, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise wandb.Error("no API key")

    monkeypatch.setattr(wandb, "init", refuse)
    with pytest.raises(ConfigError, match=r"^--wandb: no API key$"):
        Live([WeightsAndBiases]).follow(metrics)


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_missing_package_is_named_with_the_extra_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=rf"^--{name}: .*`pip install 'empg-bench\[{name}\]'`$"):
        live_view([name])


def test_every_process_of_a_suite_is_told_to_show_its_run(tmp_path: Path, tiny_policy: Path) -> None:
    run = planned(write_suite(tmp_path, tiny_policy), tmp_path)
    plain = job(run, "tiny.toml", "default", tmp_path).command
    assert job(run, "tiny.toml", "default", tmp_path, ["tensorboard", "wandb"]).command == (
        *plain, "--tensorboard", "--wandb",
    )  # fmt: skip


@pytest.mark.usefixtures("one_thread")
def test_a_trained_run_shows_what_its_metrics_hold_and_its_numbers_do_not_change(
    tmp_path: Path, tiny_policy: Path, straight: Path
) -> None:
    run = planned(write_suite(tmp_path, tiny_policy), tmp_path)
    execute(run, tmp_path / "cache", live_view(["tensorboard"]))
    rows = records.read_jsonl(run.folder / "metrics.jsonl")
    assert rows == records.read_jsonl(straight / "metrics.jsonl")
    points = drawn(run.folder)
    assert [step for step, _ in points["success"]] == [0, 1, 2]
    for name in ("kl_loss", "entropy", "sampled_tokens_total"):
        assert points[name] == [(each["iteration"], each[name]) for each in rows]
