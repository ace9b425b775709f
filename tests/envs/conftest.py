"""Fixtures of the environments' tests."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from envs.alfworld.games import find_tree
from envs.alfworld.official import check_installed
from envs.base import EnvError
from envs.webshop.generate import generate


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    generate(300, seed=3).write(folder)
    return folder


@pytest.fixture(scope="session")
def official_tree(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The official ALFWorld games, unpacked once."""
    folder = tmp_path_factory.mktemp("alfworld")
    with tarfile.open(shared / "data" / "alfworld-json_2.1.1.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return find_tree(next(path.parent for path in folder.rglob("valid_unseen")))


@pytest.fixture(scope="session")
def official_engine() -> None:
    """Skip where the official ALFWorld engine is not installed."""
    try:
        check_installed()
    except EnvError as error:
        pytest.skip(f"official engine: {error}")
