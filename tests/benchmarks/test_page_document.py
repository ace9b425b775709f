"""The files of the page: complete, closed to the network, and the same bytes for the same records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reporting.load import load_suite
from benchmarks.reporting.page import build, episodes, lens
from benchmarks.reporting.page.images import described, figures_of, png_size
from benchmarks.reporting.tables import Table
from tests.benchmarks.page_runs import TABLE, add_played_run, episodes_of, write_page
from tests.benchmarks.report_runs import add_run

HOSTILE = "</title></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
SVG = b"""<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:dc="http://purl.org/dc/elements/1.1/"
     xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><metadata><rdf:RDF>
<dc:title>KL loss</dc:title><dc:description>Mean over 3 seeds.</dc:description></rdf:RDF></metadata></svg>"""
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (640).to_bytes(4, "big") + (480).to_bytes(4, "big")


class Tags(HTMLParser):
    """Every start tag of a document with its attributes."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def data_of(content: bytes) -> Any:
    """The name and the value that a data file hands over."""
    return json.loads(b"[" + content.removeprefix(b"lensData(").removesuffix(b");\n") + b"]")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "webshop"
    for variant in ("grpo", "grpo+empg"):
        add_played_run(folder, variant)
    add_run(folder, "expert", solved=range(19))
    return folder


def files_of(suite: Path, facts: dict[str, str] | None = None) -> dict[str, bytes]:
    return dict(build(load_suite(suite), [TABLE], {}, facts or {"scale": "default"}))


def test_a_page_is_an_index_and_a_chunk_per_iteration_of_each_run_that_recorded_episodes(suite: Path) -> None:
    assert sorted(files_of(suite)) == [
        "index.html",
        "lens/runs.js",
        *(
            f"lens/webshop-{name}-s0/{part}.js"
            for name in ("grpo-empg", "grpo")
            for part in ("0", "1", "index")
        ),
    ]


def test_the_same_records_give_the_same_bytes(suite: Path) -> None:
    assert files_of(suite) == files_of(suite)


def test_the_files_come_one_by_one_with_the_page_last(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(folder: Path) -> Iterator[Any]:
        for number, found in episodes.iterations(folder):
            read.append(number)
            yield number, found

    monkeypatch.setattr(lens, "iterations", counted)
    files = build(load_suite(suite), [TABLE], {}, {})
    first, _ = next(files)
    assert (first, read) == ("lens/webshop-grpo-s0/0.js", [0])
    assert [name for name, _ in files][-2:] == ["lens/runs.js", "index.html"]


def test_each_data_file_hands_over_what_its_place_asks_for(suite: Path) -> None:
    for name, content in files_of(suite).items():
        if name.startswith("lens/"):
            assert f"lens/{data_of(content)[0]}.js" == name


def test_an_index_lists_every_episode_in_columns(suite: Path) -> None:
    _, index = data_of(files_of(suite)["lens/webshop-grpo-s0/index.js"])
    columns = index["episodes"]
    assert {len(values) for values in columns.values()} == {8}
    assert [index["tasks"][place] for place in columns["task"]] == [
        "task-0",
        "task-0",
        "task-1",
        "task-1",
    ] * 2
    assert [index["types"][place] for place in columns["type"]][:4] == [
        "garden",
        "garden",
        "kitchen",
        "kitchen",
    ]
    assert columns["success"] == [1, 0] * 4
    assert columns["tokens"] == [1, 1, 0, 0] * 2
    assert {index["fates"][place] for place in columns["fate"]} == {"trained"}


def test_a_runs_name_is_a_safe_file_name_and_no_two_share_one() -> None:
    names = ["webshop-grpo-s0", "Webshop-GRPO-s0", "../../etc", "a b", "a-b", "...", "x" * 300, "CON:\x00"]
    keys = [lens.run_key(name) for name in names]
    assert keys[0] == names[0]
    assert len(set(keys)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,70}", key) for key in keys)


def test_the_list_of_runs_names_those_that_recorded_episodes(suite: Path) -> None:
    assert data_of(files_of(suite)["lens/runs.js"]) == [
        "runs",
        [
            {"key": "webshop-grpo-s0", "name": "webshop-grpo-s0", "label": "GRPO", "seed": 0},
            {"key": "webshop-grpo-empg-s0", "name": "webshop-grpo-empg-s0", "label": "GRPO+EMPG", "seed": 0},
        ],
    ]


def test_a_suite_without_recorded_episodes_lists_no_runs(tmp_path: Path) -> None:
    add_run(tmp_path / "webshop", "grpo", solved=range(8))
    files = files_of(tmp_path / "webshop")
    assert list(files) == ["lens/runs.js", "index.html"]
    assert data_of(files["lens/runs.js"]) == ["runs", []]


def test_the_page_refers_to_nothing_outside_its_folder(suite: Path) -> None:
    document = files_of(suite)["index.html"].decode()
    for tag, attributes in Tags(document).found:
        for name in ("src", "href", "action", "srcset"):
            value = attributes.get(name) or ""
            assert not re.match(r"(?!data:)[a-z]+:|//|/", value), (tag, value)
    assert "http://" not in document
    assert "https://" not in document


def test_no_element_carries_inline_style_or_handlers(suite: Path) -> None:
    for tag, attributes in Tags(files_of(suite)["index.html"].decode()).found:
        assert not [name for name in attributes if name == "style" or name.startswith("on")], tag


def test_foreign_text_in_tables_facts_and_runs_stays_text(tmp_path: Path) -> None:
    folder = tmp_path / "webshop"
    add_played_run(folder, "grpo", versions={HOSTILE: HOSTILE})
    table = Table(HOSTILE, (HOSTILE, "value"), ((HOSTILE, "1.0"),), HOSTILE)
    files = dict(build(load_suite(folder), [table], {f"{HOSTILE}.png": PNG}, {HOSTILE: HOSTILE}))
    found = Tags(files["index.html"].decode()).found
    assert sum(tag == "script" for tag, _ in found) == 2  # the theme and the rest
    assert [attributes for tag, attributes in found if tag == "img" and attributes.get("src") == "x"] == []


def test_the_provenance_names_commit_digest_panels_and_versions(suite: Path) -> None:
    page = files_of(suite, {"code": "commit cccccccccccc"})["index.html"].decode()
    for expected in ("commit cccccccccccc", "c" * 12, "a" * 64, "b" * 64, "torch", "2.13.0"):
        assert expected in page


def test_figures_of_one_stem_are_one_figure_described_by_its_vector_image() -> None:
    (figure,) = figures_of({"kl_loss.csv": b"", "kl_loss.png": PNG, "kl_loss.svg": SVG})
    assert (figure.title, figure.caption) == ("KL loss", "Mean over 3 seeds.")
    assert (figure.image, figure.size) == ("kl_loss.svg", (640, 480))
    assert figure.files == ("kl_loss.csv", "kl_loss.png", "kl_loss.svg")
    assert figure.data == "kl_loss.csv"


def test_a_figure_without_a_vector_image_is_named_by_its_stem() -> None:
    (figure,) = figures_of({"kl_loss.png": PNG, "table.csv": b""})
    assert (figure.title, figure.caption, figure.image) == ("Kl loss", "", "kl_loss.png")
    assert figure.data == ""


def test_an_image_that_says_nothing_of_itself_has_no_caption() -> None:
    assert described(b"<svg xmlns='http://www.w3.org/2000/svg'/>") == ("", "")
    assert png_size(b"GIF89a") is None


def test_the_page_links_every_file_of_a_figure(suite: Path, tmp_path: Path) -> None:
    page = write_page(suite, tmp_path / "out", {"kl loss.csv": b"", "kl loss.svg": SVG})
    links = [attributes.get("href") for tag, attributes in Tags(page.read_text()).found if tag == "a"]
    assert {"kl%20loss.csv", "kl%20loss.svg"} <= set(links)
    assert "KL loss. What it shows is said below, its numbers are in kl loss.csv." in page.read_text()


def test_ten_thousand_episodes_take_one_small_index(tmp_path: Path) -> None:
    rows = episodes_of(iterations=20, groups=25, samples=20)
    folder = tmp_path / "webshop"
    add_played_run(folder, "grpo", played=rows, with_tokens=lambda one: False, iterations=range(20))
    files = files_of(folder)
    assert len(rows) == 10_000
    assert len(files) == 20 + 3  # chunks, index, runs, page
    assert len(files["lens/webshop-grpo-s0/index.js"]) < 300_000
