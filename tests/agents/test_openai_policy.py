"""A served model plays: over a real server on loopback, with a clock that never waits."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from agents.chat import Message
from agents.policies.base import Sampling, Turn
from agents.policies.openai_policy import OpenAIPolicy, ServerError
from agents.policies.openai_wire import Endpoint
from agents.policies.pace import Limiter, Pace
from agents.policies.scripted import ScriptedPolicy
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from agents.trajectory import UNKNOWN_TOKEN, Trajectory
from empg.batch import make_batch
from envs.client import Patience, asked_seconds
from tests.agents.completions import Reply, Server, completions, said, wrong
from tests.agents.toys import Corridor, walk

FAST = Patience(timeout_s=5.0, connect_s=5.0, tries=4, first_wait_s=1.0, longest_wait_s=30.0)
PROMPTS = Prompts("Walk.")


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def walked(body: dict[str, Any], number: int = 0) -> Reply:
    """The corridor's perfect answer, read from the messages alone."""
    task = next(m["content"] for m in body["messages"] if "Take the stone" in m["content"])
    here = body["messages"][-1]["content"].rpartition("cell ")[2].split(".")[0]
    action = "take" if f"in cell {here}." in task.split("You are")[0] else "right"
    return said(
        f"Thought: I am in cell {here}.\nAction: {action}", prompt=len(body["messages"]), completion=7
    )


def policy_of(server: Server, **settings: Any) -> OpenAIPolicy:
    given = {"patience": FAST, "parallel": 4, "sleep": lambda _: None, **settings}
    return OpenAIPolicy(given.pop("endpoint", Endpoint(server.url, "m")), **given)


def play(policy: Any, tasks: Sequence[str], **changes: Any) -> list[Trajectory]:
    episodes = [Episode(task, group=0, sample=i, place=(0, i)) for i, task in enumerate(tasks)]
    return rollout(
        policy, Corridor, episodes, RolloutConfig(max_new_tokens=100, **changes), prompts=PROMPTS, seed=3
    )


def turn_of(episode: int) -> Turn:
    """A turn that says nothing but hello."""
    return Turn(episode, (UNKNOWN_TOKEN,), True, 1, np.zeros(1), messages=(Message("user", "hello"),))


def outcomes(played: Sequence[Trajectory]) -> list[Any]:
    return [
        (one.end, one.success, [(step.thought, step.action, step.observation) for step in one.steps])
        for one in played
    ]


@pytest.mark.parametrize("layout", ["conversation", "window"])
def test_a_served_player_does_what_the_same_player_does_here(layout: str) -> None:
    tasks = ["0", "4", "2", "7", "1"]
    with completions(walked) as server:
        played = play(policy_of(server), tasks, layout=layout)
    assert outcomes(played) == outcomes(play(ScriptedPolicy.of(walk), tasks, layout=layout))
    assert set(server.paths) == {"/v1/chat/completions"}
    assert all(step.action_ids == (UNKNOWN_TOKEN,) * 7 for one in played for step in one.steps)


def test_a_conversation_grows_by_what_was_written_and_seen() -> None:
    with completions(walked) as server:
        play(policy_of(server), ["1"])
    first, second = (body["messages"] for body in server.bodies)
    assert second[: len(first)] == first
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    assert second[2]["content"] == "Thought: I am in cell 0.\nAction: right"


def test_every_turn_has_its_own_seed_which_does_not_depend_on_what_runs_beside_it() -> None:
    seeds = []
    for tasks in (["3"], ["3", "3"]):
        with completions(walked) as server:
            play(policy_of(server), tasks)
        seeds.append({body["seed"] for body in server.bodies})
    assert (len(seeds[0]), len(seeds[1])) == (4, 8)
    assert seeds[0] < seeds[1]


def test_an_unknown_token_is_never_trained_on() -> None:
    with completions(walked) as server:
        played = play(policy_of(server), ["1"])
    assert all(math.isnan(value) for step in played[0].steps for value in step.action_logprobs)
    with pytest.raises(ValueError, match=r"step 0 has unknown tokens, .* cannot be trained on"):
        make_batch(played, pad_id=0)


def test_requests_reach_the_number_that_was_asked_for_and_never_exceed_it() -> None:
    all_here = threading.Barrier(3)

    def together(body: dict[str, Any], number: int) -> Reply:
        if number < 3:
            all_here.wait(timeout=30)  # passes only if three requests are under way at once
        return walked(body)

    with completions(together) as server:
        played = play(policy_of(server, parallel=3), ["2"] * 7)
    assert [one.success for one in played] == [True] * 7
    assert server.most_at_once == 3


def test_answers_are_taken_as_they_come() -> None:
    late = threading.Event()

    def respond(body: dict[str, Any], number: int) -> Reply:
        if "cell 7" in body["messages"][1]["content"] and len(body["messages"]) == 2:
            assert late.wait(timeout=30)  # answered only once the other episode is over
        reply = walked(body)
        if b"Action: take" in reply.content:
            late.set()
        return reply

    with completions(respond) as server:
        played = play(policy_of(server), ["7", "1"])
    assert [one.end for one in played] == ["truncated", "terminated"]


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


def test_usage_is_what_the_server_counted() -> None:
    def respond(body: dict[str, Any], number: int) -> Reply:
        return wrong(500, "no") if number % 5 == 2 else walked(body)

    with completions(respond) as server:
        policy = policy_of(server)
        play(policy, ["3", "1", "5", "0", "2"])
    usage = policy.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (server.prompt_tokens, server.completion_tokens)
    assert usage.requests == len(server.bodies)
    assert usage.retries == sum(number % 5 == 2 for number in range(len(server.bodies)))
    assert usage.answers == usage.requests - usage.retries == 4 + 2 + 6 + 1 + 3
    assert usage.estimated == 0


class Clock:
    """Time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_no_minute_holds_more_requests_than_the_pace_allows() -> None:
    clock, asked = Clock(), list[float]()

    def respond(body: dict[str, Any], number: int) -> Reply:
        asked.append(clock.now)
        return wrong(500, "no") if number == 3 else walked(body)

    with completions(respond) as server:
        pace = Pace(requests_per_minute=6)
        policy = policy_of(server, parallel=1, pace=pace, clock=clock, sleep=clock.sleep)
        play(policy, ["3"])
    # One each ten seconds; the wait of a second and more after the failure passes within the ten.
    assert asked == pytest.approx([100, 110, 120, 130, 140])


def test_tokens_are_reserved_and_then_settled() -> None:
    clock = Clock()
    limiter = Limiter(Pace(tokens_per_minute=600), clock, clock.sleep)  # ten a second
    limiter.wait(100)
    assert clock.now == 100
    limiter.settle(100, 40)
    limiter.wait(10)
    assert clock.now == pytest.approx(104)  # after 40 tokens
    limiter.settle(10, 70)
    limiter.wait(1)
    assert clock.now == pytest.approx(111)  # after 70 more


def test_tokens_of_a_request_are_its_prompt_and_its_limit_until_the_server_counts_them() -> None:
    clock, asked = Clock(), list[float]()

    def respond(body: dict[str, Any], number: int) -> Reply:
        asked.append(clock.now)
        return wrong(500, "no") if number == 0 else walked(body)

    with completions(respond) as server:
        pace = Pace(tokens_per_minute=60)  # one a second
        policy = policy_of(
            server,
            parallel=1,
            pace=pace,
            clock=clock,
            sleep=clock.sleep,
            patience=Patience(first_wait_s=1e-6),
        )
        play(policy, ["1"])
    # A try that failed took nothing; the answer to two messages took 2 + 7 tokens.
    assert asked == pytest.approx([100, 100, 109], abs=1e-3)


@pytest.mark.parametrize("pace", [{"requests_per_minute": 0}, {"tokens_per_minute": -1.0}])
def test_a_pace_that_stands_still_is_refused(pace: Any) -> None:
    with pytest.raises(ValueError, match="expected a number above 0"):
        Pace(**pace)


def test_a_closed_session_begins_no_further_request() -> None:
    first, go = threading.Event(), threading.Event()

    def respond(body: dict[str, Any], number: int) -> Reply:
        first.set()
        assert go.wait(timeout=30)
        return wrong(500, "no")

    done = threading.Event()
    with completions(respond) as server:
        session = policy_of(server, parallel=1, sleep=lambda _: done.set()).open(2, Sampling())
        session.submit([turn_of(0), turn_of(1)])
        assert first.wait(timeout=30)
        session.close()
        go.set()
        assert done.wait(timeout=30)
        assert session.collect() == []
    assert len(server.bodies) == 1
