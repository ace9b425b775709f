from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from benchmarks.warm_start.examples import Example, Span
from benchmarks.warm_start.small_model import SmallModelConfig, build_model
from benchmarks.warm_start.supervised import (
    IGNORED,
    SupervisedConfig,
    learning_rate,
    make_batch,
    plan_epoch,
    token_losses,
    train,
)
from envs.base import Decision

VOCABULARY, PAD = 20, 0
MODEL = build_model(SmallModelConfig(hidden=16, layers=2, heads=2, intermediate=24), VOCABULARY, seed=0)
EVERYTHING = SupervisedConfig(observation_weight=1.0, observation_share=1.0)
RESPONSES = SupervisedConfig(observation_weight=0.0)


def example(length: int, *spans: tuple[int, int], seed: int = 0) -> Example:
    ids = np.random.default_rng(seed).integers(1, VOCABULARY, length)
    return Example(ids, tuple(Span(start, stop, Decision("kind", "", "")) for start, stop in spans))


def batch_of(examples, config):
    return make_batch(examples, range(len(examples)), config, seed=0, epoch=0, pad_id=PAD)


def surprisals(row: Example) -> list[float]:
    """Minus the log-probability of each token after the first, one forward pass a token."""
    found = []
    for place in range(1, len(row.ids)):
        with torch.no_grad():
            logits = MODEL(input_ids=torch.from_numpy(row.ids[None, :place])).logits[0, -1]
        found.append(-float(torch.log_softmax(logits, -1)[row.ids[place]]))
    return found


def test_losses_are_those_of_the_tokens_one_by_one():
    row = example(9, (3, 5), (7, 9))
    response, observation = token_losses(MODEL, batch_of([row], EVERYTHING))
    expected = surprisals(row)  # of tokens 1 to 8
    assert response.tolist() == pytest.approx([expected[i - 1] for i in (3, 4, 7, 8)], abs=1e-5)
    assert observation.tolist() == pytest.approx([expected[i - 1] for i in (1, 2, 5, 6)], abs=1e-5)


def test_rows_in_a_batch_do_not_see_each_other_or_the_padding():
    rows = [example(5, (2, 4), seed=1), example(11, (4, 9), seed=2), example(8, (1, 8), seed=3)]
    together, _ = token_losses(MODEL, batch_of(rows, RESPONSES))
    alone = torch.cat([token_losses(MODEL, batch_of([row], RESPONSES))[0] for row in rows])
    torch.testing.assert_close(together, alone)


def test_without_weight_no_observation_token_counts():
    batch = batch_of([example(9, (3, 5))], RESPONSES)
    assert (batch.targets != IGNORED).nonzero().tolist() == [[0, 2], [0, 3]]  # targets of tokens 3 and 4
    assert len(token_losses(MODEL, batch)[1]) == 0


def test_the_share_of_observation_tokens_is_drawn_anew_each_epoch_and_responses_are_always_there():
    rows = [example(2001, (1000, 1100))]
    config = SupervisedConfig(observation_share=0.25)
    first, second = (make_batch(rows, [0], config, seed=0, epoch=epoch, pad_id=PAD) for epoch in (0, 1))
    for batch in (first, second):
        counted = batch.targets != IGNORED
        assert int((counted & ~batch.observed).sum()) == 100
        assert 0.20 < float((counted & batch.observed).sum()) / 1900 < 0.30
    assert not torch.equal(first.targets, second.targets)


def test_an_epoch_visits_every_row_once_within_the_token_budget():
    rows = [example(length, (1, 2)) for length in (3, 50, 7, 21, 8, 9, 33, 4, 130)]
    config = SupervisedConfig(batch_tokens=64)
    batches = plan_epoch(rows, config, seed=0, epoch=0)
    assert sorted(row for batch in batches for row in batch) == list(range(len(rows)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(len(rows[row].ids) for row in batch) <= 64
    assert plan_epoch(rows, config, seed=0, epoch=0) == batches
    assert plan_epoch(rows, config, seed=0, epoch=1) != batches


def test_the_learning_rate_rises_then_falls_along_a_cosine_to_a_twentieth():
    config = SupervisedConfig(learning_rate=1.0, warmup_share=0.1)
    rates = [learning_rate(step, 21, config) for step in range(21)]
    assert rates[:3] == pytest.approx([0.5, 1.0, 1.0])
    assert rates[11] == pytest.approx(0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * 9 / 18)))
    assert rates[20] == pytest.approx(0.05)


def test_teaching_is_repeatable_lowers_the_loss_and_leaves_the_global_generator_alone(tmp_path):
    rows = [example(12, (6, 12), seed=seed) for seed in range(4)]
    config = SupervisedConfig(epochs=30, batch_tokens=24, learning_rate=1e-2)
    shape = SmallModelConfig(hidden=16, layers=1, heads=2, intermediate=24)
    models = [build_model(shape, VOCABULARY, seed=0) for _ in range(2)]
    torch.manual_seed(1)
    state = torch.get_rng_state()
    records = [train(model, rows, config, seed=3, pad_id=PAD, log=tmp_path / "log") for model in models]
    assert torch.equal(torch.get_rng_state(), state)
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(one, other)
    assert records[0].response_loss == records[1].response_loss < 1.5 < math.log(VOCABULARY)
    assert records[0].steps == 60
    assert records[0].tokens == 30 * 4 * 12
    assert (tmp_path / "log").read_text().splitlines()[-1].startswith("step 60/60  response loss")


def test_a_second_cycle_goes_on_from_the_weights_of_the_first_and_is_announced_as_the_second_half():
    rows = [example(12, (6, 12), seed=seed) for seed in range(8)]
    config = SupervisedConfig(epochs=4, cycles=2, batch_tokens=24, learning_rate=1e-2)
    shape = SmallModelConfig(hidden=16, layers=1, heads=2, intermediate=24)
    model = build_model(shape, VOCABULARY, seed=0)
    said = []
    losses = [
        train(model, rows, config, seed=3, pad_id=PAD, cycle=cycle, progress=said.append).response_loss
        for cycle in range(2)
    ]
    assert losses[1] < losses[0]
    assert [status.done for status in said] == list(range(1, 33))
    assert {status.total for status in said} == {32}


@pytest.mark.parametrize(
    "settings", [{"epochs": 0}, {"cycles": 0}, {"observation_weight": -1.0}, {"observation_share": 0.0}]
)
def test_impossible_settings_are_refused(settings):
    [(name, value)] = settings.items()
    with pytest.raises(ValueError, match=f"{name} must .*got {value}"):
        SupervisedConfig(**settings)
