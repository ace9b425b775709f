"""A whole run that vLLM samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import records
from benchmarks.config import load_suite
from benchmarks.overrides import Overrides
from benchmarks.plan import find
from benchmarks.run import execute
from tests.benchmarks.tiny import NAME, write_policy, write_suite

pytest.importorskip("vllm", reason="vllm is not installed")
pytestmark = pytest.mark.vllm


def test_every_iteration_of_a_run_is_sampled_with_the_weights_of_the_update_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    suite = write_suite(tmp_path, write_policy(tmp_path / "policy", hidden=64))  # a head size that vLLM has
    run = find(load_suite(str(suite), overrides=Overrides(rollout="vllm")), NAME, None, tmp_path / "results")
    execute(run, tmp_path / "cache")
    metrics = records.read_jsonl(run.folder / "metrics.jsonl")
    assert [row["optimizer_steps"] for row in metrics] == [2, 2, 2]
    # At this learning rate one update moves log-probabilities by far more: the engine never lags behind.
    assert all(row["rollout_logprob_gap_max"] < 1e-4 for row in metrics)
    assert max(abs(row["ratio_max"] - 1) for row in metrics) > 0.01
    record = records.read_json(run.folder / "run.json")
    assert record["policy_origin"]["engine"]["name"] == "vllm"
    assert records.read_json(run.folder / "summary.json")["eval"]["test"]["greedy"]["n"] == 3
