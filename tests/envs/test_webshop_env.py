"""The environment: page flow, action grammar, endings, and independence of episodes from one another."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.webshop import WebShopEnv, WebShopInfo
from envs.webshop.flow import parse_action
from tests.envs import shops

WORLD = shops.world()
RED_LARGE = next(g for g in WORLD.goals if g.options == (("color", "red"), ("size", "large")))
LAMP = next(goal for goal in WORLD.goals if goal.product.asin == "B000000003")
PERFECT = ("search[cotton shirt]", "click[B000000001]", "click[red]", "click[large]", "click[buy now]")

Answer = tuple[str, float, bool, bool, WebShopInfo]


def opened(goal: Any = RED_LARGE, **settings: Any) -> WebShopEnv:
    env = WebShopEnv(WORLD, **settings)
    env.reset(options={"task": goal.task_id})
    return env


def play(env: WebShopEnv, *actions: str) -> Answer:
    return [env.step(action) for action in actions][-1]


def segments(observation: str) -> list[str]:
    return observation.split(" [SEP] ")


def test_a_perfect_purchase_pays_one_and_is_a_success() -> None:
    _, reward, terminated, truncated, info = play(opened(), *PERFECT)
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert (info["success"], info["score"]) == (True, 1.0)
    assert info["reward_parts"] is not None
    assert info["reward_parts"].r_option == 1.0


def test_a_partial_purchase_pays_its_share_and_is_no_success() -> None:
    _, reward, terminated, _, info = play(opened(), *PERFECT[:3], "click[buy now]")
    assert (reward, terminated, info["success"], info["score"]) == (0.8, True, False, 0.8)


def test_nothing_is_paid_before_the_purchase() -> None:
    env = opened()
    assert [env.step(action)[1] for action in PERFECT] == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_pages_show_the_official_segments() -> None:
    env = opened()
    text = RED_LARGE.instruction
    opening, _ = env.reset(options={"task": RED_LARGE.task_id})
    assert segments(opening) == ["WebShop", "Instruction:", text, "Search"]
    top = ["Instruction:", text, "Back to Search"]
    results = segments(play(env, "search[linen]")[0])
    assert results == [
        *(*top, "Page 1 (Total results: 1)", "Next >"),
        *("B000000002", "Bolt Linen Shirt", "$19.99 to $30.5"),
    ]
    item = segments(play(env, "search[acme shirt]", "click[b000000001]")[0])
    assert item == [
        *(*top, "< Prev", "size", "large", "x-large", "color", "red", "navy | white", "Acme Cotton Shirt"),
        *("Price: $25.0", "Rating: N.A.", "Description", "Features", "Reviews", "Buy Now"),
    ]
    assert segments(play(env, "click[features]")[0]) == [*top, "< Prev", "soft", ""]


def test_the_structured_page_holds_what_is_shown() -> None:
    env = opened()
    page = play(env, "search[lamp]")[4]["page"]
    assert (page.kind, page.number, page.total) == ("results", 1, 2)
    assert [(listing.asin, listing.price) for listing in page.listings] == [
        ("B000000003", "$100.0"),
        ("B000000004", "$1985.0"),
    ]
    page = play(env, *PERFECT[:4])[4]["page"]
    assert (page.kind, page.asin, page.title) == ("item", "B000000001", "Acme Cotton Shirt")
    assert page.options == (("size", ("large", "x-large")), ("color", ("red", "navy | white")))
    assert page.selected == (("color", "red"), ("size", "large"))
    page = play(env, "click[description]")[4]["page"]
    assert (page.kind, page.name, page.lines) == ("subpage", "Description", ("",))


def test_clickables_and_admissible_actions_on_each_page() -> None:
    env = opened()
    _, info = env.reset(options={"task": RED_LARGE.task_id})
    assert (info["has_search_bar"], info["clickables"]) == (True, ("search",))
    assert info["admissible"] == ("search[<keywords>]",)
    info = play(env, "search[linen]")[4]
    assert info["clickables"] == ("back to search", "next >", "b000000002")
    assert info["admissible"] == ("click[back to search]", "click[next >]", "click[b000000002]")
    assert not info["has_search_bar"]
    info = play(env, "click[b000000002]")[4]
    shown = ("back to search", "< prev", "description", "features", "reviews", "buy now", "one")
    assert info["clickables"] == shown
    assert play(env, "click[buy now]")[4]["clickables"] == ()


@pytest.mark.parametrize(
    ("action", "parsed"),
    [
        ("search[red shoes]", ("search", "red shoes")),
        ("click[Buy Now]", ("click", "buy now")),
        ("click[buy now] and more", ("click", "buy now")),
        ("search[shoes]\n", ("search", "shoes")),
        ("search[shoes]]]", ("search", "shoes]]")),
        ("search[]hair]", ("search", "]hair")),
        ("click[ buy now]", ("click", " buy now")),
        ("search[a [b] c]", None),
        ("search[a] search[b]", None),
        ("Search[a]", None),
        (" click[a]", None),
        ("click [a]", None),
        ("\nsearch[a]", None),
        ("search[a\nb]", None),
        ("Thought: x\nAction: search[a]", None),
        ("search[]", None),
        ("search", None),
        ("", None),
    ],
)
def test_action_grammar(action: str, parsed: tuple[str, str] | None) -> None:
    assert parse_action(action) == parsed


@pytest.mark.parametrize(
    "action", ["", "buy it", "click[buy now]", "click[search]", "click[color]", "search[]"]
)
def test_an_action_that_is_not_understood_shows_the_same_page_and_costs_a_step(action: str) -> None:
    env = opened(max_steps=2)
    before, _ = env.reset(options={"task": RED_LARGE.task_id})
    after, reward, terminated, truncated, info = env.step(action)
    assert (after, reward, terminated, truncated, info["action_valid"]) == (before, 0.0, False, False, False)
    assert env.step(action)[3]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=20) | st.sampled_from(PERFECT[:4]), max_size=6))
def test_no_text_ever_raises(actions: list[str]) -> None:
    env = opened(max_steps=10)
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        assert env.observation_space.contains(observation)
        assert (reward, terminated, truncated) == (0.0, False, False)


def test_a_search_is_answered_on_pages_without_a_search_bar_as_officially() -> None:
    info = play(opened(), "search[linen]", "click[b000000002]", "search[lamp]")[4]
    assert (info["action_valid"], info["page"].kind, info["page"].total) == (True, "results", 2)


@pytest.mark.parametrize("query", ["<r> lamp", "<a> lamp", "<c>", "<a>", "<r>"])
def test_queries_that_crash_or_draw_officially_are_ordinary_searches(query: str) -> None:
    pages = [play(opened(), f"search[{query}]")[4]["page"] for _ in range(2)]
    assert pages[0] == pages[1]
    assert pages[0].total == (2 if "lamp" in query else 0)


def test_kind_queries_list_a_whole_kind_unless_switched_off() -> None:
    def found(query: str, **settings: Any) -> list[str]:
        env = shops.world(**settings).make_env()
        env.reset(options={"task": "synthetic-0"})
        return [listing.asin[-1] for listing in play(env, f"search[{query}]")[4]["page"].listings]

    assert found("<c> garden") == found("<q> desk lamps") == ["3", "4"]
    assert found("<c> garden", prefix_queries=False) == []
    assert sorted(found("<q> socks", prefix_queries=False)) == ["5", "8"]


def test_a_new_value_of_an_option_replaces_the_old_one_and_the_page_text_stays() -> None:
    env = opened()
    before = play(env, *PERFECT[:2])[0]
    observation, *_, info = play(env, "click[red]", "click[navy | white]", "click[navy | white]")
    assert info["page"].selected == (("color", "navy | white"),)
    assert observation == before


def test_a_value_that_two_options_share_is_chosen_for_the_last_of_them() -> None:
    info = play(opened(), "search[linen]", "click[b000000002]", "click[one]")[4]
    assert info["clickables"].count("one") == 1
    assert info["page"].selected == (("b", "one"),)


def test_leaving_an_item_forgets_its_options_but_a_sub_page_keeps_them() -> None:
    env = opened()
    kept = play(env, *PERFECT[:3], "click[features]", "click[< prev]")[4]["page"]
    assert kept.selected == (("color", "red"),)
    back = play(env, "click[< prev]")[4]["page"]
    assert (back.kind, back.listings[0].asin) == ("results", "B000000001")
    assert play(env, "click[b000000001]")[4]["page"].selected == ()


def test_next_goes_on_past_the_end_and_previous_comes_back() -> None:
    env = opened()
    page = play(env, "search[lamp]", "click[next >]")[4]["page"]
    assert (page.number, page.total, page.listings) == (2, 2, ())
    assert "< prev" in play(env, "click[next >]")[4]["clickables"]
    assert play(env, "click[< prev]", "click[< prev]")[4]["page"].number == 1


def test_rich_text_marks_visited_products_and_chosen_options() -> None:
    env = opened(observation_mode="text_rich")
    item = play(env, *PERFECT[:4])[0]
    assert item.startswith("You have clicked red.\nYou have clicked large.\nInstruction:\n")
    assert "\n  [clicked button] red [clicked button_]\n  [button] navy | white [button_]\n" in item
    results = play(env, "click[< prev]")[0]
    assert "\n\n[clicked button] B000000001 [clicked button_]\nAcme Cotton Shirt\n$25.0\n" in results
    assert "clicked" not in play(env, "click[back to search]", "search[shirt]")[0]


def test_the_attributes_page_is_there_only_when_asked_for() -> None:
    env = shops.world(show_attributes=True).make_env()
    env.reset(options={"task": RED_LARGE.task_id})
    observation, *_, info = play(env, *PERFECT[:2], "click[attributes]")
    assert segments(observation)[4:] == [
        "long sleeve",
        "machine wash",
        "fashion",
        "men's shirts",
        shops.SHIRTS,
    ]
    assert info["action_valid"]
    assert not play(opened(), *PERFECT[:2], "click[attributes]")[4]["action_valid"]


def test_blank_texts_leave_the_segments_that_the_official_parser_leaves() -> None:
    observation = play(opened(), "search[bullet]", "click[b000000007]")[0]
    assert segments(observation)[4:6] == ["Price: $25.0", "Rating: N.A."]  # no title
    observation = play(opened(), "search[bullet]", "click[b000000007]", "click[description]")[0]
    assert segments(observation)[4:] == [""]  # one blank


def test_the_last_observation_is_the_purchase_page_of_the_same_goal() -> None:
    env = opened()
    observation, *_, info = play(env, *PERFECT)
    shown = segments(observation)
    assert shown[0] == "Thank you for shopping with us!"
    assert shown[shown.index("asin") + 1] == "B000000001"
    assert '{"color": "red", "size": "large"}' in shown
    assert shown[shown.index("Your score (min 0.0, max 1.0)") + 1] == "1.0"
    assert (info["task_id"], info["page"].kind) == (RED_LARGE.task_id, "done")


def test_an_option_value_on_the_purchase_page_is_safe_json() -> None:
    env = opened(LAMP)
    observation = play(
        env, "search[quoted]", "click[b000000008]", 'click[9"]', "click[\u00e9t\u00e9]", "click[buy now]"
    )[0]
    assert '{"mood": "\\u00e9t\\u00e9", "size": "9\\""}' in segments(observation)


@pytest.mark.parametrize("actions", [(), PERFECT[:2], PERFECT, ("nonsense",)])
def test_the_next_episode_does_not_depend_on_how_the_last_one_ended(actions: tuple[str, ...]) -> None:
    env = opened()
    for action in actions:
        env.step(action)
    fresh = WebShopEnv(WORLD)
    assert env.reset(options={"task": LAMP.task_id}) == fresh.reset(options={"task": LAMP.task_id})
    assert play(env, "search[lamp]") == play(fresh, "search[lamp]")


def test_an_episode_ends_exactly_once() -> None:
    env = opened()
    play(env, *PERFECT)
    with pytest.raises(RuntimeError, match="episode is over"):
        env.step("search[lamp]")
    env.reset(options={"task": LAMP.task_id})
    assert not env.step("search[lamp]")[2]


def test_the_step_limit_truncates_and_is_never_a_success() -> None:
    env = opened(max_steps=4)
    _, reward, terminated, truncated, info = play(env, *PERFECT[:4])
    assert (reward, terminated, truncated, info["success"], info["score"]) == (0.0, False, True, False, 0.0)
    with pytest.raises(RuntimeError, match="episode is over"):
        env.step("click[buy now]")


def test_a_purchase_at_the_last_step_is_an_end_of_the_task_not_a_truncation() -> None:
    assert play(opened(max_steps=5), *PERFECT)[1:4] == (1.0, True, False)


def test_misuse_is_named() -> None:
    env = WebShopEnv(WORLD)
    with pytest.raises(RuntimeError, match="call reset"):
        env.step("search[a]")
    env.reset(options={"task": LAMP.task_id})
    with pytest.raises(TypeError, match="action is None, expected a string"):
        env.step(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"unknown reset options \['session'\], expected 'task'"):
        env.reset(options={"session": 1})
    with pytest.raises(ValueError, match="max_steps is 0"):
        WebShopEnv(WORLD, max_steps=0)
    with pytest.raises(ValueError, match="observation_mode is 'html'"):
        WebShopEnv(WORLD, observation_mode="html")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "task", ["synthetic-7", "synthetic--1", "synthetic-01", "human-0", "7", 3, None, "synthetic-\u0663"]
)
def test_an_unknown_task_is_named_with_the_ids_that_exist(task: Any) -> None:
    with pytest.raises(KeyError, match="this world has 7 goals, synthetic-0 to synthetic-6"):
        WebShopEnv(WORLD).reset(options={"task": task})


def test_envs_of_one_world_share_one_catalogue_and_index() -> None:
    envs = [WORLD.make_env() for _ in range(8)]
    assert {id(env.world.catalogue) for env in envs} == {id(WORLD.catalogue)}
    assert {id(env.world.shop.index) for env in envs} == {id(WORLD.shop.index)}


def test_interleaved_episodes_equal_solo_ones() -> None:
    lamp = ("search[desk lamp]", "click[b000000003]", "click[description]", "click[< prev]", "click[buy now]")
    solo = [
        [opened_env.step(a) for a in acts] for opened_env, acts in ((opened(), PERFECT), (opened(LAMP), lamp))
    ]
    first, second = opened(), opened(LAMP)
    mixed = [(first.step(a), second.step(b)) for a, b in zip(PERFECT, lamp, strict=True)]
    assert [list(answers) for answers in zip(*mixed, strict=True)] == solo


def test_a_group_of_envs_opens_the_same_task_alike() -> None:
    answers = [shops.world().make_env().reset(options={"task": "synthetic-4"}) for _ in range(4)]
    assert all(answer == answers[0] for answer in answers)
    assert WORLD.goals[4].instruction in answers[0][0]


def test_without_a_task_the_seed_alone_chooses_a_train_task() -> None:
    train, test = set(WORLD.panel("train").task_ids), set(WORLD.panel("test").task_ids)
    chosen = [WORLD.make_env().reset(seed=seed)[1]["task_id"] for seed in range(16)]
    assert chosen == [WORLD.make_env().reset(seed=seed)[1]["task_id"] for seed in range(16)]
    assert len(set(chosen)) > 1
    assert set(chosen) <= train
    assert not train & test


def test_every_goal_of_a_panel_opens_exactly_once() -> None:
    env = WORLD.make_env()
    ids = [task for split in WORLD.splits for task in WORLD.panel(split).task_ids]
    opened_ids = [env.reset(options={"task": task})[1]["task_id"] for task in ids]
    assert opened_ids == ids
    assert sorted(ids) == sorted(goal.task_id for goal in WORLD.goals)


def test_gymnasiums_checker_accepts_the_registered_environment() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render fps.*")
        env = gymnasium.make("EMPG/WebShop-v0", products=60, seed=1)
        check_env(env.unwrapped)
    assert env.unwrapped.spec is not None
    assert isinstance(env.unwrapped, WebShopEnv)


def test_registered_environments_with_equal_settings_share_one_world() -> None:
    first, second = (gymnasium.make("EMPG/WebShop-v0", products=60, seed=1).unwrapped for _ in range(2))
    assert isinstance(first, WebShopEnv)
    assert isinstance(second, WebShopEnv)
    assert first.world is second.world
