"""What may be named as a side of a comparison, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.reporting.compare import Side, compare
from benchmarks.reporting.compare_sides import (
    SHOWN_CHARACTERS,
    Setting,
    differing_settings,
    open_sides,
    task_types,
)
from benchmarks.reporting.schema import RecordError
from tests.benchmarks.alfworld_runs import add_alfworld
from tests.benchmarks.report_runs import add_run


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`results` of a working directory, with the runs of one suite in it."""
    monkeypatch.chdir(tmp_path)
    suite = Path("results/runs/webshop")
    add_run(suite, "warm-start", solved=range(2))
    for seed in (0, 1):
        add_run(suite, "grpo", seed, solved=range(5 + seed))
        add_run(suite, "grpo+empg", seed, solved=range(9 + seed))
    add_run(suite, "expert", solved=range(20))
    return Path("results")


def opened(results: Path, a: str, b: str, suite: str = "webshop") -> tuple[Side, Side]:
    return open_sides(a, b, results / "runs" / suite, results)


def names(side: Side) -> list[str]:
    return [run.folder.name for run in side.suite.runs]


def test_a_variant_is_all_its_runs_in_the_suite(results: Path) -> None:
    a, b = opened(results, "grpo", "grpo+empg")
    assert (a.name, names(a)) == ("webshop grpo", ["webshop-grpo-s0", "webshop-grpo-s1"])
    assert (b.name, names(b)) == ("webshop grpo+empg", ["webshop-grpo-empg-s0", "webshop-grpo-empg-s1"])


def test_a_variant_is_compared_though_another_run_of_the_suite_is_broken(results: Path) -> None:
    (results / "runs" / "webshop" / "webshop-expert-s0" / "eval.jsonl").write_text("{")
    opened(results, "grpo", "grpo+empg")
    with pytest.raises(RecordError, match=r"webshop-expert-s0/eval\.jsonl"):
        opened(results, "grpo", "expert")


def test_a_suite_is_its_name_or_its_folder_and_a_published_one_has_its_runs_below(results: Path) -> None:
    published = results / "published" / "other" / "runs"
    add_run(published, "grpo", solved=range(3))
    a, b = opened(results, "webshop", "results/published/other")
    assert (a.name, len(a.suite.runs)) == ("webshop", 6)
    assert (b.name, names(b)) == ("results/published/other", ["webshop-grpo-s0"])
    assert names(opened(results, "webshop", "other")[1]) == ["webshop-grpo-s0"]
    assert names(opened(results, "results/runs/webshop", str(published))[0]) == names(a)


def test_a_glob_is_the_run_folders_that_it_matches(results: Path) -> None:
    a, b = opened(results, "results/runs/webshop/*grpo-s*", "results/runs/*/*empg-s[01]")
    assert names(a) == ["webshop-grpo-s0", "webshop-grpo-s1"]
    assert names(b) == ["webshop-grpo-empg-s0", "webshop-grpo-empg-s1"]
    assert a.name == "results/runs/webshop/*grpo-s*"


def test_a_glob_may_match_what_is_no_run_and_says_so(results: Path) -> None:
    (results / "runs" / "webshop" / "webshop-grpo-notes").mkdir()
    (results / "runs" / "webshop" / "webshop-grpo.txt").touch()
    a, _ = opened(results, "results/runs/webshop/webshop-grpo[-.][nst]*", "expert")
    assert names(a) == ["webshop-grpo-s0", "webshop-grpo-s1"]
    assert a.suite.strangers == ("webshop-grpo-notes",)


def test_a_folder_of_one_run_is_that_run(results: Path) -> None:
    a, b = opened(
        results, "results/runs/webshop/webshop-grpo-s0", "results/runs/webshop/webshop-grpo-empg-s0/"
    )
    assert (names(a), names(b)) == (["webshop-grpo-s0"], ["webshop-grpo-empg-s0"])


def test_a_side_from_elsewhere_does_not_show_where_on_the_machine_it_lies(
    results: Path, tmp_path: Path
) -> None:
    a, _ = opened(results, str(tmp_path / "results/runs/webshop/webshop-grpo-s0"), "expert")
    assert a.name == "runs/webshop/webshop-grpo-s0"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "ppo",
            "'ppo' is no folder, no suite with runs and no variant in results/runs/webshop, which has: expert, ",
        ),
        ("", "'' is no folder, no suite with runs and no variant"),
        ("results/runs/webshop/*ppo*", r"results/runs/webshop/\*ppo\*: no run folder is named so"),
        ("results", "results/runs: holds no runs; expected sub-folders with run.json"),
        ("results/runs/webshop/webshop-grpo-s7", "'results/runs/webshop/webshop-grpo-s7' is no folder"),
    ],
)
def test_what_names_no_run_is_refused(results: Path, asked: str, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        opened(results, asked, "grpo")


def test_a_variant_of_a_suite_without_runs_is_refused(results: Path) -> None:
    with pytest.raises(RecordError, match="no variant in results/runs/alfworld, which has: none"):
        opened(results, "grpo", "grpo+empg", suite="alfworld")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("grpo", "grpo"),
        ("webshop", "results/runs/webshop"),
        ("results/runs/webshop/*grpo*", "results/runs/webshop/*empg*"),
        ("results/runs/webshop/webshop-grpo-s1", "grpo"),
    ],
)
def test_a_run_is_not_compared_with_itself(results: Path, a: str, b: str) -> None:
    with pytest.raises(RecordError, match="is on both sides; a run is not compared with itself"):
        opened(results, a, b)


def test_a_run_is_not_compared_with_its_copy(results: Path) -> None:
    shutil.copytree(results / "runs" / "webshop", results / "published" / "webshop" / "runs")
    with pytest.raises(RecordError, match=r"published/webshop/runs/\S+ is a copy of results/runs/webshop/"):
        opened(results, "webshop", "results/published/webshop")


def test_runs_of_two_suites_do_not_make_one_side(results: Path) -> None:
    add_run(results / "runs" / "other", "dapo")
    with pytest.raises(RecordError, match=r"has suite = 'webshop' but .* has 'other'"):
        opened(results, "results/runs/*/*", "grpo")


def test_types_are_those_of_the_benchmark_or_what_the_episodes_say(results: Path) -> None:
    sides = opened(results, "grpo", "grpo+empg")
    assert task_types(sides) == {f"synthetic-{number}": "garden" for number in range(20)}
    counts = {"pick": 1, "look": 1}
    add_alfworld(results / "runs" / "alfworld", "grpo", counts=counts)
    add_alfworld(results / "runs" / "alfworld", "dapo", counts=counts)
    sides = opened(results, "grpo", "dapo", suite="alfworld")
    assert task_types(sides) == {"synthetic-0": "pick", "synthetic-1": "look"}


def settings(a: Path, b: Path) -> dict[str, tuple[str, str]]:
    sides = open_sides(str(a), str(b), a, a)
    found = differing_settings(compare(*sides, {}))
    return {each.name: (each.a, each.b) for each in found if isinstance(each, Setting)}


def test_what_else_sets_the_sides_apart_is_listed_by_its_place_in_the_record(tmp_path: Path) -> None:
    config = {
        "benchmark": "webshop",
        "variant": "grpo",
        "seed": 0,
        "iterations": 5,
        "learner": {"seed": 0, "lr": 1},
    }
    changed = config | {"variant": "dapo", "learner": {"seed": 0, "lr": 2, "clip": None}}
    add_run(tmp_path / "a", "grpo", config=config, policy={"parameters": 1}, device="cpu")
    add_run(tmp_path / "b", "dapo", config=changed, policy={"parameters": 2}, device="cuda", commit="e" * 40)
    assert settings(tmp_path / "a", tmp_path / "b") == {
        "config.learner.lr": ("1", "2"),
        "config.learner.clip": ("not stated", "null"),
        "policy.parameters": ("1", "2"),
        "commit": ('"cccccccccccc"', '"eeeeeeeeeeee"'),
        "device": ('"cpu"', '"cuda"'),
    }


def test_a_setting_that_varies_within_a_side_shows_all_its_values(tmp_path: Path) -> None:
    for seed in (0, 1):
        add_run(tmp_path / "a", "grpo", seed, device=f"gpu {seed}")
        add_run(tmp_path / "b", "grpo", seed, device="gpu 0")
    assert settings(tmp_path / "a", tmp_path / "b") == {"device": ('"gpu 0", "gpu 1"', '"gpu 0"')}


def test_long_values_that_differ_only_at_their_end_are_still_listed(tmp_path: Path) -> None:
    add_run(tmp_path / "a", "grpo", device="x" * 500)
    add_run(tmp_path / "b", "grpo", device="x" * 500 + "y")
    found = settings(tmp_path / "a", tmp_path / "b")["device"]
    assert [len(value) for value in found] == [SHOWN_CHARACTERS] * 2
