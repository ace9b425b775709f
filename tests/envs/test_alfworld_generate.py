"""Generated games: solvable, of the official form, the same everywhere, with unseen rooms."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.alfworld.engine import Game, Moment, Play
from envs.alfworld.generate import LAYOUTS, TYPES, GeneratedGames, plan, write
from envs.alfworld.household import household
from envs.alfworld.problem import parse_problem
from envs.alfworld.scenes import FEWEST, MOST, ROOMS, layout
from envs.alfworld.tasks import OFFICIAL_TYPES, PARTS, Part, TaskType

COUNTS: dict[Part, int] = {"train": 24, "seen": 12, "unseen": 12}


@lru_cache(maxsize=1)
def games() -> GeneratedGames:
    return GeneratedGames(5, counts=COUNTS)


def walked(number: int, part: Part = "train", seed: int = 0) -> list[Moment]:
    planned = plan(seed, part, number)
    content = write(planned)
    play = Play(Game.parse(content.problem, task=content.task))
    return [play.reset(), *(play.step(command) for command in content.walkthrough)]


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(PARTS), st.integers(0, 3))
def test_the_walkthrough_of_every_game_wins_with_its_last_command_and_not_before(
    number: int, part: Part, seed: int
) -> None:
    moments = walked(number, part, seed)
    assert all(moment.understood for moment in moments)
    assert [moment.won for moment in moments] == [False] * (len(moments) - 1) + [True]


def test_all_six_types_come_in_turn() -> None:
    types = [plan(0, "train", number).task.task_type for number in range(12)]
    assert types == [*TYPES, *TYPES]
    assert set(types) == set(OFFICIAL_TYPES.values())


def test_every_room_has_ten_to_thirty_five_receptacles_and_every_number_occurs() -> None:
    sizes = {
        len(layout(seed, base + number, MOST).stands)
        for seed in range(4)
        for base in ROOMS.values()
        for number in range(1, 31)
    }
    assert min(sizes) == FEWEST == 10
    assert max(sizes) == MOST == 35


def test_unseen_games_are_in_rooms_of_which_no_train_or_seen_game_is() -> None:
    rooms = {part: {plan(0, part, number).layout for number in range(60)} for part in PARTS}
    assert not rooms["unseen"] & (rooms["train"] | rooms["seen"])
    assert rooms["seen"] & rooms["train"]
    assert not set(LAYOUTS["unseen"]) & set(LAYOUTS["train"])


@pytest.mark.parametrize(
    ("task_type", "sentence"),
    [
        ("pick", r"put a \w+ in \w+\.|put some \w+ on \w+\."),
        ("look", r"examine the \w+ with the desklamp\.|look at \w+ under the desklamp\."),
        ("clean", r"put a clean \w+ in \w+\.|clean some \w+ and put it in \w+\."),
        ("heat", r"put a hot \w+ in \w+\.|heat some \w+ and put it in \w+\."),
        ("cool", r"put a cool \w+ in \w+\.|cool some \w+ and put it in \w+\."),
        ("pick2", r"find two \w+ and put them in \w+\.|put two \w+ in \w+\."),
    ],
)
def test_tasks_are_worded_as_the_official_ones(task_type: TaskType, sentence: str) -> None:
    numbers = range(TYPES.index(task_type), 90, len(TYPES))
    texts = [plan(0, "train", number).task.text for number in numbers]
    assert all(re.fullmatch(sentence, text) for text in texts)
    assert len({tuple(text.split()[:2]) for text in texts}) > 1, "both wordings occur"


def test_things_lie_only_where_the_domain_lets_them_be_put() -> None:
    known = household()
    for number in range(30):
        for thing in plan(1, "train", number).things:
            if thing.kind not in known.able["light"]:
                assert thing.kind in known.holds[thing.stand.kind]


def test_a_problem_declares_every_entity_that_its_facts_name() -> None:
    for number in range(12):
        problem = parse_problem(write(plan(0, "train", number)).problem)
        named = {word for fact in problem.facts for word in fact[1:]}
        assert named <= problem.entities.keys()
        assert Counter(problem.entities.values())["agent"] == 1


def test_ids_and_texts_are_the_same_in_a_process_with_another_hash_seed() -> None:
    code = (
        "from envs.alfworld.generate import GeneratedGames;"
        f"print(GeneratedGames(5, counts={COUNTS!r}).describe()['data_digest'])"
    )
    for hash_seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == games().describe()["data_digest"]


def test_other_seeds_make_other_games() -> None:
    other = GeneratedGames(6, counts=COUNTS)
    assert other.describe()["data_digest"] != games().describe()["data_digest"]


def test_more_games_leave_the_first_ones_as_they_were() -> None:
    more = GeneratedGames(5, counts={**COUNTS, "train": 48})
    assert set(games().tasks("train")) < set(more.tasks("train"))
    assert more.tasks("unseen") == games().tasks("unseen")


def test_tasks_are_listed_by_sorted_unique_ids() -> None:
    ids = [task.task_id for part in PARTS for task in games().tasks(part)]
    assert len(set(ids)) == sum(COUNTS.values())
    for part in PARTS:
        listed = [task.task_id for task in games().tasks(part)]
        assert listed == sorted(listed)


def test_rooms_of_an_impossible_size_are_refused() -> None:
    with pytest.raises(ValueError, match="most_receptacles is 9, expected 10 to 35"):
        GeneratedGames(most_receptacles=9)
    with pytest.raises(ValueError, match="seen games: 0 were asked for, expected at least 1"):
        GeneratedGames(counts={"train": 1, "seen": 0, "unseen": 1})


def test_what_was_planned_once_is_read_from_the_cache_and_a_broken_file_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = GeneratedGames(5, counts=COUNTS, cache=tmp_path)
    assert first.describe() == games().describe()
    (path,) = tmp_path.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(GeneratedGames, "_plan_all", lambda *_: pytest.fail("planned again"))
        again = GeneratedGames(5, counts=COUNTS, cache=tmp_path)
    assert again.describe() == first.describe()
    for part in PARTS:
        assert again.tasks(part) == first.tasks(part)
        for task in first.tasks(part):
            assert again.content(task.task_id) == games().content(task.task_id)
    for content in ("", "[]", '{"digest": 1}', '{"digest": 1, "train": 3}'):
        path.write_text(content)
        assert GeneratedGames(5, counts=COUNTS, cache=tmp_path).describe() == first.describe()


def test_other_settings_have_a_place_of_their_own_in_the_cache(tmp_path: Path) -> None:
    GeneratedGames(5, counts=COUNTS, cache=tmp_path)
    GeneratedGames(6, counts=COUNTS, cache=tmp_path)
    GeneratedGames(5, counts=COUNTS, most_receptacles=12, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
