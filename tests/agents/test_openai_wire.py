"""What is sent to a chat-completions server and what its answers mean, without a server."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from agents.chat import Message, MessageFormat
from agents.policies.base import Sampling
from agents.policies.openai_wire import Endpoint, out_of_money, read_reply, refusal, request
from agents.policies.usage import Prices, Usage
from agents.trajectory import UNKNOWN_TOKEN
from tests.agents.completions import said

HERE = "http://127.0.0.1:8000/v1"
CHAT = (Message("system", "Be good."), Message("user", "Now?"))


def answer(content: Any, **changes: Any) -> dict[str, Any]:
    """An answer's JSON with some of its parts replaced."""
    found: dict[str, Any] = json.loads(said("x").content)
    found["choices"][0]["message"]["content"] = content
    found["choices"][0] |= {key: changes.pop(key) for key in ("finish_reason", "logprobs") if key in changes}
    return {**found, **changes}


def test_a_request_is_plain_and_says_nothing_that_was_not_asked_for() -> None:
    body = request(Endpoint(HERE, "some-model"), CHAT, Sampling(), 64, (5 << 32) + 17)
    assert body == {
        "model": "some-model",
        "messages": [{"role": "system", "content": "Be good."}, {"role": "user", "content": "Now?"}],
        "temperature": 1.0,
        "max_tokens": 64,
        "seed": 5,  # the upper 31 of the turn's 63 bits
    }


def test_a_request_follows_the_servers_wishes() -> None:
    endpoint = Endpoint(
        HERE,
        "m",
        token_limit="max_completion_tokens",
        seeds=False,
        logprobs=True,
        body={"top_p": 1, "chat_template_kwargs": {"enable_thinking": False}},
    )
    body = request(endpoint, CHAT, Sampling(greedy=True), 64, 2**63 - 1)
    del body["messages"]
    assert body == {
        "model": "m",
        "temperature": 0,
        "max_completion_tokens": 64,
        "logprobs": True,
        "top_p": 1,
        "chat_template_kwargs": {"enable_thinking": False},
    }


@pytest.mark.parametrize("seed", [0, 1, 2**62, 2**63 - 1])
def test_seeds_fit_the_integers_of_every_server(seed: int) -> None:
    assert 0 <= request(Endpoint(HERE, "m"), CHAT, Sampling(), 1, seed)["seed"] < 2**31


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_url": "localhost:8000/v1"}, "base_url is 'localhost:8000/v1', expected a URL such as"),
        ({"base_url": "file:///etc/passwd"}, "expected a URL such as"),
        ({"base_url": "http://me:pass@host/v1"}, "expected a URL without `user@`"),
        ({"base_url": "http://host/v1?key=1"}, "expected a URL without"),
        ({"model": " "}, "model is empty"),
        ({"token_limit": "most"}, "token_limit is 'most', expected max_tokens or"),
        ({"body": {"stream": True, "top_p": 1}}, r"body holds \['stream'\], which are set by the evaluation"),
        ({"body": {"temperature": 0.5}}, "body holds"),
    ],
)
def test_a_wrong_endpoint_is_refused_and_no_password_is_repeated(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as found:
        Endpoint(**{"base_url": HERE, "model": "m", **settings})
    assert "pass@" not in str(found.value)


def test_urls_may_end_with_or_without_the_path_of_completions() -> None:
    for given in (HERE, HERE + "/", HERE + "/chat/completions"):
        assert Endpoint(given, "m").url == HERE + "/chat/completions"


def test_an_answer_gives_its_text_and_as_many_unknown_tokens_as_were_counted() -> None:
    reply = read_reply(answer("Thought: a\nAction: b"), CHAT)
    written = reply.generation()
    assert (written.text, written.stop) == ("Thought: a\nAction: b", "stop")
    assert written.token_ids == (UNKNOWN_TOKEN,) * 4
    assert len(written.logprobs) == 4
    assert all(map(math.isnan, written.logprobs))
    assert reply.usage == Usage(answers=1, prompt_tokens=10, completion_tokens=4)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "stop"),
        (None, "stop"),
        ("tool_calls", "stop"),
    ],
)
def test_only_a_text_that_was_cut_counts_as_cut(reason: str | None, stop: str) -> None:
    assert read_reply(answer("x", finish_reason=reason), CHAT).stop == stop


def test_reasoning_that_is_kept_apart_is_counted_and_no_text() -> None:
    found = answer(None, finish_reason="length")
    found["choices"][0]["message"]["reasoning_content"] = "Action: buy everything"
    found["usage"] |= {
        "completion_tokens": 900,
        "completion_tokens_details": {"reasoning_tokens": 900},
        "prompt_tokens_details": {"cached_tokens": 6},
    }
    reply = read_reply(found, CHAT)
    assert (reply.text, reply.stop, len(reply.generation().token_ids)) == ("", "length", 900)
    assert (reply.usage.reasoning_tokens, reply.usage.cached_tokens) == (900, 6)


def test_text_may_come_in_parts() -> None:
    parts = [
        {"type": "text", "text": "a"},
        {"type": "thinking", "thinking": "b"},
        {"type": "text", "text": "c"},
    ]
    assert read_reply(answer(parts), CHAT).text == "ac"


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "many", "completion_tokens": -1}])
def test_tokens_that_nobody_counted_are_estimated_from_the_text_and_said_to_be(usage: Any) -> None:
    reply = read_reply(answer("nine char", usage=usage), CHAT)
    # "Be good." has 8 characters and "Now?" 4: 2 + 1 tokens; 9 characters are 3.
    assert reply.usage == Usage(answers=1, estimated=1, prompt_tokens=3, completion_tokens=3)


@pytest.mark.parametrize("count", [4, 3])
def test_logprobs_are_kept_where_there_is_one_for_every_token(count: int) -> None:
    entries = [{"token": "t", "logprob": -0.5, "top_logprobs": []}] * count
    written = read_reply(answer("x", logprobs={"content": entries}), CHAT).generation()
    assert len(written.logprobs) == len(written.token_ids) == 4
    assert (written.logprobs == (-0.5,) * 4) == (count == 4)


@pytest.mark.parametrize(
    "broken",
    [
        [],
        {},
        None,
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"message": "x"}]},
        {"choices": [None]},
        {"error": {"message": "upstream is gone", "code": 502}},
        answer(5),
        answer([5]),
        answer([{"type": "text", "text": None}]),
        answer("half", finish_reason="error"),
    ],
)
def test_whatever_else_comes_is_no_answer(broken: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_reply(broken, CHAT)


OPENAI_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
)


@pytest.mark.parametrize(
    ("status", "content", "meaning", "line"),
    [
        (
            400,
            {"error": {"message": OPENAI_LONG, "code": "context_length_exceeded"}},
            "context",
            f"400 {OPENAI_LONG}",
        ),
        (400, {"object": "error", "message": OPENAI_LONG, "code": 400}, "context", f"400 {OPENAI_LONG}"),
        (400, {"error": {"type": "exceed_context_size_error", "message": "no"}}, "context", "400 no"),
        (
            422,
            {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"},
            "context",
            "422 Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096",
        ),
        (
            400,
            {"error": {"message": "prompt is too long: 3 > 2"}},
            "context",
            "400 prompt is too long: 3 > 2",
        ),
        (400, {"error": {"message": "no such parameter: seed"}}, "request", "400 no such parameter: seed"),
        (
            413,
            {"error": {"message": "tokens per minute: too many"}},
            "request",
            "413 tokens per minute: too many",
        ),
        (422, {"detail": "bad\nrole"}, "request", "422 bad role"),
        (401, {"error": {"message": "bad key"}}, "all", "401 bad key"),
        (402, {"error": {"message": "no credit"}}, "all", "402 no credit"),
        (403, {"message": "not yours"}, "all", "403 not yours"),
        (404, {"error": {"message": "no such model"}}, "all", "404 no such model"),
        (429, {"error": {"message": "pay", "code": "insufficient_quota"}}, "all", "429 pay"),
        (301, "", "all", "301"),
        (400, "<html>maximum context length</html>", "context", "400 <html>maximum context length</html>"),
        (400, "[1]", "request", "400 [1]"),
    ],
)
def test_a_refusal_is_understood_by_status_code_and_words(
    status: int, content: Any, meaning: str, line: str
) -> None:
    found = refusal(status, content if isinstance(content, str) else json.dumps(content))
    assert (found.meaning, found.line) == (meaning, line)


def test_too_many_requests_pass_and_an_empty_account_does_not() -> None:
    empty = json.dumps({"error": {"message": "x", "type": "insufficient_quota", "code": None}})
    assert out_of_money(429, empty)
    assert not out_of_money(429, json.dumps({"error": {"message": "slow", "code": "rate_limit_exceeded"}}))
    assert not out_of_money(500, empty)


def test_use_adds_up_and_has_its_price() -> None:
    first = Usage(answers=1, prompt_tokens=3_000_000, cached_tokens=1_000_000, completion_tokens=500_000)
    both = first + Usage(answers=2, prompt_tokens=1, requests=4, seconds=1.5)
    assert (both.answers, both.prompt_tokens, both.requests, both.seconds) == (3, 3_000_001, 4, 1.5)
    # 2M fresh at 1 dollar, 1M cached at 0.25, half a million written at 8.
    assert Prices(1.0, 8.0, 0.25).dollars(first) == 2.0 + 0.25 + 4.0
    assert Prices(1.0, 8.0).dollars(first) == 3.0 + 4.0


@pytest.mark.parametrize("record", [{"answers": -1}, {"answers": True}, {"seconds": math.nan}, {"calls": 1}])
def test_a_use_that_cannot_be_is_refused(record: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a number from 0|not a usage record"):
        Usage.of(record)


def test_a_price_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="price output is -1"):
        Prices(1.0, -1)


def test_messages_have_no_tokens_that_could_be_joined_or_read() -> None:
    chat = MessageFormat()
    assert chat.whole_ids(CHAT) == (UNKNOWN_TOKEN,)
    assert not chat.prefix_stable
    assert chat.clip("12345678", 2) == "12345678"
    assert chat.clip("123456789", 2) == "12345678 [...]"
    with pytest.raises(ValueError, match="expected whole prompts"):
        chat.next_ids("x", stopped=True)
    with pytest.raises(ValueError, match="expected the text"):
        chat.text_of((UNKNOWN_TOKEN,))
