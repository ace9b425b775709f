"""Weights chosen on the dev panel: which, what is kept of them, and that a killed run chooses the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import benchmarks.run
from benchmarks import records, selection
from benchmarks.config import ConfigError, load_suite
from benchmarks.plan import Run, find
from benchmarks.run import execute
from empg import checkpoint
from tests.benchmarks.report_runs import full_suite, report_of
from tests.benchmarks.test_run import Killed
from tests.benchmarks.tiny import NAME, write_suite

CHOOSING = '\n[evaluation]\ncheckpoint = "best-on-dev"\n'


def look(iteration: int, success: float | None) -> dict[str, Any]:
    return {"iteration": iteration, "success": success}


def test_the_best_look_is_the_earliest_of_those_with_most_success_and_never_one_that_only_failed() -> None:
    looks = [look(0, 0.25), look(1, None), look(2, 0.5), look(3, 0.5)]
    assert selection.best(looks) is looks[2]
    assert selection.best([look(0, None)]) is None
    assert selection.best([]) is None


def test_the_dev_panel_is_played_every_few_iterations_and_after_the_last() -> None:
    assert [iteration for iteration in range(8) if selection.due(iteration, 3, 8)] == [2, 5, 7]


def test_the_weights_of_the_best_look_come_back_and_those_of_the_one_before_stay_until_the_next(
    tmp_path: Path,
) -> None:
    model = nn.Linear(2, 1)
    for iteration, success in enumerate((0.2, 0.1, 0.4, 0.3)):
        with torch.no_grad():
            model.weight.fill_(iteration)
        selection.note(tmp_path, look(iteration, success), model)
        if iteration == 2:
            kept = sorted(path.stem for path in (tmp_path / selection.WEIGHTS).iterdir())
            assert kept == ["000000", "000002"]
    assert selection.load_best(tmp_path, model) == 2
    assert model.weight.tolist() == [[2.0, 2.0]]
    assert [path.stem for path in (tmp_path / selection.WEIGHTS).iterdir()] == ["000002"]
    assert selection.load_best(tmp_path / "none", model) is None


@pytest.fixture
def choosing(tmp_path: Path, tiny_policy: Path) -> Run:
    """A run of the tiny suite that chooses its weights on two dev tasks."""
    path = write_suite(tmp_path, tiny_policy)
    text = path.read_text().replace("test = 3", "test = 3\ndev = 2")
    path.write_text(f"checkpoint_every = 3\n{text}{CHOOSING}")  # a look makes one, too
    return find(load_suite(str(path)), NAME, None, tmp_path)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The dev panel as if the second iteration had done best; notes which panels are played."""
    played: list[str] = []
    real = benchmarks.run.evaluate_policy

    def evaluate(policy: Any, world: Any, panel: Any, *rest: Any, **given: Any) -> list[dict[str, Any]]:
        played.append(f"{panel.split} {given['iteration']}")
        rows = real(policy, world, panel, *rest, **given)
        best = panel.split == "dev" and given["iteration"] == 2
        return [row | {"success": best} for row in rows]

    monkeypatch.setattr(benchmarks.run, "evaluate_policy", evaluate)
    return played


@pytest.mark.usefixtures("one_thread")
def test_the_test_panel_judges_the_weights_that_did_best_on_dev(
    choosing: Run, scripted: list[str], tmp_path: Path
) -> None:
    execute(choosing, tmp_path / "cache")
    assert scripted == ["dev 1", "dev 2", "dev 3", "test 2"]
    folder = choosing.folder
    looks = records.read_jsonl(folder / selection.DEV)
    assert [(row["iteration"], row["success"], row["n"]) for row in looks] == [
        (0, 0, 2),
        (1, 1, 2),
        (2, 0, 2),
    ]
    assert records.read_json(folder / "summary.json")["judged"] == 2
    assert {row["iteration"] for row in records.read_jsonl(folder / "eval.jsonl")} == {2}
    assert records.read_json(folder / "run.json")["panels"]["dev"]["size"] == 2
    chosen = selection.load_file(folder / selection.WEIGHTS / "000001.safetensors")
    saved = selection.load_file(folder / "policy" / "model.safetensors")
    last = checkpoint.read(folder / "checkpoints").model
    assert all(torch.equal(saved[name], chosen[name]) for name in saved)
    assert not all(torch.equal(last[name], chosen[name]) for name in chosen)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("moment", ["before the look", "after the look", "in the evaluation"])
def test_a_run_killed_around_a_look_chooses_the_same_weights(
    choosing: Run, scripted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    note, summarise = selection.note, benchmarks.run.records.write_jsonl

    def dying(folder: Path, seen: dict[str, Any], model: Any) -> None:
        if seen["iteration"] == 1 and moment == "before the look":
            raise Killed
        note(folder, seen, model)
        if seen["iteration"] == 1 and moment == "after the look":
            raise Killed

    def stop(path: Path, rows: Any) -> None:
        if path.name == "eval.jsonl" and moment == "in the evaluation":
            raise Killed
        summarise(path, rows)

    with monkeypatch.context() as patch:
        patch.setattr(selection, "note", dying)
        patch.setattr(records, "write_jsonl", stop)
        with pytest.raises(Killed):
            execute(choosing, tmp_path / "cache")
    execute(choosing, tmp_path / "cache")
    assert [row["iteration"] for row in records.read_jsonl(choosing.folder / selection.DEV)] == [0, 1, 2]
    assert records.read_json(choosing.folder / "summary.json")["judged"] == 2
    assert scripted[-1] == "test 2"
    assert scripted.count("dev 1") == 1


def test_settings_of_the_dev_panel_without_the_choice_are_refused(tmp_path: Path, tiny_policy: Path) -> None:
    path = write_suite(tmp_path, tiny_policy)
    path.write_text(path.read_text().replace("test = 3", "test = 3\ndev = 2"))
    with pytest.raises(ConfigError, match='expected "best-on-dev"'):
        load_suite(str(path))


def test_a_report_names_the_choice(tmp_path: Path) -> None:
    suite = tmp_path / "webshop"
    full_suite(suite)
    for run in suite.iterdir():
        info = records.read_json(run / "run.json")
        info["config"]["evaluation"] = {"checkpoint": "best-on-dev"}
        info["panels"]["dev"] = {"digest": "d", "size": 50}
        info["digest"] = records.digest({key: info.get(key) for key in records.IDENTITY})
        records.write_json(run / "run.json", info)
    text = (report_of(suite).folder / "table.md").read_text()
    assert "Checkpoint with most sampled success on 50 dev tasks, 20 tasks." in text
    assert "the checkpoint with most sampled success on 50 dev tasks is evaluated" in text


def test_there_is_no_choice_by_the_test_panel(tmp_path: Path, tiny_policy: Path) -> None:
    path = write_suite(tmp_path, tiny_policy)
    path.write_text(path.read_text() + CHOOSING.replace("dev", "test"))
    with pytest.raises(ConfigError, match="'last' or 'best-on-dev', got 'best-on-test'"):
        load_suite(str(path))
