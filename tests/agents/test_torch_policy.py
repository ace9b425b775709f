from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import FalconConfig, FalconForCausalLM, MistralConfig, MistralForCausalLM

from agents.policies.base import Generation, Sampling, Turn
from agents.policies.scripted import byte_tokenizer
from agents.policies.torch_policy import TorchPolicy, sample
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from tests.agents.toys import STRIPS_THOUGHTS, Corridor, tiny_model

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def policy_of(model: Any, **settings: Any) -> TorchPolicy:
    return TorchPolicy(model, byte_tokenizer(), max_context=settings.pop("max_context", 600), **settings)


def turn(episode: int, ids: Sequence[int], restart: bool, new: int = 6, place: tuple[int, ...] = ()) -> Turn:
    numbers = np.random.default_rng([episode, len(ids), *place]).random(new)
    return Turn(episode, tuple(ids), restart, new, numbers)


def forward_logprobs(
    model: Any, context: Sequence[int], written: Sequence[int], temperature: float
) -> list[float]:
    """An uncached pass over the whole conversation with the model's own attention."""
    with torch.no_grad():
        ids = torch.tensor([[*context, *written]], device=model.device)
        logits = model(input_ids=ids, use_cache=False).logits[0, len(context) - 1 : -1]
    logprobs = torch.log_softmax(logits.float() / temperature, -1)
    return [float(logprobs[i, token]) for i, token in enumerate(written)]


class Conversations:
    """Ragged conversations with several turns, each joined by only some of the episodes."""

    def __init__(self, policy: TorchPolicy, sampling: Sampling, episodes: int, seed: int = 0) -> None:
        self.session = policy.open(episodes, sampling)
        self.rng = np.random.default_rng(seed)
        self.held: dict[int, list[int]] = {episode: [] for episode in range(episodes)}
        self.seen: list[tuple[list[int], Generation]] = []

    def play(self, turns: int) -> list[tuple[list[int], Generation]]:
        for number in range(turns):
            chosen = [e for e in self.held if number == 0 or self.rng.random() < 0.7]
            asked = [self._turn(episode, number) for episode in self.rng.permutation(chosen).tolist()]
            for one, written in zip(asked, self.session.generate(asked), strict=True):
                context = self.held[one.episode] + list(one.new_ids)
                self.held[one.episode] = context + list(written.token_ids)
                self.seen.append((context, written))
        return self.seen

    def _turn(self, episode: int, number: int) -> Turn:
        length = int(self.rng.integers(1, 40))
        ids = self.rng.integers(0, 256, length).tolist()
        return Turn(
            episode, tuple(ids), number == 0, new := int(self.rng.integers(1, 9)), self.rng.random(new)
        )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2"])
def test_log_probabilities_equal_an_uncached_forward_pass_at_the_sampling_temperature(
    kind: str, device: str
) -> None:
    model = tiny_model(kind).to(device)
    seen = Conversations(policy_of(model), Sampling(0.7), episodes=6).play(turns=4)
    assert len(seen) > 12
    for context, written in seen:
        expected = forward_logprobs(model, context, written.token_ids, 0.7)
        assert written.logprobs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("heads", [1, 4])
def test_log_probabilities_are_right_however_many_heads_share_their_keys(heads: int) -> None:
    model = tiny_model(num_key_value_heads=heads)
    for context, written in Conversations(policy_of(model), Sampling(), episodes=5).play(turns=3):
        assert written.logprobs == pytest.approx(
            forward_logprobs(model, context, written.token_ids, 1.0), abs=1e-4
        )


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_greedy_writing_equals_hugging_face_generate(kind: str) -> None:
    model = tiny_model(kind)
    policy = policy_of(model)
    for context, written in Conversations(policy, Sampling(greedy=True), episodes=4).play(turns=3):
        output = model.generate(
            torch.tensor([context]),
            attention_mask=torch.ones(1, len(context), dtype=torch.long),
            max_new_tokens=len(written.token_ids),
            do_sample=False,
            eos_token_id=list(policy.chat.stop_ids),
            pad_token_id=0,
        )
        assert output[0, len(context) :].tolist() == list(written.token_ids)


def test_bfloat16_stays_close_to_its_own_forward_pass() -> None:
    model = tiny_model(dtype=torch.bfloat16)
    for context, written in Conversations(policy_of(model), Sampling(), episodes=4).play(turns=3):
        expected = forward_logprobs(model, context, written.token_ids, 1.0)
        assert np.mean(np.abs(np.subtract(written.logprobs, expected))) < 0.1


def test_reading_everything_again_each_turn_writes_the_same() -> None:
    model = tiny_model()
    kept = Conversations(policy_of(model), Sampling(), episodes=5).play(turns=4)
    again = Conversations(policy_of(model, keep_cache=False), Sampling(), episodes=5).play(turns=4)
    assert [(c, w.token_ids) for c, w in kept] == [(c, w.token_ids) for c, w in again]


def counted_tokens(model: Any) -> list[int]:
    """The number of tokens of every later forward pass of a model."""
    passes: list[int] = []
    model.get_input_embeddings().register_forward_hook(
        lambda module, inputs, out: passes.append(inputs[0].numel())
    )
    return passes


def test_observations_are_appended_and_never_read_again() -> None:
    model = tiny_model()
    session = policy_of(model).open(1, Sampling())
    (first,) = session.generate([turn(0, range(50), True, new=4)])
    passes = counted_tokens(model)
    session.generate([turn(0, range(7), False, new=1)])
    assert passes == [7 + 1]  # the new tokens, and the last one written before
    assert len(first.token_ids) == 4


def test_samples_that_open_with_one_prompt_read_it_once_and_still_differ() -> None:
    model = tiny_model()
    session = policy_of(model).open(8, Sampling())
    passes = counted_tokens(model)
    written = session.generate([turn(e, range(30), True) for e in range(8)])
    assert passes[0] == 30
    assert len({w.token_ids for w in written}) > 1
    for one in written:
        assert one.logprobs == pytest.approx(forward_logprobs(model, range(30), one.token_ids, 1.0), abs=1e-4)


def test_a_restart_forgets_the_conversation_and_reads_only_what_differs() -> None:
    model = tiny_model()
    session = policy_of(model).open(1, Sampling())
    session.generate([turn(0, range(40), True)])
    passes = counted_tokens(model)
    changed = [*range(20), *range(100, 110)]
    (written,) = session.generate([turn(0, changed, True, new=5)])
    assert passes[0] == 10
    expected = forward_logprobs(model, changed, written.token_ids, 1.0)
    assert written.logprobs == pytest.approx(expected, abs=1e-4)


def test_a_restart_with_a_part_of_what_is_held_is_read_right() -> None:
    model = tiny_model()
    session = policy_of(model).open(1, Sampling())
    session.generate([turn(0, range(40), True)])
    (written,) = session.generate([turn(0, range(20), True)])
    expected = forward_logprobs(model, range(20), written.token_ids, 1.0)
    assert written.logprobs == pytest.approx(expected, abs=1e-4)


def test_a_closed_episode_leaves_its_row_to_another_without_a_trace() -> None:
    model = tiny_model()
    session = policy_of(model).open(2, Sampling())
    session.generate([turn(0, range(60), True), turn(1, range(5, 30), True)])
    session.close_episode(0)
    session.close_episode(99)
    held, fresh = session.generate([turn(1, [3], False), turn(7, [9, 8, 7], True)])
    assert fresh.logprobs == pytest.approx(forward_logprobs(model, [9, 8, 7], fresh.token_ids, 1.0), abs=1e-4)
    assert len(held.token_ids) >= 1


def test_changed_weights_are_used_by_the_next_session() -> None:
    model = tiny_model(tie_word_embeddings=False)
    policy = policy_of(model)
    before = policy.open(1, Sampling(greedy=True)).generate([turn(0, range(9), True)])
    assert set(before[0].token_ids) != {7}
    with torch.no_grad():  # make token 7 the likeliest whatever was read
        model.model.norm.weight.zero_()
        model.model.norm.weight[0] = 1
        model.model.embed_tokens.weight[:, 0] = 50
        model.lm_head.weight.zero_()
        model.lm_head.weight[7, 0] = 5
    after = policy.open(1, Sampling(greedy=True)).generate([turn(0, range(9), True)])
    assert after[0].token_ids == (7,) * 6


def test_the_end_of_turn_token_ends_a_turn_and_is_part_of_it() -> None:
    model = tiny_model(tie_word_embeddings=False)
    policy = policy_of(model)
    with torch.no_grad():
        model.model.norm.weight.zero_()
        model.model.norm.weight[0] = 1
        model.model.embed_tokens.weight[:, 0] = 50
        model.lm_head.weight.zero_()
        model.lm_head.weight[policy.chat.turn_end, 0] = 5
    (written,) = policy.open(1, Sampling()).generate([turn(0, range(9), True)])
    assert (written.token_ids, written.stop) == ((policy.chat.turn_end,), "stop")


def test_a_turn_ends_at_its_own_limit_while_others_go_on() -> None:
    session = policy_of(tiny_model()).open(3, Sampling())
    written = session.generate([turn(e, [5, e], True, new=limit) for e, limit in enumerate((2, 9, 1))])
    assert [len(w.token_ids) for w in written] == [2, 9, 1]
    assert {w.stop for w in written} == {"length"}


def test_what_an_episode_writes_does_not_depend_on_its_neighbours() -> None:
    policy = policy_of(tiny_model())
    together = policy.open(5, Sampling()).generate([turn(e, range(3 * e + 1), True) for e in range(5)])
    alone = [policy.open(1, Sampling()).generate([turn(e, range(3 * e + 1), True)])[0] for e in range(5)]
    assert [w.token_ids for w in together] == [w.token_ids for w in alone]


def test_dropout_is_off_while_sampling_and_training_mode_comes_back() -> None:
    model = tiny_model(attention_dropout=0.9).train()
    session = policy_of(model).open(1, Sampling())
    assert model.training
    (written,) = session.generate([turn(0, range(30), True)])
    assert model.training
    expected = forward_logprobs(model.eval(), range(30), written.token_ids, 1.0)
    assert written.logprobs == pytest.approx(expected, abs=1e-4)


def test_the_models_own_attention_is_back_after_sampling() -> None:
    model = tiny_model()
    before = model.config._attn_implementation
    policy_of(model).open(1, Sampling()).generate([turn(0, range(3), True)])
    assert model.config._attn_implementation == before


@given(
    logits=st.lists(st.floats(-8, 8, width=32) | st.just(-float("inf")), min_size=2, max_size=9),
    uniform=st.floats(0, 1, exclude_max=True),
    temperature=st.sampled_from([0.3, 1.0, 2.0]),
)
def test_sampling_is_the_inverse_cumulative_distribution(
    logits: list[float], uniform: float, temperature: float
) -> None:
    logits = [*logits, 0.5]
    token, logprob = sample(
        torch.tensor([logits]), torch.tensor([uniform], dtype=torch.float64), Sampling(temperature)
    )
    weights = np.exp(np.array(logits) / temperature)
    shares = weights / weights.sum()
    assert shares[token] > 0
    assert float(logprob) == pytest.approx(np.log(shares[int(token)]), abs=1e-4)
    below = shares[: int(token)].sum()
    assert below - 1e-5 <= uniform <= below + shares[int(token)] + 1e-5


def test_a_token_of_probability_zero_is_never_drawn_even_at_the_last_number_below_one() -> None:
    logits = torch.tensor([[-float("inf"), 0.0, 0.0, -float("inf")]])
    for uniform, expected in ((0.0, 1), (0.4999, 1), (0.5, 2), (1 - 2**-53, 2)):
        token, _ = sample(logits, torch.tensor([uniform], dtype=torch.float64), Sampling())
        assert int(token) == expected


def test_stored_log_probabilities_are_those_at_the_temperature_not_raw_ones() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0]])
    _, logprob = sample(logits, torch.zeros(1, dtype=torch.float64), Sampling(0.5))
    assert float(logprob) == pytest.approx(4 - np.log(np.exp(4) + np.exp(2) + 1))


@settings(max_examples=20)
@given(temperature=st.sampled_from([0.0, -1.0, float("nan"), float("inf")]))
def test_an_impossible_temperature_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="expected a finite number above 0"):
        Sampling(temperature)


def trajectories(policy: TorchPolicy, seed: int, samples: int = 4, **settings: Any) -> list[Any]:
    return rollout(
        policy,
        lambda: Corridor(3),
        [Episode("2", 0, sample, (5, sample)) for sample in range(samples)],
        RolloutConfig(max_new_tokens=8, **settings),
        prompts=Prompts("Walk."),
        seed=seed,
    )


def test_one_seed_gives_one_rollout_other_seeds_and_samples_give_others() -> None:
    policy = policy_of(tiny_model())
    written = [[t.steps[0].action_ids for t in trajectories(policy, seed)] for seed in (1, 1, 2)]
    assert written[0] == written[1]
    assert written[0] != written[2]
    assert len(set(written[0])) == 4


def test_a_rollout_in_small_batches_equals_one_in_a_large_batch() -> None:
    policy = policy_of(tiny_model())
    large, small = (trajectories(policy, 3, samples=6, parallel=n) for n in (6, 2))
    assert [[s.action_ids for s in t.steps] for t in large] == [
        [s.action_ids for s in t.steps] for t in small
    ]


@pytest.mark.parametrize("layout", ["conversation", "window"])
@pytest.mark.parametrize("template", [None, STRIPS_THOUGHTS])
def test_recorded_log_probabilities_follow_from_the_recorded_tokens(
    layout: str, template: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_model()
    tokenizer = byte_tokenizer() if template is None else byte_tokenizer(template)
    with caplog.at_level(logging.ERROR):
        policy = TorchPolicy(model, tokenizer, max_context=1500)
    for trajectory in trajectories(policy, 0, layout=layout):
        context: list[int] = []
        for step in trajectory.steps:
            context = (context if step.continues else []) + list(step.prompt_ids)
            expected = forward_logprobs(model, context, step.action_ids, 1.0)
            assert step.action_logprobs == pytest.approx(expected, abs=1e-4)
            context += step.action_ids


def refused(model: Any, **settings: Any) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        policy_of(model, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_context_beyond_the_models_positions_is_refused() -> None:
    assert "max_context is 5000; the model has 4096 positions" in refused(tiny_model(), max_context=5000)


def test_a_sliding_window_shorter_than_the_context_is_refused() -> None:
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = MistralConfig(vocab_size=264, num_key_value_heads=1, sliding_window=100, **shape)
    assert "attention reaches 100 tokens" in refused(MistralForCausalLM(config))
    assert policy_of(MistralForCausalLM(config), max_context=100).max_context == 100


def test_a_model_outside_the_shared_attention_interface_is_refused_by_name() -> None:
    config = FalconConfig(vocab_size=264, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    assert "FalconForCausalLM" in refused(FalconForCausalLM(config))


def test_a_tokenizer_without_template_is_refused() -> None:
    with pytest.raises(ValueError, match="no chat template"):
        TorchPolicy(tiny_model(), byte_tokenizer(None), max_context=100)


def test_a_model_whose_logits_are_not_numbers_is_named_as_the_cause() -> None:
    model = tiny_model()
    session = policy_of(model).open(1, Sampling())
    with torch.no_grad():
        model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(ValueError, match=r"log-probability of token \d+ is nan"):
        session.generate([turn(0, [1, 2], True)])


def test_misuse_of_a_session_is_refused_with_the_numbers() -> None:
    session = policy_of(tiny_model(), max_context=64).open(1, Sampling())
    with pytest.raises(ValueError, match="episode 3 has no conversation to continue"):
        session.generate([turn(3, [1], False)])
    with pytest.raises(ValueError, match="may reach 66 tokens, the context holds 64"):
        session.generate([turn(0, range(60), True)])
    session.generate([turn(0, [1], True)])
    with pytest.raises(ValueError, match="all 1 rows are taken"):
        session.generate([turn(1, [1], True)])
    with pytest.raises(ValueError, match="two turns of one call name episode 0"):
        session.generate([turn(0, [1], False), turn(0, [1], False)])
    assert session.generate([]) == []
