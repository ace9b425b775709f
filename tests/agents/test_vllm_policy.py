"""The policy over vLLM with a small engine in vLLM's place: requests, order of calls, the self-check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest
import torch

from agents.policies.base import Failure, Generation, Sampling, Turn
from agents.policies.scripted import byte_tokenizer
from agents.policies.vllm_engine import EngineSettings, Request, Weights, Written, open_engine
from agents.policies.vllm_policy import SyncError, VllmPolicy
from tests.agents.toys import tiny_model

TURN_END = byte_tokenizer().eos_token_id


class SmallEngine:
    """Greedy writing by a copy of the model; one request ends with each step, the shortest prompt first."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.calls: list[str] = []
        self.requests: list[Request] = []
        self.fails: Callable[[Request], str | None] = lambda request: None
        self._running: list[Request] = []

    def add(self, request: Request) -> None:
        self.calls.append("add")
        self.requests.append(request)
        self._running.append(request)

    def step(self) -> list[Written]:
        if not self._running:
            return []
        request = min(self._running, key=lambda one: len(one.prompt_ids))
        self._running.remove(request)
        ids = list(request.prompt_ids)
        logprobs: list[float] = []
        while len(logprobs) < request.max_new_tokens:
            with torch.no_grad():
                table = torch.log_softmax(self.model(torch.tensor([ids])).logits[0, -1], -1)
            ids.append(int(table.argmax()))
            logprobs.append(float(table.max()))
            if ids[-1] in request.stop_ids:
                break
        written = tuple(ids[len(request.prompt_ids) :])
        reason = self.fails(request) or ("stop" if written[-1] in request.stop_ids else "length")
        return [Written(request.name, written, tuple(logprobs), reason)]

    def abort(self, names: Sequence[str]) -> None:
        self.calls.append(f"abort {len(names)}")
        self._running = [one for one in self._running if one.name not in names]

    def load(self, weights: Callable[[], Weights]) -> None:
        self.calls.append("load")
        self.model.load_state_dict(dict(weights()), strict=True)

    def sleep(self) -> None:
        self.calls.append("sleep")
        for parameter in self.model.parameters():
            parameter.data.zero_()

    def wake(self, part: Literal["weights", "kv_cache"]) -> None:
        self.calls.append(f"wake {part}")


def policy_of(model: Any, engine: SmallEngine, **changes: Any) -> VllmPolicy:
    settings = {"max_context": 200, "weights": lambda: model.state_dict().items()} | changes
    return VllmPolicy(engine, model, byte_tokenizer(), **settings)


def turn(episode: int, ids: Sequence[int], restart: bool = True, new: int = 4, seed: int = 0) -> Turn:
    return Turn(episode, tuple(ids), restart, new, np.zeros(new), seed=seed)


def answered(session: Any) -> dict[int, Generation]:
    found: dict[int, Generation] = {}
    while answers := session.collect():
        found |= dict(answers)
    return found


def test_the_engine_gets_the_whole_prompt_by_token_the_turns_own_seed_and_the_templates_stop_tokens() -> None:
    model = tiny_model()
    engine = SmallEngine(tiny_model(seed=1))
    session = policy_of(model, engine).open(2, Sampling(temperature=0.7))
    session.submit([turn(3, [1, 2], seed=11)])
    first = answered(session)[3]
    session.submit([turn(3, [5], restart=False, new=2, seed=12)])
    answered(session)
    one, two = engine.requests[1:]  # the first is the self-check
    assert (one.prompt_ids, one.seed, one.max_new_tokens) == ((1, 2), 11, 4)
    assert (two.prompt_ids, two.seed, two.max_new_tokens) == ((1, 2, *first.token_ids, 5), 12, 2)
    assert one.stop_ids == two.stop_ids == (TURN_END,)
    assert one.sampling == Sampling(temperature=0.7)
    assert len({request.name for request in engine.requests}) == 3


def test_answers_come_as_they_are_written_each_once() -> None:
    model = tiny_model()
    session = policy_of(model, SmallEngine(tiny_model())).open(3, Sampling())
    session.submit([turn(0, range(9)), turn(1, range(3)), turn(2, range(6))])
    assert [[episode for episode, _ in session.collect()] for _ in range(4)] == [[1], [2], [0], []]


def test_weights_come_over_once_before_the_next_session_however_often_they_changed() -> None:
    model = tiny_model()
    engine = SmallEngine(tiny_model(seed=1))
    policy = policy_of(model, engine)
    policy.open(1, Sampling()).close()
    policy.open(1, Sampling()).close()
    assert engine.calls.count("load") == 1
    with torch.no_grad():
        model.lm_head.weight.copy_(torch.roll(model.lm_head.weight, 1, 0))
    stale = policy.open(1, Sampling())
    stale.submit([turn(0, [1, 2, 3], new=1)])
    before = answered(stale)[0]
    policy.update()
    policy.update()
    fresh = policy.open(1, Sampling())
    assert engine.calls.count("load") == 2
    fresh.submit([turn(0, [1, 2, 3], new=1)])
    after = answered(fresh)[0]
    assert after.token_ids[0] == (before.token_ids[0] + 1) % 264


def test_an_engine_that_sleeps_wakes_weights_first_loads_them_and_then_gets_its_cache() -> None:
    model = tiny_model()
    engine = SmallEngine(tiny_model(seed=1))
    policy = policy_of(model, engine, sleeps=True)
    for _ in range(2):
        session = policy.open(1, Sampling())
        session.submit([turn(0, [1, 2, 3])])
        written = answered(session)[0]
        session.close()
    assert engine.calls == [
        *("load", "add", "add", "sleep"),  # one of the two requests is the self-check
        *("wake weights", "load", "wake kv_cache", "add", "sleep"),
    ]
    with torch.no_grad():
        table = torch.log_softmax(model(torch.tensor([[1, 2, 3]])).logits[0, -1], -1)
    assert written.token_ids[0] == int(table.argmax())  # not what zeroed weights would write


def test_an_engine_whose_weights_are_not_the_trainers_stops_the_run() -> None:
    class Deaf(SmallEngine):
        def load(self, weights: Callable[[], Weights]) -> None:
            pass

    model = tiny_model()
    with pytest.raises(SyncError, match=r"differ from the trainer's by [\d.]+ nats; expected at most 0.002"):
        policy_of(model, Deaf(tiny_model(seed=1))).open(1, Sampling())
    fine = policy_of(model, SmallEngine(tiny_model(seed=1)))
    fine.open(1, Sampling())
    assert fine.gap is not None
    assert fine.gap < 1e-5


def test_half_precision_on_either_side_widens_the_tolerance() -> None:
    model = tiny_model()
    assert policy_of(model, SmallEngine(model)).tolerance == 2e-3
    assert policy_of(model, SmallEngine(model), engine_dtype=torch.bfloat16).tolerance == 0.3
    assert policy_of(tiny_model(dtype=torch.bfloat16), SmallEngine(model)).tolerance == 0.3
    assert policy_of(model, SmallEngine(model), tolerance=0.1).tolerance == 0.1


def test_a_request_that_the_engine_gives_up_fails_its_episode_alone() -> None:
    model = tiny_model()
    engine = SmallEngine(tiny_model())
    engine.fails = lambda request: "abort" if request.prompt_ids == (9,) else None
    session = policy_of(model, engine).open(2, Sampling())
    session.submit([turn(0, [9]), turn(1, [1, 2])])
    (zero,), (one,) = session.collect(), session.collect()
    assert zero == (0, Failure("error", "vLLM ended the request: abort"))
    assert isinstance(one[1], Generation)


def test_what_is_unanswered_is_aborted_when_its_episode_or_the_session_ends() -> None:
    model = tiny_model()
    engine = SmallEngine(tiny_model())
    session = policy_of(model, engine).open(3, Sampling())
    session.submit([turn(0, [1]), turn(1, [2]), turn(2, [3])])
    session.close_episode(1)
    session.close_episode(99)
    session.close()
    assert [call for call in engine.calls if call.startswith("abort")] == ["abort 1", "abort 2"]
    assert session.collect() == []


def test_a_turn_that_cannot_be_served_is_refused_with_its_numbers() -> None:
    policy = policy_of(tiny_model(), SmallEngine(tiny_model()), max_context=64)
    session = policy.open(1, Sampling())
    with pytest.raises(ValueError, match="episode 3 has no conversation"):
        session.submit([turn(3, [1], restart=False)])
    with pytest.raises(ValueError, match="may reach 66 tokens, the context holds 64"):
        session.submit([turn(0, range(60), new=6)])
    session.submit([turn(0, [1])])
    with pytest.raises(ValueError, match="not answered yet"):
        session.submit([turn(0, [1])])
    with pytest.raises(ValueError, match=r"greedy at temperature 0\.7"):
        policy.open(1, Sampling(temperature=0.7, greedy=True))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"max_sequences": 0}, "max_sequences is 0"),
        ({"memory_utilization": 1.5}, r"memory_utilization is 1\.5"),
        ({"cache_gib": float("nan")}, "cache_gib is nan"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        EngineSettings(**changes)


def test_without_vllm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vllm", None)
    with pytest.raises(ValueError, match=r"empg-bench\[vllm\]"):
        open_engine(tiny_model(), 128, EngineSettings())
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    with pytest.raises(ValueError, match="expected 0"):
        open_engine(tiny_model(), 128, EngineSettings())
