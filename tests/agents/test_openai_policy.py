"""A served model plays: over a real server on loopback, with a clock that never waits."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agents.chat import Message
from agents.policies.base import Sampling, Turn
from agents.policies.scripted import ScriptedPolicy
from agents.trajectory import UNKNOWN_TOKEN, Trajectory
from empg.batch import make_batch
from tests.agents.completions import Reply, completions, wrong
from tests.agents.served_corridor import play, policy_of, walked
from tests.agents.toys import walk

pytestmark = pytest.mark.usefixtures("no_key")


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
