from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.prompts import (
    Parsed,
    format_response,
    parse_response,
    prompt_digest,
    system_prompt,
    window_prompt,
)

plain_text = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="`*:"), min_size=1
)


@given(thought=plain_text, action=plain_text)
def test_a_formatted_response_is_read_back_whole(thought: str, action: str) -> None:
    assert parse_response(format_response(thought, action)) == Parsed(thought, action, True)


@given(st.text())
def test_any_text_is_read_without_an_error_and_the_action_is_one_stripped_line(text: str) -> None:
    parsed = parse_response(text)
    assert parsed.action == parsed.action.strip()
    assert len(parsed.action.splitlines()) <= 1


@given(st.text(alphabet="Thougt Acin:\n`*[]x"))
def test_only_the_exact_form_is_well_formed(text: str) -> None:
    parsed = parse_response(text)
    if parsed.well_formed:
        assert text.strip().lower() == format_response(parsed.thought, parsed.action).lower()
        assert parsed.thought
        assert parsed.action


@pytest.mark.parametrize("text", ["thought: a\naction: go", "THOUGHT: a\nACTION: go"])
def test_letter_case_of_the_labels_does_not_matter(text: str) -> None:
    assert parse_response(text) == Parsed("a", "go", True)


def test_a_thought_may_span_lines_and_outer_white_space_does_not_matter() -> None:
    assert parse_response("\n Thought: a\nb\nAction: go \n") == Parsed("a\nb", "go", True)


@pytest.mark.parametrize(
    ("rule", "text", "thought", "action"),
    [
        ("no thought", "Action: go", "", "go"),
        ("no thought label", "I see.\nAction: go", "I see.", "go"),
        ("no action", "Thought: a", "a", ""),
        ("no label, one line", "click[b]", "", "click[b]"),
        ("no label, several lines", "I see.\n\nclick[b]\n", "I see.", "click[b]"),
        ("empty", "", "", ""),
        ("only white space", " \n\t", "", ""),
        ("several actions", "Thought: a\nAction: one\nAction: two", "a", "one"),
        ("several thoughts", "Thought: a\nThought: b\nAction: one", "a", "one"),
        ("text after the action", "Thought: a\nAction: go\nand then?", "a", "go"),
        ("action on the next line", "Thought: a\nAction:\n\n  go", "a", "go"),
        ("first action empty, second not", "Thought: a\nAction:\nAction: go", "a", "go"),
        ("action empty", "Thought: a\nAction:", "a", ""),
        ("code fence", "```text\nThought: a\nAction: go\n```", "a", "go"),
        ("fence behind the label", "Thought: a\nAction:\n```\ngo\n```", "a", "go"),
        ("backticks", "Thought: a\nAction: `go`", "a", "go"),
        ("markdown labels", "**Thought:** a\n**Action:** go", "a", "go"),
        ("labels in other order", "Action: go\nThought: a", "a", "go"),
        ("on one line", "Thought: a. Action: go", "a.", "go"),
        ("thought empty", "Thought:\nAction: go", "", "go"),
        ("space before the colon", "Thought : a\nAction : go", "a", "go"),
        ("carriage returns", "Thought: a\r\nAction: go\r\n", "a", "go"),
    ],
)
def test_each_malformed_case_follows_its_rule(rule: str, text: str, thought: str, action: str) -> None:
    assert parse_response(text) == Parsed(thought, action, False), rule


def test_an_unknown_benchmark_is_refused_by_name() -> None:
    with pytest.raises(KeyError, match=r"'chess'.*webshop"):
        system_prompt("chess")


def test_the_system_prompt_shows_the_form_that_the_parser_accepts() -> None:
    shown = system_prompt("webshop")
    assert parse_response(shown[shown.index("Thought:") :]).well_formed


def test_the_prompt_digest_is_pinned_so_that_a_changed_prompt_is_noticed() -> None:
    assert prompt_digest("webshop") == "0452c5ba40d1c1f314137a96d4f59f4099f2f429a3fca853475a3a6a155753db"


def test_the_window_prompt_shows_task_history_observation_and_actions_in_order() -> None:
    text = window_prompt("Do x.", [("", "a0"), ("saw 1", "a1")], "see now", ("go", "stop"))
    assert text == (
        "Do x.\nAction: a0\nObservation: saw 1\nAction: a1\nObservation: see now\nAdmissible: go | stop"
    )
    assert window_prompt("Do x.", [], "", ()) == "Do x."
