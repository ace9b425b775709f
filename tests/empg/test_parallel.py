"""Two processes give what one gives: scores, statistics, gradients, weights and checkpoints."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from safetensors.torch import load_file
from torch import Tensor

from empg.batch import make_batch, micro_batches, passes
from empg.parallel import ALONE, Launched, Processes
from empg.scores import score
from tests.conftest import ROOT
from tests.empg.helpers import PAD, random_trajectory, tiny_model
from tests.empg.parallel_job import LOSSES, ROWS, SCOPES, UPDATES, results, resumed

KINDS = ("ddp", "fsdp2")


class Found(NamedTuple):
    tensors: dict[str, Tensor]
    numbers: dict[str, Any]


def launched(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Two processes of a module, as `make` starts them on a machine without GPU."""
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "-m", module, *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parallel")


@pytest.fixture(scope="module")
def alone(folder: Path) -> Found:
    """Of one process."""
    return Found(*results(ALONE, folder / "alone"))


@pytest.fixture(scope="module")
def both(folder: Path, alone: Found) -> dict[str, tuple[Found, Found]]:
    """Of each of two processes, by kind."""
    done = launched("tests.empg.parallel_job", str(folder))
    assert done.returncode == 0, done.stderr
    return {kind: (_read(folder, kind, 0), _read(folder, kind, 1)) for kind in KINDS}


def _read(folder: Path, kind: str, rank: int) -> Found:
    name = f"{kind}-{rank}"
    return Found(load_file(folder / f"{name}.safetensors"), json.loads((folder / f"{name}.json").read_text()))


def assert_close(ours: dict[str, Tensor], theirs: dict[str, Tensor], prefix: str, atol: float = 1e-5) -> None:
    names = [name for name in theirs if name.startswith(prefix)]
    assert names
    for name in names:
        torch.testing.assert_close(
            ours[name], theirs[name], rtol=1e-5, atol=atol, msg=lambda m, n=name: f"{n}: {m}"
        )


def assert_alike(ours: Any, theirs: Any, where: str) -> None:
    """JSON values, numbers to 1e-5."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key, value in theirs.items():
            assert_alike(ours[key], value, f"{where}.{key}")
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), where
        for index, value in enumerate(theirs):
            assert_alike(ours[index], value, f"{where}[{index}]")
    elif isinstance(theirs, float):
        assert math.isclose(ours, theirs, rel_tol=1e-4, abs_tol=1e-5), f"{where}: {ours} and {theirs}"
    else:
        assert ours == theirs, where


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rows", ROWS)
def test_two_processes_give_the_scores_and_gradients_of_one_to_1e_5(both, alone, kind, loss, rows):
    for rank in (0, 1):
        assert_close(both[kind][rank].tensors, alone.tensors, f"{loss}/{rows}/")
        assert_alike(both[kind][rank].numbers[f"{loss}/{rows}"], alone.numbers[f"{loss}/{rows}"], rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scope", SCOPES)
def test_statistics_of_empg_and_all_metrics_are_over_the_global_batch(both, alone, kind, loss, scope):
    for iteration in range(UPDATES):
        for name in (f"{loss}/{scope}/{iteration}", f"{loss}/{scope}/{iteration}/steps"):
            for rank in (0, 1):
                assert_alike(both[kind][rank].numbers[name], alone.numbers[name], name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scope", SCOPES)
def test_updated_weights_are_those_of_one_process_to_1e_5(both, alone, kind, loss, scope):
    assert_close(both[kind][0].tensors, alone.tensors, f"{loss}/{scope}/weights/")


@pytest.mark.parametrize("kind", KINDS)
def test_adapters_are_trained_as_by_one_process_whatever_type_the_other_weights_have(both, alone, kind):
    for rank in (0, 1):
        assert_close(both[kind][rank].tensors, alone.tensors, "adapters/")


def test_sharded_layers_may_calculate_in_bfloat16_while_weights_and_gradients_stay_float32(both):
    found = both["fsdp2"][0].tensors
    model = tiny_model(num_hidden_layers=2)
    batch = make_batch([random_trajectory(np.random.default_rng(i), sample=i) for i in range(4)], PAD)
    exact = score(model, batch, temperature=1.0, token_budget=1000, chunk=100).logprob
    gap = (found["half/logprob"] - exact).abs().max()
    assert 1e-4 < float(gap) < 0.2  # it does round, and not more than 8 bits of mantissa do
    for name, parameter in model.named_parameters():
        assert found[f"half/{name}"].dtype == torch.float32
        assert found[f"half/{name}"].shape == parameter.shape


@pytest.mark.parametrize("kind", KINDS)
def test_both_processes_hold_the_same_weights_and_numbers_bit_for_bit(both, kind):
    first, second = both[kind]
    assert first.numbers == second.numbers
    assert first.tensors.keys() == second.tensors.keys()
    for name, tensor in first.tensors.items():
        assert torch.equal(tensor, second.tensors[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_one_process_goes_on_in_two(both, alone, folder, kind):
    saved = next((folder / "alone/checkpoint").iterdir())
    again = next((folder / f"alone/again-2-{kind}").iterdir())
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        assert (again / name).read_bytes() == (saved / name).read_bytes(), name
    expected = {name.replace("after", "resumed"): value for name, value in alone.tensors.items()}
    assert_close(both[kind][0].tensors, expected, "resumed/")


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_two_processes_goes_on_in_one(both, folder, kind):
    found = resumed(ALONE, folder / kind)
    saved = next((folder / kind / "checkpoint").iterdir())
    again = next((folder / kind / "again-1-ddp").iterdir())
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        assert (again / name).read_bytes() == (saved / name).read_bytes(), name
    expected = {name.replace("after", "resumed"): value for name, value in both[kind][0].tensors.items()}
    assert_close(found, expected, "resumed/")


class Numbered(Processes):
    def __init__(self, rank: int, count: int) -> None:
        self.rank, self.count = rank, count


@given(st.lists(st.integers()), st.integers(1, 9))
def test_shares_of_a_list_are_contiguous_even_and_complete(items, count):
    parts = [list(Numbered(rank, count).share(items)) for rank in range(count)]
    assert [item for part in parts for item in part] == items
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 120), st.integers(1, 5))
def test_passes_hold_every_row_once_under_the_budget_and_keep_step(lengths, budget, count):
    table = torch.tensor(lengths)
    each = [passes(table, budget, rank, count) for rank in range(count)]
    assert len({len(own) for own in each}) == 1
    rows = [row for own in each for one in own if one.counts for row in one.rows.tolist()]
    assert sorted(rows) == list(range(len(lengths)))
    for own in each:
        for one in own:
            assert len(one.rows) * int(table[one.rows].max()) <= budget or len(one.rows) == 1


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 120))
def test_one_process_passes_over_the_plain_micro_batches(lengths, budget):
    table = torch.tensor(lengths)
    own = passes(table, budget)
    assert all(one.counts for one in own)
    assert [one.rows.tolist() for one in own] == [rows.tolist() for rows in micro_batches(table, budget)]


def test_an_unknown_kind_is_refused_with_what_was_expected():
    with pytest.raises(ValueError, match="'zero3', expected 'ddp' or 'fsdp2'"):
        Launched(None, "zero3")
