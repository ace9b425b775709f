"""Chats as token ids: rendered turn by turn, and checked against the tokenizer's own template."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from agents.trajectory import UNKNOWN_TOKEN

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Chat(Protocol):
    """What a rollout needs of a chat's form; `ChatFormat` says what each part means."""

    @property
    def prefix_stable(self) -> bool:
        """Whether a conversation may grow by `next_ids`."""
        ...

    @property
    def turn_end(self) -> int:
        """The token that ends a written turn."""
        ...

    def next_ids(self, user: str, stopped: bool) -> tuple[int, ...]:
        """Tokens between a sampled turn and the next."""
        ...

    def whole_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Tokens of a whole chat, at least one."""
        ...

    def text_of(self, ids: Sequence[int]) -> str:
        """Written tokens as text."""
        ...

    def clip(self, text: str, tokens: int) -> str:
        """At most so many tokens of a text; a cut is marked."""
        ...


CUT = " [...]"
CHARACTERS_PER_TOKEN = 4
"""An estimate for English text, where nobody says how many tokens it has."""


class MessageFormat:
    """Chats of a model that is sent messages and shows no tokens: one unknown token stands for every prompt.

    Nothing here counts a prompt's tokens: whether a conversation still fits is the server's word. `clip` takes
    `CHARACTERS_PER_TOKEN` characters for a token.
    """

    prefix_stable = False
    turn_end = UNKNOWN_TOKEN

    def next_ids(self, user: str, stopped: bool) -> tuple[int, ...]:
        """Refused: every prompt is sent whole."""
        raise ValueError("the tokens of this chat are unknown; expected whole prompts")

    def whole_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The one token that stands for a prompt."""
        return (UNKNOWN_TOKEN,)

    def text_of(self, ids: Sequence[int]) -> str:
        """Refused: the text came with the answer."""
        raise ValueError("the tokens of this chat are unknown; expected the text that came with them")

    def clip(self, text: str, tokens: int) -> str:
        """About the first `tokens` tokens of a text; a cut is marked by ` [...]`, which comes on top."""
        most = tokens * CHARACTERS_PER_TOKEN
        return text if len(text) <= most else text[:most] + CUT


_REASONING_TAGS = frozenset({"<think>", "</think>"})
"""Tokens of their own in some vocabularies, and part of what a prompt says: they end no turn and stay whole."""

# What the template is tried on: plain text, the response form of the agents, and a reasoning block.
_SYSTEM = "Be brief."
_USERS = ("First question?", "Second\nquestion: <a> [b] $1", "Third.")
_PLAIN = ("Thought: one\nAction: go[1]", "Thought: two.\nAction: stop")
_REASONING = ("<think>\nhidden\n</think>\n\nAction: go[1]", "<think>\nmore\n</think>\n\nAction: stop")
_RESERVED = {"conversation", "tokenize", "add_generation_prompt", "continue_final_message", "return_tensors"}


class ChatFormat:
    """A tokenizer's chat template, in the incremental form that a growing context needs.

    Between two sampled turns the template puts the end of the written turn, the next user message and the
    opening of the next response. `next_ids` gives exactly those tokens, so that nothing sampled is ever
    re-tokenised. Whether sampled turns joined this way equal the template's own rendering is tried when the
    format is built. Where they do not (a template that removes earlier thoughts, a tokenizer that merges
    across turns), `prefix_stable` is false, a message is logged, and each step must render `whole_ids`.

    A template without a system role gets the system text at the head of the first user message. Special
    tokens that occur inside a message's content are broken up, but for `<think>` and `</think>`: text from an
    environment never ends a turn.

    `arguments` are handed to the template, such as `{"enable_thinking": False}` for Qwen3.

    Raises `ValueError` for a tokenizer without a chat template, a template that cannot render a plain chat,
    and one that marks the end of a turn neither by a special token nor by an end-of-sequence token.
    """

    prefix_stable: bool
    """Whether sampled turns joined by `next_ids` equal the template's rendering of the whole chat."""
    stop_ids: tuple[int, ...]
    """Tokens that end a written turn: the template's own first, then the end-of-sequence token."""

    def __init__(self, tokenizer: Any, arguments: Mapping[str, Any] | None = None) -> None:
        if not getattr(tokenizer, "chat_template", None):
            name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
            raise ValueError(f"tokenizer {name!r} has no chat template; expected one that renders chats")
        self._tokenizer = tokenizer
        self._arguments = dict(arguments or {})
        if reserved := self._arguments.keys() & _RESERVED:
            raise ValueError(f"chat template arguments {sorted(reserved)} are set here; expected others")
        added = (str(token) for token in tokenizer.get_added_vocab())
        special = {*tokenizer.all_special_tokens, *added} - _REASONING_TAGS
        self._special = tuple(sorted(special, key=len, reverse=True))
        self._system_role = self._has_system_role()
        self._opening = self._render([Message("system", _SYSTEM), Message("user", _USERS[0])])
        self.stop_ids = self._find_stop_ids()
        reason = self._instability()
        self.prefix_stable = reason is None
        if reason is not None:
            log.warning(
                "chat template is not prefix-stable (%s): every step becomes a sample of its own", reason
            )

    @property
    def turn_end(self) -> int:
        """The token with which the template ends a written turn."""
        return self.stop_ids[0]

    def opening_ids(self, system: str, user: str) -> tuple[int, ...]:
        """Tokens of a chat's first prompt, up to where the response begins."""
        return self.whole_ids([Message("system", system), Message("user", user)])

    def next_ids(self, user: str, stopped: bool) -> tuple[int, ...]:
        """Tokens between a sampled turn and the next: what the template puts there, up to the next response.

        `stopped` tells whether the sampled turn ended with `turn_end`; if not, that token is added here, as
        read, not written. Only meaningful if `prefix_stable`.
        """
        ids = self._encode(self._between(_PLAIN[0], user))
        return ids[ids.index(self.turn_end) + 1 :] if stopped and self.turn_end in ids else ids

    def whole_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Tokens of a whole chat, up to where the next response begins."""
        return self._encode(self._render(messages))

    def text_of(self, ids: Sequence[int]) -> str:
        """Written tokens as text, without special tokens."""
        text = self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)

    def clip(self, text: str, tokens: int) -> str:
        """At most the first `tokens` tokens of a text; a cut is marked by ` [...]`, which comes on top."""
        ids = self._encode(self._harmless(text))
        if len(ids) <= tokens:
            return text
        return self.text_of(ids[:tokens]).rstrip("\ufffd") + CUT

    def _render(self, messages: Sequence[Message]) -> str:
        chat = [{"role": message.role, "content": self._harmless(message.content)} for message in messages]
        if not self._system_role and len(chat) > 1 and chat[0]["role"] == "system":
            first, second, *rest = chat
            chat = [{**second, "content": f"{first['content']}\n\n{second['content']}"}, *rest]
        text = self._tokenizer.apply_chat_template(
            chat, tokenize=False, add_generation_prompt=True, **self._arguments
        )
        return str(text)

    def _harmless(self, content: str) -> str:
        """Break up every special token in a text by a space behind its first character."""
        for special in self._special:
            if special in content:
                content = content.replace(special, f"{special[0]} {special[1:]}")
        return content

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def _has_system_role(self) -> bool:
        """Whether the template accepts and shows a system message of its own."""
        self._system_role = True
        try:
            shown = self._render([Message("system", _SYSTEM), Message("user", _USERS[0])])
        except Exception:  # templates refuse roles by raising errors of their own making
            shown = ""
        if _SYSTEM in shown:
            return True
        self._system_role = False
        try:
            self._render([Message("user", _USERS[0])])
        except Exception as error:
            raise ValueError(f"the chat template cannot render a user message: {error}") from error
        return False

    def _between(self, written: str, user: str) -> str:
        """What the template puts behind `written` when `user` answers it."""
        chat = [
            Message("system", _SYSTEM),
            Message("user", _USERS[0]),
            Message("assistant", written),
            Message("user", user),
        ]
        whole = self._render(chat)
        start = len(self._opening) if whole.startswith(self._opening + written) else whole.rfind(written)
        if start < 0:
            raise ValueError("the chat template does not show what the assistant wrote")
        return whole[start + len(written) :]

    def _find_stop_ids(self) -> tuple[int, ...]:
        """The first special token behind a written turn, and the tokenizer's end-of-sequence token."""
        try:
            tail = self._between(_PLAIN[0], _USERS[1])
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"the chat template cannot render a second turn: {error}") from error
        ids = self._encode(tail.partition(_USERS[1])[0])
        special = {self._tokenizer.convert_tokens_to_ids(token) for token in self._special}
        found = [token for token in ids if token in special][:1]
        eos = self._tokenizer.eos_token_id
        stops = tuple(dict.fromkeys(found + ([] if eos is None else [int(eos)])))
        if not stops:
            raise ValueError(
                "the chat template ends a turn with no special token and the tokenizer has no eos_token; "
                "expected one that can be sampled to end a turn"
            )
        return stops

    def _instability(self) -> str | None:
        """Why joined turns differ from the template's rendering; none if they do not."""
        for kind, written in (("plain turns", _PLAIN), ("turns that hold a <think> block", _REASONING)):
            try:
                whole = self.whole_ids(_chat(written))
                joined = self._joined(written)
            except Exception as error:  # whatever a template raises, separate samples avoid it
                return f"{kind}: {error}"
            if whole != joined:
                return f"{kind} are rendered differently once they lie in the past"
        return None

    def _joined(self, written: Sequence[str]) -> tuple[int, ...]:
        ids = self.opening_ids(_SYSTEM, _USERS[0])
        for number, (text, user) in enumerate(zip(written, _USERS[1:], strict=True)):
            stopped = number % 2 == 0  # both forms must lead to the same tokens
            ids += self._encode(text) + ((self.turn_end,) if stopped else ()) + self.next_ids(user, stopped)
        return ids


def _chat(written: Sequence[str]) -> list[Message]:
    chat = [Message("system", _SYSTEM), Message("user", _USERS[0])]
    for text, user in zip(written, _USERS[1:], strict=True):
        chat += [Message("assistant", text), Message("user", user)]
    return chat
