"""Fixtures of the environments' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.webshop.generate import generate


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    generate(300, seed=3).write(folder)
    return folder
