"""What the agent is told, and how what it writes is read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

PROMPT_VERSION = "1"
"""Raised whenever a prompt, a layout or a parser rule changes; it enters every run record."""

_SYSTEM: dict[str, str] = {
    # Short on purpose: a small policy on a CPU pays for every token of it in every episode.
    "webshop": (
        "Buy the product that the instruction asks for.\n"
        "Answer with:\n"
        "Thought: why\n"
        "Action: search[words] or click[button]"
    ),
    "alfworld": (
        "Do the task in this room.\n"
        "Answer with:\n"
        "Thought: why\n"
        "Action: go to, open, close, take, move, clean, heat, cool, use, examine, look or inventory"
    ),
    "deepsearch": (
        "Find the answer to the question.\n"
        "Answer with:\n"
        "Thought: why\n"
        "Action: search[query], open[title], next or answer[text]"
    ),
}


def system_prompt(env: str) -> str:
    """The system message of a benchmark; `KeyError` names the benchmarks that have one."""
    try:
        return _SYSTEM[env]
    except KeyError:
        raise KeyError(f"no system prompt for {env!r}; expected one of {sorted(_SYSTEM)}") from None


def prompt_digest(env: str) -> str:
    """SHA-256 of everything in this file that decides what the agent of `env` reads, for run records."""
    sample = window_prompt("task", [("seen", "done")], "now", ("a", "b"))
    told = json.dumps([PROMPT_VERSION, system_prompt(env), format_response("t", "a"), sample])
    return hashlib.sha256(told.encode()).hexdigest()


def format_response(thought: str, action: str) -> str:
    """The one well-formed response: `Thought: ...`, a newline, `Action: ...`."""
    return f"Thought: {thought}\nAction: {action}"


def window_prompt(
    task: str, history: Sequence[tuple[str, str]], observation: str, admissible: Sequence[str]
) -> str:
    """The user message of one step in the window layout.

    `task` is the opening observation, which holds the instruction; `history` the last observations, oldest
    first, each with the action that answered it; `observation` what is seen now. The opening one is "" in
    both, as it is shown already.
    """
    lines = [task]
    for seen, action in history:
        lines += ([f"Observation: {seen}"] if seen else []) + [f"Action: {action}"]
    if observation:
        lines.append(f"Observation: {observation}")
    if admissible:
        lines.append("Admissible: " + " | ".join(admissible))
    return "\n".join(lines)


@dataclass(frozen=True)
class Parsed:
    """A response as it was understood."""

    thought: str
    action: str
    """One line, possibly empty; an empty action is sent to the environment, which does not understand it."""
    well_formed: bool
    """The text was `format_response(thought, action)`; outer white space and letter case do not matter."""


_LABEL = re.compile(r"^[ \t>#*_`-]*(thought|action)[ \t*_`]*:[ \t*]*", re.IGNORECASE | re.MULTILINE)
_INLINE_ACTION = re.compile(r"\baction[ \t]*:", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*$", re.MULTILINE)


def parse_response(text: str) -> Parsed:
    """Read a response; any text gives a result, and only the exact form is `well_formed`.

    Rules for everything else, in this order:

    - code-fence lines are dropped; backticks and asterisks around labels and action are dropped;
    - labels may be in any letter case, be decorated (`**Action:**`) and stand in either order;
    - the first thought and the first action win; later ones, and text after the action's line, are ignored;
    - an action label with nothing behind it takes the next non-empty line before another label;
    - without an action label at the start of a line, the first `Action:` inside a line counts;
    - a thought label without any action label gives the empty action: nothing was commanded;
    - without a thought label, the thought is whatever stands before the action;
    - without any label, the last non-empty line is the action and what stands before it the thought;
    - empty text gives the empty thought and the empty action.
    """
    parsed = _read(_FENCE.sub("", text))
    complete = parsed.thought != "" and parsed.action != ""
    exact = text.strip().lower() == format_response(parsed.thought, parsed.action).lower()
    return replace(parsed, well_formed=complete and exact)


def _read(text: str) -> Parsed:
    segments = _segments(text)
    thoughts = [body for label, body in segments if label == "thought"]
    actions = [body for label, body in segments if label == "action"]
    lead = next((body for label, body in segments if label == ""), "").strip()
    if not actions:
        return _read_unlabelled(text, thoughts)
    action = next((line for line in map(_first_line, actions) if line), "")
    return Parsed(thoughts[0].strip() if thoughts else lead, action, False)


def _read_unlabelled(text: str, thoughts: Sequence[str]) -> Parsed:
    """Text without an action label at the start of a line."""
    inline = _INLINE_ACTION.search(text)
    if inline:
        before = _LABEL.sub("", text[: inline.start()], count=1)
        return Parsed(before.strip(), _first_line(text[inline.end() :]), False)
    if thoughts:
        return Parsed(thoughts[0].strip(), "", False)
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return Parsed("", "", False)
    return Parsed("\n".join(lines[:-1]).strip(), _bare(lines[-1]), False)


def _segments(text: str) -> list[tuple[str, str]]:
    """The text cut at its labels: `(label in lower case, what follows)`; the label of a lead-in is ""."""
    labels = list(_LABEL.finditer(text))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    lead = text[: labels[0].start()] if labels else text
    cut = [(label[1].lower(), text[label.end() : end]) for label, end in zip(labels, ends, strict=False)]
    return [("", lead), *cut]


def _first_line(body: str) -> str:
    return next((_bare(line) for line in body.splitlines() if _bare(line)), "")


def _bare(line: str) -> str:
    return line.strip(" \t\r\v\f`*").strip()
