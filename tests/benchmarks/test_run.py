"""Whole runs of a tiny policy in this process: what they record, refuse, and make of a crash."""

from __future__ import annotations

import fcntl
import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import benchmarks.run
from benchmarks import records
from benchmarks.config import ConfigError
from benchmarks.prepare import check_writable
from benchmarks.run import execute
from empg.trainer import Learner
from tests.benchmarks.tiny import NAME, planned, write_suite

pytestmark = pytest.mark.usefixtures("one_thread")

COMPARED = (
    "metrics.jsonl", "episodes.jsonl", "eval.jsonl", "gradients.jsonl",
    "steps.parquet", "tokens.parquet", "gradients.parquet",
)  # fmt: skip


def assert_same_numbers(folder: Path, straight: Path) -> None:
    for name in COMPARED:
        assert (folder / name).read_bytes() == (straight / name).read_bytes(), name
    (ours,), (theirs,) = (list((each / "checkpoints").iterdir()) for each in (folder, straight))
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes()


def test_a_run_leaves_every_record_with_rows_for_each_iteration_and_episode(straight):
    run = records.read_json(straight / "run.json")
    assert (run["kind"], run["variant"], run["seed"], run["suite"]) == ("train", "grpo+empg", 0, "tiny")
    assert run["panels"]["test"]["size"] == 3
    assert run["device"]["threads"] == 1
    metrics = records.read_jsonl(straight / "metrics.jsonl")
    assert [row["iteration"] for row in metrics] == [0, 1, 2]
    assert all(row["optimizer_steps"] == 2 and row["kl_loss"] is not None for row in metrics)
    assert metrics[2]["kl_loss"] > metrics[0]["kl_loss"] >= 0  # it did learn something
    episodes = records.read_jsonl(straight / "episodes.jsonl")
    assert len(episodes) == 3 * 4
    assert sum(row["sampled_tokens"] for row in episodes) == metrics[-1]["sampled_tokens_total"]
    assert all(len(row["turns"]) == row["steps"] for row in episodes)
    assert all("Instruction:" in row["opening"] for row in episodes)  # what the shop asks for
    timing = records.read_jsonl(straight / "timing.jsonl")
    assert [set(row) for row in timing] == [{"iteration", "total", "collect", "score", "update"}] * 3


def test_the_step_table_has_a_row_for_each_step_and_entropies_after_the_update_where_asked(straight):
    table = pq.read_table(straight / "steps.parquet").to_pylist()
    episodes = records.read_jsonl(straight / "episodes.jsonl")
    assert len(table) == sum(row["steps"] for row in episodes)
    assert {row["run"] for row in table} == {NAME}
    measured = {row["iteration"] for row in table if row["entropy_after"] is not None}
    assert measured == {1}  # rescore_every = 2


def ascii_of(text: str) -> str:
    """A random policy writes half characters too, which no single token shows."""
    return "".join(each for each in text if "!" <= each <= "~")


def test_recorded_tokens_spell_the_steps_that_the_episodes_hold(straight):
    table = pq.read_table(straight / "tokens.parquet").to_pylist()
    turns = {
        (row["iteration"], row["attempt"], row["group"], row["sample"], place): turn
        for row in records.read_jsonl(straight / "episodes.jsonl")
        for place, turn in enumerate(row["turns"])
    }
    assert {row["iteration"] for row in table} == {0, 1, 2}
    for row in table:
        turn = turns[row["iteration"], row["attempt"], row["group"], row["sample"], row["step"]]
        assert len(row["text"]) == len(row["token_ids"]) == len(row["entropy"]) == turn["tokens"]
        assert ascii_of("".join(row["text"])).endswith(ascii_of(turn["action"]))
        assert (row["entropy_after"] is None) == (row["iteration"] != 1)


def test_gradients_are_recorded_where_asked(straight):
    table = pq.read_table(straight / "gradients.parquet").to_pylist()
    assert [(row["run"], row["iteration"]) for row in table] == [(NAME, 1)] * 2
    (row,) = records.read_jsonl(straight / "gradients.jsonl")
    assert (row["iteration"], row["steps"]) == (1, 2)


def test_the_evaluation_plays_the_whole_panel_in_both_modes_and_the_summary_counts_it(straight):
    rows = records.read_jsonl(straight / "eval.jsonl")
    panel = records.read_json(straight / "run.json")["panels"]["test"]["size"]
    for mode in ("sampled", "greedy"):
        played = [row["task_id"] for row in rows if row["mode"] == mode]
        assert len(played) == len(set(played)) == panel
    summary = records.read_json(straight / "summary.json")
    assert summary["eval"]["test"]["greedy"]["n"] == panel
    assert (summary["iterations"], summary["episodes"]) == (3, 12)


class Killed(BaseException):
    """Stands for the process's end: nothing in the program handles it."""


@pytest.mark.parametrize(
    ("moment", "iteration"),
    [
        *itertools.product(
            ("episodes", "steps", "tokens", "timing", "half a metrics row", "checkpoint"), (0, 2)
        ),
        ("gradients", 1),  # the only one that is probed
    ],
)
def test_a_run_killed_between_any_two_writes_goes_on_to_the_same_bytes(
    tiny_suite, tmp_path, monkeypatch, straight, moment, iteration
):
    run = planned(tiny_suite, tmp_path)
    kill_at(monkeypatch, moment, iteration)
    with pytest.raises(Killed):
        execute(run, tmp_path / "cache")
    monkeypatch.undo()
    assert not (run.folder / "summary.json").exists()
    execute(run, tmp_path / "cache")
    assert_same_numbers(run.folder, straight)


def test_a_run_with_few_checkpoints_goes_back_to_the_last_one_and_on_to_the_same_bytes(
    tiny_suite, tmp_path, monkeypatch, straight
):
    tiny_suite.write_text(f"checkpoint_every = 2\n{tiny_suite.read_text()}")
    run = planned(tiny_suite, tmp_path)
    kill_at(monkeypatch, "half a metrics row", 2)
    with pytest.raises(Killed):
        execute(run, tmp_path / "cache")
    assert [each.name for each in (run.folder / "checkpoints").iterdir()] == ["iteration-000002"]
    monkeypatch.undo()
    kill_at(monkeypatch, "half a metrics row", 1)  # is not played again
    execute(run, tmp_path / "cache")
    assert_same_numbers(run.folder, straight)


def kill_at(monkeypatch: pytest.MonkeyPatch, moment: str, iteration: int) -> None:
    """End the run just before a write of an iteration, or in its middle."""
    append, write_part, save = records.append_jsonl, records.write_part, Learner.save

    def dying_append(path: Path, rows: list[dict[str, Any]]) -> None:
        if rows[0]["iteration"] == iteration and path.name == f"{moment}.jsonl":
            raise Killed
        append(path, rows)
        if (
            rows[0]["iteration"] == iteration
            and moment == "half a metrics row"
            and path.name == "metrics.jsonl"
        ):
            content = path.read_bytes()
            path.write_bytes(content[:-20])
            raise Killed

    def dying_part(path: Path, columns: dict[str, Any]) -> None:
        if path.parent.name == moment and path.stem == f"{iteration:06d}":
            raise Killed
        write_part(path, columns)

    def dying_save(learner: Learner, folder: Path) -> None:
        if moment == "checkpoint" and learner.next_iteration == iteration + 1:
            raise Killed
        save(learner, folder)

    monkeypatch.setattr(records, "append_jsonl", dying_append)
    monkeypatch.setattr(records, "write_part", dying_part)
    monkeypatch.setattr(Learner, "save", dying_save)


def test_a_run_killed_in_its_evaluation_evaluates_again_without_training_again(
    tiny_suite, tmp_path, monkeypatch, straight
):
    run = planned(tiny_suite, tmp_path)

    def die(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(benchmarks.run, "evaluate_policy", die)
    with pytest.raises(Killed):
        execute(run, tmp_path / "cache")
    monkeypatch.undo()
    monkeypatch.setattr(Learner, "iterate", die)
    execute(run, tmp_path / "cache")
    assert_same_numbers(run.folder, straight)


def test_a_complete_run_is_left_alone(straight, tiny_policy, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in straight.rglob("*") if path.name != ".lock"}
    execute(planned(write_suite(tmp_path, tiny_policy), straight.parents[2]), tmp_path)
    after = {path: path.stat().st_mtime_ns for path in straight.rglob("*") if path.name != ".lock"}
    assert {path: after[path] for path in before if path.is_file()} == {
        path: time for path, time in before.items() if path.is_file()
    }


def test_a_changed_config_is_refused_with_the_keys_and_values_that_differ(tiny_suite, tmp_path, monkeypatch):
    run = planned(tiny_suite, tmp_path)
    kill_at(monkeypatch, "checkpoint", 0)
    with pytest.raises(Killed):
        execute(run, tmp_path / "cache")
    monkeypatch.undo()
    tiny_suite.write_text(
        tiny_suite.read_text().replace("zeta = 0.05", "zeta = 0.1").replace("test = 3", "test = 4")
    )
    changed = planned(tiny_suite, tmp_path)
    with pytest.raises(ConfigError) as caught:
        execute(changed, tmp_path / "cache")
    assert "config.learner.empg.zeta (0.05 there, 0.1 here)" in str(caught.value)
    assert "config.panels.test (3 there, 4 here)" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_policy_in_the_same_place_is_refused(tiny_suite, tmp_path, tiny_policy, monkeypatch):
    run = planned(tiny_suite, tmp_path)
    kill_at(monkeypatch, "checkpoint", 0)
    with pytest.raises(Killed):
        execute(run, tmp_path / "cache")
    monkeypatch.undo()
    record = records.read_json(run.folder / "run.json")
    record["policy"]["weights"] = "0" * 64
    record["digest"] = "0" * 64
    records.write_json(run.folder / "run.json", record)
    with pytest.raises(ConfigError, match=r"policy\.weights"):
        execute(run, tmp_path / "cache")


def test_two_processes_never_work_in_one_folder(tiny_suite, tmp_path):
    run = planned(tiny_suite, tmp_path)
    run.folder.mkdir(parents=True)
    with (run.folder / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another process"):
            execute(run, tmp_path / "cache")
    assert not (run.folder / "run.json").exists()


def test_a_policy_without_chat_template_is_refused_before_any_work(tiny_suite, tiny_policy, tmp_path):
    import shutil

    bare = tmp_path / "bare"
    shutil.copytree(tiny_policy, bare)
    (bare / "chat_template.jinja").unlink(missing_ok=True)
    settings = json.loads((bare / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (bare / "tokenizer_config.json").write_text(json.dumps(settings))
    tiny_suite.write_text(tiny_suite.read_text().replace(str(tiny_policy), str(bare)))
    run = planned(tiny_suite, tmp_path)
    with pytest.raises(ConfigError, match=r"^policy: .*chat template"):
        execute(run, tmp_path / "cache")
    assert not (run.folder / "run.json").exists()


def test_a_policy_folder_without_a_model_and_a_context_beyond_it_are_refused(
    tiny_suite, tiny_policy, tmp_path
):
    text = tiny_suite.read_text()
    for old, new, said in (
        (str(tiny_policy), str(tmp_path / "absent"), r"^policy\.model: no model in"),
        ("max_context = 600", "max_context = 601", r"^policy: .*60[01]"),
    ):
        tiny_suite.write_text(text.replace(old, new))
        with pytest.raises(ConfigError, match=said) as caught:
            execute(planned(tiny_suite, tmp_path / "results"), tmp_path / "cache")
        assert "\n" not in str(caught.value)


def test_an_unwritable_results_folder_is_refused_before_any_work(tiny_suite, tmp_path):
    (tmp_path / "results").write_text("a file where the folder should be")
    with pytest.raises(ConfigError, match=r"^results: cannot write in"):
        execute(planned(tiny_suite, tmp_path / "results"), tmp_path / "cache")


def test_runs_that_start_together_do_not_disturb_each_others_look_at_the_results_folder(tmp_path):
    folder = tmp_path / "results"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: check_writable(folder), range(2000)))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["webshop-zero-shot", "webshop-expert"])
def test_a_baseline_run_only_evaluates(tiny_suite, tmp_path, name):
    run = planned(tiny_suite, tmp_path, name)
    execute(run, tmp_path / "cache")
    assert not (run.folder / "metrics.jsonl").exists()
    assert not (run.folder / "steps.parquet").exists()
    assert records.read_json(run.folder / "summary.json")["eval"]["test"]["sampled"]["n"] == 3


def test_a_run_whose_updates_were_all_skipped_has_an_empty_step_table_with_every_column(
    tiny_suite, tmp_path, straight
):
    run = planned(tiny_suite, tmp_path, "webshop-dapo-s0", "short")
    execute(run, tmp_path / "cache")
    assert [row["skipped"] for row in records.read_jsonl(run.folder / "metrics.jsonl")] == [1]
    empty, full = (pq.read_table(folder / "steps.parquet") for folder in (run.folder, straight))
    assert (empty.num_rows, empty.column_names) == (0, full.column_names)
