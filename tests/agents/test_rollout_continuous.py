"""Rollouts over policies that answer turn by turn instead of in rounds, and that may fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from agents.chat import Message
from agents.policies.base import Answer, Failure, Generation, Sampling, Turn
from agents.policies.scripted import ScriptedPolicy
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from agents.trajectory import Trajectory
from tests.agents.toys import Corridor, walk


class OneByOne:
    """Answers one turn a call, the latest first; a `fault` may answer in the script's place."""

    def __init__(self, fault: Callable[[Turn], Failure | None] = lambda turn: None) -> None:
        self._script = ScriptedPolicy.of(walk)
        self.chat, self.max_context = self._script.chat, self._script.max_context
        self._fault = fault
        self._session = self._script.open(1, Sampling())
        self._asked: list[Turn] = []
        self.log: list[tuple[str, int]] = []
        self.turns: list[Turn] = []
        self.open_at_the_end: int | None = None

    def open(self, episodes: int, sampling: Sampling) -> OneByOne:
        return self

    def update(self) -> None:
        pass

    def submit(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            assert turn.episode not in {one.episode for one in self._asked}
            self.log.append(("asked", turn.episode))
            self._asked.append(turn)
            self.turns.append(turn)

    def collect(self) -> list[Answer]:
        if not self._asked:
            return []
        turn = self._asked.pop()
        self.log.append(("answered", turn.episode))
        failure = self._fault(turn)
        return [(turn.episode, failure or self._session.generate([turn])[0])]

    def close_episode(self, episode: int) -> None:
        self._session.close_episode(episode)

    def close(self) -> None:
        self.open_at_the_end = len(self._asked)


def play(policy: OneByOne | ScriptedPolicy, tasks: Sequence[str], **changes: int) -> list[Trajectory]:
    episodes = [Episode(task, group=0, sample=i, place=(0, i)) for i, task in enumerate(tasks)]
    config = RolloutConfig(max_new_tokens=100, **changes)  # type: ignore[arg-type]
    return rollout(policy, Corridor, episodes, config, prompts=Prompts("Walk."), seed=3)


def test_an_episode_asks_for_its_next_turn_at_once_while_others_still_wait() -> None:
    policy = OneByOne()
    play(policy, ["2", "1"])
    # The second episode walks to its end before the first is answered at all: there is no barrier.
    assert policy.log == [
        *[("asked", 0), ("asked", 1), ("answered", 1), ("asked", 1), ("answered", 1)],
        *[("answered", 0), ("asked", 0), ("answered", 0), ("asked", 0), ("answered", 0)],
    ]
    assert policy.open_at_the_end == 0


@pytest.mark.parametrize("parallel", [1, 2, 5])
def test_trajectories_are_those_of_a_policy_that_answers_in_rounds(parallel: int) -> None:
    tasks = ["0", "4", "2", "7", "1"]
    assert play(OneByOne(), tasks, parallel=parallel) == play(
        ScriptedPolicy.of(walk), tasks, parallel=parallel
    )


def test_every_turn_has_a_seed_of_its_own_which_only_its_place_decides() -> None:
    alone, together = OneByOne(), OneByOne()
    play(alone, ["3"])
    play(together, ["3", "3"])
    seeds = {(turn.episode, len(turn.messages)): turn.seed for turn in together.turns}
    assert len(set(seeds.values())) == len(seeds) == 8
    assert all(0 <= seed < 2**63 for seed in seeds.values())
    assert [turn.seed for turn in alone.turns] == [seeds[0, 2 * n + 2] for n in range(4)]


def test_a_turn_carries_its_whole_prompt_as_messages() -> None:
    policy = OneByOne()
    play(policy, ["1"])
    opening = Message("user", "Take the stone in cell 1. You are in cell 0.")
    assert policy.turns[0].messages == (Message("system", "Walk."), opening)
    assert policy.turns[1].messages == (
        *policy.turns[0].messages,
        Message("assistant", "Thought: I am in cell 0.\nAction: right"),
        Message("user", "You are in cell 1."),
    )
    for turn in policy.turns:
        held = [one.new_ids for one in policy.turns if len(one.messages) <= len(turn.messages)]
        assert turn.new_ids == held[-1]


def test_a_failed_engine_ends_its_episode_as_an_error_and_no_other() -> None:
    def fault(turn: Turn) -> Failure | None:
        broken = turn.episode == 0 and len(turn.messages) == 4
        return Failure("error", "the server is gone") if broken else None

    failed, fine = play(OneByOne(fault), ["3", "2"])
    assert (failed.end, failed.error, failed.success, len(failed.steps)) == (
        *("error", "the server is gone", False),
        1,
    )
    assert not failed.usable
    assert (fine.end, fine.success) == ("terminated", True)


def test_a_full_context_ends_the_episode_unless_not_even_the_first_turn_fitted() -> None:
    late = OneByOne(lambda turn: Failure("context", "full") if len(turn.messages) == 4 else None)
    early = OneByOne(lambda turn: Failure("context", "full"))
    (cut,), (none,) = play(late, ["3"]), play(early, ["3"])
    assert (cut.end, cut.error, len(cut.steps), cut.usable) == ("context", None, 1, True)
    assert (none.end, none.error, len(none.steps), none.usable) == ("error", "full", 0, False)


def test_text_that_came_with_the_answer_is_taken_as_it_is() -> None:
    class Hosted(OneByOne):
        def collect(self) -> list[Answer]:
            return [
                (episode, Generation((0,), (0.0,), "stop", text="Thought: t\nAction: take"))
                for episode, _ in super().collect()
            ]

    (trajectory,) = play(Hosted(), ["0"])
    assert (trajectory.steps[0].thought, trajectory.steps[0].action, trajectory.success) == (
        "t",
        "take",
        True,
    )
