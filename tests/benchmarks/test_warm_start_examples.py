from __future__ import annotations

from dataclasses import replace

import pytest

from agents.chat import ChatFormat
from agents.policies.base import Generation, RoundSession
from agents.prompts import make_prompts
from agents.responses import format_response
from agents.rollout import Episode, RolloutConfig, rollout
from benchmarks.warm_start.demonstrations import DemonstrationConfig, Player, collect, collect_everywhere
from benchmarks.warm_start.examples import make_examples
from benchmarks.warm_start.store import make_tokenizer
from tests.benchmarks.test_warm_start_lamps import LampWorld

WORLD = LampWorld()
PROMPTS = make_prompts("webshop")
SKILLED = collect(WORLD, DemonstrationConfig(), seed=0)
TOKENIZER = make_tokenizer(SKILLED, 400, PROMPTS)


class LivePlayers(RoundSession):
    """Writes what a demonstrator says while the real environment runs."""

    def __init__(self, prompts) -> None:
        self._prompts = prompts
        self.chat = ChatFormat(TOKENIZER)
        self.max_context = 20_480
        self._player = WORLD.demonstrator((0,))

    def open(self, episodes, sampling):
        return self

    def update(self):
        pass

    def generate(self, turns):
        return [self._write(turn) for turn in turns]

    def close_episode(self, episode):
        pass

    def _write(self, turn):
        decision = self._player.decide(turn.observation, turn.info)
        text = self._prompts.format(decision.thought, decision.action)
        ids = (*TOKENIZER.encode(text, add_special_tokens=False), self.chat.turn_end)
        return Generation(ids, (0.0,) * len(ids), "stop")


@pytest.mark.parametrize("style", ["brief", "react", "tags"])
@pytest.mark.parametrize("layout", ["conversation", "window"])
def test_examples_hold_the_very_tokens_a_rollout_of_the_same_texts_reads_and_writes(layout, style):
    prompts = make_prompts("webshop", style)
    config = RolloutConfig(layout=layout, window=1, max_observation_tokens=12)
    episodes = [
        Episode(task, number, 0, (number,)) for number, task in enumerate(WORLD.panel("train").task_ids)
    ]
    played = rollout(LivePlayers(prompts), WORLD.make_env, episodes, config, prompts=prompts, seed=0)
    read_and_written = []
    for step in (step for trajectory in played for step in trajectory.steps):
        if not step.continues:
            read_and_written.append(([], []))
        tokens, written = read_and_written[-1]
        tokens += [*step.prompt_ids, *step.action_ids]
        written += [*[False] * len(step.prompt_ids), *[True] * len(step.action_ids)]

    examples = make_examples(SKILLED, TOKENIZER, config, prompts=prompts, max_context=20_480)

    assert [example.ids.tolist() for example in examples] == [tokens for tokens, _ in read_and_written]
    assert [example.written.tolist() for example in examples] == [written for _, written in read_and_written]


def test_a_conversation_is_what_the_chat_template_renders():
    shown = SKILLED[0]
    messages = [{"role": "system", "content": PROMPTS.system}]
    for observation, decision in zip(shown.observations, shown.decisions, strict=True):
        messages.append({"role": "user", "content": observation})
        messages.append({"role": "assistant", "content": format_response(decision.thought, decision.action)})
    rendered = TOKENIZER.apply_chat_template(messages, tokenize=False).removesuffix("\n")

    example = make_examples([shown], TOKENIZER, RolloutConfig(), prompts=PROMPTS, max_context=2048)[0]

    assert example.ids.tolist() == TOKENIZER.encode(rendered, add_special_tokens=False)


def test_spans_are_the_responses_with_their_end_of_turn():
    examples = make_examples(SKILLED[:2], TOKENIZER, RolloutConfig(), prompts=PROMPTS, max_context=2048)
    for example, shown in zip(examples, SKILLED, strict=False):
        texts = [TOKENIZER.decode(example.ids[span.start : span.stop]) for span in example.spans]
        said = [format_response(d.thought, d.action).lower() for d in shown.decisions]  # an uncased tokenizer
        assert texts == [f"{text}<|im_end|>" for text in said]
        assert [span.decision for span in example.spans] == list(shown.decisions)


def test_a_demonstration_that_outgrows_the_context_is_cut_at_a_step():
    whole = make_examples(SKILLED[:1], TOKENIZER, RolloutConfig(), prompts=PROMPTS, max_context=2048)[0]
    room = whole.spans[0].start + RolloutConfig().max_new_tokens
    cut = make_examples(SKILLED[:1], TOKENIZER, RolloutConfig(), prompts=PROMPTS, max_context=room)[0]
    assert cut.ids.tolist() == whole.ids[: whole.spans[0].stop].tolist()
    assert len(cut.spans) == 1


def test_a_response_longer_than_a_policy_may_write_is_refused():
    with pytest.raises(ValueError, match=r"has \d+ tokens, expected at most max_new_tokens = 3"):
        make_examples(SKILLED, TOKENIZER, RolloutConfig(max_new_tokens=3), prompts=PROMPTS, max_context=2048)


def test_an_action_that_does_not_survive_the_response_format_is_refused():
    shown = SKILLED[0]
    broken = replace(
        shown, decisions=(replace(shown.decisions[0], action="click[a\nb]"), *shown.decisions[1:])
    )
    with pytest.raises(ValueError, match="reads as 'click\\[a'"):
        make_examples([broken], TOKENIZER, RolloutConfig(), prompts=PROMPTS, max_context=2048)


def test_more_tasks_extend_the_demonstrations_and_change_none():
    config = DemonstrationConfig(tasks=4, samples=2, players=(Player(1.0), Player(1.0, {"option": 0.5})))
    few = collect(LampWorld(tasks=40), config, seed=5)
    many = collect(LampWorld(tasks=40), replace(config, tasks=9), seed=5)
    assert many[: len(few)] == few
    assert collect(LampWorld(tasks=40), config, seed=6) != few


def test_players_share_the_episodes_as_asked_and_only_careless_ones_are_careless():
    config = DemonstrationConfig(samples=40, players=(Player(3.0), Player(1.0, {"option": 1.0})))
    shown = collect(WORLD, config, seed=1)
    careless = [demonstration for demonstration in shown if demonstration.player == 1]
    assert 0.18 < len(careless) / len(shown) < 0.32  # 1/4 of 480, within 3.5 standard errors
    assert all(demonstration.decisions[0].careless for demonstration in careless)
    assert all(demonstration.success for demonstration in shown if demonstration.player == 0)


@pytest.mark.parametrize(("share", "chance"), [(0.0, 0.5), (1.0, 1.5)])
def test_an_impossible_player_is_refused(share, chance):
    with pytest.raises(ValueError, match="got"):
        Player(share, {"option": chance})


def test_lessons_elsewhere_are_the_episodes_of_each_other_world_in_turn_with_draws_of_their_own():
    config = DemonstrationConfig(tasks=6, worlds=2, players=(Player(1.0, {"option": 0.5}),))
    asked: list[int] = []

    def elsewhere(number):
        asked.append(number)
        return LampWorld(tasks=20 + number)

    shown = collect_everywhere(WORLD, config, seed=3, elsewhere=elsewhere)

    assert asked == [0, 1]
    first = collect(LampWorld(tasks=20), config, seed=3, where=(0,))
    assert shown == first + collect(LampWorld(tasks=21), config, seed=3, where=(1,))
    assert [one.decisions for one in shown[:6]] != [one.decisions for one in shown[6:]]
    assert shown[:6] != collect(LampWorld(tasks=20), config, seed=3)


def test_lessons_elsewhere_are_refused_where_there_is_no_other_world():
    with pytest.raises(ValueError, match="worlds is 2, but only generated data has other worlds"):
        collect_everywhere(WORLD, DemonstrationConfig(worlds=2), seed=0, elsewhere=None)


def test_lessons_at_home_are_those_of_the_world_at_hand():
    assert collect_everywhere(WORLD, DemonstrationConfig(), seed=0, elsewhere=None) == SKILLED
