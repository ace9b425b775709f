from __future__ import annotations

import tomllib
from dataclasses import asdict
from typing import Any

import pytest

from benchmarks.config import ConfigError, build_suite, load_suite, merge, suite_names
from benchmarks.overrides import NOTHING, Overrides
from benchmarks.prepare import open_world
from empg.losses import DAPO, GRPO
from tests.benchmarks.tiny import SUITE


def table(**changes: Any) -> dict[str, Any]:
    return merge(tomllib.loads(SUITE.format(policy="somewhere")), changes)


def refusal(**changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        build_suite("tiny", "default", table(**changes))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", suite_names())
@pytest.mark.parametrize("scale", ["default", "smoke"])
def test_every_suite_that_ships_loads_at_both_scales(name, scale):
    suite = load_suite(name, scale)
    assert set(suite.learners) == set(suite.variants)


@pytest.mark.parametrize(
    ("name", "iterations", "batch", "kl", "entropy", "zeta", "layout", "steps"),
    [
        ("webshop", 150, (16, 8), 0.01, 0.001, {0.05}, "window", 15),
        ("alfworld", 150, (16, 8), 0.01, 0.001, {0.05}, "window", 50),
        ("sensitivity", 150, (16, 8), 0.01, 0.001, {0.01, 0.05, 0.1}, "window", 50),
        ("deepsearch", 220, (64, 16), 0.001, 0.0, {0.1}, "conversation", 15),
        ("ablation", 220, (64, 16), 0.001, 0.0, {0.1}, "conversation", 15),
    ],
)
def test_at_the_paper_s_scale_a_suite_has_the_settings_of_its_tables_3_and_4(
    name, iterations, batch, kl, entropy, zeta, layout, steps
):
    suite = load_suite(name, "paper", official=True)
    assert suite.iterations == iterations
    assert (suite.base.rollout.layout, suite.base.rollout.window) == (layout, 2)
    assert (suite.base.world["max_steps"], suite.base.rollout.sampling.temperature) == (steps, 1.0)
    assert {one.empg.zeta for one in suite.learners.values() if one.empg} == zeta
    for variant, learner in suite.learners.items():
        assert (learner.batch.groups_per_batch, learner.batch.group_size) == batch
        assert (learner.optimizer.lr, learner.optimizer.schedule) == (1e-6, "constant")
        assert (learner.loss.kl_coef, learner.loss.entropy_coef) == (kl, entropy)
        assert learner.loss.clip_low == 0.2
        assert learner.loss.clip_high == (0.28 if variant.startswith("dapo") else 0.2)
        assert (learner.sampling is None) == variant.startswith("grpo")
        assert learner.overlong is None
        if name != "sensitivity" and learner.empg is not None:
            assert (learner.empg.k, learner.empg.k_f) == (1.0, 1.0)


def test_false_leaves_a_part_of_the_learner_out_that_the_suite_has():
    suite = build_suite("tiny", "default", table(variants={"dapo": {"learner": {"sampling": False}}}))
    assert suite.learners["dapo"].sampling is None
    assert build_suite("tiny", "default", table()).learners["dapo"].sampling is not None
    with pytest.raises(ConfigError, match=r"^tiny\.variants\.dapo\.sampling: "):
        build_suite("tiny", "default", table(variants={"dapo": {"learner": {"sampling": True}}}))


def test_the_webshop_suite_has_the_four_variants_and_a_panel_of_at_least_200():
    suite = load_suite("webshop")
    assert suite.variants == ("grpo", "grpo+empg", "dapo", "dapo+empg")
    assert suite.base.panels.test >= 200
    for variant, learner in suite.learners.items():
        assert (learner.empg is not None) == variant.endswith("+empg")
        assert (learner.sampling is not None) == variant.startswith("dapo")
        assert learner.loss.clip_high == (0.28 if variant.startswith("dapo") else 0.2)
        assert learner.loss.kl_coef == 0.01


def test_grpo_and_its_empg_form_differ_in_nothing_but_empg():
    learners = load_suite("webshop").learners
    for plain in ("grpo", "dapo"):
        left, right = (asdict(learners[name]) for name in (plain, f"{plain}+empg"))
        assert [key for key in left if left[key] != right[key]] == ["empg"]


@pytest.mark.parametrize(
    ("changes", "place", "known"),
    [
        ({"iteratons": 3}, "tiny.iteratons", "iterations"),
        ({"empg": {"zetta": 0.1}}, "tiny.empg.zetta", "zeta"),
        ({"panels": {"tests": 3}}, "tiny.panels.tests", "test"),
        ({"world": {"product": 3}}, "tiny.world.product", "products"),
        ({"rollout": {"sampling": {"top_p": 0.9}}}, "tiny.rollout.sampling.top_p", "temperature"),
        ({"rollout": {"sampling": {"top_k": 5}}}, "tiny.rollout.sampling.top_k", "temperature"),
        ({"learner": {"batch": {"size": 3}}}, "tiny.variants.grpo+empg.batch.size", "group_size"),
        ({"learner": {"loss": {"clip": 3}}}, "tiny.variants.grpo+empg.loss.clip", "clip_low"),
        ({"variants": {"dapo": {"optimiser": {}}}}, "tiny.variants.dapo.optimiser", "learner"),
        ({"scale": {"default": {"iteratons": 1}}}, "tiny.iteratons", "iterations"),
        ({"warm_start": {"model": {"width": 1}}}, "tiny.warm_start.model.width", "hidden"),
    ],
)
def test_an_unknown_key_at_any_depth_is_named_with_the_keys_that_are_known(changes, place, known):
    message = refusal(**changes)
    assert message.startswith(f"{place}: unknown key, expected one of: ")
    assert known in message.split("expected one of: ")[1].split(", ")


@pytest.mark.parametrize(
    ("changes", "place", "said"),
    [
        ({"iterations": "3"}, "tiny.iterations", "'3'"),
        ({"iterations": 3.5}, "tiny.iterations", "3.5"),
        ({"iterations": True}, "tiny.iterations", "True"),
        ({"iterations": 0}, "tiny.iterations", "greater than or equal to 1"),
        ({"empg": {"zeta": -1.0}}, "tiny.empg", "zeta"),
        ({"empg": {"zeta": float("inf")}}, "tiny.empg.zeta", "finite"),
        ({"empg": {"k": float("nan")}}, "tiny.empg.k", "finite"),
        ({"rollout": {"layout": "chat"}}, "tiny.rollout.layout", "'chat'"),
        ({"rollout": {"prompt": "verse"}}, "tiny.rollout.prompt", "'verse'"),
        ({"rollout": {"shots": -1}}, "tiny.rollout", "shots is -1; expected at least 0"),
        ({"rollout": {"sampling": {"temperature": 0.0}}}, "tiny.rollout.sampling", "temperature"),
        ({"rollout": {"sampling": {"greedy": True}}}, "tiny.rollout.sampling.greedy", "expected false"),
        ({"variants": {"dapo": {"preset": "ppo"}}}, "tiny.variants.dapo.preset", "'ppo'"),
        ({"variants": {"dapo": {"learner": {"temperature": 0.5}}}}, "tiny.variants.dapo.temperature", "0.5"),
        ({"world": {"products": 0}}, "tiny.world", "products must be positive, got 0"),
        ({"benchmark": "chess"}, "tiny.benchmark", "'chess', expected one of: alfworld, deepsearch, webshop"),
    ],
)
def test_a_value_of_the_wrong_kind_or_range_is_named_and_never_converted(changes, place, said):
    message = refusal(**changes)
    assert message.startswith(f"{place}: ")
    assert said in message


def test_a_missing_setting_is_named():
    incomplete = table()
    del incomplete["iterations"]
    with pytest.raises(ConfigError, match=r"^tiny\.iterations: Field required$"):
        build_suite("tiny", "default", incomplete)


def test_an_unknown_scale_is_refused_with_the_scales_that_exist():
    with pytest.raises(ConfigError, match=r"^tiny: no scale 'huge', expected one of: default, short$"):
        build_suite("tiny", "huge", table())


def test_an_unknown_suite_is_refused_with_the_suites_that_exist():
    with pytest.raises(ConfigError, match=r"^no suite 'webshot', expected one of: .*webshop"):
        load_suite("webshot")


def test_a_file_that_is_not_toml_is_refused_in_one_line(tmp_path):
    (tmp_path / "bad.toml").write_text("title = \n\n= 3")
    with pytest.raises(ConfigError, match=r"^.*bad\.toml: not TOML: .*$") as caught:
        load_suite(str(tmp_path / "bad.toml"))
    assert "\n" not in str(caught.value)


def test_a_scale_table_replaces_only_the_keys_it_names():
    full, short = (build_suite("tiny", scale, table()) for scale in ("default", "short"))
    assert (full.iterations, short.iterations) == (3, 1)
    assert short.base.panels == full.base.panels
    assert short.learners["dapo"].optimizer.total_iterations == 1


def test_a_variant_starts_from_its_preset_and_replaces_what_it_names():
    changed = table(variants={"dapo": {"loss": {"clip_high": 0.4}}})
    suite = build_suite("tiny", "default", changed)
    assert asdict(suite.learners["dapo"].loss) == asdict(DAPO) | {"clip_high": 0.4}
    assert suite.learners["grpo+empg"].loss == GRPO


def test_the_schedule_ends_with_the_run_unless_the_suite_says_otherwise():
    assert build_suite("tiny", "default", table()).learners["dapo"].optimizer.total_iterations == 3
    longer = table(learner={"optimizer": {"total_iterations": 10}})
    assert build_suite("tiny", "default", longer).learners["dapo"].optimizer.total_iterations == 10


def test_merging_leaves_its_arguments_as_they_were():
    base, over = {"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}
    assert merge(base, over) == {"a": {"b": 3, "c": 2}}
    assert (base, over) == ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})


def test_a_scale_s_official_table_counts_on_official_data_only():
    changed = table()
    changed["scale"]["default"] = {**changed["scale"]["default"], "official": {"iterations": 7}}
    generated, official = (build_suite("tiny", "default", changed, official=given) for given in (False, True))
    assert (generated.iterations, official.iterations) == (
        build_suite("tiny", "default", table()).iterations,
        7,
    )


def test_an_unknown_key_in_an_official_table_is_refused():
    changed = table()
    changed["scale"]["default"] = {**changed["scale"]["default"], "official": {"iteratons": 7}}
    with pytest.raises(ConfigError, match="iteratons: unknown key"):
        build_suite("tiny", "default", changed, official=True)


def test_a_suite_chooses_reward_search_and_nouns_by_name_and_gets_the_official_ones_by_default():
    world = build_suite("tiny", "default", table()).base.world
    assert (world["reward"], world["search"], world["nouns"]) == ("official", "bm25", "auto")
    chosen = build_suite("tiny", "default", table(world={"reward": "strict"})).base
    assert open_world(chosen, None).describe()["reward"] == "strict"
    assert refusal(world={"reward": "fair"}).endswith("'official' or 'strict', got 'fair'")
    assert "'bm25' or 'lucene'" in refusal(world={"search": "google"})


def test_with_another_retriever_the_shipped_policy_is_taken_as_it_is_and_with_the_same_one_it_must_fit():
    taken = {
        name: load_suite("deepsearch", overrides=over).base.warm_start.as_shipped
        for name, over in (
            ("none given", NOTHING),
            ("the same", Overrides(retriever="bm25")),
            ("another", Overrides(retriever="http://localhost:8000/retrieve")),
        )
    }
    assert taken == {"none given": False, "the same": False, "another": True}


@pytest.mark.parametrize("scale", ["default", "smoke"])
def test_a_suite_that_extends_another_has_its_own_variants_alone_at_every_scale(scale):
    grid = load_suite("sensitivity", scale)
    base = load_suite("alfworld", scale)
    assert {(one.empg.zeta, one.empg.k, one.empg.k_f) for one in grid.learners.values()} == {
        (0.01, 1.0, 1.0), (0.05, 1.0, 1.0), (0.1, 1.0, 1.0), (0.05, 0.5, 0.5), (0.05, 1.5, 1.5),
    }  # fmt: skip
    assert grid.base == base.base
    assert grid.learners["grpo+empg,zeta=0.05,k=1.0"] == base.learners["grpo+empg"]
