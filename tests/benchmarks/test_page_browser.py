"""The page as a person meets it: in headless Chromium, from disk, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.browser import Watched, launched
from tests.benchmarks.page_runs import add_played_run, episode, episodes_of, turn, write_page
from tests.benchmarks.report_runs import add_run

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!--\u2028"
LONG = "word " * 400
RUN = "webshop-grpo-s0"
LINK = "#run=webshop-grpo-s0&iteration=1&episode=0.1.0&step=2&beside=webshop-grpo-empg-s0"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """A page on which nothing may go wrong and nothing outside the disk may be asked for."""
    page = Watched(browser)
    yield page
    page.context.close()
    assert page.errors == []
    assert page.outside == []


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on the same tasks, one with an errored and a dropped episode; a third that met another task."""
    suite = tmp_path_factory.mktemp("suite") / "webshop"
    mixed = episodes_of()
    mixed[1] |= {"kept": False, "end": "error", "error": "engine died", "success": False}
    mixed[2] |= {"kept": False}
    mixed[3] |= {"kept": False, "turns": [turn(0, well_formed=False), turn(1, action_valid=False)]}
    add_played_run(suite, "grpo", played=mixed)
    add_played_run(suite, "grpo+empg")
    add_played_run(suite, "dapo", played=[episode(0, 0, 0, task_id="elsewhere", turns=[turn(0)])])
    return write_page(suite, tmp_path_factory.mktemp("out"))


def cells(page: Any, column: int) -> list[str]:
    found: list[str] = page.locator(f"#table-1 tbody tr:visible > :nth-child({column})").all_text_contents()
    return [text.split(" ")[0] for text in found]


def test_a_table_sorts_by_value_and_keeps_what_is_missing_last(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file)
    heading = page.locator("#table-1 thead th").nth(1)
    original = cells(page, 2)
    heading.get_by_role("button").click()
    assert (cells(page, 2), heading.get_attribute("aria-sort")) == (
        ["9.5", "41.5", "100.0", "—"],
        "ascending",
    )
    heading.get_by_role("button").click()
    assert (cells(page, 2), heading.get_attribute("aria-sort")) == (
        ["100.0", "41.5", "9.5", "—"],
        "descending",
    )
    heading.get_by_role("button").click()
    assert (cells(page, 2), heading.get_attribute("aria-sort")) == (original, "none")


def test_a_table_sorts_words_and_marks_one_column_only(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file)
    for column in ("success", "verdict"):
        page.locator("#table-1").get_by_role("button", name=column, exact=True).click()
    assert cells(page, 4) == ["not", "significant", "significant", "—"]
    assert page.locator("#table-1 [aria-sort]:not([aria-sort=none])").count() == 1


def test_a_table_filters_by_all_words_and_says_how_many_rows_match(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file)
    page.get_by_label("Filter rows of Success on the panel").fill("empg 41")
    assert cells(page, 1) == ["GRPO+EMPG"]
    assert page.locator("#table-1 [role=status]").text_content() == "1 of 4 rows"


def test_an_episode_opens_with_all_that_was_said(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file)
    page.locator("#lens-run").select_option(label="GRPO+EMPG · seed 0")
    page.get_by_role("button", name="sample 1: not solved").last.click()
    shown = page.locator(".episode")
    assert shown.get_by_role("heading", level=3).text_content() == "task-1"
    assert shown.locator(".thought").all_text_contents() == ["think 0", "think 1", "think 2"]
    assert shown.locator(".action").all_text_contents() == [f"search[word {step}]" for step in range(3)]
    assert shown.locator(".observation").all_text_contents() == ["page 0", "page 1", "page 2"]
    assert "#run=webshop-grpo-empg-s0&iteration=0&episode=0.1.1" in page.url


def test_credit_is_written_and_drawn_on_one_scale(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, "#run=webshop-grpo-empg-s0&iteration=0&episode=0.0.1")
    assert page.locator(".credit").nth(1).locator("dd").all_text_contents() == [
        "0.500", "1.000", "0.800", "−0.700", "−0.750",
    ]  # fmt: skip
    width = "bar => bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width"
    entropies = page.locator(".fill.entropy")
    assert [round(entropies.nth(step).evaluate(width), 2) for step in range(3)] == [0.33, 0.67, 1.0]
    final = page.locator(".fill.advantage.minus")
    assert [round(final.nth(step).evaluate(width), 2) for step in range(3)] == [0.5, 0.3, 0.1]


def test_tokens_are_shaded_by_entropy_with_a_legend_in_nats(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, "#run=webshop-grpo-empg-s0&iteration=0&episode=0.0.0")
    tokens = page.locator(".tokens").first.locator(".token")
    shades = [
        float(tokens.nth(place).evaluate("t => t.style.getPropertyValue('--shade')")) for place in range(5)
    ]
    assert shades == [0.0, 0.5, 0.707, 0.866, 1.0]  # roots of 0, 1/4, 1/2, 3/4, 1
    assert page.locator(".tokens").first.text_content() == "Thought: think 0\nAction: search[word 0]<|end|>"
    assert (
        page.locator(".token-legend").text_content() == "Token entropy, nats (square-root scale)0.000.502.00"
    )
    page.get_by_text("5 tokens as a table").first.click()
    assert page.locator(".token-table tbody tr").nth(2).text_content() == "\\n1.000−0.800"


def test_an_episode_without_recorded_tokens_is_plain_and_says_so(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, "#run=webshop-grpo-empg-s0&iteration=0&episode=0.1.0")
    assert page.get_by_text("tokens of this episode were not recorded").is_visible()
    assert page.locator(".token, .token-legend").count() == 0


@pytest.mark.parametrize(
    ("episode_id", "said"),
    [("0.0.1", "the environment failed"), ("0.1.0", "dynamic sampling dropped its group")],
)
def test_steps_that_were_not_trained_on_say_why(
    watched: Watched, page_file: Path, episode_id: str, said: str
) -> None:
    page = watched.open(page_file, f"#run={RUN}&iteration=0&episode={episode_id}")
    assert said in page.locator(".remarks").text_content()
    assert page.get_by_text("Not trained on: no credit was given.").count() == 3
    assert page.locator(".credit").count() == 0


def test_an_error_of_the_environment_is_shown(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, f"#run={RUN}&iteration=0&episode=0.0.1")
    assert page.get_by_text("Error: engine died").is_visible()


def test_malformed_turns_and_invalid_actions_are_marked(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, f"#run={RUN}&iteration=0&episode=0.1.1")
    assert page.locator(".check").all_text_contents() == [
        "✗ not well-formed", "✓ valid action", "✓ well-formed", "✗ not a valid action",
    ]  # fmt: skip


def test_a_link_brings_back_the_whole_view(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, LINK)
    assert page.locator("#lens-run").input_value() == RUN
    assert page.locator("#lens-scope").input_value() == "1"
    assert page.locator("#lens-beside").input_value() == "webshop-grpo-empg-s0"
    assert page.locator(".step.current").first.get_attribute("aria-label") == "Step 2"
    assert page.locator(".chip[aria-current]").get_attribute("data-key") == "1/0.1.0"
    before = page.locator("#lens-panes").inner_html()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.reload()
    page.locator("#lens-status", has_text="Open:").wait_for()
    assert page.locator("#lens-panes").inner_html() == before


def test_a_link_to_what_is_not_there_says_so(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, "#run=nowhere&iteration=9&episode=9.9.9")
    assert "The address names an episode that is not here" in page.locator("#lens-status").text_content()


def test_the_way_back_leads_to_the_episode_before(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, "#run=webshop-grpo-empg-s0&iteration=0&episode=0.0.0")
    page.locator("#lens-groups .chip").nth(3).click()
    page.locator(".episode-head", has_text="task-1").wait_for()
    page.go_back()
    page.locator(".episode-head", has_text="task-0").wait_for()


def test_two_variants_stand_side_by_side_on_the_same_task(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, f"#run={RUN}&iteration=1&episode=0.1.1")
    page.locator("#lens-beside").select_option(label="GRPO+EMPG · seed 0")
    page.locator(".episode").nth(1).wait_for()
    assert page.locator(".episode h3").all_text_contents() == ["task-1", "task-1"]
    assert page.locator(".episode .eyebrow").all_text_contents() == [
        "GRPO · seed 0 · iteration 1 · group 1, sample 1", "GRPO+EMPG · seed 0 · iteration 1 · group 1, sample 1",
    ]  # fmt: skip
    tops = [page.locator("[data-step='2']").nth(pane).bounding_box()["y"] for pane in (0, 1)]
    assert tops[0] == tops[1]
    assert page.locator("#lens-beside-episode option").count() == 4


def test_a_run_that_never_met_the_task_says_so(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, f"#run={RUN}&iteration=1&episode=0.1.1&beside=webshop-dapo-s0")
    assert "DAPO · seed 0 recorded no episode of this task" in page.locator("#lens-status").text_content()
    assert page.locator(".episode").count() == 1
    assert page.locator("#lens-beside-episode").is_disabled()


def test_keys_move_between_steps_and_episodes(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, "#run=webshop-grpo-empg-s0&iteration=0&episode=0.0.0")

    def focused() -> str:
        found: str = page.evaluate("document.activeElement.getAttribute('aria-label')")
        return found

    seen = []
    for key in ("j", "ArrowDown", "j", "k", "ArrowUp"):
        page.keyboard.press(key)
        seen.append(focused())
    assert seen == ["Step 2", "Step 3", "Step 3", "Step 2", "Step 1"]
    page.keyboard.press("j")
    page.keyboard.press("]")
    page.locator(".chip[data-key='0/0.0.1'][aria-current]").wait_for()
    assert (focused(), "step=1" in page.url) == ("Episode: task-0", True)
    page.keyboard.press("[")
    page.locator(".chip[data-key='0/0.0.0'][aria-current]").wait_for()


def test_keys_are_left_alone_in_text_and_with_modifiers(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file, "#run=webshop-grpo-empg-s0&iteration=0&episode=0.0.0")
    page.keyboard.press("Control+j")
    page.locator("#lens-text").fill("")
    page.locator("#lens-text").press_sequentially("j]")
    assert page.locator("#lens-text").input_value() == "j]"
    assert "step=1" in page.url or "step" not in page.url
    assert page.locator(".step.current").get_attribute("aria-label") == "Step 1"


@pytest.mark.parametrize(
    ("control", "choice", "kept"),
    [
        ("outcome", "solved", ["0/0.0.0"]),
        ("outcome", "failed", ["0/0.1.0", "0/0.1.1"]),
        ("outcome", "errored", ["0/0.0.1"]),
        ("outcome", "trained", ["0/0.0.0"]),
        ("outcome", "tokens", ["0/0.0.0"]),
        ("type", "kitchen", ["0/0.1.0", "0/0.1.1"]),
        ("text", "TASK-0", ["0/0.0.0", "0/0.0.1"]),
        ("text", "think 2", ["0/0.0.0", "0/0.0.1", "0/0.1.0"]),
        ("text", "engine died", ["0/0.0.1"]),
        ("text", "nothing of it", []),
    ],
)
def test_episodes_are_filtered(
    browser: Any, tmp_path: Path, control: str, choice: str, kept: list[str]
) -> None:
    rows = episodes_of(iterations=1)
    rows[1] |= {"kept": False, "end": "error", "error": "engine died"}
    rows[2] |= {"kept": False, "success": False}
    rows[3] |= {"kept": False, "turns": [turn(0)]}
    add_played_run(tmp_path / "webshop", "grpo", played=rows)
    watched = Watched(browser)
    page = watched.open(write_page(tmp_path / "webshop", tmp_path / "out"))
    if control == "text":
        page.locator("#lens-text").fill(choice)
    else:
        page.locator(f"#lens-{control}").select_option(choice)
    shown = page.locator("#lens-groups .chip").evaluate_all("chips => chips.map(chip => chip.dataset.key)")
    assert shown == kept
    assert page.locator("#lens-status").text_content().startswith(f"{len(kept)} episode")
    watched.context.close()


def test_all_iterations_are_listed_a_part_at_a_time_from_one_index(browser: Any, tmp_path: Path) -> None:
    rows = episodes_of(iterations=100, groups=10, samples=10)
    add_played_run(
        tmp_path / "webshop", "grpo", played=rows, with_tokens=lambda one: False, iterations=range(100)
    )
    watched = Watched(browser)
    page = watched.open(write_page(tmp_path / "webshop", tmp_path / "out"))
    page.locator("#lens-scope").select_option("all")
    page.locator("#lens-status", has_text="10,000 episodes listed").wait_for()
    assert page.locator("#lens-groups > li").count() == 40
    page.locator("#lens-more").click()
    assert page.locator("#lens-groups > li").count() == 80
    page.locator("#lens-groups .chip").nth(5).click()
    page.locator(".chip[aria-current][data-key='0/0.0.5']").wait_for()
    assert watched.data_files == ["runs.js", f"{RUN}/index.js", f"{RUN}/99.js", f"{RUN}/0.js"]
    watched.context.close()


def test_a_page_without_episodes_says_so(watched: Watched, tmp_path: Path) -> None:
    add_run(tmp_path / "webshop", "grpo", solved=range(8))
    watched.page.goto(write_page(tmp_path / "webshop", tmp_path / "out").as_uri())
    watched.page.locator("#lens").scroll_into_view_if_needed()
    watched.page.get_by_text("no training episodes beside this page").wait_for()
    assert not watched.page.locator("#lens-app").is_visible()


def test_missing_data_files_are_named(browser: Any, tmp_path: Path) -> None:
    add_played_run(tmp_path / "webshop", "grpo")
    path = write_page(tmp_path / "webshop", tmp_path / "out")
    (tmp_path / "out" / "lens" / RUN / "index.js").unlink()
    watched = Watched(browser)
    watched.page.goto(path.as_uri())
    watched.page.locator("#lens").scroll_into_view_if_needed()
    watched.page.locator("#lens-status", has_text=f"lens/{RUN}/index.js could not be read").wait_for()
    watched.context.close()


def test_hostile_text_stays_text(watched: Watched, tmp_path: Path) -> None:
    told = turn(0, thought=HOSTILE, action=HOSTILE, observation=HOSTILE)
    played = [
        episode(0, 0, sample, task_id=HOSTILE, task_type=HOSTILE, opening=HOSTILE, turns=[told])
        for sample in range(2)
    ]
    played[1] |= {"kept": False, "end": "error", "error": HOSTILE}
    add_played_run(tmp_path / "webshop", "grpo", played=played)
    page = watched.open(
        write_page(tmp_path / "webshop", tmp_path / "out", facts={"scale": HOSTILE, "data": HOSTILE})
    )
    assert page.locator(".episode h3").text_content() == HOSTILE
    assert HOSTILE in page.locator(".tokens").text_content()
    page.locator("#lens-groups .chip").nth(1).click()
    page.get_by_text("Error:").wait_for()
    assert page.locator(".thought").text_content() == HOSTILE
    assert page.locator("img[src=x]").count() == 0
    assert page.title().startswith("webshop")


def test_the_policy_stops_injected_code_and_the_network(browser: Any, page_file: Path) -> None:
    watched = Watched(browser)
    page = watched.open(page_file)
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.injected = 1";
            document.body.append(script);
            const image = document.createElement("img");
            image.setAttribute("onerror", "window.injected = 2");
            image.src = "https://127.0.0.1:9/x.png";
            document.body.append(image);
        }"""
    )
    refused = page.evaluate("fetch('http://127.0.0.1:9/').then(() => false, () => true)")
    assert refused
    assert page.evaluate("window.injected") is None
    assert {url: watched.failures[url] for url in watched.outside} == {"https://127.0.0.1:9/x.png": "csp"}
    watched.context.close()


def test_a_long_observation_is_cut_until_it_is_asked_for(watched: Watched, tmp_path: Path) -> None:
    played = [episode(0, 0, 0, turns=[turn(0, observation=LONG)])]
    add_played_run(tmp_path / "webshop", "grpo", played=played)
    page = watched.open(write_page(tmp_path / "webshop", tmp_path / "out"))
    observation = page.locator(".observation")
    assert len(observation.text_content()) == 601
    page.get_by_role("button", name="Show all 2,000 characters").click()
    assert observation.text_content() == LONG


def test_without_scripts_tables_figures_and_provenance_are_there(browser: Any, page_file: Path) -> None:
    watched = Watched(browser, java_script_enabled=False)
    watched.page.goto(page_file.as_uri())
    assert watched.page.get_by_text("41.5").is_visible()
    assert watched.page.locator("noscript p").is_visible()
    assert not watched.page.locator(".controls, .filter, .theme").first.is_visible()
    watched.context.close()
