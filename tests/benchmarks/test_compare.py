"""What a comparison measures: differences, tests, flips and types, by hand on made-up runs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.reporting import stats
from benchmarks.reporting.compare import Comparison, Outcome, Rates, Side, TaskResult, check_sides, compare
from benchmarks.reporting.load import load_suite
from benchmarks.reporting.outcomes import BOOTSTRAP_SEED
from benchmarks.reporting.schema import RecordError
from tests.benchmarks.alfworld_runs import add_alfworld
from tests.benchmarks.report_runs import add_run


def between(a: Path, b: Path, task_types: dict[str, str] | None = None) -> Comparison:
    sides = Side("a", load_suite(a)), Side("b", load_suite(b))
    check_sides(*sides)
    return compare(*sides, task_types or {})


def two(folder: Path, a: dict[str, Any], b: dict[str, Any]) -> Comparison:
    """GRPO on side A against GRPO+EMPG on side B, one seed."""
    add_run(folder / "a", "grpo", **a)
    add_run(folder / "b", "grpo+empg", **b)
    return between(folder / "a", folder / "b")


def outcome_of(found: Comparison, mode: str = "sampled", pair: int = 0) -> Outcome:
    return next(outcome for outcome in found.pairs[pair].outcomes if outcome.mode == mode)


def ids(*numbers: int) -> list[str]:
    return sorted(f"synthetic-{number}" for number in numbers)


def test_one_seed_differs_as_counted_by_hand(tmp_path: Path) -> None:
    # Of 20 tasks A solves 0..7 and B 5..14: 3 are solved by both, 5 by A alone, 7 by B alone.
    outcome = outcome_of(two(tmp_path, {"solved": range(8)}, {"solved": range(5, 15)}))
    success, score = outcome.success, outcome.measures["score"]
    assert (success.a.mean, success.b.mean, success.a.sd) == (0.4, 0.5, None)
    assert success.difference.estimate == pytest.approx(0.1)
    assert (success.difference.unit, success.difference.n, success.difference.seeds) == ("tasks", 20, 1)
    assert [score.a.mean, score.b.mean] == pytest.approx([0.7, 0.75])  # an unsolved task scores 0.5
    assert [task.task_id for task in outcome.won] == ids(*range(8, 15))
    assert [task.task_id for task in outcome.lost] == ids(*range(5))
    # 12 tasks were solved by one side only: twice the lower tail of Binomial(12, 1/2) up to 5.
    assert outcome.p_value.test == "exact McNemar"
    assert outcome.p_value.value == pytest.approx(2 * sum(math.comb(12, k) for k in range(6)) / 2**12)


def test_the_modes_are_compared_each_on_its_own(tmp_path: Path) -> None:
    found = two(
        tmp_path,
        {"solved": {"sampled": range(4), "greedy": range(10)}},
        {"solved": {"sampled": range(10), "greedy": range(4)}},
    )
    assert [outcome_of(found, mode).success.difference.estimate for mode in ("sampled", "greedy")] == (
        pytest.approx([0.3, -0.3])
    )


def test_several_seeds_list_the_tasks_whose_mean_rate_changed_by_size(tmp_path: Path) -> None:
    for seed, (a, b) in enumerate((((0, 1, 2), (0, 5)), ((0, 1), (0, 5, 6)), ((0, 2), (0, 5, 2)))):
        add_run(tmp_path / "a", "grpo", seed, solved=a)
        add_run(tmp_path / "b", "grpo+empg", seed, solved=b)
    outcome = outcome_of(between(tmp_path / "a", tmp_path / "b"))
    # In thirds, A: task 0 3, 1 2, 2 2. B: task 0 3, 2 1, 5 3, 6 1.
    assert [(task.task_id, round(3 * task.change)) for task in outcome.won] == [
        ("synthetic-5", 3),
        ("synthetic-6", 1),
    ]
    assert [(task.task_id, round(3 * task.change)) for task in outcome.lost] == [
        ("synthetic-1", -2),
        ("synthetic-2", -1),
    ]
    assert outcome.success.difference.estimate == pytest.approx((8 - 7) / 3 / 20)
    assert (outcome.success.difference.unit, outcome.success.difference.seeds) == ("tasks and seeds", 3)
    assert outcome.p_value.test == "Student t"  # McNemar's test is of one pair of runs
    assert outcome.success.a.values == pytest.approx((3 / 20, 2 / 20, 2 / 20))


def test_a_task_whose_equal_rates_were_rounded_otherwise_did_not_change() -> None:
    rates = (0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1)
    assert rates[0] != rates[1]
    assert TaskResult("task", "", rates, rates, (0, 0)).change == 0.0


def test_all_tests_of_a_comparison_are_corrected_as_one_family(tmp_path: Path) -> None:
    # B alone solves so many more tasks: McNemar's p is 2 / 2^n.
    for variant, won in (("grpo", {"sampled": 9, "greedy": 6}), ("dapo", {"sampled": 7, "greedy": 1})):
        add_run(tmp_path / "a", variant)
        add_run(tmp_path / "b", variant, solved={mode: range(n) for mode, n in won.items()})
    found = between(tmp_path / "a", tmp_path / "b")
    alone = [outcome.p_value.value for _, outcome in found.outcomes]
    assert alone == pytest.approx([2 / 2**9, 2 / 2**6, 2 / 2**7, 1.0])
    assert [outcome.holm for _, outcome in found.outcomes] == pytest.approx(
        [4 * 2 / 2**9, 2 * 2 / 2**6, 3 * 2 / 2**7, 1.0]
    )


def test_a_task_played_several_times_has_a_rate_and_no_test_of_pairs(tmp_path: Path) -> None:
    outcome = outcome_of(
        two(tmp_path, {"solved": range(5), "samples": 4}, {"solved": range(7), "samples": 4})
    )
    assert (outcome.played_once, len(outcome.won)) == (False, 2)
    assert outcome.success.difference.n == 20


def test_swapping_the_sides_turns_every_sign(tmp_path: Path) -> None:
    for seed in range(3):
        add_run(tmp_path / "a", "grpo", seed, solved=range(6 + seed))
        add_run(tmp_path / "b", "grpo+empg", seed, solved=range(4, 14 + 2 * seed))
    there, back = (
        outcome_of(between(tmp_path / one, tmp_path / other)) for one, other in (("a", "b"), ("b", "a"))
    )
    for what in ("success", "score"):
        assert turned(back.measures[what]) == pytest.approx(interval(there.measures[what]))
    assert (back.won, back.lost) == (mirrored(there.lost), mirrored(there.won))


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_side_that_was_not_trained_adds_no_chance_of_seeds_on_either_side(
    tmp_path: Path, seeds: int
) -> None:
    add_run(tmp_path / "a", "warm-start", solved=range(3))
    for seed in range(seeds):
        add_run(tmp_path / "b", "grpo", seed, solved=range(6 + seed))
    there = outcome_of(between(tmp_path / "a", tmp_path / "b"))
    back = outcome_of(between(tmp_path / "b", tmp_path / "a"))
    trained = np.array([[task < 6 + seed for task in range(20)] for seed in range(seeds)], dtype=float)
    start = np.array([[task < 3 for task in range(20)]], dtype=float)
    order = [int(task.task_id.removeprefix("synthetic-")) for task in there.tasks]
    expected = stats.paired_difference(
        trained[:, order], start[:, order], np.random.default_rng(BOOTSTRAP_SEED), reference_is_fixed=True
    )
    assert interval(there.success) == pytest.approx((expected.estimate, expected.low, expected.high))
    assert turned(back.success) == pytest.approx(interval(there.success))
    assert back.p_value.value == pytest.approx(there.p_value.value)


def test_errored_tasks_are_left_out_of_both_sides_and_counted(tmp_path: Path) -> None:
    # B fails to play tasks 0 and 1, A task 19; of the other 17, A solves 2..7 and B 2..9.
    outcome = outcome_of(
        two(
            tmp_path,
            {"solved": range(8), "errored": {19: "no answer"}},
            {"solved": range(10), "errored": {0: "no answer", 1: "no answer"}},
        )
    )
    assert (outcome.errored, outcome.left_out, outcome.success.difference.n) == ((1, 2), 3, 17)
    assert outcome.success.difference.estimate == pytest.approx(2 / 17)
    assert [task.task_id for task in outcome.won] == ids(8, 9)
    assert [task.task_id for task in outcome.tasks if not task.compared] == ids(0, 1, 19)


def test_a_mode_of_which_no_task_is_left_is_not_compared(tmp_path: Path) -> None:
    add_run(tmp_path / "a", "grpo", solved={"greedy": range(3), "sampled": ()})
    add_run(tmp_path / "b", "grpo+empg", solved={"greedy": range(4)})
    found = between(tmp_path / "a", tmp_path / "b")
    assert [outcome.mode for outcome in found.pairs[0].outcomes] == ["greedy"]
    gone = dict.fromkeys(range(20), "down")
    lost = two(tmp_path / "lost", {"errored": gone}, {})
    assert lost.pairs[0].outcomes == ()


def test_only_the_seeds_that_both_have_are_compared_and_the_others_are_named(tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        add_run(tmp_path / "a", "grpo", seed, solved=range(5 + seed))
    for seed in (1, 2, 7):
        add_run(tmp_path / "b", "grpo+empg", seed, solved=range(9))
    (pair,) = between(tmp_path / "a", tmp_path / "b").pairs
    assert [[run.info.seed for run in side] for side in (pair.a, pair.b)] == [[1, 2], [1, 2]]
    assert pair.alone == ((0,), (7,))
    assert pair.outcomes[0].success.a.values == pytest.approx((6 / 20, 7 / 20))


def test_sides_without_a_seed_in_common_are_refused_with_the_seeds_of_both(tmp_path: Path) -> None:
    add_run(tmp_path / "a", "grpo", 0)
    add_run(tmp_path / "b", "grpo", 3)
    with pytest.raises(RecordError, match="grpo of A has seeds 0 and grpo of B 3; expected a seed that both"):
        between(tmp_path / "a", tmp_path / "b")


def test_suites_are_compared_variant_by_variant_and_as_a_whole_where_each_trained_one(tmp_path: Path) -> None:
    for side, trained in (
        ("a", ("grpo", "dapo")),
        ("b", ("grpo", "dapo", "dapo+empg")),
        ("c", ("grpo+empg",)),
    ):
        for variant in ("warm-start", *trained, "expert"):
            add_run(tmp_path / side, variant)
    add_run(tmp_path / "d", "dapo")
    add_run(tmp_path / "e", "expert")

    def variants(a: str, b: str) -> list[tuple[str, str]]:
        return [pair.variants for pair in between(tmp_path / a, tmp_path / b).pairs]

    assert variants("a", "b") == [("warm-start", "warm-start"), ("grpo", "grpo"), ("dapo", "dapo")]
    assert variants("c", "d") == [("grpo+empg", "dapo")]
    assert variants("d", "b") == [("dapo", "dapo")]
    assert variants("d", "e") == [("dapo", "expert")]
    with pytest.raises(RecordError, match="expected a variant that both have, or a single one on each side"):
        between(tmp_path / "e", tmp_path / "b")


def test_differences_by_type_sum_to_the_whole_and_each_has_its_interval(tmp_path: Path) -> None:
    counts = {"pick": 4, "look": 2, "heat": 4}
    add_alfworld(tmp_path / "a", "grpo", counts=counts, solved={"pick": 1, "heat": 4})
    add_alfworld(tmp_path / "b", "grpo+empg", counts=counts, solved={"pick": 3, "look": 1, "heat": 3})
    suites = [load_suite(tmp_path / side) for side in ("a", "b")]
    found = compare(Side("a", suites[0]), Side("b", suites[1]), suites[0].task_types)
    parts = {name: part for name, part in outcome_of(found).parts.items() if part is not None}
    # Of ten tasks: pick from 1 to 3 of 4, look from 0 to 1 of 2, heat from 4 to 3 of 4.
    assert {name: (part.difference.n, part.difference.estimate) for name, part in parts.items()} == {
        "Pick": (4, 0.5),
        "Look": (2, 0.5),
        "Heat": (4, -0.25),
    }
    for part in parts.values():
        assert part.difference.low <= part.difference.estimate <= part.difference.high
    assert outcome_of(found).parts["Cool"] is None
    assert list(outcome_of(found).measures) == ["success"]  # the score of ALFWorld is its success


def test_types_come_from_the_episodes_where_the_benchmark_has_no_list_of_them(tmp_path: Path) -> None:
    add_run(tmp_path / "a", "grpo", solved=range(5))
    add_run(tmp_path / "b", "dapo", solved=range(10))
    types = {f"synthetic-{number}": "garden" if number < 5 else "beauty" for number in range(20)}
    parts = outcome_of(between(tmp_path / "a", tmp_path / "b", types)).parts
    assert {name: part and part.difference.estimate for name, part in parts.items()} == {
        "beauty": pytest.approx(5 / 15),
        "garden": 0.0,
    }
    alike = outcome_of(between(tmp_path / "a", tmp_path / "b", dict.fromkeys(types, "garden")))
    assert alike.parts == {}  # one type is the whole


WORLD = {"name": "webshop", "products": 1000, "goals": 690, "max_steps": 15, "versions": {"numpy": "2.0"}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"world": WORLD | {"max_steps": 30}}, "world.max_steps = 30 but .* has 15"),
        ({"world": WORLD | {"products": 500}}, "world.products = 500 but .* has 1000"),
        ({"world": WORLD | {"data_digest": "f" * 8}}, "world.data_digest = 'ffffffff' but .* has None"),
        ({"scale": "smoke"}, "scale = 'smoke' but .* has 'default'"),
        ({"config": {"benchmark": "maze"}}, "benchmark = 'maze' but .* has 'webshop'"),
        (
            {"panels": {"test": {"digest": "0" * 64, "size": 20}}},
            f"saw another test panel than .*: {'0' * 64} .20 tasks. against {'a' * 64} .20 tasks.",
        ),
        (
            {
                "panels": {
                    "test": {"digest": "a" * 64, "size": 20},
                    "train": {"digest": "1" * 64, "size": 500},
                }
            },
            f"saw another train panel than .*: {'1' * 64} .* against {'b' * 64}",
        ),
    ],
)
def test_unequal_tasks_data_and_limits_are_refused_with_both_values(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(RecordError, match=said) as refusal:
        two(tmp_path, {"world": WORLD}, {"world": WORLD} | changes)
    for side in ("a/webshop-grpo-s0", "b/webshop-grpo-empg-s0"):
        assert str(tmp_path / side) in str(refusal.value)


def test_other_tasks_under_the_same_hash_are_refused(tmp_path: Path) -> None:
    add_run(tmp_path / "a", "grpo")
    folder = add_run(tmp_path / "b", "dapo")
    rows = (folder / "eval.jsonl").read_text().replace("synthetic-7", "synthetic-77")
    (folder / "eval.jsonl").write_text(rows)
    with pytest.raises(RecordError, match="evaluated different tasks, such as 'synthetic-7"):
        between(tmp_path / "a", tmp_path / "b")


def test_libraries_below_the_world_and_models_may_differ(tmp_path: Path) -> None:
    found = two(
        tmp_path,
        {"world": WORLD, "policy": {"parameters": 1}},
        {"world": WORLD | {"versions": {"numpy": "3.0"}}, "policy": {"parameters": 2}},
    )
    assert len(found.pairs) == 1


def test_a_side_without_a_complete_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="B is b: no complete run"):
        two(tmp_path, {}, {"complete": False})


def interval(rates: Rates) -> tuple[float, float, float]:
    return rates.difference.estimate, rates.difference.low, rates.difference.high


def turned(rates: Rates) -> tuple[float, float, float]:
    return -rates.difference.estimate, -rates.difference.high, -rates.difference.low


def mirrored(tasks: tuple[TaskResult, ...]) -> tuple[TaskResult, ...]:
    """With A and B changed about."""
    return tuple(replace(task, success=task.success[::-1], score=task.score[::-1]) for task in tasks)
