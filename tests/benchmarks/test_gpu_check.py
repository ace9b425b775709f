"""The check of a GPU, on the CPU at tiny size: the same steps, and what each notices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from agents.policies.torch_policy import TorchPolicy
from benchmarks import gpu_check
from tests.benchmarks.test_cli import call


def statuses(results: Path) -> dict[str, str]:
    report = json.loads((results / gpu_check.REPORT).read_text())
    return {check["name"]: check["status"] for check in report["checks"]}


@pytest.fixture
def devices_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # put back after the command has set it


@pytest.mark.usefixtures("devices_put_back")
def test_every_step_passes_on_the_cpu_but_for_the_one_that_needs_a_gpu(capsys, tmp_path):
    code, out, errors = call(capsys, "gpu-check", "--device", "cpu", "--results", tmp_path)
    found = statuses(tmp_path)
    assert (code, errors) == (0, "")
    assert found.pop("peak memory") == "SKIP"
    assert set(found.values()) == {"PASS"}
    assert len(found) == 9
    assert [line.split()[0] for line in out.splitlines()].count("PASS") == 9


@pytest.mark.usefixtures("devices_put_back")
def test_a_policy_that_goes_on_with_old_weights_fails_the_check(capsys, tmp_path, monkeypatch):
    """The model that plays is a copy that nobody updates."""
    own = gpu_check.open_policy

    def stale(*arguments: Any) -> Any:
        loaded = own(*arguments)
        folder = tmp_path / "copy"
        loaded.save(folder)
        copied = type(loaded.model).from_pretrained(folder)
        policy = TorchPolicy(copied, loaded.tokenizer, max_context=2048)
        return gpu_check.LoadedPolicy(policy, loaded.model, loaded.tokenizer, loaded.record, loaded.origin)

    monkeypatch.setattr(gpu_check, "open_policy", stale)
    code, out, _ = call(capsys, "gpu-check", "--device", "cpu", "--results", tmp_path)
    assert code == 1
    assert statuses(tmp_path)["new weights"] == "FAIL"
    assert "from the old ones, expected" in out


@pytest.mark.usefixtures("devices_put_back")
def test_what_follows_a_failed_step_is_skipped_and_what_does_not_need_it_goes_on(
    capsys, tmp_path, monkeypatch
):
    def broken(*_: Any) -> Any:
        raise RuntimeError("no kernel\nfor this")

    monkeypatch.setattr(gpu_check, "open_policy", broken)
    code, out, _ = call(capsys, "gpu-check", "--device", "cpu", "--results", tmp_path)
    assert code == 1
    assert "FAIL  model and engine: RuntimeError: no kernel for this" in out
    found = statuses(tmp_path)
    assert [name for name, status in found.items() if status == "PASS"] == ["device", "bfloat16"]
    assert list(found.values()).count("SKIP") == 7


@pytest.mark.usefixtures("devices_put_back")
def test_a_peak_beyond_the_plan_s_estimate_fails_and_one_below_it_passes(tmp_path, monkeypatch):
    model = gpu_check._random_model(gpu_check.RANDOM["cpu"], tmp_path / "random")
    bench = gpu_check.Bench("cpu", gpu_check._config(str(model), "cpu"), tmp_path)
    for step in gpu_check.STEPS[2:5]:
        assert gpu_check._do(step, bench).status == "PASS"
    bench.device, bench.before = "cuda", 1000
    assert _at_peak(bench, 1000 + 2**30, monkeypatch).status == "FAIL"
    assert _at_peak(bench, 1001, monkeypatch).status == "PASS"


def _at_peak(bench: gpu_check.Bench, peak: int, monkeypatch: pytest.MonkeyPatch) -> gpu_check.Check:
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: peak)
    return gpu_check._do(gpu_check._peak_memory, bench)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu_it_says_so_in_one_line_and_ends_with_2(capsys, tmp_path):
    code, out, errors = call(capsys, "gpu-check", "--results", tmp_path)
    assert (code, out) == (2, "")
    assert errors.startswith("error: gpu-check: torch sees no GPU here")
    assert errors.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_another_device_is_refused(capsys):
    assert call(capsys, "gpu-check", "--device", "tpu")[2] == "error: device: 'tpu', expected cuda or cpu\n"
