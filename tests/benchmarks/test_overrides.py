"""Settings from the command line: one object that changes a suite, names its folder and reaches every process."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from benchmarks.config import ConfigError, load_suite
from benchmarks.overrides import NOTHING, Overrides, model_name
from benchmarks.plan import plan, suite_folder
from benchmarks.suite import job
from benchmarks.warm_start.store import WarmStartConfig
from tests.benchmarks.test_cli import call

RESULTS = Path("results")


def test_without_overrides_a_suite_is_what_its_file_says():
    assert load_suite("webshop", overrides=NOTHING) == load_suite("webshop")
    assert suite_folder(load_suite("webshop"), None, RESULTS).name == "webshop"


@pytest.mark.parametrize("scale", ["default", "smoke", "paper"])
def test_they_replace_the_suites_settings_whatever_its_scale(scale):
    given = Overrides(model="Qwen/Qwen2.5-7B-Instruct", dtype="bfloat16", lora=16, rollout="vllm")
    found = load_suite("webshop", scale, overrides=given)
    policy = found.base.policy
    assert (policy.model, policy.dtype, policy.rollout) == (given.model, "bfloat16", "vllm")
    assert policy.lora is not None
    assert policy.lora.rank == 16
    if scale != "default":
        assert policy.max_context == load_suite("webshop", scale).base.policy.max_context
        assert found.learners == load_suite("webshop", scale).learners


@pytest.mark.parametrize("suite", ["webshop", "alfworld", "deepsearch", "ablation", "sensitivity"])
@pytest.mark.parametrize("official", [False, True])
def test_a_language_model_is_not_trained_with_the_steps_and_the_prompt_of_the_small_policy(suite, official):
    found = load_suite(suite, official=official, overrides=Overrides(model="Qwen/Qwen2.5-7B-Instruct"))
    assert {learner.optimizer.lr for learner in found.learners.values()} == {1e-6}
    assert all(learner.probe is None and learner.overlong is None for learner in found.learners.values())
    base = found.base
    assert (base.rollout.prompt, base.rollout.max_new_tokens, base.rollout.reward) == (
        "react",
        256,
        "success",
    )
    assert base.policy.max_context == 8192
    plain = load_suite(suite, official=official)
    assert plain.base.rollout.prompt == "brief"
    assert found.variants == plain.variants
    assert all(learner.optimizer.lr >= 3e-4 for learner in plain.learners.values())


def test_what_the_command_line_says_wins_over_the_suites_settings_for_given_models():
    given = Overrides(model="Qwen/Qwen2.5-7B-Instruct", prompt="tags")
    assert load_suite("webshop", overrides=given).base.rollout.prompt == "tags"


def test_a_suite_that_names_its_model_is_taken_at_its_word(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'extends = "webshop"\n[policy]\nmodel = "smollm2"\n[variants.dapo]\npreset = "dapo"\nempg = false\n'
    )
    assert load_suite(str(path)).learners["dapo"].optimizer.lr == 4e-4


def test_a_given_model_leaves_nothing_of_the_warm_start():
    assert load_suite("webshop").base.warm_start != WarmStartConfig()
    assert load_suite("webshop", overrides=Overrides(model="smollm2")).base.warm_start == WarmStartConfig()


@pytest.mark.parametrize(
    ("given", "scale", "data", "name"),
    [
        (Overrides(model="smollm2"), "default", None, "webshop-smollm2"),
        (Overrides(model="Qwen/Qwen2.5-7B-Instruct"), "default", None, "webshop-Qwen2.5-7B-Instruct"),
        (Overrides(model="/models/my $(rm) model"), "smoke", None, "webshop-my-rm-model-smoke"),
        (
            Overrides(model="a/B", dtype="bfloat16", lora=8),
            "default",
            Path("/data/official"),
            "webshop-B-bfloat16-lora8-official",
        ),
        (Overrides(dtype="float32", rollout="torch"), "default", None, "webshop"),
    ],
)
def test_the_results_folder_shows_what_differs_from_the_suite_itself(given, scale, data, name):
    assert suite_folder(load_suite("webshop", scale, overrides=given), data, RESULTS).name == name


def test_a_model_that_the_suite_names_itself_stands_in_no_folders_name(tiny_suite, tiny_policy):
    same, other = (
        suite_folder(load_suite(str(tiny_suite), overrides=Overrides(model=model)), None, RESULTS).name
        for model in (str(tiny_policy), "smollm2")
    )
    assert (same, other) == ("tiny", "tiny-smollm2")


def test_the_process_of_a_run_is_given_the_same_options():
    given = Overrides(model="smollm2", lora=4)
    run = plan(load_suite("webshop", overrides=given), [0], None, RESULTS)[2]
    command = job(run, "webshop", "default", RESULTS).command
    assert command[-4:] == ("--model", "smollm2", "--lora", "4")
    plain = job(plan(load_suite("webshop"), [0], None, RESULTS)[2], "webshop", "default", RESULTS).command
    assert not {f"--{field.name}" for field in fields(Overrides)} & set(plain)


def test_every_command_that_makes_or_lists_runs_takes_them(capsys, tiny_suite, tmp_path):
    code, out, _ = call(capsys, "plan", tiny_suite, "--lora", 4, "--results", tmp_path)
    assert (code, "webshop-dapo-s0" in out) == (0, True)
    for command in (
        ["run", tiny_suite],
        ["run-one", tiny_suite, "webshop-dapo-s0"],
        ["evaluate", tiny_suite],
    ):
        code, _, errors = call(capsys, *command, "--model", "/nowhere", "--results", tmp_path)
        assert code == 2
        assert errors.splitlines()[-1].startswith("error: policy.model: no model in /nowhere")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--dtype", "fp8"), "error: tiny.policy.dtype: "),
        (("--lora", 0), "error: Invalid value for '--lora'"),
        (("--rollout", "sglang"), "error: tiny.policy.rollout: "),
    ],
)
def test_values_that_nobody_can_serve_are_one_line(capsys, tiny_suite, options, said):
    code, _, errors = call(capsys, "plan", tiny_suite, *options)
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith(said)


def test_two_policies_at_once_are_refused(capsys, tiny_suite):
    code, _, errors = call(capsys, "evaluate", tiny_suite, "expert", "--model", "smollm2")
    assert (code, errors) == (2, "error: evaluate: both 'expert' and --model smollm2, expected one policy\n")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"),
        ("smollm2", "smollm2"),
        ("/models/tiny/", "tiny"),
    ],
)
def test_a_model_is_called_by_the_last_part_of_its_name(model, name):
    assert model_name(model) == name


def test_a_retriever_is_an_override_of_the_world_and_names_no_folder():
    found = load_suite("deepsearch", overrides=Overrides(retriever="http://localhost:8000/retrieve"))
    assert found.base.world["retriever"] == "http://localhost:8000/retrieve"
    assert suite_folder(found, None, RESULTS).name == "deepsearch"
    with pytest.raises(ConfigError, match="webshop"):
        load_suite("webshop", overrides=Overrides(retriever="bm25"))
