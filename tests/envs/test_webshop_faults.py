"""Faults that users of WebShop code reported in public (kinds W1 to W23), and the tests that would catch each here.

Several are caught by tests that stand where the part is tested; the table names them, and a test below checks that
each exists. None is void; the numbers 17 and 20 are not in use.

| kind | fault | caught by |
| --- | --- | --- |
| W1 | train and test tasks overlap, or depend on a worker's seed | `test_webshop_env.test_without_a_task_the_seed_alone_chooses_a_train_task`, `test_webshop_goals.test_splits_are_disjoint_cover_all_goals_and_leave_none_empty`, `test_webshop_goals.test_the_same_task_id_means_the_same_task_whatever_the_global_generators_and_hash_seed_did` (pinned hashes) |
| W2 | a task's price cap differs from run to run | `test_webshop_goals.test_the_same_task_id_means_the_same_task_whatever_the_global_generators_and_hash_seed_did`, `test_webshop_goals.test_making_goals_leaves_the_global_generators_alone` |
| W3 | one number, several tasks | `test_webshop_env.test_a_group_of_envs_opens_the_same_task_alike`, `test_webshop_world.test_a_generated_world_is_a_function_of_its_size_and_seed` |
| W4 | results over different tasks are compared | `test_report_records.test_runs_of_unequal_panels_are_refused_with_both_hashes`, `test_report.test_the_facts_name_model_data_panel_training_code_and_hardware` |
| W5 | a Java exception where the index is missing | `test_webshop_lucene.test_a_missing_index_is_one_line_that_names_its_folder_and_the_commands_that_make_it`, `test_webshop_lucene.test_missing_pyserini_is_one_line_that_names_the_command_that_installs_it`, `test_webshop_lucene.test_the_default_search_needs_neither_java_nor_pyserini` |
| W6 | an empty index goes unnoticed | `test_webshop_catalogue.test_an_empty_catalogue_is_refused_instead_of_giving_empty_searches`, `test_webshop_search.test_the_index_holds_every_product_of_the_catalogue`, `test_webshop_cache.test_an_index_of_another_number_of_documents_is_refused`, `test_webshop_lucene.test_an_index_of_another_number_of_documents_is_refused`, `test_data.test_data_that_cannot_be_used_is_refused_in_one_line` |
| W7 | a goal number beyond the goals there are | `test_webshop_faults.test_a_goal_number_beyond_the_few_human_goals_is_named_with_those_there_are`, `test_webshop_env.test_an_unknown_task_is_named_with_the_ids_that_exist`, `test_data.test_a_folder_is_described_by_hashes_and_counts_of_what_is_there` |
| W8 | fewer products than believed | `test_webshop_world.test_the_run_record_states_what_decides_tasks_and_rewards`, `test_report.test_the_facts_name_model_data_panel_training_code_and_hardware`, `test_report_records.test_runs_on_other_data_or_scale_are_not_mixed` |
| W9 | every environment holds the whole catalogue | `test_webshop_faults.test_eight_environments_add_less_than_a_tenth_of_the_catalogues_memory`, `test_webshop_env.test_envs_of_one_world_share_one_catalogue_and_index`, `test_data.test_a_mapped_catalogue_adds_a_small_part_of_the_memory_of_a_held_one` |
| W10 | an oracle falls short, splits differ in their options | `test_webshop_faults.test_an_oracle_earns_exactly_one_on_every_goal_of_the_toy_shop`, `test_webshop_world.test_the_run_record_states_what_decides_tasks_and_rewards`, `test_data.test_a_folder_is_described_by_hashes_and_counts_of_what_is_there` |
| W11 | the lenient match of options is mended in silence | `test_webshop_reward.test_human_options_match_loosely_as_officially_and_by_equality_when_strict`, `test_webshop_reward.test_synthetic_options_are_officially_compared_as_printed_pairs_and_exactly_when_strict`, `test_webshop_world.test_the_strict_reward_is_chosen_by_name_judges_purchases_and_is_recorded` |
| W12 | a rule baseline with other numbers than published; none is claimed for the full set | `test_webshop_faults.test_the_rule_player_earns_what_was_worked_out_by_hand_on_the_toy_shop` |
| W13 | tasks are solved, rewards stay 0 | `test_webshop_env.test_a_perfect_purchase_pays_one_and_is_a_success`, `test_webshop_faults.test_the_record_of_an_episode_holds_the_reward_that_the_table_counts`, `test_report_records.test_a_summary_that_disagrees_with_the_episodes_is_refused` |
| W14 | a search on a page without a search bar: answered, as officially, and documented in `env.py` | `test_webshop_env.test_a_search_is_answered_on_pages_without_a_search_bar_as_officially`, `test_webshop_env.test_an_action_that_is_not_understood_shows_the_same_page_and_costs_a_step` |
| W15 | goals repeat or are left out | `test_webshop_env.test_every_goal_of_a_panel_opens_exactly_once` |
| W16 | the last page belongs to the next task | `test_webshop_env.test_the_last_observation_is_the_purchase_page_of_the_same_goal`, `test_webshop_env.test_the_next_episode_does_not_depend_on_how_the_last_one_ended` |
| W18 | queries that crash or draw at random | `test_webshop_env.test_queries_that_crash_or_draw_officially_are_ordinary_searches`, `test_webshop_env.test_kind_queries_list_a_whole_kind_unless_switched_off` |
| W19 | colours inside other words | `test_webshop_reward.test_colours_are_found_as_substrings`, `test_webshop_reward.test_strict_colours_are_whole_words`, `test_webshop_reward.test_human_options_match_loosely_as_officially_and_by_equality_when_strict` |
| W21 | episodes disturb each other | `test_webshop_env.test_interleaved_episodes_equal_solo_ones` |
| W22 | synthetic goals without having been asked for | `test_webshop_faults.test_the_source_of_goals_is_explicit_or_the_documented_default_and_always_recorded` |
| W23 | one value in two options: the documented limit is kept | `test_webshop_env.test_a_value_that_two_options_share_is_chosen_for_the_last_of_them`, `test_webshop_faults.test_an_oracle_earns_exactly_one_on_every_goal_of_the_toy_shop` |
"""  # noqa: E501 - a table

from __future__ import annotations

import ast
import re
import tracemalloc

import pytest

from benchmarks.config import Evaluation, load_suite
from benchmarks.evaluate import evaluate_demonstrator, totals
from envs.base import TaskPanel
from envs.webshop import WebShopEnv, WebShopWorld, load_world
from envs.webshop.goals import Goal
from tests.conftest import ROOT
from tests.envs import shops


def test_every_test_that_the_table_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)\.(test_\w+)`", __doc__ or ""))
    there = {
        (path.stem, node.name)
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    assert named
    assert not named - there


def test_a_goal_number_beyond_the_few_human_goals_is_named_with_those_there_are() -> None:
    env = shops.world("human").make_env()
    with pytest.raises(KeyError, match="'human-3': this world has 3 goals, human-0 to human-2"):
        env.reset(options={"task": "human-3"})


def test_eight_environments_add_less_than_a_tenth_of_the_catalogues_memory() -> None:
    tracemalloc.start()
    try:
        world = load_world(products=200)
        one = opened(world)
        held, _ = tracemalloc.get_traced_memory()
        others = [opened(world) for _ in range(7)]
        added = tracemalloc.get_traced_memory()[0] - held
    finally:
        tracemalloc.stop()
    assert added < held / 10
    assert {id(env.world.catalogue) for env in (one, *others)} == {id(world.catalogue)}


def opened(world: WebShopWorld) -> WebShopEnv:
    env = world.make_env()
    env.reset(options={"task": "synthetic-0"})
    env.step("search[shirt]")
    return env


@pytest.mark.parametrize(("reward", "linen"), [("official", 1.0), ("strict", 0.75)])
def test_an_oracle_earns_exactly_one_on_every_goal_of_the_toy_shop(reward: str, linen: float) -> None:
    # The linen shirt offers `one` under two names, which can be chosen for the last only. Officially the name does
    # not count; strictly one of four parts is lost.
    world = shops.world(reward=reward)
    earned = {goal.task_id: oracle(world, goal) for goal in world.goals if goal.product.asin != "B000000002"}
    assert list(earned.values()) == [1.0] * 6
    assert [oracle(world, goal) for goal in world.goals if goal.product.asin == "B000000002"] == [linen]


def oracle(world: WebShopWorld, goal: Goal) -> float:
    """What buying just what the goal was made from earns."""
    env = world.make_env()
    env.reset(options={"task": goal.task_id})
    env.step(f"search[{goal.product.title}]")
    env.step(f"click[{goal.product.asin}]")
    for _, value in goal.options:
        env.step(f"click[{value}]")
    return env.step("click[buy now]")[1]


def test_the_rule_player_earns_what_was_worked_out_by_hand_on_the_toy_shop() -> None:
    # Cotton shirts (4 goals): no title says `machine wash`, so the linen shirt, first in the results, is bought: of
    # two attributes, two options and the price only the price fits.
    # Linen shirt: `one` can never be chosen for `a`, so the player clicks on to the step limit and earns nothing.
    # Lamps: the first lamp found is bought by the one without a cap, the one that fits by the other.
    world = shops.world()
    expected = {"B000000001": 0.2, "B000000002": 0.0, "B000000003": 1.0, "B000000004": 1.0}
    panel = TaskPanel(
        world.name,
        "test",
        tuple(goal.task_id for goal in world.goals),
        tuple(goal.instruction for goal in world.goals),
    )
    rows = evaluate_demonstrator(world, panel, Evaluation(modes=("greedy",)), seed=0)
    assert [row["score"] for row in rows] == [
        pytest.approx(expected[goal.product.asin]) for goal in world.goals
    ]
    assert totals(rows)["test"]["greedy"]["score"] == pytest.approx((4 * 0.2 + 0.0 + 1.0 + 1.0) / 7)
    assert totals(rows)["test"]["greedy"]["successes"] == 2


def test_the_record_of_an_episode_holds_the_reward_that_the_table_counts() -> None:
    world = shops.world()
    lamp = next(goal for goal in world.goals if goal.product.asin == "B000000003")
    panel = TaskPanel(world.name, "test", (lamp.task_id,), (lamp.instruction,))
    (row,) = evaluate_demonstrator(world, panel, Evaluation(modes=("greedy",)), seed=0)
    assert (row["success"], row["score"], oracle(world, lamp)) == (True, 1.0, 1.0)
    assert totals([row])["test"]["greedy"] == {
        "n": 1,
        "errored": 0,
        "successes": 1,
        "success": 1.0,
        "score": 1.0,
    }


def test_the_source_of_goals_is_explicit_or_the_documented_default_and_always_recorded() -> None:
    with pytest.raises(TypeError, match="goal_source"):
        WebShopWorld(shops.catalogue())  # type: ignore[call-arg]
    assert load_world(products=60).describe()["goal_source"] == "synthetic"
    assert load_world(products=60, goal_source="human").describe()["goal_source"] == "human"
    assert load_suite("webshop").base.world["goal_source"] == "synthetic"
