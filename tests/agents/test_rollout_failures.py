"""Environments that fail: the episode is lost and counted, the others go on."""

from __future__ import annotations

import pytest

from agents.rollout import RolloutConfig
from tests.agents.test_rollout import play
from tests.agents.toys import Corridor, Faults


def test_a_failing_step_ends_only_its_episode_and_keeps_the_steps_so_far() -> None:
    envs: list[Corridor] = []

    def make() -> Corridor:
        envs.append(Corridor(faults=Faults(step_of=frozenset({("3", 2)}))))
        return envs[-1]

    lost, won = play(["3", "4"], make_env=make)
    assert (lost.end, lost.error, len(lost.steps)) == ("error", "EnvError: lost 3", 2)
    assert (lost.reward, lost.score, lost.usable) == (0.0, 0.0, False)
    assert (lost.task_type, lost.opening) == ("odd", "Take the stone in cell 3. You are in cell 0.")
    assert won.success
    assert all(env.closed for env in envs)


def test_a_failing_reset_is_an_errored_episode_without_steps() -> None:
    lost, won = play(["3", "1"], make_env=lambda: Corridor(faults=Faults(reset_of=frozenset({"3"}))))
    assert (lost.end, lost.steps, lost.error, lost.opening) == ("error", (), "EnvError: cannot open 3", None)
    assert won.success


def test_an_environment_that_cannot_be_made_is_an_errored_episode() -> None:
    (lost,) = play(["3"], make_env=lambda: Corridor(faults=Faults(making=True)))
    assert (lost.end, lost.task_type) == ("error", "unknown")


def test_a_failed_environment_is_not_used_again() -> None:
    made = []

    def make() -> Corridor:
        made.append(Corridor(faults=Faults(step_of=frozenset({("3", 0)}))))
        return made[-1]

    config = RolloutConfig(max_new_tokens=100, parallel=1)
    done = play(["3", "1", "2"], make_env=make, config=config)
    assert [t.end for t in done] == ["error", "terminated", "terminated"]
    assert len(made) == 2  # one failed; its successor served both others


def test_any_other_exception_ends_the_rollout() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        play(["nowhere"])
