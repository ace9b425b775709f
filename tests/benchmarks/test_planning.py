"""The command `plan`: what it estimates and what it finds missing."""

from __future__ import annotations

import pytest

from benchmarks import machine
from benchmarks.collection import open_collection
from benchmarks.machine import Gpus, missing_data, missing_disk, missing_gpus
from benchmarks.planning import habits_of, plans
from benchmarks.records import read_jsonl
from tests.benchmarks.test_cli import call


def test_the_plan_of_table_1_names_each_part_and_what_is_missing_within_80_columns(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr(machine, "local_copy", lambda _: None)
    code, out, _ = call(capsys, "plan", "table1", "--results", tmp_path)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    said = " ".join(out.split())
    for text in (
        "Qwen2.5-7B-Instruct 14",
        "1,544",
        "7,616",
        "the model Qwen/Qwen2.5-1.5B-Instruct",
        "all together 56",
    ):
        assert text in said


def test_the_plan_of_a_suite_whose_model_is_unknown_says_so_and_still_counts_tokens(capsys, tmp_path):
    code, out, _ = call(capsys, "plan", "webshop", "--model", "nobody/nothing", "--results", tmp_path)
    assert code == 0
    assert "hf download" in out
    assert "all together" in out


def test_turns_and_tokens_come_from_complete_runs_where_there_are_some(straight, tiny_suite):
    rows = read_jsonl(straight / "metrics.jsonl")
    part = open_collection(str(tiny_suite)).parts[0]
    habits, measured = habits_of(part, straight.parent)
    episodes = sum(row["episodes"] for row in rows)
    steps = sum(row["steps_per_episode"] * row["episodes"] for row in rows)
    assert habits.turns == pytest.approx(steps / episodes)
    assert habits.response_tokens == pytest.approx(sum(row["sampled_tokens"] for row in rows) / steps)
    assert measured == ("turns", "response_tokens")


def test_a_plan_says_how_far_each_run_is(straight, tiny_suite):
    results = straight.parent.parent.parent
    collection = open_collection(str(tiny_suite))
    (part,) = plans(collection, [0], results)
    states = dict(zip((run.name for run in part.runs), part.states, strict=True))
    assert states[straight.name] == "complete"
    assert states["webshop-dapo-s0"] == "not begun"


def test_too_few_gpus_too_small_ones_and_none_are_told_apart():
    card = 80 * 10**9
    assert missing_gpus(4, card, Gpus(("A100",) * 4, (card,) * 4)) == []
    assert "4 GPUs" in missing_gpus(4, card, Gpus(("A100",), (card,)))[0]
    assert "larger GPUs" in missing_gpus(None, card, Gpus(("A100",), (card,)))[0]
    assert "none is here" in missing_gpus(None, card, Gpus())[0]


def test_an_incomplete_folder_of_official_data_is_described(tmp_path):
    config = open_collection("alfworld").parts[0].suite.base
    for part in ("train", "valid_seen", "valid_unseen"):
        (tmp_path / part).mkdir()
    assert "0 of 134 games of unseen" in " ".join(missing_data(config, tmp_path))
    questions = open_collection("deepsearch").parts[0].suite.base
    (tmp_path / "corpus.jsonl").touch()
    assert [line.split(": ")[1] for line in missing_data(questions, tmp_path)] == [
        f"no questions of {name} in {tmp_path}" for name in ("hotpotqa", "2wikimultihopqa")
    ]


@pytest.mark.shared
def test_nothing_is_missing_from_the_small_official_webshop_data(shared):
    config = open_collection("webshop").parts[0].suite.base
    assert missing_data(config, shared / "data/webshop") == []


def test_disk_is_missing_where_more_is_needed_than_is_free(tmp_path):
    assert missing_disk(0, tmp_path / "not" / "yet") == []
    assert "are free" in missing_disk(2**62, tmp_path / "not" / "yet")[0]
