"""What the agent is told: the system message, the layout of a step's prompt, and worked examples.

Three styles. `brief` is for a small policy that was taught its form; `react` and `tags` tell a language model all
it has to know, and differ in the form of the answer (`agents.responses`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from agents import instructions
from agents.chat import Message
from agents.responses import Form, Labels, Parsed, Tags
from envs.base import Decision

Style = Literal["brief", "react", "tags"]

VERSIONS: dict[Style, str] = {"brief": "1", "react": "1", "tags": "1"}
"""Raised whenever a style's prompt, layout or parser rule changes; it enters every run record."""

_OWN_TAGS: dict[str, Tags] = {"deepsearch": Tags(("search", "open", "answer"), ("next",))}
"""Benchmarks whose actions are tags of their own in the style `tags`."""


def form_of(style: Style, env: str) -> Form:
    """How responses are written and read; `ValueError` for an unknown style."""
    if style not in get_args(Style):
        raise ValueError(f"prompt is {style!r}; expected one of {get_args(Style)}")
    return _OWN_TAGS.get(env, Tags()) if style == "tags" else Labels(reasoning=style == "react")


@dataclass(frozen=True)
class Shot:
    """A worked example: `decisions[i]` answers `observations[i]`."""

    observations: tuple[str, ...]
    decisions: tuple[Decision, ...]

    def __post_init__(self) -> None:
        if not self.decisions or len(self.observations) != len(self.decisions):
            raise ValueError(
                f"{len(self.observations)} observations and {len(self.decisions)} decisions; "
                "expected as many of either, and at least one"
            )

    def messages(self, form: Form, characters: int) -> list[Message]:
        """The example as a chat in a form of responses, longer observations cut to so many characters.

        The opening one loses its middle, since a task may stand at either end; others lose their end.
        """
        opening, *later = self.observations
        shown = [_without_middle(opening, characters), *(_without_end(each, characters) for each in later)]
        found: list[Message] = []
        for observation, decision in zip(shown, self.decisions, strict=True):
            found.append(Message("user", observation))
            found.append(Message("assistant", form.format(decision.thought, decision.action)))
        return found


_CUT = " [...] "
_TEMPLATE = re.compile(r"\A(search|answer)\[<(\w+)>\]\Z")


def _without_middle(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    head = characters // 2
    return text[:head].rstrip() + _CUT + text[len(text) - (characters - head) :].lstrip()


def _without_end(text: str, characters: int) -> str:
    return text if len(text) <= characters else (text[:characters].rstrip() + _CUT).rstrip()


@dataclass(frozen=True)
class Prompts:
    """Everything that an agent is told, and the form in which it answers."""

    system: str
    """The system message."""
    style: Style = "brief"
    env: str = ""
    """Benchmark name; "" for one that has no instructions."""
    max_steps: int | None = None
    """Turns of an episode, where the style names them."""
    examples: tuple[Message, ...] = ()
    """Worked examples between the system message and the episode, turn by turn as a chat. Told as one text in the
    system message, they lead small models to write on in it instead of answering."""

    def __post_init__(self) -> None:
        form_of(self.style, self.env)

    @property
    def head(self) -> tuple[Message, ...]:
        """What stands before the first observation."""
        return (Message("system", self.system), *self.examples)

    @property
    def form(self) -> Form:
        """How responses are written and read."""
        return form_of(self.style, self.env)

    def format(self, thought: str, action: str) -> str:
        """The one well-formed response."""
        return self.form.format(thought, action)

    def parse(self, text: str) -> Parsed:
        """Read a response; any text gives a result."""
        return self.form.parse(text)

    def window(
        self,
        task: str,
        history: Sequence[tuple[str, str]],
        observation: str,
        admissible: Sequence[str],
        taken: int,
    ) -> str:
        """The user message of one step in the window layout.

        task: the opening observation, which holds the instruction; history: the last observations, oldest first,
        each with the action that answered it; observation: what is seen now. The opening one is "" in both, as it is
        shown already. taken: how many actions were taken so far.
        """
        if self.style == "brief":
            return window_prompt(task, history, observation, admissible)
        budget = "" if self.max_steps is None else f" of at most {self.max_steps}"
        lines = [task, "", f"Actions taken so far: {taken}{budget}."]
        if history:
            lines.append(
                f"The last {len(history)}, oldest first, each behind the observation that it answered:"
            )
        for seen, action in history:
            lines.append(f"Observation: {seen or '(the one at the top)'}")
            lines.append(f"Action: {self.form.command(action) or '(none)'}")
        if observation:
            lines += ["", f"Current observation: {observation}"]
        if admissible:
            lines += [
                "",
                "Actions that are possible now:",
                *(f"- {self._offered(one)}" for one in admissible),
            ]
        return "\n".join([*lines, "", instructions.reminder(self.env, self.form)])

    def _offered(self, action: str) -> str:
        """An admissible action; a template such as `search[<query>]` without its inner angle brackets."""
        return self.form.command(_TEMPLATE.sub(r"\1[\2]", action))

    def digest(self) -> str:
        """SHA-256 of everything that decides what the agent reads, for run records."""
        sample = self.window("task", [("seen", "done")], "now", ("a", "b"), 1)
        told = [VERSIONS[self.style], self.system, self.format("t", "a"), sample]
        if self.style != "brief":
            told += [self.style, self.format("t", "search[a]"), self.window("task", [], "", (), 0)]
        told += [message.content for message in self.examples]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def record(self) -> dict[str, str]:
        """Version and digest, for `run.json`."""
        return {"version": VERSIONS[self.style], "digest": self.digest()}


def make_prompts(
    env: str,
    style: Style = "brief",
    *,
    max_steps: int | None = None,
    shots: Sequence[Shot] = (),
    shot_observation_chars: int = 600,
) -> Prompts:
    """The prompts of a benchmark; `KeyError` names those that have some, `ValueError` the styles.

    max_steps: turns of an episode, told in the full styles; shots: worked examples; shot_observation_chars: after so
    many characters their observations are cut.
    """
    form = form_of(style, env)
    if style == "brief":
        system, max_steps = instructions.BRIEF[instructions.known(env)], None
    else:
        system = instructions.full(env, form, max_steps)
    if shots:
        system = f"{system}\n\n{instructions.announce(len(shots))}"
    examples = [message for shot in shots for message in shot.messages(form, shot_observation_chars)]
    return Prompts(system, style, env, max_steps, tuple(examples))


def window_prompt(
    task: str, history: Sequence[tuple[str, str]], observation: str, admissible: Sequence[str]
) -> str:
    """The user message of one step in the window layout of the brief style; see `Prompts.window`."""
    lines = [task]
    for seen, action in history:
        lines += ([f"Observation: {seen}"] if seen else []) + [f"Action: {action}"]
    if observation:
        lines.append(f"Observation: {observation}")
    if admissible:
        lines.append("Admissible: " + " | ".join(admissible))
    return "\n".join(lines)
