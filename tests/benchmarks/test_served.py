"""Evaluating a served model end to end: over HTTP on loopback, against a player whose success is known."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import records, served_options
from benchmarks.config import load_suite
from benchmarks.reporting.load import load_suite as load_runs
from benchmarks.reporting.report import write_report
from benchmarks.worlds import BENCHMARKS
from envs.base import World
from tests.agents.completions import Reply, Respond, Server, completions, said, wrong
from tests.benchmarks.demonstrating import Demonstrating
from tests.benchmarks.report_runs import add_run
from tests.benchmarks.test_cli import call

pytestmark = pytest.mark.usefixtures("no_key")

SUITES = {
    "webshop": 'benchmark = "webshop"\n[world]\nproducts = 50\n',
    "alfworld": 'benchmark = "alfworld"\n[world]\ntrain_games = 4\ntest_games = 4\nmost_receptacles = 12\n',
    "deepsearch": (
        'benchmark = "deepsearch"\n[world]\npassages = 300\ntrain_questions = 20\ntest_questions = 6\n'
    ),
}
REST = """
[panels]
train = 2
test = 3

[policy]
max_context = 600

[rollout]
max_new_tokens = 6

[empg]
zeta = 0.05

[variants.grpo]
preset = "grpo"
empg = false

[scale.default]
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between tries pass at once."""
    hasty = replace(served_options.PATIENCE, first_wait_s=1e-6, longest_wait_s=1e-6)
    monkeypatch.setattr(served_options, "PATIENCE", hasty)


def write_suite(folder: Path, benchmark: str) -> Path:
    path = folder / f"{benchmark}.toml"
    path.write_text(f'title = "tiny"\niterations = 1\n{SUITES[benchmark]}{REST}')
    return path


@pytest.fixture(scope="module")
def players(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Demonstrating]:
    """By benchmark; each world is opened as the suite opens it."""
    found = {}
    for name in SUITES:
        config = load_suite(str(write_suite(tmp_path_factory.mktemp(name), name))).base
        benchmark = BENCHMARKS[name]
        world: World = benchmark.load(None, benchmark.settings(**config.world), None, lambda *_: None)
        found[name] = Demonstrating(world, world.panel("test", 3).task_ids)
    return found


@pytest.fixture
def shop(players: dict[str, Demonstrating]) -> Demonstrating:
    return players["webshop"]


class Evaluating:
    """The command on one suite, and what it leaves."""

    def __init__(self, suite: Path, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.suite, self.results, self._capsys = suite, results, capsys
        self.folder = results / "runs" / suite.stem / "openai-m"

    def __call__(self, server: Server, *options: object) -> tuple[int, str, str]:
        command = ["evaluate", self.suite, "openai", "--base-url", server.url, "--results", self.results]
        named = () if "--model" in options else ("--model", "m")
        return call(self._capsys, *command, *named, *options)

    def rows(self) -> list[dict[str, Any]]:
        return records.read_jsonl(self.folder / "eval.jsonl")

    def summary(self) -> dict[str, Any]:
        return records.read_json(self.folder / "summary.json")


@pytest.fixture
def evaluating(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Evaluating:
    return Evaluating(write_suite(tmp_path, "webshop"), tmp_path / "results", capsys)


@pytest.mark.parametrize("layout", ["conversation", "window"])
@pytest.mark.parametrize("benchmark", list(SUITES))
def test_a_served_demonstrator_does_as_well_as_the_demonstrator_on_every_benchmark(
    players: dict[str, Demonstrating],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    benchmark: str,
    layout: str,
) -> None:
    player = players[benchmark]
    evaluating = Evaluating(write_suite(tmp_path, benchmark), tmp_path / "results", capsys)
    with completions(player) as server:
        code, out, errors = evaluating(server, "--layout", layout)
    assert (code, errors) == (0, "")
    if layout == "window":
        evaluating.folder = evaluating.folder.with_name("openai-m-window")
    rows = evaluating.rows()
    expected = [(mode, task) for mode in ("sampled", "greedy") for task in player.by_task]
    assert [(row["mode"], row["task_id"]) for row in rows] == expected
    for row in rows:
        demonstration = player.by_task[row["task_id"]]
        assert (row["success"], row["steps"]) == (demonstration.success, len(demonstration.responses))
        assert row["sampled_tokens"] == sum(len(text.split()) for text in demonstration.responses)
    wins = sum(one.success for one in player.by_task.values())
    assert wins >= 2
    assert f"greedy: success {wins / 3:.3f}" in out
    summary = evaluating.summary()
    assert summary["eval"]["test"]["sampled"]["successes"] == wins
    assert summary["usage"]["prompt_tokens"] == server.prompt_tokens
    assert summary["usage"]["completion_tokens"] == server.completion_tokens
    assert summary["usage"]["requests"] == len(server.bodies) == 2 + sum(row["steps"] for row in rows)
    record = records.read_json(evaluating.folder / "run.json")
    assert (record["kind"], record["variant"]) == ("served", evaluating.folder.name)
    assert (record["config"]["rollout"]["prompt"], record["config"]["rollout"]["layout"]) == ("react", layout)
    assert record["policy_origin"] == {"base_url": server.url}


def test_sampled_requests_have_a_temperature_and_greedy_ones_none(
    evaluating: Evaluating, shop: Demonstrating
) -> None:
    with completions(shop) as server:
        evaluating(server)
    temperatures = {body["temperature"] for body in server.bodies}
    assert temperatures == {0, 1.0}
    assert all(body["max_tokens"] == 1024 for body in server.bodies)
    system = server.bodies[-1]["messages"][0]["content"]
    assert "You shop in an online store." in system


def test_a_finished_evaluation_asks_nothing_when_it_is_run_again(
    evaluating: Evaluating, shop: Demonstrating
) -> None:
    with completions(shop) as server:
        first = evaluating(server)
        files = {path.name: path.read_bytes() for path in evaluating.folder.iterdir()}
        asked = len(server.bodies)
        again = evaluating(server)
        assert len(server.bodies) == asked
    assert {path.name: path.read_bytes() for path in evaluating.folder.iterdir()} == files
    assert first[1].splitlines()[-4:] == again[1].splitlines()[-4:]


def test_a_stopped_evaluation_goes_on_and_pays_for_no_episode_twice(
    evaluating: Evaluating, shop: Demonstrating
) -> None:
    last = list(shop.by_task)[-1]

    def until_the_last(body: dict[str, Any], number: int) -> Reply:
        return wrong(401, "your key was revoked") if shop.task_of(body) == last else shop(body, number)

    with completions(until_the_last) as stopped:
        code, _, errors = evaluating(stopped, "--parallel", 1, "--mode", "greedy")
    assert code == 2
    assert errors.startswith("error: http://127.0.0.1")
    assert "401 your key was revoked; expected a key in" in errors
    assert "2 of 3 episodes are kept, and the same command goes on" in errors
    assert errors.count("\n") == 1
    assert len(evaluating.rows()) == 2
    assert not (evaluating.folder / "summary.json").exists()
    before = records.read_json(evaluating.folder / "usage.json")
    assert before["completion_tokens"] == stopped.completion_tokens

    with completions(shop) as server:
        code, out, _ = evaluating(server, "--mode", "greedy")
    assert code == 0
    assert "1 episodes on http" in out
    assert "2 were played before and are kept" in out
    assert {shop.task_of(body) for body in server.bodies} == {"", last}
    assert [row["task_id"] for row in evaluating.rows()] == list(shop.by_task)
    usage = evaluating.summary()["usage"]
    assert usage["completion_tokens"] == stopped.completion_tokens + server.completion_tokens
    assert usage["prompt_tokens"] == stopped.prompt_tokens + server.prompt_tokens
    assert usage["requests"] == len(stopped.bodies) + len(server.bodies)


def test_an_episode_that_errors_is_in_a_column_of_its_own_and_played_again_when_asked(
    evaluating: Evaluating, shop: Demonstrating
) -> None:
    bad = next(iter(shop.by_task))

    def respond(body: dict[str, Any], number: int) -> Reply:
        return wrong(500, "out of order") if shop.task_of(body) == bad else shop(body, number)

    with completions(respond) as server:
        code, out, _ = evaluating(server, "--mode", "sampled")
    assert code == 0
    assert "1 errored" in out
    assert "1 episodes ended in an error; the same command plays them again" in out
    found = evaluating.summary()["eval"]["test"]["sampled"]
    assert (found["n"], found["errored"]) == (2, 1)
    row = evaluating.rows()[0]
    assert (row["task_id"], row["end"], row["success"]) == (bad, "error", False)
    assert "500 " in row["error"]
    assert "out of order" in row["error"]

    with completions(shop) as server:
        evaluating(server, "--mode", "sampled")
    assert {shop.task_of(body) for body in server.bodies} == {"", bad}
    found = evaluating.summary()["eval"]["test"]["sampled"]
    assert (found["n"], found["errored"]) == (3, 0)
    assert len(evaluating.rows()) == 3


def test_the_cost_is_that_of_all_tokens(evaluating: Evaluating, shop: Demonstrating) -> None:
    with completions(shop) as server:
        _, out, _ = evaluating(server, "--price-in", 10, "--price-out", 1000)
    dollars = (10 * server.prompt_tokens + 1000 * server.completion_tokens) / 1e6
    assert evaluating.summary()["dollars"] == pytest.approx(dollars)
    assert f"{server.prompt_tokens:,} tokens read (0 cached), {server.completion_tokens:,} written" in out
    assert f"${dollars:.2f}" in out


def test_the_key_is_in_no_file_and_no_line(
    evaluating: Evaluating, shop: Demonstrating, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-very-secret-0123"
    monkeypatch.setenv("MY_KEY", key)
    bad = next(iter(shop.by_task))

    def respond(body: dict[str, Any], number: int) -> Reply:
        return wrong(500, f"Bearer {key}") if shop.task_of(body) == bad else shop(body, number)

    with completions(respond) as server:
        _, out, errors = evaluating(server, "--key-env", "MY_KEY")
        assert server.headers[0]["authorization"] == f"Bearer {key}"
    kept = b"".join(path.read_bytes() for path in evaluating.results.rglob("*") if path.is_file())
    assert key not in out + errors
    assert key.encode() not in kept
    assert b"[secret]" in kept


@pytest.mark.parametrize(
    ("options", "said_of_it"),
    [
        (("--mode", "best"), "error: evaluate: mode is 'best', expected sampled, greedy or both"),
        (("--layout", "wide"), "error: evaluate: layout is 'wide'; expected one of"),
        (("--prompt", "poem"), "error: evaluate: prompt is 'poem'; expected one of"),
        (("--body", "top_p=1"), "error: body: 'top_p=1', expected a JSON object"),
        (("--body", '{"n": 2}'), "error: evaluate: body holds ['n'], which are set"),
        (("--price-in", 1), "error: evaluate: half a price, expected both"),
        (("--requests-per-minute", 0), "error: evaluate: requests_per_minute is 0"),
        (("--timeout", 0), "error: evaluate: timeout_s is 0"),
        (("--token-limit", "most"), "error: evaluate: token_limit is 'most'"),
        (("--dtype", "bfloat16"), "error: evaluate: --dtype is not for a served model"),
        (("--base-url", "here"), "error: evaluate: base_url is 'here', expected a URL"),
        (("--model", " "), "error: evaluate: model is empty"),
        (("--tasks", 3000), "error: a panel of 3000 "),
    ],
)
def test_a_wrong_setting_is_one_line_before_any_request(
    evaluating: Evaluating, options: tuple[object, ...], said_of_it: str
) -> None:
    with completions(lambda body, number: said("ready")) as server:
        code, _, errors = evaluating(server, *options)
        assert server.bodies == []
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith(said_of_it)
    assert not list(evaluating.results.glob("runs/*/*"))


@pytest.mark.parametrize(
    ("respond", "said_of_it"),
    [
        (lambda body, number: wrong(401, "who?"), "401 who?; expected a key in the environment variable"),
        (
            lambda body, number: wrong(404, "no model m"),
            "404 no model m; expected a server with the model 'm'",
        ),
        (lambda body, number: Reply(200, b"<html>"), "expected a server with chat completions at"),
        (
            lambda body, number: wrong(400, "no seed"),
            "400 no seed; expected a server that takes such requests",
        ),
    ],
)
def test_a_wrong_server_is_one_line_and_leaves_no_folder(
    evaluating: Evaluating, respond: Respond, said_of_it: str
) -> None:
    with completions(respond) as server:
        code, _, errors = evaluating(server)
        assert len(server.bodies) <= 3
    assert (code, errors.count("\n")) == (2, 1)
    assert said_of_it in errors
    assert not list(evaluating.results.glob("runs/*/*"))


def test_options_of_a_server_are_refused_for_other_policies(
    evaluating: Evaluating, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = call(capsys, "evaluate", evaluating.suite, "expert", "--base-url", "http://x/v1")
    assert code == 2
    assert errors == "error: evaluate: --base-url is an option of the policy openai, expected that policy\n"
    code, _, errors = call(capsys, "evaluate", evaluating.suite, "openai", "--model", "m")
    assert (code, errors.startswith("error: evaluate: no server, expected --base-url")) == (2, True)
    code, _, errors = call(capsys, "evaluate", evaluating.suite, "openai", "--base-url", "http://x/v1")
    assert (code, errors.startswith("error: evaluate: no model, expected --model")) == (2, True)


def test_another_experiment_in_the_same_folder_is_refused_and_kept(
    evaluating: Evaluating, shop: Demonstrating
) -> None:
    with completions(shop) as server:
        evaluating(server)
        kept = evaluating.rows()
        code, _, errors = evaluating(server, "--max-tokens", 99)
    assert code == 2
    assert "config.rollout.max_new_tokens (1024 there, 99 here)" in errors
    assert evaluating.rows() == kept


def test_another_prompt_and_another_panel_have_folders_of_their_own(
    evaluating: Evaluating, shop: Demonstrating
) -> None:
    runs = evaluating.results / "runs"
    with completions(shop) as server:
        evaluating(server, "--tasks", 2, "--mode", "greedy")
        evaluating(server, "--prompt", "tags", "--shots", 1, "--mode", "greedy", "--model", "org/name-7B")
        evaluating(server, "--tasks", 3, "--mode", "greedy")
    found = {str(path.parent.relative_to(runs)) for path in runs.glob("*/*/summary.json")}
    assert found == {"webshop-2tasks/openai-m", "webshop/openai-name-7B-tags-1shot", "webshop/openai-m"}


@pytest.mark.usefixtures("undrawn")
def test_a_served_model_is_a_row_of_the_suites_report_and_no_trained_one(tmp_path: Path) -> None:
    suite, out = tmp_path / "webshop", tmp_path / "out"
    add_run(suite, "warm-start", solved=range(4))
    add_run(suite, "grpo", solved=range(10))
    add_run(suite, "grpo", seed=1, solved=range(12))
    before = write_report(suite, out)
    config = {"benchmark": "webshop", "kind": "served", "variant": "openai-m"}
    add_run(suite, "openai-m", kind="served", config=config, solved=range(15), policy={"name": "m"})
    (suite / "webshop-openai-m-s0" / "summary.json").write_text(
        json.dumps({**records.read_json(suite / "webshop-openai-m-s0" / "summary.json"), "iterations": 0})
    )
    for left in ("metrics.jsonl", "steps.parquet"):
        (suite / "webshop-openai-m-s0" / left).unlink()
    after = write_report(suite, out)
    labels = [row.label for row in after.rows]
    assert labels == [*[row.label for row in before.rows[:-1]], "openai-m", "demonstrator (ceiling)"]
    row = next(row for row in after.rows if row.variant == "openai-m")
    measure = row.measures["sampled", "success"]
    assert measure is not None
    assert (measure.spread.mean, row.seeds, row.planned) == (0.75, 1, 1)
    assert [one for one in after.rows if one.variant != "openai-m"] == list(before.rows)
    assert after.comparisons == before.comparisons
    assert load_runs(suite).served == ("openai-m",)
    assert "openai-m is sampled by its server" in (out / "table.md").read_text()


def test_make_passes_what_it_is_given() -> None:
    given = "SUITE=alfworld POLICY=openai BASE_URL=http://h:1/v1 MODEL=org/m TASKS=5 PROMPT=tags"
    # `make test` runs this in a make of its own, whose flags would add its lines to what is printed.
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "-n", "evaluate", *given.split(), "OPTIONS=--price-in 1 --price-out 2"],
        cwd=Path(__file__).parents[2],
        env=alone,
        capture_output=True,
        text=True,
        check=True,
    )
    *_, command = done.stdout.replace("\\\n", " ").splitlines()
    expected = (
        "-m benchmarks evaluate alfworld openai --scale default --results results --model org/m --prompt tags "
        "--base-url http://h:1/v1 --tasks 5 --price-in 1 --price-out 2"
    )
    assert shlex.split(command)[1:] == expected.split()
