"""The native engine: texts, admissible commands and goals, by hand on a small kitchen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.alfworld.engine import NOTHING_HAPPENS, Game, Play
from envs.alfworld.facts import Facts, Literal, State
from envs.alfworld.grammar import parse_grammar
from envs.alfworld.names import official_names
from envs.alfworld.problem import GameError, parse_problem
from tests.envs import houses

OPENING = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a "
    "countertop 1, a desk 1, a drawer 2, a drawer 1, a fridge 1, a microwave 1, and a sinkbasin 1.\n\n"
    "Your task is to: put a mug in desk."
)
EVERYWHERE = {"look", "inventory", "help"}


def said(play: Play, *commands: str) -> list[str]:
    return [play.step(command).feedback for command in commands]


def local(play: Play) -> set[str]:
    """What can be done here, but for going elsewhere and what can be done everywhere."""
    admissible = play.step("look").admissible
    return {command for command in admissible if not command.startswith("go to")} - EVERYWHERE


def test_the_opening_lists_receptacles_by_id_and_tells_the_task() -> None:
    moment = Play(Game.parse(houses.problem(houses.goal("Apple", "Desk")), task="put a mug in desk.")).reset()
    assert moment.feedback == OPENING
    assert (moment.won, moment.understood) == (False, True)


def test_of_each_kind_the_first_id_gets_the_highest_number() -> None:
    names = official_names(
        ["mug_bar_3", "mug_bar_1", "sink_bar_1", "sink_bar_1_bar_sinkbasin", "agent1", "mug_bar_1"]
    )
    assert names == {
        "mug_bar_1": "mug 2",
        "mug_bar_3": "mug 1",
        "sink_bar_1": "sink 1",
        "sink_bar_1_bar_sinkbasin": "sinkbasin 1",
        "agent1": "agent1 ",
    }


def test_one_can_go_everywhere_from_the_start() -> None:
    moment = houses.play().reset()
    places = ("countertop 1", "desk 1", "drawer 1", "drawer 2", "fridge 1", "microwave 1", "sinkbasin 1")
    assert set(moment.admissible) == EVERYWHERE | {f"go to {place}" for place in places}
    assert list(moment.admissible) == sorted(moment.admissible)


def test_open_receptacles_show_what_is_on_them_and_closed_ones_do_not() -> None:
    play = houses.play()
    assert said(play, "go to countertop 1", "go to fridge 1", "open fridge 1", "close fridge 1") == [
        "You arrive at countertop 1. On the countertop 1, you see a knife 1, and a mug 2.",
        "You arrive at fridge 1. The fridge 1 is closed.",
        "You open the fridge 1. The fridge 1 is open. In it, you see a apple 1.",
        "You close the fridge 1.",
    ]


def test_an_object_goes_from_hand_to_receptacle() -> None:
    play = houses.play()
    assert said(play, "go to countertop 1", "take mug 2 from countertop 1", "inventory", "go to desk 1") == [
        "You arrive at countertop 1. On the countertop 1, you see a knife 1, and a mug 2.",
        "You pick up the mug 2 from the countertop 1.",
        "You are carrying: a mug 2.",
        "You arrive at desk 1. On the desk 1, you see a desklamp 1, and a mug 1.",
    ]
    assert said(play, "move mug 2 to desk 1", "inventory", "examine desk 1") == [
        "You move the mug 2 to the desk 1.",
        "You are not carrying anything.",
        "On the desk 1, you see a desklamp 1, a mug 2, and a mug 1.",
    ]


def test_what_is_admissible_at_a_receptacle_depends_on_hand_and_door() -> None:
    play = houses.play()
    said(play, "go to fridge 1")
    assert local(play) == {"examine fridge 1", "open fridge 1"}
    said(play, "open fridge 1")
    assert local(play) == {"examine fridge 1", "close fridge 1", "take apple 1 from fridge 1"}
    said(play, "take apple 1 from fridge 1")
    assert local(play) == {
        "examine fridge 1",
        "close fridge 1",
        "move apple 1 to fridge 1",
        "cool apple 1 with fridge 1",
        "examine apple 1",
    }


def test_what_is_in_hand_does_not_hide_what_a_receptacle_holds() -> None:
    play = houses.play()
    said(play, "go to countertop 1", "take mug 2 from countertop 1", "go to fridge 1")
    assert said(play, "open fridge 1") == [
        "You open the fridge 1. The fridge 1 is open. In it, you see a apple 1."
    ]


def test_heating_needs_no_open_door_and_undoes_cooling() -> None:
    play = houses.play()
    said(play, "go to fridge 1", "open fridge 1", "take apple 1 from fridge 1", "cool apple 1 with fridge 1")
    assert said(
        play, "examine apple 1", "go to microwave 1", "heat apple 1 with microwave 1", "examine apple 1"
    ) == [
        "This is a cold apple 1.",
        "You arrive at microwave 1. The microwave 1 is closed.",
        "You heat the apple 1 using the microwave 1.",
        "This is a hot apple 1.",
    ]


def test_a_clean_and_hot_thing_is_called_hot_and_clean() -> None:
    play = houses.play()
    said(play, "go to fridge 1", "open fridge 1", "take apple 1 from fridge 1")
    said(
        play,
        "go to sinkbasin 1",
        "clean apple 1 with sinkbasin 1",
        "go to microwave 1",
        "heat apple 1 with microwave 1",
    )
    assert said(play, "examine apple 1") == ["This is a hot and clean apple 1."]


def test_slicing_needs_the_knife_in_hand_and_reaches_through_a_closed_door() -> None:
    play = houses.play()
    said(play, "go to countertop 1", "take knife 1 from countertop 1", "go to fridge 1")
    assert "slice apple 1 with knife 1" in local(play)
    assert said(play, "slice apple 1 with knife 1") == ["You sliced the apple 1 with the knife 1."]


def test_two_receptacles_of_one_place_are_faced_together_and_cannot_be_gone_to_from_there() -> None:
    play = houses.play()
    said(play, "go to drawer 1")
    assert said(play, "look", "go to drawer 2", "open drawer 2") == [
        "You are facing the drawer 2, and drawer 1. Next to it, you see nothing.",
        NOTHING_HAPPENS,
        "You open the drawer 2. The drawer 2 is open. In it, you see a book 1.",
    ]


def test_what_moved_between_two_receptacles_of_one_place_lies_next_to_the_first() -> None:
    play = houses.play()
    said(
        play,
        "go to drawer 1",
        "open drawer 1",
        "open drawer 2",
        "take book 1 from drawer 2",
        "move book 1 to drawer 1",
    )
    assert said(play, "look") == ["You are facing the drawer 2, and drawer 1. Next to it, you see a book 1."]


def test_only_what_is_held_can_be_examined_among_objects() -> None:
    play = houses.play()
    said(play, "go to countertop 1")
    assert said(play, "examine mug 2", "take mug 2 from countertop 1", "examine mug 2") == [
        NOTHING_HAPPENS,
        "You pick up the mug 2 from the countertop 1.",
        "This is a normal mug 2. In it, you see nothing.",
    ]


@pytest.mark.parametrize(
    "command",
    ["", "dance", "GO TO desk 1", "go to desk 2", "go to  desk 1", "take apple 1", "put mug 1 in/on desk 1"],
)
def test_a_command_that_is_not_admissible_changes_nothing(command: str) -> None:
    play = houses.play()
    before = play.step("look")
    after = play.step(command)
    assert (after.feedback, after.understood) == (NOTHING_HAPPENS, False)
    assert after.admissible == before.admissible


def test_white_space_around_a_command_does_not_matter() -> None:
    assert houses.play().step("  go to desk 1\n").understood


def test_the_goal_holds_as_soon_as_the_last_fact_is_there_and_no_longer_than_it_is() -> None:
    play = houses.play(houses.goal("Mug", "SinkBasin", "(cleanable ?o) (isClean ?o)"))
    said(
        play,
        "go to countertop 1",
        "take mug 2 from countertop 1",
        "go to sinkbasin 1",
        "move mug 2 to sinkbasin 1",
    )
    assert not play.step("take mug 2 from sinkbasin 1").won
    assert not play.step("clean mug 2 with sinkbasin 1").won
    assert play.step("move mug 2 to sinkbasin 1").won
    assert play.step("look").won
    assert not play.step("take mug 2 from sinkbasin 1").won


def test_looking_needs_the_lamp_on_and_the_thing_in_hand_at_the_lamp() -> None:
    play = houses.play(houses.LOOK_GOAL)
    said(play, "go to desk 1", "use desklamp 1", "go to drawer 2", "open drawer 2")
    assert not play.step("take book 1 from drawer 2").won
    assert play.step("go to desk 1").won
    assert play.step("use desklamp 1").feedback == "You turn on the desklamp 1."


def test_two_things_must_be_two() -> None:
    play = houses.play(houses.TWO_GOAL)
    said(play, "go to desk 1", "take mug 1 from desk 1")
    assert not play.step("go to countertop 1").won
    assert play.step("move mug 1 to countertop 1").won


def test_something_that_is_cool_from_the_start_counts() -> None:
    cool = houses.play(houses.goal("Apple", "Fridge", "(isCool ?o)"), extra=["(isCool Apple_bar_1)"])
    assert cool.step("look").won


def test_plays_of_one_game_do_not_share_their_state() -> None:
    game = Game.parse(houses.problem(houses.goal("Apple", "Desk")), task="put a apple in desk.")
    first, second = Play(game), Play(game)
    first.reset(), second.reset()
    first.step("go to fridge 1"), first.step("open fridge 1")
    second.step("go to fridge 1")
    assert "open fridge 1" in second.step("look").admissible
    assert first.reset() == second.reset()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(define (problem p) (:objects a - object) (:init))", "no section :goal"),
        (houses.problem("(and (or (holds ?a ?o)))"), "'or'"),
        (houses.problem("(and (exists (?o - object"), "ends inside an expression"),
        (houses.problem(houses.TWO_GOAL, ["(atLocation agent1 loc_bar_Desk)"]), "at 2 places"),
    ],
)
def test_a_problem_that_cannot_be_played_is_refused(text: str, said: str) -> None:
    with pytest.raises(GameError, match=said.replace("(", r"\(")):
        Game.parse(text, task="t")


def test_a_problem_is_read_whatever_its_letter_case_comments_and_repetitions() -> None:
    once = parse_problem(houses.problem(houses.TWO_GOAL))
    again = parse_problem(
        houses.problem(
            houses.TWO_GOAL, ["; (isHot Mug_bar_1)", "(ISRECEPTACLEOBJECT MUG_BAR_1)", "(= (total-cost) 0)"]
        )
    )
    assert once == again


OLDER = '''
grammar :: """{"intro": [{"rhs": "#task#"}], "task": [{"rhs": "Your task is to: put a mug in desk."}],
  "seen": [{"rhs": "[{o.indefinite + ' ' + o.name | inreceptacle(o:object, r:receptacle)}]"}],
  "list_empty": [{"rhs": "nothing"}], "list_separator": [{"rhs": ", "}], "list_last_separator": [{"rhs": ", "}]}""";
action GotoLocation {
  template :: "go to [{r.name | receptacleatlocation(r:receptacle, lend:location)}]";
  feedback :: "On the {r.name}, you see #seen#.";
}
action PutObject {
  template :: "put {o} in/on {r}";
  feedback :: "You put the {o.name} in/on the {r.name}.";
}
''' + "".join(
    f'action {name} {{\n  template :: "{template}";\n  feedback :: "ok";\n}}\n'
    for name, template in [
        ("look", "look"),
        ("inventory", "inventory"),
        ("help", "help"),
        ("OpenObject", "open {r}"),
        ("CloseObject", "close {r}"),
        ("examineReceptacle", "examine {r}"),
        ("examineObject", "examine {o}"),
        ("PickupObject", "take {o} from {r}"),
        ("ToggleObject", "use {o}"),
        ("CleanObject", "clean {o} with {r}"),
        ("HeatObject", "heat {o} with {r}"),
        ("CoolObject", "cool {o} with {r}"),
    ]
)


def test_a_game_file_decides_by_its_grammar_how_commands_are_spelled_and_answered() -> None:
    play = Play(Game.parse(houses.problem(houses.goal("Mug", "Desk")), OLDER))
    assert play.reset().feedback == "Your task is to: put a mug in desk."
    assert play.game.task == "put a mug in desk."
    assert play.step("go to countertop 1").feedback == "On the countertop 1, you see a knife 1, a mug 2."
    play.step("take mug 2 from countertop 1")
    play.step("go to sinkbasin 1")
    assert not play.step("move mug 2 to sinkbasin 1").understood
    assert play.step("put mug 2 in/on sinkbasin 1").feedback == "You put the mug 2 in/on the sinkbasin 1."


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (OLDER.replace('"task"', '"tasks"'), 'no rule "task"'),
        (OLDER.replace('template :: "look";', ""), "action look of the grammar lacks"),
        (OLDER.replace('"intro": [', '"intro": [['), "no table of rules"),
    ],
)
def test_a_grammar_that_cannot_be_read_is_refused(broken: str, said: str) -> None:
    with pytest.raises(GameError, match=said):
        parse_grammar(broken)


SMALL = st.tuples(st.sampled_from(["p", "q"]), st.sampled_from("abc"), st.sampled_from("abc"))


@given(st.lists(SMALL, max_size=12), st.lists(st.tuples(st.booleans(), SMALL), max_size=12))
def test_queries_find_what_a_search_through_all_facts_finds(
    first: list[tuple[str, str, str]], changes: list[tuple[bool, tuple[str, str, str]]]
) -> None:
    facts, plain = Facts(first), set(first)
    for adds, fact in changes:
        (facts.add if adds else facts.remove)(fact)
        (plain.add if adds else plain.discard)(fact)
    query = (Literal("p", ("x", "y")), Literal("q", ("y", "z")))
    expected = [
        {"x": a, "y": b, "z": d}
        for _, a, b in sorted(fact for fact in plain if fact[0] == "p")
        for _, c, d in sorted(fact for fact in plain if fact[0] == "q")
        if b == c and len({a, b, d}) == 3
    ]
    assert list(State(facts, Facts()).solve(query, {})) == expected
    assert all((fact in facts) == (fact in plain) for fact in [*first, *(fact for _, fact in changes)])
