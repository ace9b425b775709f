"""The Deep Search environment: what each action shows, who pays, and what a failing retriever or judge does."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import example, given
from hypothesis import strategies as st

from agents.policies.scripted import ScriptedPolicy
from agents.prompts import Prompts
from agents.responses import format_response
from agents.rollout import Episode, RolloutConfig, rollout
from envs.base import EnvError, StepInfo
from envs.deepsearch.actions import Command, parse_action
from envs.deepsearch.env import NOT_UNDERSTOOD, DeepSearchEnv, cut, slices_of
from envs.deepsearch.judge import JudgeError
from envs.deepsearch.retrieval.base import QueryFailed, RetrieverDown
from envs.deepsearch.scorers import Verdict
from envs.deepsearch.world import DeepSearchWorld
from tests.envs.libraries import FAR, OTHER, PASSAGES, QUESTION, Counting, world


def opened(there: DeepSearchWorld | None = None, task: str = "q0") -> DeepSearchEnv:
    env = (there or world()).make_env()
    env.reset(options={"task": task})
    return env


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("search[red kite]", Command("search", "red kite")),
        ("  Search [ red kite ]  ", Command("search", "red kite")),
        ("search[films [1950]]", Command("search", "films [1950]")),
        ("search[a] answer[b]", Command("search", "a")),
        ("answer[b] search[a]", Command("answer", "b")),
        ("answer[]", Command("answer", "")),
        ("next", Command("next", "")),
        ("NEXT[]", Command("next", "")),
        ("open[Ana Moor]", Command("open", "Ana Moor")),
        ("search[]", None),
        ("open[ ]", None),
        ("search[red kite", None),
        ("say search[red kite]", None),
        ("<answer>Elmwick</answer>", None),
        ("<information>answer[Elmwick]</information>", None),
        ("answer: Elmwick", None),
        ("", None),
    ],
)
def test_the_first_whole_action_counts_and_nothing_else_is_understood(
    text: str, expected: Command | None
) -> None:
    assert parse_action(text) == expected


@given(st.text())
def test_any_text_is_an_action_or_none(text: str) -> None:
    found = parse_action(text)
    assert found is None or found.verb in ("search", "open", "next", "answer")


@given(st.text(st.characters(exclude_characters="[]"), min_size=1).map(str.strip).filter(bool))
def test_whatever_stands_between_brackets_is_the_argument(text: str) -> None:
    assert parse_action(f"search[{text}]") == Command("search", text)


def test_it_passes_the_checker_of_gymnasium() -> None:
    check_env(world().make_env(), skip_render_check=True)


def test_it_is_registered_with_the_settings_of_its_world() -> None:
    env = gymnasium.make(
        "EMPG/DeepSearch-v0", passages=1000, train_questions=20, test_questions=5, max_steps=7
    )
    observation, info = env.reset(seed=1)
    assert observation.startswith("Question: ")
    assert info["task_id"].startswith("train-")
    assert env.unwrapped.max_steps == 7  # type: ignore[attr-defined]


def test_the_opening_observation_is_the_question() -> None:
    observation, info = world().make_env().reset(options={"task": "q0"})
    assert observation == "Question: Where was the director of Red Kite born?"
    assert info["admissible"] == ("search[<query>]", "answer[<text>]")
    assert (info["task_type"], info["domain"], info["answer"]) == ("bridge", "id", None)


def test_a_search_shows_id_title_and_text_of_the_best_passages() -> None:
    observation, reward, terminated, truncated, info = opened(world(results=2)).step("search[Red Kite]")
    assert observation.splitlines()[0] == f"[p0] Red Kite: {PASSAGES[0].text}"
    assert (reward, terminated, truncated, info["action_valid"]) == (0.0, False, False, True)
    assert info["shown"][0] == ("Red Kite", PASSAGES[0].text)
    assert "open[Red Kite]" in info["admissible"]


def test_a_search_without_a_hit_says_so() -> None:
    observation, _, _, _, info = opened().step("search[zzz]")
    assert (observation, info["action_valid"], info["shown"]) == ("Nothing found.", True, ())


def test_long_passages_are_cut_and_what_is_shown_is_what_info_holds() -> None:
    observation, *_, info = opened(world(results=1, passage_words=3)).step("search[Red Kite]")
    assert observation == "[p0] Red Kite: Red Kite is …"
    assert info["shown"] == (("Red Kite", "Red Kite is …"),)


@pytest.mark.parametrize("wanted", ["Ana Moor", "ana  MOOR", "p1", "p2"])
def test_a_page_opens_by_title_or_by_the_id_of_any_of_its_passages(wanted: str) -> None:
    observation, *_, info = opened().step(f"open[{wanted}]")
    assert observation == f"Ana Moor: {PASSAGES[1].text}\n{PASSAGES[2].text}"
    assert info["action_valid"]


def test_accents_do_not_matter_in_a_title() -> None:
    assert opened().step("open[cafe noir]")[0].startswith("Café Noir: ")


def test_an_id_that_was_shown_goes_before_a_title_and_a_title_before_any_id() -> None:
    there = world()
    env = opened(there)
    assert env.step("open[1950]")[0].startswith("1950: ")
    assert env.step("open[7]")[0].startswith("1950: ")


def test_next_turns_the_slices_of_a_page_until_its_end() -> None:
    env = opened(world(page_words=7))
    whole = f"{PASSAGES[1].text}\n{PASSAGES[2].text}".split()
    shown = [env.step("open[Ana Moor]")[0], env.step("next")[0], env.step("next")[0]]
    assert [text.partition(": ")[0] for text in shown] == [f"Ana Moor ({n} of 3)" for n in (1, 2, 3)]
    assert [word for text in shown for word in text.partition(": ")[2].split()] == whole
    observation, *_, info = env.step("next")
    assert (observation, info["action_valid"]) == ("This is the end of Ana Moor.", False)


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("open[Nowhere]", "There is no page 'Nowhere'."),
        ("next", "No page is open."),
        ("find Red Kite", NOT_UNDERSTOOD),
    ],
)
def test_an_action_that_does_nothing_costs_a_step_and_is_marked(action: str, said: str) -> None:
    env = opened(world(max_steps=2))
    observation, reward, terminated, truncated, info = env.step(action)
    assert (observation, reward, terminated, truncated) == (said, 0.0, False, False)
    assert not info["action_valid"]
    assert env.step("search[x]")[3]


@pytest.mark.parametrize(
    ("answer", "right"), [("elmwick", True), ("the Elm Wick.", True), ("Oakham", False), ("", False)]
)
def test_only_an_answer_pays_and_it_ends_the_episode(answer: str, right: bool) -> None:
    env = opened()
    env.step("search[Red Kite]")
    _, reward, terminated, truncated, info = env.step(f"answer[{answer}]")
    assert (reward, terminated, truncated) == (float(right), True, False)
    assert (info["success"], info["score"], info["answer"]) == (right, float(right), answer)
    assert isinstance(info["reward_parts"], Verdict)
    with pytest.raises(RuntimeError, match="the episode is over"):
        env.step("next")


def test_an_answer_that_only_a_passage_gives_is_none() -> None:
    env = opened(world(max_steps=2))
    assert "answer[Elmwick]" in env.step("search[Café Noir]")[0]
    _, reward, terminated, truncated, info = env.step("open[Café Noir]")
    assert (reward, terminated, truncated, info["success"], info["answer"]) == (0.0, False, True, False, None)


def test_the_gold_in_a_query_or_without_an_answer_is_no_success() -> None:
    env = opened(world(max_steps=2))
    env.step("search[Elmwick]")
    _, reward, _, truncated, info = env.step("Elmwick")
    assert (reward, truncated, info["success"]) == (0.0, True, False)


def test_an_answer_with_the_last_step_is_judged_and_no_truncation() -> None:
    env = opened(world(max_steps=1))
    assert env.step("answer[Elmwick]")[1:4] == (1.0, True, False)


def test_info_has_the_same_keys_at_every_moment() -> None:
    env = world().make_env()
    _, first = env.reset(options={"task": "q0"})
    moments = [first, *(env.step(action)[4] for action in ("search[a]", "x", "next", "answer[b]"))]
    assert len({frozenset(moment) for moment in moments}) == 1


def test_the_seed_alone_chooses_a_train_task() -> None:
    env = world().make_env()
    assert env.reset(seed=3)[1]["task_id"] == QUESTION.id
    with pytest.raises(KeyError, match="unknown task 'q9': this world has 3"):
        env.reset(options={"task": "q9"})
    with pytest.raises(ValueError, match="unknown reset options"):
        env.reset(options={"tasks": "q0"})


@pytest.mark.parametrize("name", ["max_steps", "results", "passage_words", "page_words"])
def test_an_impossible_setting_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0, expected at least 1"):
        world(**{name: 0})


def test_the_panel_holds_questions_and_answers_of_both_domains() -> None:
    panel = world().panel("test")
    assert panel.task_ids == (OTHER.id, FAR.id)
    assert panel.task_texts[1] == f"{FAR.text}\n1950"
    assert world().describe()["task_types"] == {"single": "id", "year": "ood"}
    with pytest.raises(ValueError, match="a panel of 3 deepsearch test tasks was asked for, but there are 2"):
        world().panel("test", 3)


# Failures


def test_a_failing_query_is_an_env_error_and_others_go_on() -> None:
    there = world(Counting({"bad": QueryFailed("500")}))
    with pytest.raises(EnvError, match="500"):
        opened(there).step("search[bad]")
    assert opened(there).step("search[Red Kite]")[4]["action_valid"]


def test_a_failing_judge_is_an_env_error_and_no_wrong_answer() -> None:
    class Failing:
        def __call__(self, question: str, answer: str, golds: Any) -> Verdict:
            raise JudgeError("no judge")

        def describe(self) -> dict[str, Any]:
            return {}

    with pytest.raises(EnvError, match="no judge"):
        opened(world(scorer=Failing())).step("answer[x]")


def asks(queries: dict[str, str]) -> ScriptedPolicy:
    """A policy that searches for what its task's question is mapped to, then answers."""

    def respond(observation: str, info: StepInfo) -> str:
        action = (
            f"search[{queries[info['task_id']]}]" if observation.startswith("Question") else "answer[Tarn]"
        )
        return format_response("t", action)

    return ScriptedPolicy.of(respond)


def play(there: DeepSearchWorld, queries: dict[str, str]) -> list[Any]:
    episodes = [Episode(task, number, 0, (number,)) for number, task in enumerate(queries)]
    config = RolloutConfig(max_new_tokens=100)
    return rollout(asks(queries), there.make_env, episodes, config, prompts=Prompts("Search."), seed=0)


def test_a_rollout_asks_the_retriever_once_a_round_for_all_episodes() -> None:
    retriever = Counting()
    played = play(world(retriever), {"q0": "Red Kite", "q1": "Elmwick", "q2": "Red Kite"})
    assert retriever.asked == [("Red Kite", "Elmwick")]
    assert [one.success for one in played] == [False, True, False]


def test_asking_together_shows_what_asking_alone_shows() -> None:
    queries = {"q0": "Red Kite", "q1": "town river", "q2": "Ana Moor prizes"}
    together = play(world(), queries)
    alone = [play(world(), {task: query})[0] for task, query in queries.items()]
    assert [one.steps[0].observation for one in together] == [one.steps[0].observation for one in alone]


def test_a_failing_query_is_one_errored_trajectory_and_never_a_reward() -> None:
    played = play(
        world(Counting({"bad": QueryFailed("500")})), {"q0": "bad", "q1": "Elmwick", "q2": "Red Kite"}
    )
    assert [one.end for one in played] == ["error", "terminated", "terminated"]
    assert played[0].error == "QueryFailed: 500"
    assert [one.success for one in played] == [False, True, False]


def test_a_retriever_that_is_down_ends_the_rollout() -> None:
    with pytest.raises(RetrieverDown, match="down"):
        play(world(Counting({"bad": RetrieverDown("down")})), {"q0": "bad", "q1": "Elmwick"})


@given(st.text(), st.integers(1, 20))
@example("0㐀", 1)
def test_slices_hold_all_of_a_text_in_order_and_so_many_words_each(text: str, words: int) -> None:
    slices = slices_of(text, words)
    assert "".join("".join(slices).split()) == "".join(text.split())
    assert all(len(slices_of(part, 1)) == words for part in slices[:-1])


@given(st.lists(st.text("abé-0", min_size=1), min_size=1), st.integers(1, 20))
def test_words_between_spaces_are_not_divided(written: list[str], words: int) -> None:
    assert [part.split() for part in slices_of(" ".join(written), words)] == [
        written[start : start + words] for start in range(0, len(written), words)
    ]


def test_a_text_without_spaces_is_cut_by_characters() -> None:
    assert slices_of("北京是中国的首都", 3) == ["北京是", "中国的", "首都"]
    assert cut("北京是中国的首都", 3) == "北京是 …"
