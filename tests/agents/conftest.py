from __future__ import annotations

import pytest


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of whoever runs the tests reaches a server."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
