"""What a served player does when the server fails, refuses or does not answer; its key is shown nowhere."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agents.policies.base import Sampling
from agents.policies.openai_policy import OpenAIPolicy, ServerError
from agents.policies.openai_wire import Endpoint
from envs.client import Patience, asked_seconds
from tests.agents.completions import Reply, completions, said, wrong
from tests.agents.served_corridor import FAST, play, policy_of, walked

pytestmark = pytest.mark.usefixtures("no_key")


def waits_of(
    respond: Callable[[dict[str, Any], int], Reply], **settings: Any
) -> tuple[list[float], Any, Any]:
    """(waits, the trajectory, usage) of one episode of two turns."""
    waits: list[float] = []
    with completions(respond) as server:
        policy = policy_of(server, parallel=1, sleep=waits.append, **settings)
        (one,) = play(policy, ["1"])
    return waits, one, policy.usage


def failing(first: int, reply: Reply) -> Callable[[dict[str, Any], int], Reply]:
    return lambda body, number: reply if number < first else walked(body)


def test_too_many_requests_wait_as_long_as_the_server_asks_and_no_longer_than_patience_allows() -> None:
    for asked, kept in (("7", 7.0), ("2.5", 2.5), ("86400", 180.0), ("²", None), ("soon", None)):
        waits, one, usage = waits_of(failing(1, wrong(429, "slow", retry_after=asked)))
        assert one.success
        assert (usage.requests, usage.retries, usage.answers) == (3, 1, 2)
        assert len(waits) == 1
        assert waits[0] == kept if kept else 1.0 <= waits[0] <= 1.25


def test_a_date_to_wait_for_counts_from_the_servers_own_clock() -> None:
    def respond(body: dict[str, Any], number: int) -> Reply:
        return walked(body) if number else Reply(503, b"", {"Retry-After": "Wed, 21 Oct 2065 07:29:30 GMT"})

    headers = {"retry-after": "Wed, 21 Oct 2015 07:29:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}
    assert asked_seconds(headers) == 90.0
    assert asked_seconds({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0  # long past
    assert waits_of(respond)[0] == [180.0]


@pytest.mark.parametrize(
    "broken",
    [Reply(500, b"oops"), Reply(503), Reply(408), Reply(409), Reply(200, b"{nonsense"), Reply(200, b"[]")],
)
def test_what_fails_is_asked_for_again_after_growing_waits(broken: Reply) -> None:
    waits, one, usage = waits_of(failing(3, broken))
    assert one.success
    assert (usage.requests, usage.retries, usage.answers) == (5, 3, 2)
    for wait, least in zip(waits, (1, 2, 4), strict=True):
        assert least <= wait <= 1.25 * least
    assert waits_of(failing(3, broken))[0] == waits  # the jitter is that of the request, not of chance


def test_a_server_that_always_fails_ends_the_episode_as_errored_and_not_as_lost() -> None:
    bad = "cell 5"

    def respond(body: dict[str, Any], number: int) -> Reply:
        return wrong(500, "no luck") if bad in body["messages"][1]["content"] else walked(body)

    with completions(respond) as server:
        failed, fine = play(policy_of(server), ["5", "1"])
    assert (failed.end, failed.usable, failed.steps) == ("error", False, ())
    assert failed.error is not None
    assert "500" in failed.error
    assert "no luck" in failed.error
    assert "(4 tries)" in failed.error
    assert (fine.end, fine.success) == ("terminated", True)


def test_a_full_context_ends_the_episode_as_such() -> None:
    def respond(body: dict[str, Any], number: int) -> Reply:
        if len(body["messages"]) > 2:
            return wrong(400, "This model's maximum context length is 9 tokens.", "context_length_exceeded")
        return walked(body)

    with completions(respond) as server:
        (one,) = play(policy_of(server), ["3"])
        assert len(server.bodies) == 2  # not tried again
    assert (one.end, one.error, one.usable, len(one.steps)) == ("context", None, True, 1)


def test_a_request_that_is_called_wrong_costs_its_episode_alone() -> None:
    def respond(body: dict[str, Any], number: int) -> Reply:
        return wrong(400, "flagged", "policy") if "cell 5" in body["messages"][1]["content"] else walked(body)

    with completions(respond) as server:
        failed, fine = play(policy_of(server), ["5", "1"])
    assert (failed.end, failed.error) == ("error", "400 flagged")
    assert fine.success


def test_a_server_that_does_not_answer_in_time_is_asked_again_and_then_given_up_on() -> None:
    over = threading.Event()

    def hang(body: dict[str, Any], number: int) -> Reply:
        over.wait(timeout=30)
        return walked(body)

    with completions(hang) as server:
        patience = Patience(timeout_s=0.05, tries=2)
        (one,) = play(policy_of(server, patience=patience), ["1"])
        over.set()
    assert one.end == "error"
    assert one.error is not None
    assert "no answer in time (ReadTimeout) (2 tries)" in one.error


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (wrong(401, "bad key"), "401 bad key; expected a key in the environment variable OPENAI_API_KEY"),
        (
            wrong(403, "not yours"),
            "403 not yours; expected a key in OPENAI_API_KEY that may use the model 'm'",
        ),
        (wrong(404, "unknown"), "404 unknown; expected a server with the model 'm'"),
        (wrong(429, "pay", "insufficient_quota"), "429 pay; expected an account with quota left"),
        (
            Reply(307, b"", {"location": "http://127.0.0.1:9/"}),
            "307; expected a server that takes such requests",
        ),
    ],
)
def test_what_every_request_would_meet_stops_the_evaluation_at_once(reply: Reply, advice: str) -> None:
    respond = lambda body, number: reply if number >= 2 else walked(body)  # noqa: E731
    with completions(respond) as server:
        with pytest.raises(ServerError, match="chat/completions: ") as stopped:
            play(policy_of(server, parallel=2), ["3"] * 50)
        assert advice in str(stopped.value)
        assert len(server.bodies) <= 4  # two that were answered, and those of two threads


def test_a_server_that_stays_broken_is_given_up_and_one_success_forgives() -> None:
    with completions(lambda body, number: wrong(500, "down")) as server:
        with pytest.raises(ServerError, match=r"3 answers in a row failed, the last: .*500"):
            play(policy_of(server, parallel=1, most_failures=3), ["1"] * 50)
        assert len(server.bodies) == 3 * FAST.tries

    def now_and_then(body: dict[str, Any], number: int) -> Reply:
        return wrong(400, "no") if "cell 5" in body["messages"][1]["content"] else walked(body)

    with completions(now_and_then) as server:
        played = play(policy_of(server, parallel=1, most_failures=3), ["5", "5", "0"] * 3)
    assert [one.end == "error" for one in played] == [True, True, False] * 3


def test_the_check_makes_one_request_of_the_form_that_will_be_made() -> None:
    with completions(lambda body, number: said("ready")) as server:
        policy_of(server).check(Sampling(greedy=True), 77)
    (body,) = server.bodies
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0, 77, 0)


@pytest.mark.parametrize(
    ("reply", "message", "requests"),
    [
        (
            wrong(400, "unknown parameter max_tokens"),
            "400 unknown parameter max_tokens; expected a server that",
            1,
        ),
        (
            wrong(401, "who?"),
            "401 who\\?; expected a key in .* OPENAI_API_KEY that the server accepts; none is set",
            1,
        ),
        (Reply(200, b"<html>hello</html>"), "expected a server with chat completions at http", 3),
    ],
)
def test_the_check_says_what_is_wrong_before_any_work(reply: Reply, message: str, requests: int) -> None:
    with completions(lambda body, number: reply) as server:
        with pytest.raises(ServerError, match=message):
            policy_of(server).check(Sampling(), 64)
        assert len(server.bodies) == requests


def test_a_place_without_a_server_is_named() -> None:
    with completions(walked) as server:
        pass  # its port is free again
    with pytest.raises(ServerError, match=r"\(3 tries\); expected a server with chat completions at"):
        policy_of(server).check(Sampling(), 64)


def test_the_key_is_sent_and_shown_nowhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = "sk-very-secret-0123"
    monkeypatch.setenv("MY_KEY", f" {key}\n")

    def echo(body: dict[str, Any], number: int) -> Reply:
        status = {0: 500, 1: 429, 2: 400}.get(number, 401)
        return wrong(status, f"Incorrect key Bearer {key} provided")

    with completions(echo) as server:
        policy = policy_of(server, endpoint=Endpoint(server.url, "m", api_key_env="MY_KEY"), parallel=1)
        with pytest.raises(ServerError) as stopped:
            play(policy, ["1", "1"])
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {key}"}
    assert "[secret]" in str(stopped.value)
    shown = [str(stopped.value), caplog.text, repr(vars(policy)), json.dumps(policy.endpoint.describe())]
    assert key not in " ".join(shown)


def test_without_a_key_none_is_sent() -> None:
    with completions(walked) as server:
        play(policy_of(server), ["0"])
    assert "authorization" not in server.headers[0]


@pytest.mark.parametrize("key", ["two words", "tab\tbed", "naïve"])
def test_what_no_header_can_hold_is_no_key_and_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(
        ValueError, match="the environment variable OPENAI_API_KEY holds what is no key"
    ) as found:
        OpenAIPolicy(Endpoint("http://127.0.0.1:1/v1", "m"))
    assert key not in str(found.value)
