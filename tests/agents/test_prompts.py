from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

from agents.chat import Message
from agents.prompts import Prompts, Shot, Style, form_of, make_prompts, window_prompt
from agents.responses import Parsed
from envs.base import Decision
from envs.deepsearch.actions import parse_action as deepsearch_action
from envs.webshop.flow import parse_action as webshop_action

STYLES: tuple[Style, ...] = get_args(Style)
BENCHMARKS = ("webshop", "alfworld", "deepsearch")
SHOT = Shot(
    ("Question: who?", "[1] It: was me."),
    (Decision("query", "Look", "search[who]"), Decision("hop", "Read it", "answer[me]")),
)


def test_an_unknown_benchmark_and_an_unknown_style_are_refused_by_name() -> None:
    for style in STYLES:
        with pytest.raises(KeyError, match=r"'chess'.*webshop"):
            make_prompts("chess", style)
    with pytest.raises(ValueError, match=r"prompt is 'verse'; expected one of \('brief', 'react', 'tags'\)"):
        make_prompts("webshop", "verse")  # type: ignore[arg-type]


@pytest.mark.parametrize(("env", "style"), [*product(BENCHMARKS, ("react", "tags"))])
def test_the_system_message_ends_with_the_form_that_the_parser_accepts(env: str, style: Style) -> None:
    prompts = make_prompts(env, style)
    shown = prompts.system[prompts.system.index("in exactly this form") :]
    parsed = prompts.parse(shown[shown.index("\n") :])
    assert parsed.well_formed
    assert parsed.thought == "why you do this next"


def test_the_brief_system_message_shows_the_form_that_the_parser_accepts() -> None:
    prompts = make_prompts("webshop")
    assert prompts.parse(prompts.system[prompts.system.index("Thought:") :]).well_formed


@pytest.mark.parametrize(
    ("env", "digest"),
    [
        ("webshop", "0452c5ba40d1c1f314137a96d4f59f4099f2f429a3fca853475a3a6a155753db"),
        ("alfworld", "252972e2a07b783509a6fb455bb16bc335d58141d307b295424735602a32919e"),
        ("deepsearch", "5db6a18977a9eac3fc2a94c8d756eed005d28614d4d75b7835f1f83dee011f18"),
    ],
)
def test_digests_of_the_brief_style_are_pinned_since_shipped_policies_were_taught_with_it(
    env: str, digest: str
) -> None:
    assert make_prompts(env).record() == {"version": "1", "digest": digest}
    assert make_prompts(env, max_steps=7) == make_prompts(env)


def test_every_style_benchmark_step_limit_and_example_has_a_digest_of_its_own() -> None:
    made = [
        make_prompts(env, style, max_steps=steps, shots=shots)
        for env, style, steps, shots in product(BENCHMARKS, ("react", "tags"), (None, 9), ((), (SHOT,)))
    ]
    made += [make_prompts(env, shots=shots) for env, shots in product(BENCHMARKS, ((), (SHOT,)))]
    assert len({prompts.digest() for prompts in made}) == len(made)


@pytest.mark.parametrize("style", ["react", "tags"])
def test_the_actions_that_the_system_message_lists_are_those_of_the_environment(style: Style) -> None:
    for line in actions_of(make_prompts("webshop", style)):
        assert webshop_action(line) is not None, line
    form = form_of(style, "deepsearch")
    for line in actions_of(make_prompts("deepsearch", style)):
        action = line if style == "react" else form.parse(f"<think>a</think>{line}").action
        assert deepsearch_action(action) is not None, line
    told = {deepsearch_action(action) for action in actions_of(make_prompts("deepsearch", "react"))}
    assert {command.verb for command in told if command} == {"search", "open", "next", "answer"}


def test_the_commands_that_the_alfworld_message_lists_are_those_of_the_built_in_grammar() -> None:
    from envs.alfworld.texts import built_in_grammar

    spelled = {action.template.split(" ")[0] for action in built_in_grammar("x").actions.values()}
    system = make_prompts("alfworld", "react").system
    assert spelled - {verb for verb in spelled if verb in system} == {"slice"}


def actions_of(prompts: Prompts) -> list[str]:
    lines = [line.removeprefix("- ") for line in prompts.system.splitlines() if line.startswith("- ")]
    return [line.rpartition(": ")[0] for line in lines]


@pytest.mark.parametrize("style", ["react", "tags"])
def test_the_step_limit_is_told_where_there_is_one(style: Style) -> None:
    assert "You have at most 9 turns." in make_prompts("alfworld", style, max_steps=9).system
    assert "at most" not in make_prompts("alfworld", style).system
    assert "Actions taken so far: 2 of at most 9." in make_prompts("alfworld", style, max_steps=9).window(
        "x", [], "now", (), 2
    )


def test_the_window_prompt_shows_task_history_observation_and_actions_in_order() -> None:
    text = window_prompt("Do x.", [("", "a0"), ("saw 1", "a1")], "see now", ("go", "stop"))
    assert text == (
        "Do x.\nAction: a0\nObservation: saw 1\nAction: a1\nObservation: see now\nAdmissible: go | stop"
    )
    assert window_prompt("Do x.", [], "", ()) == "Do x."
    brief = make_prompts("webshop")
    assert brief.window("Do x.", [("", "a0"), ("saw 1", "a1")], "see now", ("go", "stop"), 2) == text


def test_the_full_window_prompt_shows_the_task_the_last_steps_the_present_and_the_form() -> None:
    prompts = make_prompts("alfworld", "react", max_steps=50)
    assert prompts.window("Do x.", [("", "a0"), ("saw 1", "")], "see now", ("go", "stop"), 2) == (
        "Do x.\n"
        "\n"
        "Actions taken so far: 2 of at most 50.\n"
        "The last 2, oldest first, each behind the observation that it answered:\n"
        "Observation: (the one at the top)\n"
        "Action: a0\n"
        "Observation: saw 1\n"
        "Action: (none)\n"
        "\n"
        "Current observation: see now\n"
        "\n"
        "Actions that are possible now:\n"
        "- go\n"
        "- stop\n"
        "\n"
        "Give one action now, in this form, with the action that you choose:\n"
        "Thought: why you do this next\n"
        "Action: go to RECEPTACLE"
    )


def test_a_first_window_prompt_holds_nothing_that_has_not_happened() -> None:
    assert make_prompts("alfworld", "tags").window("Do x.", [], "", (), 0) == (
        "Do x.\n"
        "\n"
        "Actions taken so far: 0.\n"
        "\n"
        "Give one action now, in this form, with the action that you choose:\n"
        "<think>why you do this next</think>\n"
        "<action>go to RECEPTACLE</action>"
    )


def test_deep_search_in_tags_shows_every_command_in_its_own_tag() -> None:
    offered = ("search[<query>]", "open[A [b] C]", "next", "answer[<text>]")
    text = make_prompts("deepsearch", "tags").window("Question: x?", [("", "search[x]")], "y", offered, 1)
    assert "Action: <search>x</search>" in text
    listed = [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- ")]
    assert listed == [
        "<search>query</search>",
        "<open>A [b] C</open>",
        "<next></next>",
        "<answer>text</answer>",
    ]
    assert text.endswith("<think>why you do this next</think>\n<search>query</search>")


def test_examples_are_a_chat_in_the_form_of_the_answers_before_the_episode() -> None:
    plain, shown = (make_prompts("deepsearch", "tags", shots=shots) for shots in ((), (SHOT, SHOT)))
    first = (
        Message("user", "Question: who?"),
        Message("assistant", "<think>Look</think>\n<search>who</search>"),
        Message("user", "[1] It: was me."),
        Message("assistant", "<think>Read it</think>\n<answer>me</answer>"),
    )
    assert plain.head == (Message("system", plain.system),)
    assert shown.head == (Message("system", shown.system), *first, *first)
    assert shown.system == (
        f"{plain.system}\n\n2 examples of a whole episode, won in this way, come first. Then yours begins."
    )
    brief = make_prompts("deepsearch", shots=[SHOT])
    assert brief.head[2] == Message("assistant", "Thought: Look\nAction: search[who]")
    assert brief.system.endswith(
        "One example of a whole episode, won in this way, comes first. Then yours begins."
    )


def test_long_observations_of_examples_are_cut_the_opening_one_in_its_middle() -> None:
    long = replace(SHOT, observations=("0123456789", "abcdefghij"))
    form = form_of("react", "deepsearch")
    assert [message.content for message in long.messages(form, 10)[::2]] == ["0123456789", "abcdefghij"]
    assert [message.content for message in long.messages(form, 5)[::2]] == ["01 [...] 789", "abcde [...]"]


def test_an_example_needs_a_decision_for_each_observation() -> None:
    with pytest.raises(ValueError, match="1 observations and 2 decisions"):
        replace(SHOT, observations=("x",))


def test_prompts_read_what_they_write() -> None:
    for env, style in product(BENCHMARKS, STYLES):
        prompts = make_prompts(env, style)
        assert prompts.parse(prompts.format("a", "search[x]")) == Parsed("a", "search[x]", True)
