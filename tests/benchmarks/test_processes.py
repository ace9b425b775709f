"""Whole runs in two processes: the records of one, from whichever sampled, and an end for all when one fails."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch.distributed.elastic.multiprocessing import errors
from torch.distributed.launcher import api

from agents.rollout import Episode
from benchmarks import processes, records
from benchmarks.config import ConfigError, load_suite
from benchmarks.plan import find
from benchmarks.processes import check
from benchmarks.progress import read_status
from benchmarks.run import execute
from benchmarks.suite import job
from empg.parallel import Processes
from tests.benchmarks.tiny import NAME, planned, write_suite
from tests.conftest import ROOT
from tests.empg.test_parallel import launched

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def suite(tiny_policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(tmp_path_factory.mktemp("suite"), tiny_policy)


@pytest.fixture(scope="module")
def data_parallel(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that the command made in two processes."""
    results = tmp_path_factory.mktemp("ddp")
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks", "run-one", str(suite), NAME]
    command += ["--results", str(results), "--processes", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("iteration 0:") == 1  # one process speaks for all
    return results / "runs/tiny" / NAME


@pytest.fixture(scope="module")
def sharded(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Folders of a run that two processes with sharded weights made, and of one that broke, and what was said."""
    results = tmp_path_factory.mktemp("fsdp2")
    done = launched("tests.benchmarks.parallel_runs", str(suite), str(results))
    assert done.returncode != 0
    whole, broken = (results / name / "runs/tiny" / NAME for name in ("whole", "broken"))
    return whole, broken, done.stderr


def assert_like(folder: Path, straight: Path) -> None:
    """The first iteration in numbers, the whole run in its records."""
    assert (folder / "summary.json").exists()
    assert (folder / "policy/config.json").exists()
    for name in ("metrics.jsonl", "timing.jsonl", "eval.jsonl", "episodes.jsonl"):
        ours, theirs = records.read_jsonl(folder / name), records.read_jsonl(straight / name)
        assert len(ours) == len(theirs), name
        if "task_id" in theirs[0]:
            keys = ("iteration", "task_id", "sample")
            assert [[row[key] for key in keys] for row in ours] == [
                [row[key] for key in keys] for row in theirs
            ]
    (first, *_), (expected, *_) = (records.read_jsonl(each / "metrics.jsonl") for each in (folder, straight))
    assert first.keys() == expected.keys()
    for name, value in expected.items():
        assert value == first[name] or math.isclose(value, first[name], rel_tol=1e-4, abs_tol=1e-5), name
    first_turns, expected_turns = (
        [row["turns"] for row in records.read_jsonl(each / "episodes.jsonl") if row["iteration"] == 0]
        for each in (folder, straight)
    )
    assert first_turns == expected_turns


def test_a_data_parallel_run_of_two_processes_begins_with_the_numbers_of_one(data_parallel, straight):
    assert_like(data_parallel, straight)
    assert (data_parallel / "gradients.parquet").exists()
    record = records.read_json(data_parallel / "run.json")
    assert (record["device"]["processes"], record["device"]["parallel"]) == (2, "ddp")
    assert record["digest"] == records.read_json(straight / "run.json")["digest"]
    status = read_status(data_parallel)
    assert status is not None
    assert status.done == status.total


def test_a_run_with_sharded_weights_begins_with_the_numbers_of_one_process(sharded, straight):
    assert_like(sharded[0], straight)
    assert records.read_json(sharded[0] / "run.json")["device"]["parallel"] == "fsdp2"


def test_an_error_in_one_process_ends_both_and_leaves_no_summary(sharded):
    _, broken, said = sharded
    assert "RuntimeError: the second process gives up" in said
    assert not (broken / "summary.json").exists()
    assert [row["iteration"] for row in records.read_jsonl(broken / "metrics.jsonl")] == [0]


def test_what_two_processes_began_one_process_completes(sharded, suite, straight):
    _, broken, _ = sharded
    execute(planned(suite, broken.parents[2]), broken.parents[3] / "cache")
    assert_like(broken, straight)
    assert [row.get("processes") for row in records.read_jsonl(broken / "timing.jsonl")] == [2, None, None]


class Recorded(NamedTuple):
    """How torch's launcher describes the end of a process."""

    local_rank: int
    exitcode: int
    message: str | dict[str, str]
    error_file: str = "<N/A>"


LOST = Recorded(0, -15, "Signal 15 (SIGTERM) received by PID 1")


@pytest.mark.parametrize(
    ("cause", "code", "said"),
    [
        (
            Recorded(1, 2, {"message": "ConfigError: no\nsuch file"}, "1/error.json"),
            2,
            "ConfigError: no such file",
        ),
        (Recorded(1, -9, "Signal 9 (SIGKILL) received by PID 2"), 1, "Signal 9 (SIGKILL) received by PID 2"),
    ],
)
def test_the_cause_of_a_failure_is_the_last_word_and_the_exit_code(monkeypatch, capsys, cause, code, said):
    def fail(*_: object) -> None:
        error = errors.ChildFailedError.__new__(errors.ChildFailedError)
        error.failures = {0: LOST, 1: cause}
        raise error

    monkeypatch.setattr(api, "elastic_launch", lambda *_: fail)
    with pytest.raises(SystemExit) as caught:
        processes.start(2, ["run-one"])
    assert caught.value.code == code
    assert capsys.readouterr().err == f"error: process 1 of 2 failed, so all were ended: {said}\n"


@pytest.mark.parametrize(
    ("count", "parallel", "said"),
    [
        (2, "zero3", "parallel: 'zero3', expected one of: ddp, fsdp2"),
        (1, "fsdp2", "parallel: fsdp2 divides the weights between processes, expected at least 2 processes"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_before_anything_starts(count, parallel, said):
    with pytest.raises(ConfigError) as caught:
        check(count, parallel)
    assert str(caught.value) == said


def test_without_accelerate_several_processes_are_refused_with_the_extra_to_install(monkeypatch):
    monkeypatch.setattr(processes, "find_spec", lambda name: None)
    assert check(1, "ddp") == "ddp"
    with pytest.raises(
        ConfigError, match=r"accelerate is not installed, expected `pip install 'empg-bench\[gpu\]'`"
    ):
        check(2, "ddp")


def test_more_processes_than_gpus_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ConfigError, match="processes: 2, but there are 1 GPUs"):
        check(2, "ddp")


def test_the_command_of_a_run_names_its_processes_and_the_expert_plays_in_one(suite, tmp_path):
    loaded = load_suite(str(suite))
    for name, told in ((NAME, True), ("webshop-zero-shot", True), ("webshop-expert", False)):
        command = job(
            find(loaded, name, None, tmp_path), str(suite), "default", tmp_path, (), 4, "fsdp2"
        ).command
        assert ("--processes 4 --parallel fsdp2" in " ".join(command)) is told


class Second(Processes):
    """The second of two; the first says the same."""

    rank, count = 1, 2

    def gather_objects(self, value):
        return [[f"other {each}" for each in value], value]


def test_groups_are_played_whole_and_all_trajectories_come_back_in_order(monkeypatch):
    played: list[str] = []

    def rollout(_policy, _make_env, episodes, *_given, **_named):
        played.extend(f"{each.group}/{each.sample}" for each in episodes)
        return list(played)

    monkeypatch.setattr(processes, "rollout", rollout)
    episodes = [
        Episode(f"task {group}", group, sample, (group, sample)) for group in range(3) for sample in range(2)
    ]
    found = processes.play(None, None, episodes, None, prompts=None, seed=0, processes=Second())
    assert played == ["2/0", "2/1"]
    assert found == ["other 2/0", "other 2/1", "2/0", "2/1"]
