"""The files of a report: whole, never beyond its folder, none left over, and published records untouched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.reporting import files
from benchmarks.reporting.files import MANIFEST, write_report_files, written_before
from benchmarks.reporting.schema import RecordError
from tests.benchmarks.report_runs import tree


def test_files_in_sub_folders_are_written_and_those_of_an_earlier_report_go(tmp_path: Path) -> None:
    write_report_files(tmp_path, {"a.md": b"1", "lens/x/1.js": b"2", "lens/y/1.js": b"3"})
    write_report_files(tmp_path, {"a.md": b"4", "lens/x/1.js": b"5"})
    found = tree(tmp_path)
    assert {name: found[name] for name in sorted(found) if name != MANIFEST} == {
        "a.md": b"4",
        "lens/x/1.js": b"5",
    }
    assert not (tmp_path / "lens" / "y").exists()


def test_what_no_report_wrote_stays_and_so_do_published_records(tmp_path: Path) -> None:
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "run.json").write_bytes(b"{}")
    (tmp_path / "notes.md").write_bytes(b"mine")
    write_report_files(tmp_path, {"a.md": b"1"})
    write_report_files(tmp_path, {})
    assert set(tree(tmp_path)) == {"runs/one/run.json", "notes.md", MANIFEST}


def test_kept_files_stay_and_are_still_known_to_the_next_report(tmp_path: Path) -> None:
    write_report_files(tmp_path, {"a.md": b"1", "old.png": b"2"})
    write_report_files(tmp_path, {"a.md": b"3"}, keep=["old.png", "never-written.png"])
    assert written_before(tmp_path) == {"a.md", "old.png"}
    assert (tmp_path / "old.png").read_bytes() == b"2"
    write_report_files(tmp_path, {"a.md": b"3"})
    assert not (tmp_path / "old.png").exists()


@pytest.mark.parametrize(
    "name",
    [
        "../a",
        "/tmp/a",
        "a/../../b",
        "runs/one/run.json",
        "runs",
        "",
        ".",
        "a//b",
        ".hidden",
        "a/.b",
        "a\\b",
        MANIFEST,
    ],
)
def test_a_name_that_leads_elsewhere_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="expected a path within its folder"):
        write_report_files(tmp_path / "report", {"a.md": b"1", name: b"2"})
    assert not (tmp_path / "report").exists()


def test_a_list_of_old_files_cannot_make_a_report_remove_others(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    (folder / "runs").mkdir(parents=True)
    (folder / "runs" / "record").write_bytes(b"1")
    (tmp_path / "other").write_bytes(b"2")
    (folder / MANIFEST).write_text('{"files": ["../other", "runs/record", "/etc/hostname"]}')
    write_report_files(folder, {})
    assert set(tree(tmp_path)) == {"other", "report/runs/record", f"report/{MANIFEST}"}


def test_an_unreadable_list_of_old_files_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b"\xff")
    with pytest.raises(RecordError) as found:
        write_report_files(tmp_path, {"a.md": b"1"})
    assert str(found.value).startswith(str(tmp_path / MANIFEST))


def test_a_report_that_dies_half_way_leaves_whole_files_and_the_next_one_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report_files(tmp_path, {"a.md": b"old", "b.md": b"old"})
    written = 0

    def die_at_the_third(source: Path, target: Path) -> None:
        nonlocal written
        written += 1
        if written == 3:  # the list of files comes first
            raise KeyboardInterrupt
        real(source, target)

    real = os.replace
    monkeypatch.setattr(files.os, "replace", die_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        write_report_files(tmp_path, {"c.md": b"new", "d.md": b"new"})
    monkeypatch.undo()
    assert tree(tmp_path)["c.md"] == b"new"
    write_report_files(tmp_path, {"d.md": b"new"})
    assert set(tree(tmp_path)) == {"d.md", MANIFEST}


def test_streamed_files_are_written_beside_the_others_one_at_a_time(tmp_path: Path) -> None:
    made: list[str] = []

    def stream() -> Iterator[tuple[str, bytes]]:
        for name in ("lens/1.js", "lens/2.js"):
            made.append(name)
            yield name, name.encode()

    written = write_report_files(tmp_path, {"a.md": b"1"}, streamed=stream())
    assert made == ["lens/1.js", "lens/2.js"]
    assert {path: path.read_bytes() for path in written} == {
        tmp_path / "a.md": b"1",
        tmp_path / "lens/1.js": b"lens/1.js",
        tmp_path / "lens/2.js": b"lens/2.js",
    }
    assert written_before(tmp_path) == {"a.md", "lens/1.js", "lens/2.js"}


def test_a_stream_that_fails_changes_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    write_report_files(folder, {"a.md": b"old"})
    before = tree(tmp_path)

    def stream() -> Iterator[tuple[str, bytes]]:
        yield "lens/1.js", b"new"
        raise RecordError("episodes.jsonl: cut off")

    with pytest.raises(RecordError, match="cut off"):
        write_report_files(folder, {"a.md": b"new"}, streamed=stream())
    assert tree(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_drafts_that_a_kill_left_are_neither_kept_nor_published(tmp_path: Path) -> None:
    drafts = tmp_path / ".report.drafts"
    drafts.mkdir()
    (drafts / "half.md").write_bytes(b"ha")
    write_report_files(tmp_path / "report", {"a.md": b"1"})
    assert set(tree(tmp_path)) == {"report/a.md", f"report/{MANIFEST}"}
