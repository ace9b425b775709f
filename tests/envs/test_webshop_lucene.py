"""The optional official search engine: what is refused, and what becomes of its hits; pyserini is a stand-in here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest

from envs.base import EnvError
from envs.webshop import load_world
from envs.webshop.catalogue import DataError
from envs.webshop.lucene import LuceneSearch, open_searcher
from tests.conftest import ROOT
from tests.envs import shops


@dataclass(frozen=True)
class Hit:
    docid: str


class StubSearcher:
    """Ranks products as it was told, whatever the query."""

    def __init__(self, *asins: str, documents: int = 7) -> None:
        self.num_docs = documents
        self.asins = asins
        self.asked: list[tuple[str, int]] = []

    def search(self, query: str, k: int) -> list[Hit]:
        self.asked.append((query, k))
        return [Hit(asin) for asin in self.asins][:k]


class FailingSearcher(StubSearcher):
    def search(self, query: str, k: int) -> list[Hit]:
        raise OverflowError("TooManyClauses:\n maxClauseCount is set to 1024")


def with_index(folder: Path) -> Path:
    shops.write(folder)
    (folder / "indexes").mkdir()
    (folder / "indexes" / "segments_1").touch()
    return folder


def install(monkeypatch: pytest.MonkeyPatch, searcher: StubSearcher) -> list[str]:
    """Put a stand-in where pyserini would be; returns the folders that are opened."""
    opened: list[str] = []

    def open_folder(folder: str) -> StubSearcher:
        opened.append(folder)
        return searcher

    module = types.ModuleType("pyserini.search.lucene")
    module.LuceneSearcher = open_folder  # type: ignore[attr-defined]
    for name in ("pyserini", "pyserini.search"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "pyserini.search.lucene", module)
    return opened


def test_a_missing_index_is_one_line_that_names_its_folder_and_the_commands_that_make_it(
    tmp_path: Path,
) -> None:
    # W5
    with pytest.raises(DataError) as error:
        load_world(shops.write(tmp_path), search="lucene")
    said = str(error.value)
    assert said.startswith(f"{tmp_path / 'indexes'}: no Lucene index")
    assert "run_indexing.sh" in said
    assert "\n" not in said


def test_missing_pyserini_is_one_line_that_names_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # W5
    monkeypatch.setitem(sys.modules, "pyserini", None)
    with pytest.raises(DataError, match=r"needs pyserini .*pip install 'empg-bench\[lucene\]'") as error:
        open_searcher(with_index(tmp_path))
    assert "\n" not in str(error.value)


def test_an_engine_that_cannot_open_the_index_is_quoted_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("pyserini.search.lucene")

    def fail(folder: str) -> None:
        raise OSError("no Java\nVM found")

    module.LuceneSearcher = fail  # type: ignore[attr-defined]
    install(monkeypatch, StubSearcher())
    monkeypatch.setitem(sys.modules, "pyserini.search.lucene", module)
    with pytest.raises(DataError, match=r"indexes: pyserini cannot open it: no Java VM found$"):
        open_searcher(with_index(tmp_path))


def test_a_generated_shop_has_no_lucene_index() -> None:
    with pytest.raises(DataError, match="search 'lucene' needs a folder of official files"):
        load_world(search="lucene")


def test_an_index_of_another_number_of_documents_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # W6
    install(monkeypatch, StubSearcher(documents=0))
    with pytest.raises(DataError, match="has 0 documents, expected one for each of 7 products"):
        load_world(with_index(tmp_path), search="lucene")


def test_results_come_in_the_order_of_the_hits_and_the_engine_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searcher = StubSearcher("B000000004", "B000000001", "B000000003")
    opened = install(monkeypatch, searcher)
    world = load_world(with_index(tmp_path), nouns="stored", search="lucene")
    env = world.make_env()
    env.reset(options={"task": "synthetic-0"})
    page = env.step("search[Desk Lamp]")[4]["page"]
    assert [listing.asin for listing in page.listings] == ["B000000004", "B000000001", "B000000003"]
    assert page.total == 3
    assert searcher.asked == [("desk lamp", 50)]
    assert opened == [str(tmp_path / "indexes")]
    assert world.describe()["search"].startswith("lucene (pyserini")


def test_a_mapped_catalogue_is_searched_by_the_engine_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, StubSearcher("B000000005"))
    data = with_index(tmp_path / "data")
    world = load_world(data, nouns="stored", search="lucene", cache=tmp_path / "cache", mapped_from=0)
    assert [product.asin for product in world.shop.find("anything")] == ["B000000005"]


def test_a_failing_search_and_an_unknown_product_are_failures_of_the_environment() -> None:
    with pytest.raises(EnvError, match=r"could not search 'a b': TooManyClauses: maxClauseCount"):
        LuceneSearch(shops.catalogue(), FailingSearcher()).search("a b")
    with pytest.raises(EnvError, match="found product 'B9', which the catalogue does not have"):
        LuceneSearch(shops.catalogue(), StubSearcher("B9")).search("a b")


def test_the_default_search_needs_neither_java_nor_pyserini(tmp_path: Path) -> None:
    # W5
    code = (
        "import sys; sys.modules['pyserini'] = sys.modules['jnius'] = None\n"
        "from envs.webshop import load_world\n"
        f"world = load_world({str(shops.write(tmp_path))!r}, nouns='stored')\n"
        "print([product.asin for product in world.shop.find('desk lamp')])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment["PATH"] = str(tmp_path)
    assert shutil.which("java", path=environment["PATH"]) is None
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['B000000003', 'B000000004']"
