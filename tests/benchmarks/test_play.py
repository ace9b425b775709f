"""Playing in the terminal: what is typed is what is done, any environment will do, and no text steers the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from typer.testing import CliRunner

from benchmarks import cli
from benchmarks.config import ConfigError
from benchmarks.play import complete
from benchmarks.worlds import BENCHMARKS, Benchmark
from envs.base import Decision, EnvError, Split, StepInfo, TaskPanel, TextEnv
from tests.envs import shops

GOALS = shops.world().goals
RED_LARGE = next(goal for goal in GOALS if goal.options == (("color", "red"), ("size", "large")))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return shops.write(tmp_path / "data")


def played(*arguments: object, typed: Sequence[str] = ()) -> Any:
    return CliRunner().invoke(
        cli.app, ["play", *map(str, arguments)], input="".join(line + "\n" for line in typed)
    )


def in_shop(data: Path, *typed: str, options: Sequence[str] = ()) -> str:
    found = played("webshop", "--data", data, "--task", RED_LARGE.task_id, *options, typed=typed)
    assert found.exit_code == 0, found.output
    return found.output


def test_a_person_searches_in_words_clicks_by_number_and_sees_what_the_purchase_earned(data: Path) -> None:
    # Results: back, next, two shirts. Item: two ways back, three sub-pages, buy now, two sizes, two colours.
    output = in_shop(data, "search cotton shirt", "3", "9", "7", "6")
    assert RED_LARGE.instruction in output
    assert "   3  click[b000000001]\n" in output
    assert "   9  click[red]\n" in output
    assert "the task is over after 5 steps: success yes\nreward 1, score 1\n" in output
    assert "  r_option         1\n" in output


def test_a_purchase_that_misses_a_wish_shows_which_part_it_lost(data: Path) -> None:
    output = in_shop(data, "search[cotton shirt]", "click[b000000001]", "click[red]", "6")
    assert "success no\nreward 0.8, score 0.8\n" in output
    assert "  r_option         0.5\n" in output


def test_numbers_that_are_not_there_templates_and_empty_lines_cost_no_step(data: Path) -> None:
    output = in_shop(data, "1", "0", "2", "", "q")
    assert "type search[<keywords>] with your own words" in output
    assert "no action 0, expected 1 to 1" in output
    assert "no action 2, expected 1 to 1" in output
    assert output.endswith("left after 0 steps\n")


def test_an_action_that_the_shop_does_not_understand_is_said_so_and_costs_a_step(data: Path) -> None:
    output = in_shop(data, "buy it", "q")
    assert "not understood: buy it" in output
    assert output.endswith("left after 1 step\n")


def test_a_search_in_words_works_on_pages_that_offer_no_search_as_in_the_shop(data: Path) -> None:
    assert "Page 1 (Total results: 2)" in in_shop(data, "search linen", "search lamp", "q")


def test_the_end_of_the_input_leaves(data: Path) -> None:
    assert in_shop(data, "search lamp").endswith("left after 1 step\n")


def test_the_form_of_pages_can_be_chosen(data: Path) -> None:
    assert "[button] Search [button_]" in in_shop(data, "q", options=("--observation-mode", "text_rich"))
    assert "[button] Search" not in in_shop(data, "q")


@pytest.mark.parametrize("name", ["expert", "demonstrator"])
def test_the_demonstrator_plays_with_its_thoughts_and_asks_nothing(data: Path, name: str) -> None:
    output = in_shop(data, options=("--policy", name))
    assert "Thought: All that is asked\nAction: search[machine wash men's shirts with long sleeve]" in output
    assert "the task is over after" in output
    assert "to leave" not in output


def test_the_demonstrator_waits_for_enter_before_each_move_when_asked(data: Path) -> None:
    output = in_shop(data, "", "", "q", options=("--policy", "expert", "--pause"))
    assert output.count("Action: ") == 2
    assert output.endswith("left after 2 steps\n")


def test_without_a_task_the_first_of_the_split_is_played(data: Path) -> None:
    for split, task in (("test", "synthetic-0"), ("train", "synthetic-3")):
        found = played("webshop", "--data", data, "--split", split, typed=["q"])
        assert found.output.startswith(f"webshop, task {task} (")


# Another environment, known by the contract alone


@dataclass(frozen=True)
class Why:
    letters: int


class RiddleEnv(TextEnv):
    """Answer in one go, or run out of steps; its text tries to steer the terminal."""

    max_steps = 2
    observation_space = gymnasium.spaces.Text(1000)
    action_space = gymnasium.spaces.Text(1000)
    fails = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        task = (options or {})["task"]
        if task != "riddle-0":
            raise KeyError(f"unknown task {task!r}: there is riddle-0")
        self.steps = 0
        return "Riddle:\n[red]what\x1b[2J barks?", self.facts(False, True, None)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.fails:
            raise EnvError("the sphinx\nis asleep")
        self.steps += 1
        over = action.startswith("answer ")
        won = action == "answer a dog"
        info = self.facts(won, over or action == "think", Why(len(action)) if over else None)
        return "\x07so be it", float(won), over, self.steps == 2 and not over, info

    def facts(self, won: bool, valid: bool, why: Why | None) -> dict[str, Any]:
        info = StepInfo(
            task_id="riddle-0",
            task_type="animal\x1b",
            success=won,
            score=float(won),
            admissible=("think", "answer <your words>", "\x1b[31m"),
            action_valid=valid,
            reward_parts=why,
        )
        return {**info}


class Sphinx:
    def decide(self, observation: str, info: StepInfo) -> Decision:
        return Decision("answer", "It \x1b[1mbarks", "answer a dog")


class RiddleWorld:
    name = "riddles"

    def make_env(self) -> TextEnv:
        return RiddleEnv()

    def panel(self, split: Split, size: int | None = None) -> TaskPanel:
        return TaskPanel(self.name, split, ("riddle-0",), ("what barks?",))

    def demonstrator(self, seed: Sequence[int], carelessness: Mapping[str, float] | None = None) -> Sphinx:
        return Sphinx()

    def counts(self) -> dict[str, int]:
        return {}

    def describe(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class RiddleSettings:
    pass


@pytest.fixture
def riddles(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Benchmark(RiddleSettings, lambda *_: RiddleWorld(), needed={}, origin="")
    monkeypatch.setitem(BENCHMARKS, "riddles", known)  # type: ignore[arg-type]


@pytest.mark.usefixtures("riddles")
def test_any_environment_that_keeps_the_contract_can_be_played() -> None:
    won = played("riddles", typed=["1", "answer a dog"]).output
    assert "   2  answer <your words>\n" in won
    assert "the task is over after 2 steps: success yes\nreward 1, score 1\n  letters          12\n" in won
    limit = played("riddles", typed=["1", "bark"]).output
    assert "the step limit ended it after 2 steps: success no\nreward 0, score 0\n" in limit
    assert "letters" not in limit


@pytest.mark.usefixtures("riddles")
@pytest.mark.parametrize("options", [(), ("--policy", "expert")])
def test_no_text_of_an_environment_or_player_reaches_the_terminal_raw(options: tuple[str, ...]) -> None:
    output = played("riddles", *options, typed=["\x1b[2J", "answer it"]).output
    assert "[red]what\\x1b[2J barks?" in output
    assert "\\x07so be it" in output
    assert "animal\\x1b" in output
    assert not set(output) & {"\x1b", "\x07"}


@pytest.mark.usefixtures("riddles")
def test_a_failing_engine_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RiddleEnv, "fails", True)
    found = played("riddles", typed=["1"])
    assert isinstance(found.exception, ConfigError)
    assert str(found.exception) == "riddles failed: the sphinx is asleep"


@pytest.mark.usefixtures("riddles")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("chess",),
            "error: benchmark: unknown 'chess', expected one of: webshop, alfworld, deepsearch, riddles",
        ),
        (("riddles", "--split", "valid"), "error: split: unknown 'valid', expected one of: train, dev, test"),
        (("riddles", "--policy", "gpt"), "error: policy: unknown 'gpt', expected one of: person, expert"),
        (("riddles", "--task", "9"), "error: unknown task '9': there is riddle-0"),
        (("riddles", "--observation-mode", "html"), "error: riddles.observation_mode: unknown key"),
        (
            ("webshop", "--observation-mode", "html"),
            "error: webshop.observation_mode: Input should be 'text'",
        ),
        (
            ("webshop", "--data", "nowhere"),
            "error: data: no folder nowhere, expected the folder of webshop's",
        ),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["empg-bench", "play", *arguments])
    with pytest.raises(SystemExit) as left:
        cli.main()
    errors = capsys.readouterr().err
    assert (left.value.code, errors.count("\n")) == (2, 1)
    assert errors.startswith(said)


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        ("search red shoes", "search[red shoes]"),
        ("search[red shoes]", "search[red shoes]"),
        ("search  red", "search[red]"),
        ("search", "search"),
        ("searching shoes", "searching shoes"),
        ("answer a dog", "answer a dog"),
        ("put mug in drawer", "put mug in drawer"),
        ("click[< prev]", "click[< prev]"),
    ],
)
def test_words_fill_the_template_that_begins_like_them(typed: str, action: str) -> None:
    templates = ("search[<keywords>]", "answer <words>", "put <thing> in <place>")
    assert complete(typed, templates) == action
