"""A headless Chromium for tests: the system's, as Playwright's own download is not to be had everywhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def chromium() -> str:
    """The browser's path, from EMPG_CHROMIUM or the usual names; skips the test where there is none."""
    named = os.environ.get("EMPG_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no browser: make browser installs one where it can, or set EMPG_CHROMIUM")
    return found


@contextmanager
def launched() -> Iterator[Any]:
    """A browser with a fresh profile."""
    path = chromium()
    api = pytest.importorskip("playwright.sync_api", reason="no browser: playwright is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


class Watched:
    """A page, and everything on it that must not happen."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.failures: dict[str, str] = {}
        """Why a request got no answer, by its address."""
        self.page.on("requestfailed", lambda request: self.failures.update({request.url: request.failure}))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _dismiss(self, dialog: Any) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path: Path, address: str = "") -> Any:
        """The page at a file, with an episode open in the lens."""
        self.page.goto(path.as_uri() + address)
        self.page.locator("#lens").scroll_into_view_if_needed()
        self.page.locator("#lens-status", has_text="Open:").wait_for()
        return self.page

    @property
    def outside(self) -> list[str]:
        """Requests to anything but files on disk."""
        return [url for url in self.requests if not url.startswith(("file:", "data:"))]

    @property
    def data_files(self) -> list[str]:
        """Data of the lens that was loaded, in order."""
        return [url.split("/lens/")[1] for url in self.requests if "/lens/" in url]
