from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from agents.chat import ChatFormat
from agents.policies.base import Generation, RoundSession, Sampling, Turn
from agents.policies.scripted import ScriptedPolicy, byte_tokenizer
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from agents.trajectory import StopReason, Trajectory
from tests.agents.toys import STRIPS_THOUGHTS, Corridor, merging_tokenizer, walk

SYSTEM = "Walk."
CONFIG = RolloutConfig(max_new_tokens=100)


def episodes(*tasks: str) -> list[Episode]:
    return [Episode(task, group=0, sample=i, place=(0, i)) for i, task in enumerate(tasks)]


def play(
    tasks: Sequence[str],
    *,
    policy: ScriptedPolicy | Recorder | None = None,
    make_env: Callable[[], Corridor] = Corridor,
    config: RolloutConfig = CONFIG,
    seed: int = 0,
) -> list[Trajectory]:
    return rollout(
        policy or ScriptedPolicy.of(walk),
        make_env,
        episodes(*tasks),
        config,
        prompts=Prompts(SYSTEM),
        seed=seed,
    )


@dataclass
class Recorder(RoundSession):
    """A policy that writes given token ids and notes what it is asked."""

    chat: ChatFormat
    says: Callable[[Turn, int], tuple[int, ...]]
    max_context: int = 10_000
    turns: list[Turn] = field(default_factory=list)
    calls: list[list[int]] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    opened: tuple[int, Sampling] | None = None

    def open(self, episodes: int, sampling: Sampling) -> Recorder:
        self.opened = (episodes, sampling)
        return self

    def update(self) -> None:
        pass

    def generate(self, turns: Sequence[Turn]) -> list[Generation]:
        self.calls.append([turn.episode for turn in turns])
        self.turns += turns
        return [self._write(turn) for turn in turns]

    def close_episode(self, episode: int) -> None:
        self.closed.append(episode)

    def _write(self, turn: Turn) -> Generation:
        ids = self.says(turn, len(self.turns))
        stop: StopReason = "stop" if ids[-1] in self.chat.stop_ids else "length"
        return Generation(ids, (-0.5,) * len(ids), stop)


def recorder(text: str = "Thought: t\nAction: right", tokenizer: object = None) -> Recorder:
    chat = ChatFormat(tokenizer or byte_tokenizer())
    return Recorder(chat, lambda turn, number: (*chat._encode(text), chat.turn_end))


def test_a_perfect_player_succeeds_and_the_steps_hold_what_happened() -> None:
    (trajectory,) = play(["2"])
    assert (trajectory.end, trajectory.success, trajectory.reward, trajectory.score) == (
        "terminated",
        True,
        1,
        1,
    )
    assert trajectory.task_type == "even"
    assert trajectory.opening == "Take the stone in cell 2. You are in cell 0."
    assert [step.action for step in trajectory.steps] == ["right", "right", "take"]
    assert trajectory.steps[0].thought == "I am in cell 0."
    assert trajectory.steps[0].observation == "You are in cell 1."
    assert [step.reward for step in trajectory.steps] == [0, 0, 1]
    assert all(step.well_formed and step.action_valid for step in trajectory.steps)


def test_results_come_in_the_order_of_the_episodes_and_each_is_announced_when_it_ends() -> None:
    ended: list[Trajectory] = []
    done = rollout(
        ScriptedPolicy.of(walk),
        Corridor,
        episodes("4", "0", "2"),
        CONFIG,
        prompts=Prompts(SYSTEM),
        seed=0,
        on_done=ended.append,
    )
    assert [t.task_id for t in done] == ["4", "0", "2"]
    assert [t.task_id for t in ended] == ["0", "2", "4"]


def test_the_first_prompt_holds_the_instruction_word_for_word() -> None:
    policy = recorder()
    play(["3"], policy=policy)
    first = policy.chat._tokenizer.decode(list(policy.turns[0].new_ids))
    assert "Take the stone in cell 3. You are in cell 0." in first
    assert SYSTEM in first


def test_every_sample_of_a_task_sees_the_same_first_observation_and_world() -> None:
    envs: list[Corridor] = []

    def make() -> Corridor:
        envs.append(Corridor())
        return envs[-1]

    done = play(["3"] * 4, make_env=make, seed=11)
    assert len({t.steps[0].prompt_ids for t in done}) == 1
    assert {seed for env in envs for seed in env.seeds} == {11}


@pytest.mark.parametrize("tokenizer", [byte_tokenizer(), merging_tokenizer()])
def test_concatenated_steps_equal_the_template_when_the_written_ids_are_the_tokenizers_own(
    tokenizer: object,
) -> None:
    policy = recorder("Thought: hello\nAction: right", tokenizer)
    (trajectory,) = play(["5"], policy=policy, make_env=lambda: Corridor(3))
    joined = sum((step.prompt_ids + step.action_ids for step in trajectory.steps), ())
    chat = [{"role": "system", "content": SYSTEM}]
    seen = ["Take the stone in cell 5. You are in cell 0.", *(s.observation for s in trajectory.steps)]
    for text in seen[:3]:
        chat += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": "Thought: hello\nAction: right"},
        ]
    rendered = policy.chat._tokenizer.apply_chat_template(chat, tokenize=False).removesuffix("\n")
    assert joined == policy.chat._encode(rendered)
    assert [step.continues for step in trajectory.steps] == [False, True, True]


def test_sampled_ids_that_the_tokenizer_would_merge_are_kept_as_sampled_over_all_turns() -> None:
    tokenizer = merging_tokenizer()
    bytes_of_hello = tuple(tokenizer.convert_tokens_to_ids(list("hello")))
    assert tuple(tokenizer.encode("hello", add_special_tokens=False)) != bytes_of_hello
    chat = ChatFormat(tokenizer)
    policy = Recorder(chat, lambda turn, number: (*bytes_of_hello, chat.turn_end))
    (trajectory,) = play(["5"], policy=policy, make_env=lambda: Corridor(3))
    assert [step.action_ids for step in trajectory.steps] == [(*bytes_of_hello, chat.turn_end)] * 3
    assert {step.action for step in trajectory.steps} == {"hello"}


def test_what_was_written_behind_the_action_is_kept_as_ids_but_not_sent() -> None:
    text = "Thought: t\nAction: take\nAction: right\nmore"
    policy = recorder(text)
    (trajectory,) = play(["0"], policy=policy)
    assert trajectory.steps[0].action == "take"
    assert not trajectory.steps[0].well_formed
    assert trajectory.steps[0].action_ids == (*policy.chat._encode(text), policy.chat.turn_end)


def test_a_template_that_strips_thoughts_makes_every_step_a_whole_prompt() -> None:
    policy = recorder("<think>secret</think>Thought: t\nAction: right", byte_tokenizer(STRIPS_THOUGHTS))
    (trajectory,) = play(["5"], policy=policy, make_env=lambda: Corridor(3))
    assert not any(step.continues for step in trajectory.steps)
    assert all(turn.restart for turn in policy.turns)
    last = policy.chat._tokenizer.decode(list(trajectory.steps[2].prompt_ids))
    assert "secret" not in last
    assert last.count("Action: right") == 2
    assert "You are in cell 2." in last


def test_a_turn_cut_by_its_token_limit_is_marked_and_the_next_prompt_closes_it() -> None:
    chat = ChatFormat(byte_tokenizer())
    policy = Recorder(chat, lambda turn, number: chat._encode("Thought: t\nAction: right"))
    (trajectory,) = play(["5"], policy=policy, make_env=lambda: Corridor(2))
    first, second = trajectory.steps
    assert first.stop == "length"
    assert not first.well_formed
    assert first.action == "right"
    assert second.prompt_ids[0] == chat.turn_end


def test_a_step_limit_is_a_truncation_and_never_a_success() -> None:
    policy = recorder("Thought: t\nAction: left")
    (trajectory,) = play(["0"], policy=policy, make_env=lambda: Corridor(50))
    assert len(trajectory.steps) == 50
    assert (trajectory.end, trajectory.success, trajectory.reward) == ("truncated", False, 0.0)


def test_an_environment_that_claims_success_on_a_truncated_episode_is_not_believed() -> None:
    class Liar(Corridor):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, object]]:
            text, reward, *_, info = super().step(action)
            return text, reward, False, True, {**info, "success": True}

    (trajectory,) = play(["5"], make_env=Liar)
    assert (trajectory.end, trajectory.success, trajectory.reward) == ("truncated", False, 0.0)


@pytest.mark.parametrize(("reward", "expected"), [("success", 0.0), ("score", 0.5)])
def test_the_reward_is_success_or_the_graded_score(reward: str, expected: float) -> None:
    config = RolloutConfig(max_new_tokens=100, reward=reward)  # type: ignore[arg-type]
    (trajectory,) = play(
        ["0"], policy=recorder("Thought: t\nAction: look"), make_env=lambda: Corridor(1), config=config
    )
    assert (trajectory.reward, trajectory.score, trajectory.success) == (expected, 0.5, False)


def test_an_action_the_environment_does_not_understand_is_a_step_and_marked() -> None:
    (trajectory,) = play(["5"], policy=recorder("nonsense"), make_env=lambda: Corridor(1))
    (step,) = trajectory.steps
    assert (step.action, step.action_valid, step.observation) == (
        "nonsense",
        False,
        "Nothing happens by 'nonsense'.",
    )


def test_a_context_without_room_for_another_whole_turn_ends_the_episode() -> None:
    policy = recorder()
    (whole,) = play(["5"], policy=policy)
    first = len(whole.steps[0].prompt_ids + whole.steps[0].action_ids)
    need = first + len(whole.steps[1].prompt_ids) + CONFIG.max_new_tokens
    policy.max_context = need
    assert len(play(["5"], policy=policy)[0].steps) >= 2
    policy.max_context = need - 1
    (cut,) = play(["5"], policy=policy)
    assert (cut.end, len(cut.steps), cut.success, cut.error) == ("context", 1, False, None)
    assert cut.usable


def test_a_first_prompt_that_cannot_fit_is_an_error_that_names_the_numbers() -> None:
    policy = recorder()
    policy.max_context = 120
    with pytest.raises(ValueError, match=r"first prompt of task 3 has \d+ tokens.*100.*120"):
        play(["3"], policy=policy)


def test_only_unfinished_episodes_are_generated_for_and_freed_places_are_refilled() -> None:
    policy = recorder()
    chat = policy.chat

    def says(turn: Turn, number: int) -> tuple[int, ...]:
        assert turn.info is not None
        return (*chat._encode(walk(turn.observation, turn.info)), chat.turn_end)

    policy.says = says
    play(["0", "2", "1", "0"], policy=policy, config=RolloutConfig(max_new_tokens=100, parallel=2))
    assert policy.calls == [[0, 1], [1, 2], [1, 2], [3]]
    assert policy.closed == [0, 1, 2, 3]
    assert policy.opened == (2, Sampling())


def test_long_observations_are_cut_for_the_policy_and_whole_in_the_record() -> None:
    policy = recorder()
    config = RolloutConfig(max_new_tokens=100, max_observation_tokens=8)
    (trajectory,) = play(["5"], policy=policy, make_env=lambda: Corridor(2), config=config)
    first, second = (policy.chat._tokenizer.decode(list(turn.new_ids)) for turn in policy.turns)
    assert "Take the stone in cell 5. You are in cell 0." in first
    assert "user\nYou are  [...]<|im_end|>" in second
    assert trajectory.steps[0].observation == "You are in cell 1."


def test_the_window_layout_shows_task_last_steps_observation_and_admissible_actions() -> None:
    policy = recorder()
    config = RolloutConfig(max_new_tokens=100, layout="window", window=2)
    (trajectory,) = play(["6"], policy=policy, make_env=lambda: Corridor(4), config=config)
    users = [
        policy.chat._tokenizer.decode(list(step.prompt_ids)).split("user\n")[1].split("<|im_end|>")[0]
        for step in trajectory.steps
    ]
    task = "Take the stone in cell 6. You are in cell 0.\n"
    end = "\nAdmissible: left | right | take"
    assert users == [
        task.rstrip() + end,
        task + "Action: right\nObservation: You are in cell 1." + end,
        task
        + "Action: right\nObservation: You are in cell 1.\nAction: right\nObservation: You are in cell 2."
        + end,
        task
        + "Observation: You are in cell 1.\nAction: right\n"
        + "Observation: You are in cell 2.\nAction: right\nObservation: You are in cell 3."
        + end,
    ]
    assert not any(step.continues for step in trajectory.steps)
    assert all(turn.restart for turn in policy.turns)


def test_the_numbers_of_each_turn_are_named_by_run_seed_place_and_turn() -> None:
    policy = recorder()
    play(["5", "6"], policy=policy, make_env=lambda: Corridor(2), seed=7)
    for turn, place in zip(policy.turns, [(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)], strict=True):
        stream = np.random.default_rng(np.random.SeedSequence(7, spawn_key=place))
        assert turn.uniforms.tolist() == stream.random(CONFIG.max_new_tokens).tolist()
    drawn = {tuple(turn.uniforms) for turn in policy.turns}
    play(["5", "6"], policy=policy, make_env=lambda: Corridor(2), seed=8)
    assert len(drawn | {tuple(turn.uniforms) for turn in policy.turns}) == 8


def test_two_episodes_with_one_place_are_refused() -> None:
    twice = [Episode("1", 0, 0, (1, 2)), Episode("1", 0, 1, (1, 2))]
    with pytest.raises(ValueError, match=r"two episodes have the place \(1, 2\)"):
        rollout(ScriptedPolicy.of(walk), Corridor, twice, CONFIG, prompts=Prompts(SYSTEM), seed=0)


def test_no_episodes_give_no_trajectories() -> None:
    assert play([]) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_new_tokens", 0),
        ("window", -1),
        ("parallel", 0),
        ("max_observation_tokens", 0),
        ("layout", "tree"),
        ("prompt", "verse"),
        ("shots", -1),
        ("shot_observation_chars", 0),
        ("reward", "style"),
    ],
)
def test_an_impossible_setting_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{field} is {value!r}; expected"):
        RolloutConfig(**{field: value})  # type: ignore[arg-type]


def test_environments_are_told_all_actions_of_a_round_before_any_of_them_steps() -> None:
    told: list[object] = []

    class Told(Corridor):
        @classmethod
        def prepare(cls, coming: Sequence[tuple[object, str]]) -> None:
            told.append([(id(env), action) for env, action in coming])

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, object]]:
            told.append((id(self), action))
            return super().step(action)

    play(["1", "2"], make_env=Told)
    assert len(told) == 8
    for announced, count in ((told[0], 2), (told[3], 2), (told[6], 1)):
        at = told.index(announced)
        assert announced == told[at + 1 : at + 1 + count]
