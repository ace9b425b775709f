"""Whole runs over a retrieval server that fails: what was played is kept, nothing is scored 0, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import records
from benchmarks.config import ConfigError, load_suite
from benchmarks.plan import Run, find
from benchmarks.run import execute
from benchmarks.warm_start.small_model import SmallModelConfig, build_model, train_tokenizer
from envs.deepsearch.actions import Command
from envs.deepsearch.retrieval.base import RetrieverDown
from envs.deepsearch.retrieval.http import HttpRetriever
from tests.benchmarks.report_runs import report_of
from tests.envs.test_deepsearch_http import FAST, good, serving

pytestmark = pytest.mark.usefixtures("one_thread")
SUITE = """
title = "tiny"
benchmark = "deepsearch"
iterations = 2
world = {{ passages = 1000, train_questions = 20, test_questions = 2, max_steps = 2, retriever = "{url}" }}
panels = {{ train = 6, test = 4 }}
policy = {{ model = "{policy}", max_context = 600 }}
rollout = {{ max_new_tokens = 6 }}
learner = {{ batch = {{ groups_per_batch = 2, group_size = 2 }}, optimizer = {{ lr = 0.01 }} }}

[empg]
zeta = 0.05

[variants."dapo+scaling"]
preset = "dapo"
empg = {{ bonus = false }}

[scale.default]
"""
Answer = Callable[[dict[str, Any], int], tuple[int, bytes]]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    tokenizer = train_tokenizer(["Question: Who? Thought: why\nAction: search[query] 1 2 3"] * 9, 300)
    shape = SmallModelConfig(hidden=16, layers=1, heads=2, intermediate=32, vocab_size=300, max_context=600)
    build_model(shape, len(tokenizer), seed=0).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the random policy writes is a search, and nobody waits."""
    monkeypatch.setattr("envs.deepsearch.env.parse_action", lambda text: Command("search", text or "nothing"))
    hasty = partial(HttpRetriever, patience=FAST, ready_s=0.0, sleep=lambda _: None)
    monkeypatch.setattr("envs.deepsearch.retrieval.http.HttpRetriever", hasty)


def planned(tmp_path: Path, policy: Path, url: str, name: str = "deepsearch-dapo-scaling-s0") -> Run:
    path = tmp_path / "tiny.toml"
    path.write_text(SUITE.format(policy=policy, url=url), encoding="utf-8")
    return find(load_suite(str(path)), name, None, tmp_path / "results")


def evaluations(run: Run) -> list[dict[str, Any]]:
    return [
        {key: row[key] for key in ("task_id", "mode", "success", "end", "steps")}
        for row in records.read_jsonl(run.folder / "eval.jsonl")
    ]


def test_a_server_that_stays_away_stops_the_run_and_the_same_command_goes_on(
    tmp_path: Path, policy: Path
) -> None:
    def dying(body: dict[str, Any], number: int) -> tuple[int, bytes]:
        first_iteration = not (run.folder / "metrics.jsonl").exists()
        return (200, good(body)) if first_iteration else (503, b"gone")

    with serving(lambda body, _: (200, good(body))) as (url, _):
        port = int(url.rpartition(":")[2])
    run = planned(tmp_path, policy, url)
    with (
        serving(dying, port),
        pytest.raises(RetrieverDown, match=r"the retriever is down: .* 503 'gone' .*same command"),
    ):
        execute(run, tmp_path)
    assert len(records.read_jsonl(run.folder / "metrics.jsonl")) == 1
    assert not (run.folder / "summary.json").exists()
    with serving(lambda body, _: (200, good(body)), port):
        execute(run, tmp_path)
    episodes = records.read_jsonl(run.folder / "episodes.jsonl")
    assert [row["iteration"] for row in episodes] == [0] * 4 + [1] * 4
    assert {row["end"] for row in episodes} == {"truncated"}

    (tmp_path / "straight").mkdir()
    with serving(lambda body, _: (200, good(body))) as (other, _):
        straight = planned(tmp_path / "straight", policy, other)
        execute(straight, tmp_path)
    assert evaluations(run) == evaluations(straight)
    first, second = (records.read_jsonl(each.folder / "metrics.jsonl") for each in (run, straight))
    assert first == second


def test_failed_tries_are_counted_in_the_summary_and_the_report_and_failed_queries_are_errored_episodes(
    tmp_path: Path, policy: Path
) -> None:
    seen: set[str] = set()

    def flaky(body: dict[str, Any], number: int) -> tuple[int, bytes]:
        new = [query for query in body["queries"] if query not in seen and query != "ready"]
        seen.update(new)
        return (500, b"once") if new else (200, good(body))

    with serving(flaky) as (url, _):
        run = planned(tmp_path, policy, url)
        execute(run, tmp_path)
    service = records.read_json(run.folder / "summary.json")["service"]
    assert service["retriever_retries"] == service["retriever_server_errors"] > 4
    assert "retriever_failed_queries" not in service
    report = report_of(run.folder.parent)
    assert f"retriever_retries {service['retriever_retries']}" in report.facts["servers"]
    assert not any(row["end"] == "error" for row in evaluations(run))

    (tmp_path / "broken").mkdir()
    with serving(lambda body, _: (200, good(body)) if body["queries"] == ["ready"] else (500, b"no")) as (
        url,
        _,
    ):
        broken = planned(tmp_path / "broken", policy, url, "deepsearch-zero-shot")
        execute(broken, tmp_path)
    rows = evaluations(broken)
    assert {row["end"] for row in rows} == {"error"}
    totals = records.read_json(broken.folder / "summary.json")
    assert totals["eval"]["test"]["sampled"] == {
        "n": 0, "errored": 4, "successes": 0, "success": None, "score": None,
    }  # fmt: skip
    assert totals["service"]["retriever_failed_queries"] >= len(rows)


def test_a_server_that_is_not_there_is_one_line_before_any_work(tmp_path: Path, policy: Path) -> None:
    with serving(lambda body, _: (200, good(body))) as (url, _):
        pass
    run = planned(tmp_path, policy, url)
    with pytest.raises(ConfigError, match=rf"the retriever is not ready .*{url}/retrieve.*start it"):
        execute(run, tmp_path)
    assert not (run.folder / "run.json").exists()
