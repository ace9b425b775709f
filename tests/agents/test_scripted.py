from __future__ import annotations

import numpy as np
import pytest

from agents.policies.base import Sampling, Turn
from agents.policies.scripted import ScriptedPolicy, byte_tokenizer
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from envs.base import Decision, StepInfo
from tests.agents.toys import Corridor


def test_the_byte_tokenizer_gives_back_any_text() -> None:
    tokenizer = byte_tokenizer()
    for text in ("plain", "é–日本\n\t", "\x00 end "):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert len(ids) == len(text.encode())
        assert tokenizer.decode(ids) == text


def test_each_episode_gets_a_player_of_its_own_that_lives_as_long_as_the_episode() -> None:
    made: list[int] = []

    class Player:
        """Takes after as many steps as its episode's number."""

        def __init__(self, episode: int) -> None:
            made.append(episode)
            self.left = episode

        def decide(self, observation: str, info: StepInfo) -> Decision:
            self.left -= 1
            return Decision("move", "because", "take" if self.left < 0 else "right")

    done = rollout(
        ScriptedPolicy(lambda episode: Player(episode).decide),
        Corridor,
        [Episode(str(i), 0, i, (i,)) for i in range(4)],
        RolloutConfig(layout="window"),
        prompts=Prompts(""),
        seed=0,
    )
    assert sorted(made) == [0, 1, 2, 3]
    assert [len(t.steps) for t in done] == [1, 2, 3, 4]
    assert all(t.success and t.steps[0].thought == "because" and t.steps[0].well_formed for t in done)


def test_a_response_is_cut_at_the_token_limit() -> None:
    policy = ScriptedPolicy.of(lambda observation, info: "abcdef")
    info = StepInfo(task_id="", task_type="", success=False, score=0, admissible=(), action_valid=True)
    turn = Turn(0, (1,), True, 3, np.zeros(3), "", info)
    (written,) = policy.open(1, Sampling()).generate([turn])
    assert (policy.chat.text_of(written.token_ids), written.stop) == ("abc", "length")
    assert written.logprobs == (0.0, 0.0, 0.0)


def test_a_turn_without_facts_is_refused() -> None:
    session = ScriptedPolicy.of(lambda observation, info: "").open(1, Sampling())
    with pytest.raises(ValueError, match="episode 4 carries no info"):
        session.generate([Turn(4, (1,), True, 1, np.zeros(1))])
