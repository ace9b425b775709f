"""The Deep Search text environment: one question, a retriever over a fixed corpus, one answer in free text.

The paper's agent calls a web search engine and a viewer that summarises long pages. Here both read one corpus, so that
a result can be reproduced: `search[query]` shows passages, `open[title or id]` the page that a passage is from, in
slices that `next` turns, and `answer[text]` ends the episode. Only `answer` pays, and only what the agent itself wrote
in its action is judged: nothing that a passage says is ever read as an action or as an answer.

A query that fails although the retriever is up, or a judge that fails, raises `EnvError`; a retriever that is down
raises `RetrieverDown`, which ends the run. Neither is ever a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from envs.base import AnyText, StepInfo, TextEnv
from envs.deepsearch.actions import Command, parse_action
from envs.deepsearch.scorers import Verdict

if TYPE_CHECKING:
    from envs.deepsearch.questions import Question
    from envs.deepsearch.world import DeepSearchWorld

MAX_STEPS = 15
MAX_OBSERVATION_CHARACTERS = 10_000_000
MAX_ACTION_CHARACTERS = 100_000
NOT_UNDERSTOOD = "Not understood. Use search[query], open[title or id], next or answer[text]."
ANSWERED = "Answered."


class DeepSearchInfo(StepInfo):
    """Facts about the moment after `reset` or `step`."""

    domain: str
    """`id` for questions like those of training, `ood` for others."""
    shown: tuple[tuple[str, str], ...]
    """Title and text of each passage, or of the slice of a page, that the observation shows."""
    answer: str | None
    """What was answered; None before that."""


class DeepSearchEnv(TextEnv):
    """One agent with one question in a shared world."""

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012 - gymnasium's own name and form

    def __init__(
        self,
        world: DeepSearchWorld,
        *,
        max_steps: int = MAX_STEPS,
        results: int = 3,
        passage_words: int = 120,
        page_words: int = 200,
        render_mode: str | None = None,
    ) -> None:
        """`results`: passages that a search shows; `passage_words`: after so many words a passage is cut;
        `page_words`: length of a slice of a page.
        """
        numbers = {
            "max_steps": max_steps,
            "results": results,
            "passage_words": passage_words,
            "page_words": page_words,
        }
        for name, value in numbers.items():
            if value < 1:
                raise ValueError(f"{name} is {value}, expected at least 1")
        self.world = world
        self.max_steps, self.results = max_steps, results
        self.passage_words, self.page_words = passage_words, page_words
        self.render_mode = render_mode
        self.observation_space = AnyText(MAX_OBSERVATION_CHARACTERS)
        self.action_space = AnyText(MAX_ACTION_CHARACTERS)
        self._question: Question | None = None
        self._over = False

    @classmethod
    def prepare(cls, coming: Sequence[tuple[TextEnv, str]]) -> None:
        """Ask the retriever for all searches of a round at once."""
        wanted: dict[tuple[int, int], tuple[DeepSearchEnv, list[str]]] = {}
        for env, action in coming:
            command = parse_action(action)
            if isinstance(env, DeepSearchEnv) and command is not None and command.verb == "search":
                _, queries = wanted.setdefault((id(env.world), env.results), (env, []))
                queries.append(command.argument)
        for env, queries in wanted.values():
            env.world.fetch(queries, env.results)

    def reset(  # type: ignore[override]  # to mypy a TypedDict is no dict[str, Any]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, DeepSearchInfo]:
        """Ask a question by its task id, or one of the train split chosen by the seed.

        Raises `KeyError` for a task that this world does not have and `ValueError` for an unknown option.
        """
        super().reset(seed=seed)
        options = options or {}
        if unknown := options.keys() - {"task"}:
            raise ValueError(f"unknown reset options {sorted(unknown)}, expected 'task'")
        if "task" in options:
            self._question = self.world.question(options["task"])
        else:
            train = self.world.questions("train")
            self._question = train[int(self.np_random.integers(len(train)))]
        self._steps, self._over = 0, False
        self._verdict: Verdict | None = None
        self._answer: str | None = None
        self._shown: tuple[tuple[str, str], ...] = ()
        self._seen: dict[str, str] = {}
        """Titles of the passages that searches showed, by id."""
        self._page: tuple[str, list[str]] | None = None
        self._slice = 0
        self._observation = f"Question: {self._question.text}"
        return self._observation, self._info(valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, DeepSearchInfo]:  # type: ignore[override]
        """Carry out an action; the reward is paid once, by the answer.

        Raises `RuntimeError` before `reset` and after the end, `TypeError` for an action that is no string.
        """
        if self._question is None or self._over:
            raise RuntimeError("the episode is over; call reset" if self._over else "call reset before step")
        if not isinstance(action, str):
            raise TypeError(f"action is {action!r}, expected a string such as 'search[who wrote it]'")
        self._observation, valid = self._carry_out(parse_action(action))
        self._steps += 1
        answered = self._verdict is not None
        truncated = not answered and self._steps >= self.max_steps
        self._over = answered or truncated
        reward = float(self._verdict.success) if self._verdict is not None else 0.0
        return self._observation, reward, answered, truncated, self._info(valid=valid)

    def render(self) -> str:
        """The last observation."""
        if self._question is None:
            raise RuntimeError("call reset before render")
        return self._observation

    def _carry_out(self, command: Command | None) -> tuple[str, bool]:
        """What an action shows, and whether it did something."""
        self._shown = ()
        if command is None:
            return NOT_UNDERSTOOD, False
        if command.verb == "search":
            return self._search(command.argument), True
        if command.verb == "open":
            return self._open(command.argument)
        if command.verb == "next":
            return self._turn()
        assert self._question is not None
        self._answer = command.argument
        self._verdict = self.world.judge(self._question, command.argument)
        return ANSWERED, True

    def _search(self, query: str) -> str:
        hits = self.world.search(query, self.results)
        self._seen.update((hit.id, hit.title) for hit in hits)
        self._shown = tuple((hit.title, cut(hit.text, self.passage_words)) for hit in hits)
        if not hits:
            return "Nothing found."
        lines = zip((hit.id for hit in hits), self._shown, strict=True)
        return "\n".join(f"[{name}] {title}: {text}" for name, (title, text) in lines)

    def _open(self, wanted: str) -> tuple[str, bool]:
        """An id that was shown comes first, then a title, then any id."""
        passages = self.world.page(self._seen.get(wanted, wanted))
        if not passages:
            return f"There is no page {wanted!r}.", False
        slices = slices_of("\n".join(passage.text for passage in passages), self.page_words)
        self._page, self._slice = (passages[0].title, slices), 0
        return self._shown_slice(), True

    def _turn(self) -> tuple[str, bool]:
        if self._page is None:
            return "No page is open.", False
        if self._slice + 1 == len(self._page[1]):
            return f"This is the end of {self._page[0]}.", False
        self._slice += 1
        return self._shown_slice(), True

    def _shown_slice(self) -> str:
        assert self._page is not None
        title, slices = self._page
        self._shown = ((title, slices[self._slice]),)
        part = f" ({self._slice + 1} of {len(slices)})" if len(slices) > 1 else ""
        return f"{title}{part}: {slices[self._slice]}"

    def _info(self, *, valid: bool) -> DeepSearchInfo:
        assert self._question is not None
        verdict = self._verdict
        opens = tuple(f"open[{title}]" for title in dict.fromkeys(title for title, _ in self._shown))
        turns = ("next",) if self._page is not None and self._slice + 1 < len(self._page[1]) else ()
        return DeepSearchInfo(
            task_id=self._question.id,
            task_type=self._question.dataset,
            success=verdict is not None and verdict.success,
            score=0.0 if verdict is None else verdict.score,
            admissible=() if self._over else ("search[<query>]", *opens, *turns, "answer[<text>]"),
            action_valid=valid,
            reward_parts=verdict,
            domain=self._question.domain,
            shown=self._shown,
            answer=self._answer,
        )


# Chinese, Japanese and Korean are written without spaces: there a character counts as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


def slices_of(text: str, words: int) -> list[str]:
    """A text in slices of so many words; together they hold all of it. An empty text is one empty slice."""
    starts = [found.start() for found in _WORD.finditer(text)][::words] or [0]
    ends = [*starts[1:], len(text)]
    return [text[start:end].rstrip() for start, end in zip(starts, ends, strict=True)]


def cut(text: str, words: int) -> str:
    """The first so many words of a text; what is cut off is shown as an ellipsis."""
    slices = slices_of(text, words)
    return slices[0] + (" …" if len(slices) > 1 else "")
