"""The official engine as a backend: which versions are supported, and that it leaks and touches nothing."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import closing
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from envs.alfworld import AlfworldWorld, official
from envs.alfworld.export import domain_text, export_game, grammar_text
from envs.alfworld.games import GameContent, parse_game, read_game
from envs.alfworld.generate import GeneratedGames, plan, write
from envs.alfworld.official import OfficialGame, check_installed
from envs.alfworld.parity import compare, quick_oracle
from envs.base import EnvError
from tests.envs.alfworlds import COUNTS

needs_engine = pytest.mark.usefixtures("official_engine")


def installed(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    def version(package: str) -> str:
        found = versions[package]
        if found is None:
            raise PackageNotFoundError(package)
        return found

    monkeypatch.setattr(official, "version", version)


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"alfworld": None, "textworld": None}, r"the package alfworld 0\.4\.x, which is not installed"),
        ({"alfworld": "0.4.2", "textworld": None}, r"the package textworld 1\.7\.x, which is not installed"),
        ({"alfworld": "0.3.5", "textworld": "1.7.0"}, r"alfworld 0\.3\.5 is installed, expected 0\.4\.x"),
        ({"alfworld": "0.4.2", "textworld": "1.6.2"}, r"textworld 1\.6\.2 is installed, expected 1\.7\.x"),
    ],
)
def test_another_version_is_refused_before_any_episode_with_both_versions(
    monkeypatch: pytest.MonkeyPatch, versions: dict[str, str | None], said: str
) -> None:
    installed(monkeypatch, **versions)
    with pytest.raises(EnvError, match=said):
        AlfworldWorld(GeneratedGames(0, counts=COUNTS), backend="textworld")


def test_supported_versions_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, alfworld="0.4.9", textworld="1.7.1")
    check_installed()


@pytest.fixture(scope="module")
def content(official_engine: None) -> GameContent:
    return write(plan(0, "unseen", 0, 14))


@needs_engine
def test_the_backend_plays_generated_games_as_the_native_engine_does() -> None:
    games = GeneratedGames(0, counts=COUNTS, most_receptacles=12)
    task = games.tasks("unseen")[0].task_id
    transcripts = []
    for backend in ("native", "textworld"):
        env = AlfworldWorld(games, backend=backend).make_env()  # type: ignore[arg-type]
        observation, info = env.reset(options={"task": task})
        said = [(observation, info["admissible"])]
        for command in ("dance", *games.content(task).walkthrough):
            observation, reward, terminated, truncated, info = env.step(command)
            said.append(
                (observation, info["admissible"], reward, terminated, truncated, info["action_valid"])
            )
        env.close()
        transcripts.append(said)
    assert transcripts[0] == transcripts[1]
    assert transcripts[1][-1][2:] == (1.0, True, False, True)


@needs_engine
def test_the_official_engine_loads_plays_and_wins_exported_games_of_all_types(tmp_path: Path) -> None:
    """Six types, all kinds of rooms, small and large: with the domain and the texts of the installed package."""
    with quick_oracle():
        for number in range(12):
            planned = plan(7, ("train", "seen", "unseen")[number % 3], number, 12 if number < 6 else 35)  # type: ignore[arg-type]
            path = export_game(planned.task, write(planned), tmp_path)
            exported = read_game(path)
            assert exported.domain == domain_text()
            assert exported.grammar == grammar_text(planned.task.text)
            with closing(OfficialGame(exported)) as game:
                moments = [game.reset(), *(game.step(command) for command in exported.walkthrough)]
            assert [moment.won for moment in moments] == [False] * (len(moments) - 1) + [True]
            found = compare(exported, 0, random_steps=12, invalid_steps=5, native=parsed)
            assert found.difference is None, "\n".join(found.difference.lines())


def parsed(content: GameContent) -> object:
    """The native engine with the texts of the installed package; its help is worded otherwise than in the games."""
    from envs.alfworld.engine import Play

    return Play(parse_game(content))


@needs_engine
def test_no_planner_is_asked(content: GameContent, monkeypatch: pytest.MonkeyPatch) -> None:
    from textworld.envs.pddl import logic

    monkeypatch.setattr(logic.PddlState, "replan", lambda *_, **__: pytest.fail("the planner was asked"))
    with closing(OfficialGame(content)) as game:
        game.reset()
        assert game.step("look").understood


@needs_engine
def test_the_arguments_of_the_program_are_left_alone_and_nothing_is_printed(
    content: GameContent, capfd: pytest.CaptureFixture[str]
) -> None:
    before = list(sys.argv)
    with closing(OfficialGame(content)) as game:
        game.reset()
    assert sys.argv == before
    assert capfd.readouterr() == ("", "")


@needs_engine
def test_a_game_that_the_engine_cannot_load_is_a_failure_of_the_environment(content: GameContent) -> None:
    with pytest.raises(EnvError, match="the official engine failed at load"):
        OfficialGame(GameContent("(define (problem p)", content.task, ()))
    with closing(OfficialGame(content)) as game:
        assert not game.reset().won


def resident() -> int:
    """Resident memory in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@needs_engine
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_five_hundred_resets_leak_neither_memory_nor_files_nor_handles(
    content: GameContent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two games in turn, opened anew every tenth time; memory is compared after the first fifty."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = write(plan(0, "unseen", 1, 14))
    early = 0
    with quick_oracle():
        for number in range(50):
            with closing(OfficialGame((content, other)[number % 2])) as game:
                for _ in range(10):
                    first = game.reset()
            if number == 5:
                early, handles = resident(), len(os.listdir("/proc/self/fd"))
    assert not first.won
    assert len(os.listdir("/proc/self/fd")) <= handles
    assert list(tmp_path.iterdir()) == []
    assert resident() - early < 60e6
