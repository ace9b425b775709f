"""Faults that users of search environments reported in public (kinds S1 to S11), and the tests that catch each here.

Several are caught by tests that stand where the part is tested; the table names them, and a test below checks that
each exists. None is void; the numbers 5 and 8 are not in use.

| kind | fault | caught by |
| --- | --- | --- |
| S1 | the reward counts answers that the prompt holds | `test_deepsearch_faults.test_answers_in_the_question_or_the_thought_are_not_counted`, `test_deepsearch_env.test_only_an_answer_pays_and_it_ends_the_episode` |
| S2 | text that a passage brought is judged | `test_deepsearch_env.test_an_answer_that_only_a_passage_gives_is_none`, `test_deepsearch_env.test_the_first_whole_action_counts_and_nothing_else_is_understood` |
| S3 | a failing scorer or retriever becomes reward 0 | `test_deepsearch_env.test_a_failing_judge_is_an_env_error_and_no_wrong_answer`, `test_deepsearch_env.test_a_failing_query_is_one_errored_trajectory_and_never_a_reward`, `test_deepsearch_http.test_an_answer_that_fails_three_times_is_asked_for_again`, `test_report.test_errored_episodes_lower_no_rate_and_are_counted` |
| S4 | a retriever that never answers, or comes up late | `test_deepsearch_http.test_a_server_that_never_answers_is_down_after_its_timeouts`, `test_deepsearch_http.test_a_server_that_takes_its_time_is_waited_for`, `test_deepsearch_env.test_a_retriever_that_is_down_ends_the_rollout` |
| S6 | text behind the action is cut, with ids that nobody sampled | `test_rollout.test_what_was_written_behind_the_action_is_kept_as_ids_but_not_sent`, `test_deepsearch_env.test_the_first_whole_action_counts_and_nothing_else_is_understood` |
| S7 | a stop string inside a token; here a turn ends with a token, and ids are kept as sampled | `test_rollout.test_sampled_ids_that_the_tokenizer_would_merge_are_kept_as_sampled_over_all_turns`, `test_torch_policy.test_the_end_of_turn_token_ends_a_turn_and_is_part_of_it` |
| S9 | the last message counts as an answer | `test_deepsearch_env.test_the_gold_in_a_query_or_without_an_answer_is_no_success` |
| S10 | retrieved tokens are trained on | `test_deepsearch_faults.test_only_sampled_tokens_are_trained_on_whatever_the_passages_say` |
| S11 | an answer before a search is read as the search | `test_deepsearch_env.test_the_first_whole_action_counts_and_nothing_else_is_understood` |
"""  # noqa: E501 - a table

from __future__ import annotations

import ast
import re
from dataclasses import replace

from agents.policies.scripted import ScriptedPolicy, byte_tokenizer
from agents.prompts import Prompts
from agents.responses import format_response
from agents.rollout import Episode, RolloutConfig, rollout
from agents.trajectory import Trajectory
from empg.batch import make_batch
from envs.base import StepInfo
from envs.deepsearch.corpus import MemoryCorpus
from envs.deepsearch.world import DeepSearchWorld
from tests.conftest import ROOT
from tests.envs.libraries import PASSAGES, QUESTION, Counting, world


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


def play(there: DeepSearchWorld, task: str, response: str) -> Trajectory:
    """An episode of a policy that writes this first and then answers wrongly."""

    def respond(observation: str, info: StepInfo) -> str:
        return response if observation.startswith("Question") else format_response("t", "answer[nowhere]")

    config = RolloutConfig(max_new_tokens=200)
    return rollout(
        ScriptedPolicy.of(respond),
        there.make_env,
        [Episode(task, 0, 0, (0,))],
        config,
        prompts=Prompts("S"),
        seed=0,
    )[0]


def test_answers_in_the_question_or_the_thought_are_not_counted() -> None:
    marked = replace(
        QUESTION, id="marked", text="answer[Elmwick] <answer>Elmwick</answer> Action: answer[Elmwick]"
    )
    there = world(test=[marked])
    thought = format_response("I could say answer[Elmwick]", "search[Red Kite]")
    played = play(there, "marked", thought)
    assert [step.action for step in played.steps] == ["search[Red Kite]", "answer[nowhere]"]
    assert (played.success, played.reward) == (False, 0.0)
    assert play(there, "marked", format_response("t", "answer[Elmwick]")).success


def test_only_sampled_tokens_are_trained_on_whatever_the_passages_say() -> None:
    """As many tokens have a step as were sampled, and they are the sampled ones, under either text of the passages."""
    changed = [replace(passage, text=f"{passage.text} answer[Elmwick]" * 3) for passage in PASSAGES]
    kept = []
    for passages in (PASSAGES, tuple(changed)):
        retriever = Counting()
        retriever.inner = type(retriever.inner)(MemoryCorpus(passages))
        played = play(world(retriever), "q0", format_response("t", "search[Red Kite]"))
        batch = make_batch([played], pad_id=0)
        sampled = [token for step in played.steps for token in step.action_ids]
        trained = batch.token_ids[batch.step_of_token >= 0].tolist()
        assert trained == sampled
        kept.append(trained)
    assert kept[0] == kept[1]
    assert byte_tokenizer().decode(kept[0]).count("answer[") == 1
