"""A policy and a suite small enough for whole runs inside the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.benchmarks.tiny import write_policy, write_suite


@pytest.fixture(scope="session")
def tiny_policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def tiny_suite(tmp_path: Path, tiny_policy: Path) -> Path:
    """The path of the suite's file."""
    return write_suite(tmp_path, tiny_policy)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Sums depend on the number of threads; runs that are compared bit by bit must agree on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
