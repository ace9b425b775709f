from __future__ import annotations

import json
import logging
from dataclasses import replace

import numpy as np
import pytest
import torch

from agents.policies.torch_policy import TorchPolicy
from agents.prompts import make_prompts
from agents.rollout import RolloutConfig
from benchmarks.warm_start import store
from benchmarks.warm_start.demonstrations import DemonstrationConfig, collect
from benchmarks.warm_start.examples import make_examples
from benchmarks.warm_start.measure import ALL, MeasureConfig, measure_decisions
from benchmarks.warm_start.small_model import SmallModelConfig
from benchmarks.warm_start.store import WarmStartConfig, build_and_save, identity, load, obtain, save
from benchmarks.warm_start.supervised import SupervisedConfig
from envs.webshop import load_world
from tests.benchmarks.test_warm_start_lamps import LampWorld

WORLD = LampWorld()
ROLLOUT = RolloutConfig(max_new_tokens=24)
CONFIG = WarmStartConfig(
    model=SmallModelConfig(hidden=32, layers=2, heads=2, intermediate=64, vocab_size=380, max_context=512),
    demonstrations=DemonstrationConfig(samples=2),
    supervised=SupervisedConfig(epochs=40, batch_tokens=512, learning_rate=1e-2),
    measure=MeasureConfig(decision_tasks=4, episode_tasks=8),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A policy built once, and the cache it lies in."""
    cache = tmp_path_factory.mktemp("cache")
    return obtain(WORLD, CONFIG, ROLLOUT, cache=cache), cache


def weights(policy):
    return list(policy.model.state_dict().values())


def test_a_taught_policy_decides_like_the_demonstrator_and_wins(built):
    measured = built[0].record["measured"]
    assert measured["decisions"]["option"]["action_accuracy"] == 1.0
    assert measured["decisions"]["buy"]["action_accuracy"] == 1.0
    assert measured["success"]["greedy"]["success"] == 1.0
    assert measured["ceiling"] == {"episodes": 8, "success": 1.0}


def test_the_second_time_it_comes_from_the_cache_with_equal_weights_and_tokens(built):
    policy, cache = built
    again = obtain(WORLD, CONFIG, ROLLOUT, cache=cache)
    assert (policy.record["source"], again.record["source"]) == ("built", "cached")
    assert all(torch.equal(a, b) for a, b in zip(weights(policy), weights(again), strict=True))
    assert again.model.dtype == torch.float32
    text = "Thought: dark blue is wanted\nAction: click[dark blue]"
    assert again.tokenizer.encode(text) == policy.tokenizer.encode(text)
    assert again.tokenizer.chat_template == policy.tokenizer.chat_template


def test_weights_are_stored_in_two_bytes_each_and_tied_ones_once(built):
    policy, cache = built
    [stored] = cache.glob("*/model.safetensors")
    parameters = sum(parameter.numel() for parameter in policy.model.parameters())
    assert 0 < stored.stat().st_size - 2 * parameters < 5_000


def test_what_decides_a_policy_decides_its_digest_and_how_it_is_judged_does_not():
    base = identity(WORLD, CONFIG, ROLLOUT)
    same = [
        identity(WORLD, replace(CONFIG, name="other", measure=MeasureConfig(decision_tasks=9)), ROLLOUT),
        identity(WORLD, CONFIG, replace(ROLLOUT, parallel=3, reward="score")),
    ]
    changed = [
        identity(LampWorld(tasks=13), CONFIG, ROLLOUT),
        identity(WORLD, replace(CONFIG, seed=1), ROLLOUT),
        identity(WORLD, replace(CONFIG, supervised=SupervisedConfig(epochs=41)), ROLLOUT),
        identity(WORLD, CONFIG, replace(ROLLOUT, layout="window")),
    ]
    assert all(found == base for found in same)
    assert all(found != base for found in changed)


def test_a_shipped_policy_is_used_where_it_fits_and_else_left_with_a_message(
    built, tmp_path, monkeypatch, caplog
):
    policy, cache = built
    monkeypatch.setattr(store, "SHIPPED", tmp_path)
    named = replace(CONFIG, name="lamps")
    save(policy, tmp_path / "lamps")
    assert obtain(WORLD, named, ROLLOUT, cache=tmp_path / "empty").record["source"] == "shipped"
    assert not (tmp_path / "empty").exists()

    record = json.loads((tmp_path / "lamps" / "record.json").read_text())
    (tmp_path / "lamps" / "record.json").write_text(json.dumps(record | {"digest": "0" * 64}))
    with caplog.at_level(logging.WARNING):
        assert obtain(WORLD, named, ROLLOUT, cache=cache).record["source"] == "cached"
    assert "shipped warm start lamps was made for other data or settings" in caplog.text


def test_the_default_shop_is_described_as_the_one_that_the_shipped_policy_was_taught_on():
    taught = json.loads((store.SHIPPED / "webshop" / "record.json").read_text())["identity"]["world"]
    found = load_world().describe()
    assert found | {"versions": taught["versions"]} == taught  # only library versions may be others


def test_an_interrupted_save_leaves_nothing_behind(built, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(store.records, "write_json", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(built[0], tmp_path / "policy")
    assert list(tmp_path.iterdir()) == []


def test_saving_replaces_an_older_policy_whole(built, tmp_path):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "stale.bin").write_text("old")
    save(built[0], tmp_path / "policy")
    assert not (tmp_path / "policy" / "stale.bin").exists()
    assert load(tmp_path / "policy").record == built[0].record


def test_a_model_too_large_to_ship_is_refused_before_any_demonstration_is_played(monkeypatch):
    monkeypatch.setattr(store, "collect_everywhere", lambda *_, **__: pytest.fail("work began"))
    large = replace(CONFIG, model=SmallModelConfig(hidden=256, layers=8, intermediate=512))
    with pytest.raises(ValueError, match="expected at most 3000000"):
        build_and_save("large", WORLD, large, ROLLOUT, command="make warm-start")


def test_a_shipped_policy_names_the_command_that_made_it(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "SHIPPED", tmp_path)
    quick = replace(CONFIG, supervised=SupervisedConfig(epochs=1))
    build_and_save("lamps", WORLD, quick, ROLLOUT, command="make warm-start")
    assert load(tmp_path / "lamps").record["command"] == "make warm-start"


def test_entropy_and_surprisal_are_sums_over_the_tokens_of_a_decision(built):
    policy = TorchPolicy(built[0].model, built[0].tokenizer, max_context=512)
    shown = collect(WORLD, DemonstrationConfig(tasks=3), seed=0)
    examples = make_examples(
        shown, built[0].tokenizer, ROLLOUT, prompts=make_prompts("webshop"), max_context=512
    )
    entropies, surprisals, tokens = [], [], 0
    for example in examples:
        [span] = [span for span in example.spans if span.decision.kind == "option"]
        entropy = surprisal = 0.0
        for place in range(span.start, span.stop):
            with torch.no_grad():
                logits = (
                    policy.model(input_ids=torch.from_numpy(example.ids[None, :place])).logits[0, -1].double()
                )
            probabilities = torch.softmax(logits, -1).numpy()
            entropy -= float(np.sum(probabilities * np.log(probabilities)))
            surprisal -= float(np.log(probabilities[example.ids[place]]))
        entropies.append(entropy)
        surprisals.append(surprisal)
        tokens += span.stop - span.start

    figures = measure_decisions(policy, examples, ROLLOUT, make_prompts("webshop"))

    option = figures["option"]
    assert option.decisions == 3
    assert option.entropy_per_decision == pytest.approx(np.mean(entropies), abs=2e-4)
    assert option.entropy_per_token == pytest.approx(sum(entropies) / tokens, abs=2e-4)
    assert option.surprisal_per_decision == pytest.approx(np.mean(surprisals), abs=2e-4)
    assert figures[ALL].decisions == sum(len(example.spans) for example in examples)


def test_a_shipped_policy_is_taken_as_it_is_where_that_is_asked_for(built, monkeypatch, tmp_path):
    save(built[0], tmp_path / "lamps")
    monkeypatch.setattr(store, "SHIPPED", tmp_path)
    config = replace(CONFIG, name="lamps", as_shipped=True, seed=9)  # another seed, so another digest
    found = obtain(WORLD, config, ROLLOUT, cache=tmp_path / "cache")
    assert found.record["source"] == "shipped, taught on other data"
    assert found.record["digest"] == built[0].record["digest"]
    assert not (tmp_path / "cache").exists()
    with pytest.raises(ValueError, match="no policy 'sofas' ships with the package, expected one of lamps"):
        obtain(WORLD, replace(config, name="sofas"), ROLLOUT, cache=tmp_path / "cache")
