"""Fixtures every test folder may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data; tests that use it carry the marker `shared`."""
    folder = Path(os.environ.get("EMPG_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}")
    return folder


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of whoever runs the tests reaches a server."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
