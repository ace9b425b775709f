"""What was said, its credit and its tokens are joined step by step, or refused with the file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import records
from benchmarks.reporting.page.episodes import CREDIT, iterations
from benchmarks.reporting.schema import RecordError
from tests.benchmarks.page_runs import (
    Row,
    add_played_run,
    credit_columns,
    episode,
    episodes_of,
    five_tokens,
    token_columns,
)


def test_each_step_gets_its_own_credit(tmp_path: Path) -> None:
    folder = add_played_run(tmp_path / "webshop", "grpo")
    (_, first), (number, second) = iterations(folder)
    assert number == 1
    assert [played.episode.iteration for played in (*first, *second)] == [0] * 4 + [1] * 4
    loser = second[3]
    assert (loser.episode.group, loser.episode.sample) == (1, 1)
    assert dict(zip(CREDIT, loser.credit[2], strict=True)) == {
        "entropy": 0.75, "g": 0.5, "f": 0.0, "raw_advantage": -0.7, "advantage": -0.25, "entropy_after": None,
    }  # fmt: skip


def test_the_order_of_step_rows_does_not_matter(tmp_path: Path) -> None:
    folder = add_played_run(tmp_path / "webshop", "grpo")
    straight = list(iterations(folder))
    rows = credit_columns(episodes_of()[::-1], folder.name)
    records.write_parquet(folder / "steps.parquet", {name: values[::-1] for name, values in rows.items()})
    assert list(iterations(folder)) == straight


def test_tokens_are_there_for_recorded_groups_only(tmp_path: Path) -> None:
    folder = add_played_run(tmp_path / "webshop", "grpo")
    _, episodes = next(iterations(folder))
    assert [sorted(played.tokens) for played in episodes] == [[0, 1, 2], [0, 1, 2], [], []]
    assert episodes[0].tokens[1].entropy == (0.0, 0.5, 1.0, 1.5, 2.0)


@pytest.mark.parametrize(
    ("changes", "trained", "fate"),
    [
        ({}, True, "trained"),
        ({"kept": False}, True, "dropped"),
        ({"kept": False, "end": "error", "error": "engine died"}, True, "errored"),
        ({}, False, "skipped"),
    ],
)
def test_the_fate_of_an_episode_says_why_it_has_no_credit(
    tmp_path: Path, changes: Row, trained: bool, fate: str
) -> None:
    rows = [episode(0, 0, 0, **changes)]
    folder = add_played_run(tmp_path / "webshop", "grpo", played=rows)
    if not trained:
        (folder / "steps.parquet").unlink()
        (folder / "tokens.parquet").unlink()
    ((_, (played,)),) = iterations(folder)
    assert played.fate == fate


def test_a_run_without_recorded_episodes_has_no_iterations(tmp_path: Path) -> None:
    folder = add_played_run(tmp_path / "webshop", "grpo")
    (folder / "episodes.jsonl").unlink()
    assert list(iterations(folder)) == []


def cut_off(folder: Path) -> None:
    path = folder / "episodes.jsonl"
    path.write_bytes(path.read_bytes()[:-1])


def falling_iterations(folder: Path) -> None:
    rows = episodes_of()
    records.write_jsonl(folder / "episodes.jsonl", rows[4:] + rows[:4])


def same_episode_twice(folder: Path) -> None:
    records.write_jsonl(folder / "episodes.jsonl", [episode(0, 0, 0), episode(0, 0, 0)])


def lost_turn(folder: Path) -> None:
    rows = episodes_of()
    rows[0]["turns"] = rows[0]["turns"][:2]
    records.write_jsonl(folder / "episodes.jsonl", rows)


def unknown_episode(folder: Path) -> None:
    records.write_jsonl(folder / "episodes.jsonl", episodes_of()[:-1])


def step_twice(folder: Path) -> None:
    columns = credit_columns(episodes_of(), folder.name)
    records.write_parquet(
        folder / "steps.parquet", {name: [*values, values[0]] for name, values in columns.items()}
    )


def no_advantage(folder: Path) -> None:
    columns = credit_columns(episodes_of(), folder.name)
    del columns["advantage"]
    records.write_parquet(folder / "steps.parquet", columns)


def no_table(folder: Path) -> None:
    (folder / "tokens.parquet").write_bytes(b"PAR1 but not really")


def fewer_tokens(folder: Path) -> None:
    columns = token_columns(episodes_of()[:1], folder.name, lambda told: five_tokens(told)[:4])
    records.write_parquet(folder / "tokens.parquet", columns)


def uneven_lists(folder: Path) -> None:
    columns = token_columns(episodes_of()[:1], folder.name, five_tokens)
    columns["entropy"] = [values[:-1] for values in columns["entropy"]]
    records.write_parquet(folder / "tokens.parquet", columns)


def no_number(folder: Path) -> None:
    columns = token_columns(episodes_of()[:1], folder.name, five_tokens)
    columns["logprob"] = [[float("nan")] * 5 for _ in columns["logprob"]]
    records.write_parquet(folder / "tokens.parquet", columns)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut_off, r"episodes\.jsonl: line 8 is cut off"),
        (falling_iterations, r"episodes\.jsonl: iteration 0 after 1; expected rising"),
        (same_episode_twice, r"episodes\.jsonl: iteration 0 holds the same attempt, group and sample twice"),
        (lost_turn, r"steps\.parquet: iteration 0, attempt 0, group 0, sample 0, step 2 is no turn"),
        (unknown_episode, r"steps\.parquet: iteration 1, attempt 0, group 1, sample 1, step 0 is no turn"),
        (step_twice, r"steps\.parquet: iteration 0, attempt 0, group 0, sample 0, step 0 is there twice"),
        (no_advantage, r"steps\.parquet: lacks the columns \['advantage'\]"),
        (no_table, r"tokens\.parquet: not a readable table"),
        (fewer_tokens, r"tokens\.parquet: .* has 4 texts, 4 entropies .* expected 5"),
        (uneven_lists, r"tokens\.parquet: .* has 5 texts, 4 entropies and 5"),
        (no_number, r"tokens\.parquet: .* expected 5 finite ones"),
    ],
)
def test_records_that_do_not_fit_together_are_refused_by_name(
    tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    folder = add_played_run(tmp_path / "webshop", "grpo")
    damage(folder)
    with pytest.raises(RecordError, match=said):
        list(iterations(folder))


def test_a_run_of_the_runner_fits_together(straight: Path) -> None:
    played = [each for _, episodes in iterations(straight) for each in episodes]
    trained = [each for each in played if each.fate == "trained"]
    assert trained
    assert all(len(each.credit) == len(each.episode.turns) for each in trained)
    assert any(each.tokens for each in trained)
