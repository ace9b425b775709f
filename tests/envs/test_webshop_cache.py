"""A cache that is not what it should be is never used, and several processes share one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envs.webshop import cache as cache_module
from envs.webshop import load_world
from envs.webshop.catalogue import DataError, read_folder
from envs.webshop.sealed import MANIFEST, seal
from envs.webshop.search import SearchIndex, tabulate
from tests.conftest import ROOT
from tests.envs import shops
from tests.envs.mapped_worlds import assert_equal_worlds, held, mapped


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A folder of data, and a cache of it."""
    data, cache = shops.write(tmp_path / "data"), tmp_path / "cache"
    mapped(data, cache)
    return data, cache


def part(cache: Path, name: str) -> Path:
    (found,) = cache.glob(f"webshop-*/{name}")
    return found


def test_a_truncated_foreign_or_missing_file_is_made_again_with_a_warning(
    small: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    data, cache = small
    memory = held(data)
    files = [path for name in ("catalogue", "goals-synthetic") for path in part(cache, name).iterdir()]
    assert len(files) > 20
    for path in files:
        for damage in (None, truncated, foreign):
            caplog.clear()
            content = path.read_bytes()
            path.unlink()
            if damage is not None:
                path.write_bytes(damage(content))
            world = mapped(data, cache)
            reason = "manifest" if path.name == MANIFEST else path.name
            assert f"{path.parent}: " in caplog.text
            assert reason in caplog.text
            assert "making it again" in caplog.text
            assert world.describe() == memory.describe()
            assert world.panel("train").digest == memory.panel("train").digest


def truncated(content: bytes) -> bytes:
    return content[:-1]


def foreign(content: bytes) -> bytes:
    return bytes(byte ^ 1 for byte in content)


@pytest.mark.parametrize("kind", ["items_shuffle", "items_ins_v2", "items_human_ins", "title_nouns"])
def test_a_changed_source_file_is_seen_even_with_the_old_size_and_time(
    small: tuple[Path, Path], kind: str
) -> None:
    data, cache = small
    before, path = mapped(data, cache).describe()["data_digest"], data / f"{kind}.json"
    times = path.stat()
    text = path.read_text()
    for old, new in (
        ("$25.00", "$26.00"),
        ("long sleeve", "tiny sleeve"),
        ("warm", "cold"),
        ("socks", "shoes"),
    ):
        text = text.replace(old, new)
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size
    world = mapped(data, cache)
    assert world.describe()["data_digest"] != before
    assert_equal_worlds(world, held(data))


def test_the_same_files_elsewhere_or_touched_are_not_read_again(small: tuple[Path, Path]) -> None:
    data, cache = small
    os.utime(data / "items_shuffle.json")
    moved = shutil.copytree(data, data.with_name("moved") / data.name)
    stages: set[str] = set()
    for folder in (data, moved):
        mapped(folder, cache, progress=lambda stage, done, total: stages.add(stage.split()[0]))
    assert stages == {"hashing"}
    assert len(list(cache.glob("webshop-*/catalogue"))) == 1


def test_a_cache_of_another_format_or_another_stemmer_is_made_again(
    small: tuple[Path, Path], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, cache = small
    path = part(cache, "catalogue") / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 0}))
    mapped(data, cache)
    assert "its format is 0, expected" in caplog.text
    monkeypatch.setattr(cache_module, "version", lambda name: "0.0")
    mapped(data, cache)
    assert "made from other data or by other versions" in caplog.text


def test_an_unreadable_list_of_hashes_is_worked_out_again(small: tuple[Path, Path]) -> None:
    data, cache = small
    (cache / "webshop-files.json").write_text("[1")
    assert_equal_worlds(mapped(data, cache), held(data))


def test_an_index_of_another_number_of_documents_is_refused() -> None:
    catalogue = shops.catalogue()
    for documents in (0, 6):
        table = tabulate(catalogue.sorted_by_asin()[:documents]) if documents else empty_table()
        with pytest.raises(
            DataError, match=f"has {documents} documents, expected one for each of 7 products"
        ):
            SearchIndex(catalogue, table)


def empty_table() -> Any:
    from envs.webshop.search import Table

    none = np.zeros(0, dtype=np.int32)
    return Table(0, {}, np.zeros(1, dtype=np.int64), none.astype(np.float32), none, none.astype(np.float32))


def test_files_that_are_sealed_but_do_not_fit_each_other_are_an_error(small: tuple[Path, Path]) -> None:
    data, cache = small
    folder = part(cache, "catalogue")
    manifest = json.loads((folder / MANIFEST).read_text())
    for name, values in (
        ("documents", np.array(6)),
        ("docs", np.zeros(1)),
        ("category.of-product", np.zeros(3)),
    ):
        before = (folder / f"{name}.npy").read_bytes()
        np.save(folder / f"{name}.npy", values)
        (folder / MANIFEST).unlink()
        seal(folder, manifest["origin"], manifest["facts"])
        with pytest.raises(
            DataError, match=r"has 6 documents|do not fit each other|files of \[3, 7\] products"
        ):
            mapped(data, cache)
        (folder / f"{name}.npy").write_bytes(before)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("[]", "no usable product"),
        ('[{"asin": "nan"}]', "no usable product"),
        ('[{"asin": "B1"}]', "product row 0 is not in the official form"),
        ("[{]", "cannot be read as JSON"),
        ("{}", "expected a list at the top, found an object"),
    ],
)
def test_data_without_products_or_in_another_form_is_an_error_that_leaves_nothing(
    tmp_path: Path, rows: str, message: str
) -> None:
    data = shops.write(tmp_path / "data")
    (data / "items_shuffle.json").write_text(rows)
    with pytest.raises(DataError, match=message) as mapped_error:
        mapped(data, tmp_path / "cache")
    with pytest.raises(DataError) as held_error:
        held(data)
    assert str(mapped_error.value) == str(held_error.value)
    assert not [path for path in (tmp_path / "cache").glob("webshop-*/*") if path.is_dir()]


def test_nouns_that_lack_a_product_and_too_few_goals_are_errors_as_in_memory(tmp_path: Path) -> None:
    data = shops.write(tmp_path / "data")
    (data / "title_nouns.json").write_text("{}")
    with pytest.raises(DataError, match="title nouns lack product B000000001"):
        mapped(data, tmp_path / "cache")
    shops.write(data)
    (data / "items_human_ins.json").write_text("{}")
    with pytest.raises(DataError, match="0 human goals, expected at least 3"):
        mapped(data, tmp_path / "cache", "human")


def test_a_source_file_that_changes_while_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = shops.write(tmp_path / "data")

    def meddle(*arguments: Any) -> Any:
        (data / "items_human_ins.json").write_text("{}")
        return tabulate_catalogue(*arguments)

    tabulate_catalogue = cache_module.tabulate_catalogue
    monkeypatch.setattr(cache_module, "tabulate_catalogue", meddle)
    with pytest.raises(DataError, match="changed while they were read"):
        mapped(data, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("webshop-*/catalogue"))


# Several processes


def test_processes_that_start_together_make_the_cache_once_and_agree(generated: Path, tmp_path: Path) -> None:
    code = (
        "import json, sys; from envs.webshop import load_world; heard = set();"
        "world = load_world(sys.argv[1], nouns='stored', cache=sys.argv[2], mapped_from=0,"
        " progress=lambda stage, done, total: heard.add(stage));"
        "print(json.dumps([world.describe(), world.panel('test').digest, sorted(heard)]))"
    )
    command = [sys.executable, "-c", code, str(generated), str(tmp_path)]
    started = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in started]
    assert all(answer[:2] == answers[0][:2] for answer in answers)
    makers = [answer for answer in answers if "indexing products" in answer[2]]
    assert len(makers) == 1
    assert not list(tmp_path.glob("webshop-*/.*.draft"))
    memory = load_world(generated, nouns="stored")
    assert answers[0][:2] == [json.loads(json.dumps(memory.describe())), memory.panel("test").digest]


def test_what_a_killed_process_left_is_removed_and_what_a_failing_one_wrote_too(
    small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, cache = small
    left = part(cache, "catalogue").parent / ".goals-human.dead.draft"
    left.mkdir()
    (left / "drafts.bin").write_bytes(b"half")

    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "goal_order", stop)
        with pytest.raises(KeyboardInterrupt):
            mapped(data, cache, "human")
    assert not list(cache.glob("webshop-*/.goals-human.*.draft"))
    assert not list(cache.glob("webshop-*/goals-human"))
    assert_equal_worlds(mapped(data, cache, "human"), held(data, "human"))


def test_a_world_goes_on_while_its_cache_is_made_again(small: tuple[Path, Path]) -> None:
    data, cache = small
    world = mapped(data, cache)
    shutil.rmtree(part(cache, "catalogue").parent)
    mapped(data, cache)
    assert tuple(world.catalogue.products) == read_folder(data).products
