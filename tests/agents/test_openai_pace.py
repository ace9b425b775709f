"""How fast a served model is asked, and what it used."""

from __future__ import annotations

from typing import Any

import pytest

from agents.policies.pace import Limiter, Pace
from envs.client import Patience
from tests.agents.completions import Reply, completions, wrong
from tests.agents.served_corridor import play, policy_of, walked

pytestmark = pytest.mark.usefixtures("no_key")


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
