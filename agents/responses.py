"""How a response is written and how it is read: `Thought:` and `Action:` lines, or tags.

A reader takes any text and never raises; what does not have the exact form is read by rules, in a fixed order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True)
class Parsed:
    """A response as it was understood."""

    thought: str
    action: str
    """One line, possibly empty; an empty action is sent to the environment, which does not understand it."""
    well_formed: bool
    """The text was the form's `format(thought, action)`; outer white space and letter case do not matter."""


class Form(Protocol):
    """A way to write and read responses; actions are the environment's own commands."""

    def format(self, thought: str, action: str) -> str:
        """The one well-formed response."""
        ...

    def command(self, action: str) -> str:
        """An action alone, as it is written in instructions and histories."""
        ...

    def parse(self, text: str) -> Parsed:
        """Read a response; any text gives a result."""
        ...


def format_response(thought: str, action: str) -> str:
    """The one well-formed labelled response: `Thought: ...`, a newline, `Action: ...`."""
    return f"Thought: {thought}\nAction: {action}"


_LABEL = re.compile(r"^[ \t>#*_`-]*(thought|action)[ \t*_`]*:[ \t*]*", re.IGNORECASE | re.MULTILINE)
_INLINE_ACTION = re.compile(r"\baction[ \t]*:", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*$", re.MULTILINE)


def parse_response(text: str) -> Parsed:
    """Read a labelled response; any text gives a result, and only the exact form is `well_formed`.

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


_OPENED = re.compile(r"<think>", re.IGNORECASE)
_CLOSED = re.compile(r"</think>", re.IGNORECASE)


def set_aside(text: str) -> tuple[str, str]:
    """(the last reasoning that says something, the text without its `<think>` blocks).

    What stands before the first `</think>` is reasoning too where no `<think>` opens it: some chat templates write
    that tag into the prompt. A block that is never closed reaches to the end. Stray closing tags are dropped.
    """
    blocks: list[str] = []
    kept: list[str] = []
    while closed := _CLOSED.search(text):
        opened = _OPENED.search(text, 0, closed.start())
        if opened or not blocks:
            blocks.append(text[opened.end() if opened else 0 : closed.start()])
            kept.append(text[: opened.start()] if opened else "")
        else:
            kept.append(text[: closed.start()])
        text = text[closed.end() :]
    if opened := _OPENED.search(text):
        blocks.append(text[opened.end() :])
        text = text[: opened.start()]
    said = [block.strip() for block in blocks if block.strip()]
    return said[-1] if said else "", "\n".join([*kept, text])


@dataclass(frozen=True)
class Labels:
    """`Thought: ...`, a newline, `Action: ...`; see `parse_response`."""

    reasoning: bool
    """Whether `<think>` blocks, which reasoning models write first, are set aside: a label inside them is none, and
    their text is the thought only where no other stands. What remains is judged as well formed or not."""

    def format(self, thought: str, action: str) -> str:
        """The one well-formed response."""
        return format_response(thought, action)

    def command(self, action: str) -> str:
        """The action as it is."""
        return action

    def parse(self, text: str) -> Parsed:
        """Read a response by the rules of `parse_response`."""
        if not self.reasoning:
            return parse_response(text)
        reasoning, rest = set_aside(text)
        parsed = parse_response(rest)
        return parsed if parsed.thought else replace(parsed, thought=reasoning)


@dataclass(frozen=True)
class Tags:
    """`<think>...</think>`, a newline, and the action in tags.

    That is `<action>...</action>`, or a tag of the command's own name where it has one: `search[who]` is written
    `<search>who</search>`, and a command without an argument `<next></next>`.
    """

    verbs: tuple[str, ...] = ()
    """Commands with an argument that have a tag of their own."""
    bare: tuple[str, ...] = ()
    """Commands without an argument that have one."""

    def format(self, thought: str, action: str) -> str:
        """The one well-formed response."""
        tagged = self._tagged(action)
        return f"<think>{thought}</think>\n" + (f"<action>{action}</action>" if tagged is None else tagged)

    def command(self, action: str) -> str:
        """The action in its own tag; one that goes into `<action>` stays as it is."""
        return self._tagged(action) or action

    def parse(self, text: str) -> Parsed:
        """Read a response; any text gives a result, and only the exact form is `well_formed`.

        Rules for everything else, in this order:

        - code-fence lines are dropped; tags may be in any letter case;
        - a thought that is never closed ends where an action begins that closes the text, else at the end of the text;
        - tags inside `<think>` blocks are ignored (`set_aside`); the last block that says something is the thought;
        - the first action tag wins, but for an empty `<action>`; without its closing tag it ends before the next
          action tag, or at the end of the text; `<next/>` is closed;
        - of several lines in `<action>` the first non-empty one counts; in other tags lines are joined;
        - brackets inside a command's argument become round ones where they are not balanced;
        - without a thought, it is what stands before the action tag;
        - without an action tag, the last non-empty line outside the thought is the action.
        """
        thought, rest = set_aside(self._close_thought(_FENCE.sub("", text)))
        found = self._first_action(rest)
        if found is None:
            lines = [line for line in self._untagged(rest).splitlines() if line.strip()]
            before, action = "\n".join(lines[:-1]), _bare(lines[-1]) if lines else ""
        else:
            before, action = self._untagged(rest[: found[0]]), found[1]
        parsed = Parsed(thought or before.strip(), action, False)
        exact = self._squeezed(text) == self._squeezed(self.format(parsed.thought, parsed.action))
        known = not self._names or self._tagged(parsed.action) is not None
        return replace(parsed, well_formed=bool(parsed.thought and parsed.action) and exact and known)

    @property
    def _names(self) -> tuple[str, ...]:
        return self.verbs + self.bare

    @property
    def _any(self) -> str:
        return "|".join(map(re.escape, ("action", *self._names)))

    def _tagged(self, action: str) -> str | None:
        """A command in its own tag; None for one that would not be read back from there."""
        if action in self.bare:
            return f"<{action}></{action}>"
        verb, bracket, rest = action.partition("[")
        if verb not in self.verbs or not bracket or _command(verb, rest[:-1]) != action:
            return None
        return f"<{verb}>{rest[:-1]}</{verb}>"

    def _first_action(self, text: str) -> tuple[int, str] | None:
        """(where the action's tag begins, the action); None where there is no tag."""
        opening = re.compile(rf"<({self._any})[ \t]*(/?)>", re.IGNORECASE)
        edge = re.compile(rf"</?(?:{self._any})[ \t]*/?>", re.IGNORECASE)
        first = None
        for tag in opening.finditer(text):
            end = None if tag[2] else edge.search(text, tag.end())
            inside = "" if tag[2] else text[tag.end() : end.start() if end else len(text)]
            name = tag[1].lower()
            action = _first_line(inside) if name == "action" else name
            if name in self.verbs:
                action = _command(name, inside)
            if action:
                return tag.start(), action
            first = tag.start() if first is None else first
        return None if first is None else (first, "")

    def _close_thought(self, text: str) -> str:
        """The text with its unclosed thought closed before an action that stands at its end."""
        if not _OPENED.search(text) or _CLOSED.search(text):
            return text
        if not re.search(rf"</(?:{self._any})>\s*\Z", text, re.IGNORECASE):
            return text
        tags = list(re.finditer(rf"<(?:{self._any})>", text, re.IGNORECASE))
        return f"{text[: tags[-1].start()]}</think>{text[tags[-1].start() :]}" if tags else text

    def _untagged(self, text: str) -> str:
        return re.sub(rf"</?(?:{self._any})[ \t]*/?>", "", text, flags=re.IGNORECASE)

    def _squeezed(self, text: str) -> str:
        """In lower case and without white space around tags."""
        return re.sub(rf"\s*(</?(?:think|{self._any})>)\s*", r"\1", text.strip().lower())


def _command(verb: str, argument: str) -> str:
    """`verb[argument]` on one line, with brackets that do not end it early."""
    argument = " ".join(argument.split())
    depth = 0
    for character in argument:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if depth < 0:
            break
    return f"{verb}[{argument if depth == 0 else argument.translate(_ROUND)}]"


_ROUND = str.maketrans("[]", "()")
