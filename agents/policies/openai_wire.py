"""The chat-completions interface: what a request says, how an answer is read, and what a refusal means."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from agents.chat import CHARACTERS_PER_TOKEN, Message
from agents.policies.base import Generation, Sampling
from agents.policies.usage import Usage
from agents.trajectory import UNKNOWN_TOKEN, StopReason
from envs.client import SHOWN

PATH = "/chat/completions"
SEED_BITS = 31
"""Of the seeds that are sent: what every server takes, and no parser of JSON rounds."""
TokenLimit = Literal["max_tokens", "max_completion_tokens"]
_RESERVED = frozenset(
    {"model", "messages", "temperature", "seed", "stream", "n", "logprobs", *TokenLimit.__args__}  # type: ignore[attr-defined]
)


@dataclass(frozen=True)
class Endpoint:
    """A served model, and what its server wants in a request."""

    base_url: str
    """Up to `/v1`, without a password or key."""
    model: str
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key; without one, none is sent."""
    token_limit: TokenLimit = "max_tokens"
    """What the limit on written tokens is called; newer models of OpenAI demand `max_completion_tokens`."""
    seeds: bool = True
    """Whether requests carry a seed, which some servers refuse."""
    logprobs: bool = False
    """Whether log-probabilities are asked for."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """What is added to every request, such as `{"top_p": 1}`; all JSON values."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"base_url is {self.base_url!r}, expected a URL such as http://127.0.0.1:8000/v1"
                if "@" not in self.base_url
                else "base_url is no URL, expected one such as http://127.0.0.1:8000/v1"
            )
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("base_url holds more than a place, expected a URL without `user@`, `?` and `#`")
        if not self.model.strip():
            raise ValueError("model is empty, expected the name under which the server knows it")
        if self.token_limit not in ("max_tokens", "max_completion_tokens"):
            raise ValueError(
                f"token_limit is {self.token_limit!r}, expected max_tokens or max_completion_tokens"
            )
        if taken := _RESERVED & self.body.keys():
            raise ValueError(f"body holds {sorted(taken)}, which are set by the evaluation; expected others")

    @property
    def url(self) -> str:
        """Where requests go."""
        return self.base_url.rstrip("/").removesuffix(PATH) + PATH

    @property
    def local(self) -> bool:
        """Whether the server is this machine."""
        return urlsplit(self.base_url).hostname in ("localhost", "127.0.0.1", "::1")

    def describe(self) -> dict[str, Any]:
        """What decides the answers, for run records; not the URL, since a server may move."""
        return {
            "name": self.model,
            "interface": "chat completions",
            "token_limit": self.token_limit,
            "seeds": self.seeds,
            "body": dict(self.body),
        }


def request(
    endpoint: Endpoint, messages: Sequence[Message], sampling: Sampling, max_tokens: int, seed: int
) -> dict[str, Any]:
    """The body of a request; seed: below 2**63."""
    asked: dict[str, Any] = {
        **endpoint.body,
        "model": endpoint.model,
        "messages": [{"role": message.role, "content": message.content} for message in messages],
        "temperature": 0 if sampling.greedy else sampling.temperature,
        endpoint.token_limit: max_tokens,
    }
    if endpoint.seeds:
        asked["seed"] = seed >> (63 - SEED_BITS)
    if endpoint.logprobs:
        asked["logprobs"] = True
    return asked


def estimated_tokens(text: str) -> int:
    """Tokens of a text, about."""
    return max(1, math.ceil(len(text) / CHARACTERS_PER_TOKEN))


@dataclass(frozen=True)
class Reply:
    """An answer as it was understood."""

    text: str
    """Without reasoning that the server keeps apart; empty where the model wrote nothing else."""
    stop: StopReason
    usage: Usage
    logprobs: tuple[float, ...] | None
    """One for each token that the server counted, else None."""

    def generation(self) -> Generation:
        """As a policy gives it: unknown tokens, as many as were written, at least one."""
        count = max(1, self.usage.completion_tokens)
        known = self.logprobs if self.logprobs is not None and len(self.logprobs) == count else None
        return Generation((UNKNOWN_TOKEN,) * count, known or (math.nan,) * count, self.stop, self.text)


def read_reply(answer: Any, asked: Sequence[Message]) -> Reply:
    """The first choice of an answer; `ValueError` for anything else.

    asked: what was read, to estimate its tokens where the server does not count them.
    """
    try:
        choice = answer["choices"][0]
        message, reason = choice["message"], choice.get("finish_reason")
        content = message.get("content")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ValueError(f"{_excerpt(answer)}, expected choices with a message") from None
    if reason == "error":
        raise ValueError(f"{_excerpt(choice)}, expected a written message")
    text = _text(content)
    prompt = sum(estimated_tokens(message.content) for message in asked)
    return Reply(
        text,
        "length" if reason == "length" else "stop",
        _usage(answer.get("usage"), prompt, estimated_tokens(text)),
        _logprobs(choice.get("logprobs")),
    )


def _text(content: Any) -> str:
    """The text of a message, given whole or in parts; none where the model wrote reasoning or a tool call alone."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts: list[Any] = [
        part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"
    ]
    if not all(isinstance(part, Mapping) for part in parts) or not all(
        isinstance(text, str) for text in texts
    ):
        raise ValueError(f"content is {_excerpt(content)}, expected text")
    return "".join(texts)


def _usage(stated: Any, prompt: int, completion: int) -> Usage:
    """The server's own counts; estimates where it gives none."""
    found = stated if isinstance(stated, Mapping) else {}
    read, written = _count(found, "prompt_tokens"), _count(found, "completion_tokens")
    cached = _count(found.get("prompt_tokens_details"), "cached_tokens") or 0
    reasoning = _count(found.get("completion_tokens_details"), "reasoning_tokens") or 0
    read_in_all = prompt if read is None else read
    return Usage(
        answers=1,
        estimated=int(read is None or written is None),
        prompt_tokens=read_in_all,
        cached_tokens=min(cached, read_in_all),
        completion_tokens=completion if written is None else written,
        reasoning_tokens=reasoning,
    )


def _count(table: Any, name: str) -> int | None:
    value = table.get(name) if isinstance(table, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _logprobs(found: Any) -> tuple[float, ...] | None:
    content = found.get("content") if isinstance(found, Mapping) else None
    if not isinstance(content, list):
        return None
    values = [entry.get("logprob") if isinstance(entry, Mapping) else None for entry in content]
    usable = [
        float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return tuple(usable) if len(usable) == len(values) and all(map(math.isfinite, usable)) else None


def _excerpt(value: Any) -> str:
    return repr(value)[:SHOWN]


_CONTEXT_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
)
_CONTEXT_WORDS = re.compile(
    r"context[ _](length|window|size)|maximum (model|context) length|max_model_len|(prompt|input) is too long"
    r"|token count .{0,40}exceeds|reduce the length of the (messages|prompt)"
    r"|inputs`? .{0,60}tokens.{0,60}must (be|have)",
    re.IGNORECASE,
)
_CONTEXT_STATUS = frozenset({400, 413, 422})
_STOP_STATUS = frozenset({401, 402, 403, 404})
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


@dataclass(frozen=True)
class Refusal:
    """What a server says is wrong with a request."""

    status: int
    message: str
    """One line of the server's own words."""
    meaning: Literal["context", "request", "all"]
    """The prompt is too long; this request is wrong; or every request will be refused: key, model, money, URL."""

    @property
    def line(self) -> str:
        """`400 the server's words`."""
        return f"{self.status} {self.message}".strip()


def refusal(status: int, content: str) -> Refusal:
    """Read a refusal, whose content may be of any form."""
    code, message = _error(content)
    line = " ".join(message.split())[: 2 * SHOWN]
    if status in _CONTEXT_STATUS and (code in _CONTEXT_CODES or _CONTEXT_WORDS.search(message)):
        return Refusal(status, line, "context")
    hopeless = status in _STOP_STATUS or 300 <= status < 400 or code in _QUOTA_CODES
    return Refusal(status, line, "all" if hopeless else "request")


def out_of_money(status: int, content: str) -> bool:
    """Whether "too many requests" means that no more are paid for."""
    return status == 429 and _error(content)[0] in _QUOTA_CODES


def _error(content: str) -> tuple[str, str]:
    """(code or type, message) of an error in the forms that servers use; the whole content where it has none."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return "", content
    error = found.get("error", found) if isinstance(found, Mapping) else None
    if isinstance(error, str):
        return "", error
    if not isinstance(error, Mapping):
        return "", content
    codes = [value for name in ("code", "type") if isinstance(value := error.get(name), str)]
    known = next((code for code in codes if code in _CONTEXT_CODES | _QUOTA_CODES), codes[0] if codes else "")
    message = next(
        (value for name in ("message", "detail") if isinstance(value := error.get(name), str)), content
    )
    return known, message
