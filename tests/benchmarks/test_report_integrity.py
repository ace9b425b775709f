"""Damaged, foreign and contradictory records: each is an error that names its file, and nothing is written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import records
from benchmarks.reporting.arrays import load_numbers
from benchmarks.reporting.figures.credit import COLUMNS
from benchmarks.reporting.load import RecordError, load_suite
from tests.benchmarks.report_runs import add_run

FILES = ("run.json", "summary.json", "metrics.jsonl", "eval.jsonl", "timing.jsonl")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "webshop"


@pytest.fixture
def run(suite: Path) -> Path:
    folder = add_run(suite, "grpo", config={"benchmark": "webshop", "variant": "grpo", "iterations": 5})
    timing = [{"iteration": place, "collect": 1.0, "score": 1.0, "update": 1.0} for place in range(5)]
    records.write_jsonl(folder / "timing.jsonl", timing)
    return folder


def edit(path: Path, **changes: Any) -> None:
    records.write_json(path, records.read_json(path) | changes)


def refusal(suite: Path) -> str:
    with pytest.raises(RecordError) as found:
        load_suite(suite)
    return str(found.value)


def test_a_run_as_the_runner_writes_it_passes_every_check(straight: Path) -> None:
    (found,) = load_suite(straight.parent).runs
    record = records.read_json(straight / "summary.json")
    assert found.wall_seconds == record["wall_seconds"]
    assert record["panels"]["test"] == found.info.panels["test"].digest
    assert len(found.timing) == found.iterations == len(found.metrics)
    assert found.info.empg is not None
    assert found.info.empg.zeta == 0.05


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: content[: len(content) * 2 // 3], id="cut off"),
        pytest.param(lambda _: b"\x00\xff\xfe\x80" * 50 + b"\n", id="binary rubbish"),
        pytest.param(lambda content: content.decode().encode("utf-16"), id="UTF-16"),
        pytest.param(lambda content: b"\xef\xbb\xbf" + content, id="byte order mark"),
        pytest.param(lambda content: content.replace(b'"', b'"\xe9', 1), id="Latin-1"),
        pytest.param(lambda _: b"[" * 100_000 + b"\n", id="nested without end"),
        pytest.param(lambda _: b"[1, 2]\n", id="another kind of value"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(
    run: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    path = run / name
    path.write_bytes(damage(path.read_bytes()))
    said = refusal(run.parent)
    assert said.startswith(str(path))
    assert len(said) < 500 + len(str(path))


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_the_place_of_a_file_is_an_error_that_names_it(run: Path, name: str) -> None:
    (run / name).unlink()
    (run / name).mkdir()
    assert str(run / name) in refusal(run.parent)


@pytest.mark.parametrize("name", ["metrics.jsonl", "eval.jsonl"])
def test_a_missing_file_of_a_complete_run_is_an_error_that_names_it(run: Path, name: str) -> None:
    (run / name).unlink()
    assert f"{run / name}: cannot be read" in refusal(run.parent)


def test_an_empty_file_is_not_taken_for_a_run_without_results(run: Path) -> None:
    (run / "eval.jsonl").write_bytes(b"")
    assert refusal(run.parent) == f"{run / 'eval.jsonl'}: no episodes of the test split; expected 20 tasks"


def test_metrics_without_their_last_iterations_are_refused(run: Path) -> None:
    records.keep_rows(run / "metrics.jsonl", lambda row: row["iteration"] < 3)
    assert refusal(run.parent) == (
        f"{run / 'metrics.jsonl'}: 3 iterations but summary.json says 5; a part is missing"
    )


@pytest.mark.parametrize("key", records.IDENTITY)
def test_a_record_that_was_changed_after_the_run_began_is_refused_with_both_digests(
    run: Path, key: str
) -> None:
    record = records.read_json(run / "run.json")
    changed = record[key] | {"new": {"digest": "f" * 64, "size": 1}}
    edit(run / "run.json", **{key: changed})
    said = refusal(run.parent)
    new = {name: record[name] for name in records.IDENTITY} | {key: changed}
    assert said.startswith(f"{run / 'run.json'}: states digest {record['digest']} ")
    assert records.digest(new) in said


@pytest.mark.parametrize(("key", "value"), [("variant", "dapo"), ("kind", "expert"), ("seed", 7)])
def test_a_run_cannot_pass_for_what_its_config_does_not_say(suite: Path, key: str, value: object) -> None:
    config = {"benchmark": "webshop", "variant": "grpo", "kind": "train", "seed": 0}
    folder = add_run(suite, "grpo", config=config)
    edit(folder / "run.json", **{key: value})
    assert f"run.json: {key} is {value!r} but config.{key} is {config[key]!r}" in refusal(suite)


def test_numbers_that_json_does_not_know_are_refused_in_a_run_record(run: Path) -> None:
    text = (run / "run.json").read_text().replace('"goals": 690', '"goals": NaN')
    (run / "run.json").write_text(text)
    assert refusal(run.parent).startswith(str(run / "run.json"))


def test_a_summary_of_another_panel_is_refused_with_both_hashes(run: Path) -> None:
    edit(run / "summary.json", panels={"test": "f" * 64})
    assert refusal(run.parent) == (
        f"{run / 'summary.json'}: test panel {'f' * 64} but run.json has {'a' * 64}"
    )
    edit(run / "summary.json", panels={"dev": "f" * 64})
    assert "dev panel" in refusal(run.parent)


def test_a_summary_of_another_length_of_training_is_refused(run: Path) -> None:
    edit(run / "summary.json", iterations=4)
    assert refusal(run.parent) == f"{run / 'summary.json'}: 4 iterations but run.json plans 5"


def test_a_record_of_other_software_is_an_error_that_says_what_is_missing(suite: Path, run: Path) -> None:
    other = suite / "another"
    other.mkdir()
    (other / "run.json").write_text(json.dumps({"algo": "ppo", "lr": 1e-6}))
    assert refusal(suite) == f"{other / 'run.json'}: format: Field required"


def test_a_folder_of_something_else_is_named_as_left_out_and_its_files_are_not_read(
    suite: Path, run: Path
) -> None:
    (suite / "checkpoints-of-a-friend").mkdir()
    (suite / "checkpoints-of-a-friend" / "metrics.jsonl").write_bytes(b"\xff")
    (suite / "notes.txt").write_text("hello")
    found = load_suite(suite)
    assert found.strangers == ("checkpoints-of-a-friend",)
    assert len(found.runs) == 1


@pytest.mark.parametrize("place", ["middle", "footer", "cut"])
def test_a_damaged_step_table_is_an_error_that_names_it(run: Path, place: str) -> None:
    path = run / "steps.parquet"
    content = bytearray(path.read_bytes())
    if place == "cut":
        content = content[: len(content) // 2]
    else:
        start = 4 if place == "middle" else len(content) - 60
        content[start : start + 50] = b"\xff" * 50
    path.write_bytes(bytes(content))
    with pytest.raises(RecordError) as found:
        load_numbers(path, COLUMNS, nullable=("entropy_after",))
    assert str(found.value).startswith(f"{path}: ")


def test_no_damaged_byte_of_a_step_table_ends_in_another_error(run: Path) -> None:
    path = run / "steps.parquet"
    whole = path.read_bytes()
    for place in np.linspace(0, len(whole) - 1, 60).astype(int):
        damaged = bytearray(whole)
        damaged[place] ^= 0x5A
        path.write_bytes(bytes(damaged))
        with contextlib.suppress(RecordError):  # a flipped bit of a value is still a number
            load_numbers(path, COLUMNS, nullable=("entropy_after",))
