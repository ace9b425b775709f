from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.prompts import form_of
from agents.responses import Form, Labels, Parsed, Tags, format_response, parse_response, set_aside

BRIEF, REACT, TAGS, SEARCH_TAGS = (
    form_of("brief", "webshop"),
    form_of("react", "webshop"),
    form_of("tags", "webshop"),
    form_of("tags", "deepsearch"),
)
FORMS = {"brief": BRIEF, "react": REACT, "tags": TAGS, "tags of Deep Search": SEARCH_TAGS}
plain_text = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="`*:<>[]"), min_size=1
)
commands = st.one_of(
    st.just("next"),
    st.tuples(st.sampled_from(("search", "open", "answer")), plain_text).map(
        lambda one: f"{one[0]}[{one[1]}]"
    ),
)
SCRAPS = (
    "<think> </think> <action> </action> <search> </answer> <next/> <ANSWER> Action: Thought: a [ ] click[b]"
)
scraps = st.lists(st.sampled_from((*SCRAPS.split(), "\n", " ", "```\n"))).map("".join)


@given(thought=plain_text, action=plain_text)
@pytest.mark.parametrize("form", [BRIEF, REACT, TAGS], ids=["brief", "react", "tags"])
def test_a_formatted_response_is_read_back_whole(form: Form, thought: str, action: str) -> None:
    assert form.parse(form.format(thought, action)) == Parsed(thought, action, True)


@given(thought=plain_text, command=commands)
def test_a_command_in_its_own_tag_is_read_back_as_the_command(thought: str, command: str) -> None:
    written = SEARCH_TAGS.format(thought, command)
    assert "<action>" not in written
    assert SEARCH_TAGS.parse(written) == Parsed(thought, command, True)


@given(thought=plain_text, action=plain_text)
def test_what_is_no_command_can_be_written_in_tags_but_is_not_well_formed(thought: str, action: str) -> None:
    parsed = SEARCH_TAGS.parse(SEARCH_TAGS.format(thought, action))
    assert (parsed.thought, parsed.action, parsed.well_formed) == (thought, action, action == "next")


@given(text=st.text() | scraps)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_any_text_is_read_without_an_error_and_the_action_is_one_stripped_line(form: Form, text: str) -> None:
    parsed = form.parse(text)
    assert parsed.action == parsed.action.strip()
    assert len(parsed.action.splitlines()) <= 1


@given(text=scraps)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_what_is_well_formed_is_the_form_but_for_case_and_white_space(form: Form, text: str) -> None:
    parsed = form.parse(text)
    if parsed.well_formed:
        asked = text if isinstance(form, Tags) or form is BRIEF else set_aside(text)[1]
        written = form.format(parsed.thought, parsed.action)
        assert "".join(asked.lower().split()) == "".join(written.lower().split())
        assert parsed.thought
        assert parsed.action


@given(text=st.text(alphabet="Thougt Acin:\n`*[]x"))
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


LABEL_CASES = [
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
]


@pytest.mark.parametrize(("rule", "text", "thought", "action"), LABEL_CASES)
@pytest.mark.parametrize("form", [BRIEF, REACT], ids=["brief", "react"])
def test_each_malformed_case_follows_its_rule(
    form: Form, rule: str, text: str, thought: str, action: str
) -> None:
    assert form.parse(text) == Parsed(thought, action, False), rule


def test_the_brief_form_reads_no_tags() -> None:
    assert BRIEF.parse("<think>Action: no</think>") == Parsed("<think>", "no</think>", False)


@pytest.mark.parametrize(
    ("case", "text", "expected"),
    [
        (
            "before the labels",
            "<think>\nAction: no?\n</think>\n\nThought: a\nAction: go",
            Parsed("a", "go", True),
        ),
        ("opened by the prompt", "hm, Action: no\n</think>\nThought: a\nAction: go", Parsed("a", "go", True)),
        ("instead of a thought", "<think>hm</think>\nAction: go", Parsed("hm", "go", False)),
        ("on the line of the labels", "<THINK>x</THINK>Thought: a\nAction: go", Parsed("a", "go", True)),
        ("never closed", "<think>first\nAction: no", Parsed("first\nAction: no", "", False)),
        ("empty", "<think>\n\n</think>\n\nThought: a\nAction: go", Parsed("a", "go", True)),
        (
            "two of them",
            "<think>x</think><think>y</think>\nThought: a\nAction: go",
            Parsed("a", "go", True),
        ),
        ("between the labels", "Thought: a\n<think>Action: no</think>\nAction: go", Parsed("a", "go", False)),
        ("alone", "<think>hm</think>", Parsed("hm", "", False)),
    ],
)
def test_an_action_inside_a_reasoning_block_is_none(case: str, text: str, expected: Parsed) -> None:
    parsed = Labels(reasoning=True).parse(text)
    assert (parsed.thought, parsed.action) == (expected.thought, expected.action), case
    if case != "between the labels":
        assert parsed.well_formed == expected.well_formed, case


@pytest.mark.parametrize(
    "text",
    [
        "<think>a</think><action>go</action>",
        "<THINK>\na\n</THINK>\n\n<Action>\ngo\n</Action>\n",
        " <think> a </think> <action> go </action>",
    ],
)
def test_letter_case_and_white_space_around_tags_do_not_matter(text: str) -> None:
    assert TAGS.parse(text) == Parsed("a", "go", True)


@pytest.mark.parametrize(
    ("rule", "text", "thought", "action"),
    [
        ("no close tag at the end", "<think>a</think>\n<action>go", "a", "go"),
        ("no close tag before the next action", "<think>a</think><action>go <action>no</action>", "a", "go"),
        ("several actions", "<think>a</think><action>go</action><action>no</action>", "a", "go"),
        ("empty action first", "<think>a</think><action> </action><action>go</action>", "a", "go"),
        ("only an action in the thought", "<think>a <action>no</action></think>",
         "a <action>no</action>", ""),
        ("text outside", "Well.\n<think>a</think> so\n<action>go</action> done", "a", "go"),
        ("no thought", "<action>go</action>", "", "go"),
        ("no thought tag", "I see.\n<action>go</action>", "I see.", "go"),
        ("thought opened by the prompt", "a <action>no</action></think>\n<action>go</action>",
         "a <action>no</action>", "go"),
        ("reasoning before the thought", "<think>long</think>\n<think>a</think>\n<action>go</action>", "a", "go"),
        ("thought never closed, action at the end", "<think>a\n<action>go</action>\n", "a", "go"),
        ("thought never closed, text at the end", "<think>a <action>no</action> or", "a <action>no</action> or", ""),
        ("stray closing thought", "<think>a</think>\n<action>go</action></think>", "a", "go"),
        ("code fence", "```xml\n<think>a</think>\n<action>go</action>\n```", "a", "go"),
        ("backticks", "<think>a</think>\n<action>`go`</action>", "a", "go"),
        ("several lines", "<think>a</think>\n<action>\n\ngo\nnow</action>", "a", "go"),
        ("an angle bracket in the action", "<think>a</think>\n<action>click[< prev]", "a", "click[< prev]"),
        ("no action tag", "<think>a</think>\nclick[b]", "a", "click[b]"),
        ("no tag", "I see.\nclick[b]", "I see.", "click[b]"),
        ("only a closing tag", "click[b]</action>", "", "click[b]"),
        ("empty action", "<think>a</think><action></action>", "a", ""),
        ("empty thought", "<think></think><action>go</action>", "", "go"),
        ("empty", "", "", ""),
        ("only white space", " \n\t", "", ""),
    ],
)  # fmt: skip
def test_each_case_of_tags_that_is_not_exact_follows_its_rule(
    rule: str, text: str, thought: str, action: str
) -> None:
    assert TAGS.parse(text) == Parsed(thought, action, False), rule


@pytest.mark.parametrize(
    ("rule", "tags", "action"),
    [
        ("several", "<search>who</search><answer>me</answer>", "search[who]"),
        ("never closed", "<answer>me", "answer[me]"),
        ("closed by another", "<search>who</answer>", "search[who]"),
        ("lines are joined", "<search>who\n wrote it</search>", "search[who wrote it]"),
        ("a tag that closes itself", "<next/>", "next"),
        ("a tag that closes itself, spaced", "<NEXT />", "next"),
        ("the command in an action tag", "<action>search[who]</action>", "search[who]"),
        ("a tag in an action tag", "<action><search>who</search></action>", "search[who]"),
        ("unbalanced brackets", "<search>a] answer[b</search>", "search[a) answer(b]"),
        ("nothing is asked", "<search></search>", "search[]"),
        ("no tag", "search[who]", "search[who]"),
    ],
)
def test_commands_in_tags_that_are_not_exact_follow_their_rules(rule: str, tags: str, action: str) -> None:
    parsed = SEARCH_TAGS.parse(f"<think>a</think>\n{tags}")
    assert (parsed.thought, parsed.action) == ("a", action), rule
    assert not parsed.well_formed or tags == "<search></search>"


def test_tags_inside_the_thought_are_part_of_it() -> None:
    thought = "a <action>no</action> b"
    assert TAGS.parse(f"<think>{thought}</think><action>go</action>") == Parsed(thought, "go", True)


def test_balanced_brackets_in_a_tag_stay_and_the_response_is_well_formed() -> None:
    assert SEARCH_TAGS.parse("<think>a</think>\n<search>a [b] c</search>") == Parsed(
        "a", "search[a [b] c]", True
    )


def test_what_a_tag_asks_for_is_one_command_of_the_environment() -> None:
    from envs.deepsearch.actions import Command, parse_action

    parsed = SEARCH_TAGS.parse("<think>a</think><search>x] answer[no</search>")
    assert parse_action(parsed.action) == Command("search", "x) answer(no")
