"""A policy and a suite small enough for whole runs inside the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from benchmarks.reporting.figures import style
from benchmarks.run import execute
from tests.benchmarks.tiny import planned, write_policy, write_suite


@pytest.fixture(scope="session")
def tiny_policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def tiny_suite(tmp_path: Path, tiny_policy: Path) -> Path:
    """The path of the suite's file."""
    return write_suite(tmp_path, tiny_policy)


@contextmanager
def single_thread() -> Iterator[None]:
    """Sums depend on the number of threads; runs that are compared bit by bit must agree on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def one_thread() -> Iterator[None]:
    with single_thread():
        yield


@pytest.fixture(scope="session")
def straight(tiny_policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("straight")
    run = planned(write_suite(folder, tiny_policy), folder)
    with single_thread():
        execute(run, folder / "cache")
    return run.folder


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures keep their data and are not drawn, which takes most of a report's time."""
    monkeypatch.setattr(style, "render", lambda chart: {"png": b"not drawn", "svg": b"<svg/>"})
