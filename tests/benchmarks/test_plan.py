from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.config import ConfigError, load_suite
from benchmarks.plan import find, plan, suite_folder
from benchmarks.seeding import generator

RESULTS = Path("results")


def test_names_come_from_benchmark_variant_and_seed_after_the_two_baselines():
    runs = plan(load_suite("webshop"), [0, 1], None, RESULTS)
    assert [run.name for run in runs] == [
        "webshop-warm-start",
        "webshop-expert",
        "webshop-grpo-s0",
        "webshop-grpo-empg-s0",
        "webshop-dapo-s0",
        "webshop-dapo-empg-s0",
        "webshop-grpo-s1",
        "webshop-grpo-empg-s1",
        "webshop-dapo-s1",
        "webshop-dapo-empg-s1",
    ]
    assert runs[3].folder == RESULTS / "runs" / "webshop" / "webshop-grpo-empg-s0"
    assert [run.config.kind for run in runs[:3]] == ["warm_start", "expert", "train"]


def test_the_seed_moves_samples_and_minibatches_but_not_the_order_of_tasks():
    first, second = (
        next(
            run for run in plan(load_suite("webshop"), [seed], None, RESULTS) if run.config.variant == "grpo"
        )
        for seed in (1, 2)
    )
    assert (first.config.seed, second.config.seed) == (1, 2)
    assert (first.config.learner.seed, second.config.learner.seed) == (1, 2)
    same = {"seed": 0, "learner": replace(first.config.learner, seed=0)}
    assert first.config.model_copy(update=same) == second.config.model_copy(update=same)


@pytest.mark.parametrize("name", ["webshop-warm-start", "webshop-expert", "webshop-dapo-empg-s17"])
def test_a_run_is_found_by_its_name_as_it_was_planned(name):
    assert find(load_suite("webshop"), name, None, RESULTS).name == name


@pytest.mark.parametrize("name", ["webshop-ppo-s0", "webshop-grpo", "", "../webshop-grpo-s0"])
def test_a_name_that_was_not_planned_is_refused_with_the_names_there_are(name):
    with pytest.raises(ConfigError, match="webshop-grpo-s0"):
        find(load_suite("webshop"), name, None, RESULTS)


def test_points_of_a_grid_are_named_by_their_settings_in_words_that_a_folder_can_have():
    runs = plan(load_suite("sensitivity"), [0], None, RESULTS)
    assert [run.name for run in runs[2:]] == [
        "alfworld-grpo-empg-zeta-0.01-k-1.0-s0",
        "alfworld-grpo-empg-zeta-0.05-k-1.0-s0",
        "alfworld-grpo-empg-zeta-0.1-k-1.0-s0",
        "alfworld-grpo-empg-zeta-0.05-k-0.5-s0",
        "alfworld-grpo-empg-zeta-0.05-k-1.5-s0",
    ]
    found = find(load_suite("sensitivity"), runs[4].name, None, RESULTS).config
    assert (found.variant, found.learner.empg.zeta) == ("grpo+empg,zeta=0.1,k=1.0", 0.1)
    assert (found.learner.empg.k, found.learner.empg.k_f, found.learner.empg.scaling) == (1.0, 1.0, True)


def test_variants_that_would_share_a_folder_are_refused():
    suite = load_suite("webshop")
    learner = suite.learners["grpo"]
    twins = ("grpo+x", "grpo,x")
    changed = suite.model_copy(update={"variants": twins, "learners": dict.fromkeys(twins, learner)})
    with pytest.raises(ConfigError, match="share a folder"):
        plan(changed, [0], None, RESULTS)


@pytest.mark.parametrize("seeds", [[], [0, 0], [-1]])
def test_seeds_must_be_different_and_not_negative(seeds):
    with pytest.raises(ConfigError, match="seeds"):
        plan(load_suite("webshop"), seeds, None, RESULTS)


@pytest.mark.parametrize(
    ("scale", "data", "name"),
    [
        ("default", None, "webshop"),
        ("smoke", None, "webshop-smoke"),
        ("default", Path("/data/official"), "webshop-official"),
        ("smoke", Path("/data/my shop; $(rm)\x1b[1m"), "webshop-smoke-my-shop-rm-1m"),
        ("default", Path("/"), "webshop-data"),
    ],
)
def test_scale_and_data_name_the_folder_and_nothing_in_it_can_be_more_than_a_name(scale, data, name):
    assert suite_folder(load_suite("webshop", scale), data, RESULTS) == RESULTS / "runs" / name


def test_random_streams_differ_by_seed_and_by_every_part_of_the_place():
    places = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0)]
    draws = [tuple(generator(seed, *place).random(2)) for seed in (0, 1) for place in places]
    assert len(set(draws)) == len(draws)
    assert tuple(generator(0, 1, 0).random(2)) == draws[4]
