"""The page for every reader: both themes, narrow and wide, by keyboard and screen reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.browser import Watched, launched
from tests.benchmarks.page_runs import add_played_run, episode, episodes_of, turn, write_page

LINK = "#run=webshop-grpo-s0&iteration=0&episode=0.0.0&beside=webshop-grpo-empg-s0"
ONE_LONG_WORD = "x" * 400
COLOUR_OF = """(element, name) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = getComputedStyle(document.body).backgroundColor;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = getComputedStyle(element)[name];
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with trained, dropped and errored episodes, words without a place to break, and many steps."""
    suite = tmp_path_factory.mktemp("suite") / "webshop"
    for variant in ("grpo", "grpo+empg"):
        rows = episodes_of()
        rows[0]["turns"] = [turn(step, observation=ONE_LONG_WORD, action=ONE_LONG_WORD) for step in range(30)]
        rows[1] |= {"kept": False}
        rows[2] = episode(0, 1, 0, task_id=ONE_LONG_WORD, kept=False, end="error", error=ONE_LONG_WORD)
        add_played_run(suite, variant, played=rows)
    return write_page(suite, tmp_path_factory.mktemp("out"), facts={"data": ONE_LONG_WORD})


def luminance(colour: list[int]) -> float:
    """Relative luminance as WCAG 2 defines it."""
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (each / 255 for each in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: list[int], other: list[int]) -> float:
    """Contrast ratio as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_the_page_never_scrolls_sideways(browser: Any, page_file: Path, width: int) -> None:
    watched = Watched(browser, viewport={"width": width, "height": 900})
    page = watched.open(page_file, LINK)
    assert page.locator(".episode").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.locator("#lens-beside").select_option("")
    page.locator(".episode").nth(1).wait_for(state="detached")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert watched.errors == []
    watched.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system(browser: Any, page_file: Path, scheme: str) -> None:
    watched = Watched(browser, color_scheme=scheme)
    page = watched.open(page_file)
    paper = luminance(page.locator("body").evaluate(COLOUR_OF, "backgroundColor"))
    assert (paper > 0.8) == (scheme == "light")
    assert (paper < 0.05) == (scheme == "dark")
    watched.context.close()


def test_the_switch_overrides_the_system_and_is_remembered(browser: Any, page_file: Path) -> None:
    watched = Watched(browser, color_scheme="light")
    page = watched.open(page_file)
    page.get_by_role("radio", name="Dark").check(force=True)
    dark = page.locator("body").evaluate(COLOUR_OF, "backgroundColor")
    assert luminance(dark) < 0.05
    page.reload()
    assert page.locator("body").evaluate(COLOUR_OF, "backgroundColor") == dark
    assert page.get_by_role("radio", name="Dark").is_checked()
    watched.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_darkest_shade_of_a_token_leaves_its_text_legible(
    browser: Any, page_file: Path, scheme: str
) -> None:
    watched = Watched(browser, color_scheme=scheme)
    token = watched.open(page_file, LINK).locator(".token").nth(4)
    assert token.evaluate("token => token.style.getPropertyValue('--shade')") == "1.000"
    text, shade = (token.evaluate(COLOUR_OF, name) for name in ("color", "backgroundColor"))
    assert contrast(text, shade) >= 4.5
    watched.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_an_accessibility_checker_finds_nothing(
    browser: Any, page_file: Path, scheme: str, width: int
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is absent"
    )
    watched = Watched(browser, color_scheme=scheme, viewport={"width": width, "height": 900})
    page = watched.open(page_file, LINK)
    page.get_by_text("5 tokens as a table").first.click()
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found] == []
    watched.context.close()


def test_a_keyboard_reaches_the_results_first_and_every_control(browser: Any, page_file: Path) -> None:
    watched = Watched(browser)
    page = watched.open(page_file)
    page.evaluate("scrollTo(0, 0)")
    page.locator("body").press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('.filter input')")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('.scroller')")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#table-1 thead th").first.get_attribute("aria-sort") == "ascending"
    watched.context.close()


def test_what_has_the_focus_is_outlined(browser: Any, page_file: Path) -> None:
    watched = Watched(browser)
    page = watched.open(page_file, LINK)
    page.locator("#lens-viewer").focus()
    page.keyboard.press("j")
    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert (page.evaluate("document.activeElement.dataset.step"), style) == ("1", "solid")
    watched.context.close()


def test_nothing_moves_for_readers_who_asked_for_less_motion(browser: Any, page_file: Path) -> None:
    behaviour = "getComputedStyle(document.documentElement).scrollBehavior"
    for motion, expected in (("reduce", "auto"), ("no-preference", "smooth")):
        watched = Watched(browser, reduced_motion=motion)
        assert watched.open(page_file).evaluate(behaviour) == expected
        watched.context.close()
