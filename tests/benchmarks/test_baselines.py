"""What is judged without training: a warm start, or a given model without and with worked examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import records
from benchmarks.config import ConfigError, load_suite
from benchmarks.overrides import Overrides
from benchmarks.plan import find, plan
from benchmarks.prepare import identity, open_tasks
from benchmarks.reporting import outcomes
from benchmarks.reporting.cost import cost_csv, cost_table
from benchmarks.reporting.load import load_suite as load_records
from benchmarks.reporting.outcomes import arm_row, comparisons, label, start, variants
from benchmarks.run import execute
from tests.benchmarks.report_runs import add_run

RESULTS = Path("results")
FEW = '\n[baselines."few-shot"]\nrollout = { prompt = "react", shots = 1 }\n'


def with_baselines(suite: Path, text: str) -> Path:
    suite.write_text(suite.read_text() + text)
    return suite


def kinds(suite: Path, **changes: Any) -> dict[str, str]:
    runs = plan(load_suite(str(suite), overrides=Overrides(**changes)), [0], None, RESULTS)
    return {run.config.variant: run.config.kind for run in runs}


def test_a_given_model_is_judged_as_zero_shot_and_under_a_prompt_with_examples_as_few_shot(tiny_suite):
    trained = {"grpo+empg": "train", "dapo": "train"}
    assert kinds(tiny_suite) == {"zero-shot": "base", "expert": "expert"} | trained
    assert kinds(tiny_suite, shots=2) == {"few-shot": "base", "expert": "expert"} | trained


def test_a_suite_may_ask_for_the_baseline_that_training_does_not_start_from(tiny_suite):
    suite = with_baselines(tiny_suite, FEW)
    assert list(kinds(suite)) == ["zero-shot", "few-shot", "expert", "grpo+empg", "dapo"]
    loaded = load_suite(str(suite))
    shots = {run.config.variant: run.config.rollout.shots for run in plan(loaded, [0], None, RESULTS)}
    assert shots == {"zero-shot": 0, "few-shot": 1, "expert": 0, "grpo+empg": 0, "dapo": 0}
    assert loaded.baselines["few-shot"].max_new_tokens == loaded.base.rollout.max_new_tokens


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('\n[baselines."zero-shot"]\n', "baselines.zero-shot.rollout.shots: 0, and training has 0"),
        ('\n[baselines."few-shot"]\n', "baselines.few-shot.rollout.shots: 0, and training has 0"),
        (
            '\n[baselines."few-shot"]\nrollout = { shot = 1 }\n',
            "baselines.few-shot.rollout.shot: unknown key",
        ),
        ('\n[baselines."one-shot"]\n', "baselines.one-shot"),
    ],
)
def test_baselines_that_say_nothing_new_or_nothing_true_are_refused(tiny_suite, text, said):
    with pytest.raises(ConfigError) as refused:
        load_suite(str(with_baselines(tiny_suite, text)))
    assert said in str(refused.value)


def test_a_warm_start_has_no_shots_to_compare_with(tiny_suite, tiny_policy):
    suite = with_baselines(tiny_suite, FEW)
    suite.write_text(suite.read_text().replace(f'model = "{tiny_policy}"\n', ""))
    with pytest.raises(ConfigError, match=r"baselines: few-shot, expected none without policy\.model"):
        load_suite(str(suite))


def test_a_few_shot_run_reads_a_prompt_of_its_own(tiny_suite, tmp_path):
    text = with_baselines(tiny_suite, FEW).read_text()
    for old, new in (
        ('"react", shots = 1', '"brief", shots = 1, shot_observation_chars = 40'),
        ("max_steps = 2", "max_steps = 6"),
    ):
        text = text.replace(old, new)
    tiny_suite.write_text(text)
    suite = load_suite(str(tiny_suite))
    tasks = open_tasks(suite.base, None)
    digests = set()
    for name in ("webshop-zero-shot", "webshop-few-shot"):
        run = find(suite, name, None, tmp_path)
        told = identity(run, tasks.told_by(run.config.rollout), None)["prompt"]
        assert open_tasks(run.config, None).prompts.record() == told
        digests.add(told["digest"])
    assert len(digests) == 2


@pytest.mark.usefixtures("one_thread")
def test_a_run_records_how_long_it_loaded_and_how_long_it_was_judged(tiny_suite, tmp_path):
    run = find(load_suite(str(tiny_suite)), "webshop-zero-shot", None, tmp_path)
    execute(run, tmp_path / "cache")
    summary = records.read_json(run.folder / "summary.json")
    assert summary["loading_seconds"] > 0
    assert summary["wall_seconds"] == summary["evaluation_seconds"] > 0


GIVEN = {"benchmark": "webshop", "policy": {"model": "smollm2"}}


@pytest.fixture
def records_of(tmp_path: Path) -> Path:
    suite = tmp_path / "smollm2"
    few = GIVEN | {"rollout": {"shots": 2}}
    add_run(suite, "zero-shot", solved=range(2), config=GIVEN)
    add_run(suite, "few-shot", solved=range(3), config=few)
    add_run(suite, "grpo", solved=range(5), config=GIVEN, variants=["grpo"])
    return suite


def test_reports_show_both_and_compare_with_the_one_that_training_started_from(records_of):
    suite = load_records(records_of)
    assert start(suite) == "zero-shot"
    assert variants(suite) == ("zero-shot", "few-shot", "grpo", "expert")
    assert [one.title for one in comparisons(suite)] == ["few-shot − zero-shot", "GRPO − zero-shot"]
    assert (label("zero-shot"), arm_row(suite, "few-shot").planned) == ("zero-shot", 1)


def test_training_under_examples_starts_from_few_shot(tmp_path):
    add_run(tmp_path / "s", "grpo", config=GIVEN | {"rollout": {"shots": 2}}, variants=["grpo"])
    suite = load_records(tmp_path / "s")
    assert (start(suite), variants(suite)) == ("few-shot", ("few-shot", "grpo", "expert"))


def test_records_from_before_there_were_given_models_start_from_the_warm_start(tmp_path):
    add_run(tmp_path / "s", "grpo", config={"benchmark": "webshop", "policy": {"path": None}})
    assert start(load_records(tmp_path / "s")) == outcomes.WARM_START


def test_loading_and_evaluation_are_parts_of_the_cost_where_they_were_recorded(records_of):
    suite = load_records(records_of)
    rows = [arm_row(suite, name) for name in variants(suite)]
    before = cost_table(rows, suite, "two cores")
    assert [row[0] for row in before.rows] == ["GRPO"]
    assert "loading (min)" not in before.columns
    for name, loading, judging in (("zero-shot", 6.0, 90.0), ("grpo", 12.0, 120.0)):
        path = records_of / f"webshop-{name}-s0" / "summary.json"
        ends = {"loading_seconds": loading, "evaluation_seconds": judging}
        records.write_json(path, records.read_json(path) | ends)
    suite = load_records(records_of)
    table = cost_table(rows, suite, "two cores")
    found = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert list(found) == ["zero-shot", "GRPO"]  # few-shot recorded no time, the demonstrator is no policy
    assert [found["GRPO"][part] for part in ("loading (min)", "evaluation (min)")] == ["0.2", "2.0"]
    assert [found["zero-shot"][part] for part in ("evaluation (min)", "updates (min)")] == ["1.5", "—"]
    assert "zero-shot,evaluation,seconds,90," in cost_csv(rows, suite)
