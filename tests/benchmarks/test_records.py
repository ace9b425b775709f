from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks import records


def test_a_digest_ignores_the_order_of_keys_and_sees_every_value():
    assert records.digest({"a": 1, "b": [1, 2]}) == records.digest({"b": [1, 2], "a": 1})
    assert records.digest({"a": 1, "b": [1, 2]}) != records.digest({"a": 1, "b": [2, 1]})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_cannot_hold_are_refused_and_the_old_file_stays(tmp_path, value):
    path = tmp_path / "a.json"
    records.write_json(path, {"x": 1})
    with pytest.raises(ValueError, match="JSON"):
        records.write_json(path, {"x": value})
    with pytest.raises(ValueError, match="JSON"):
        records.append_jsonl(tmp_path / "a.jsonl", [{"x": value}])
    assert records.read_json(path) == {"x": 1}


def test_a_write_that_dies_half_way_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    records.write_json(path, {"x": 1})

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", die)
    for write in (
        lambda: records.write_json(path, {"x": 2}),
        lambda: records.write_jsonl(path, [{"x": 2}]),
        lambda: records.write_parquet(path, {"x": [2]}),
    ):
        with pytest.raises(KeyboardInterrupt):
            write()
    assert path.read_text() == '{\n  "x": 1\n}\n'
    monkeypatch.undo()
    records.write_json(path, {"x": 3})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.json"]


@pytest.mark.parametrize("cut", range(1, 11))
def test_a_line_cut_off_anywhere_is_no_row_and_is_removed_by_the_next_append(tmp_path, cut):
    path = tmp_path / "a.jsonl"
    records.append_jsonl(path, [{"x": 1}, {"x": 22}])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut] if cut < 10 else b'{"x": 1}\n{"')
    assert records.read_jsonl(path) == [{"x": 1}]
    records.append_jsonl(path, [{"x": 22}])
    assert path.read_bytes() == whole


def test_kept_rows_keep_their_bytes_and_a_cut_line_goes(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"x":   1}\n{"x":2}\n{"x": 3}\n{"x"')
    records.keep_rows(path, lambda row: row["x"] != 2)
    assert path.read_text() == '{"x":   1}\n{"x": 3}\n'
    records.keep_rows(tmp_path / "absent.jsonl", lambda row: True)
    assert not (tmp_path / "absent.jsonl").exists()


def test_text_of_any_kind_comes_back_as_it_was(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"text": "line\nbreak \u2028 \x1b[31m é 漢 \r"}, {"text": ""}]
    records.append_jsonl(path, rows)
    assert path.read_bytes().count(b"\n") == 2
    assert records.read_jsonl(path) == rows


def test_parts_are_stacked_in_order_also_where_one_measured_nothing(tmp_path):
    nothing = {"after": [None, None], "each": [None, None], "never": [None, None]}
    records.write_part(tmp_path / "0", {"step": [0, 1], **nothing})
    records.write_part(tmp_path / "1", {"step": [2], "after": [0.5], "each": [[0.5, 1.5]], "never": [None]})
    records.join_parquet([tmp_path / "0", tmp_path / "1"], tmp_path / "all")
    table = pq.read_table(tmp_path / "all").to_pydict()
    assert table["step"] == [0, 1, 2]
    np.testing.assert_array_equal(np.array(table["after"], float), [np.nan, np.nan, 0.5])
    assert table["each"] == [None, None, [0.5, 1.5]]
    assert table["never"] == [None] * 3
    assert str(pq.read_schema(tmp_path / "all").field("never").type) == "double"


def test_a_record_that_is_not_an_object_is_refused_by_name(tmp_path):
    for text, said in (("[1]", "holds a list"), ("{", "is not JSON")):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(ValueError, match=rf"run\.json {said}"):
            records.read_json(tmp_path / "run.json")


def test_provenance_names_the_versions_and_survives_outside_a_checkout(tmp_path):
    found = records.provenance(tmp_path)
    assert found["commit"] is None
    assert found["dirty"] is None
    assert found["versions"]["torch"]
    json.dumps(found, allow_nan=False)


def test_only_changed_code_makes_a_checkout_dirty_not_written_results(tmp_path):
    def git(*command):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", tmp_path, *identity, *command], check=True, capture_output=True)

    (tmp_path / "results" / "published").mkdir(parents=True)
    (tmp_path / "code.py").write_text("1")
    (tmp_path / "results" / "published" / "table.md").write_text("1")
    git("init")
    git("add", "-A")
    git("commit", "-m", "first")
    (tmp_path / "results" / "published" / "table.md").write_text("2")
    (tmp_path / "results" / "published" / "table.tex").write_text("new")
    assert records.provenance(tmp_path)["dirty"] is False
    (tmp_path / "code.py").write_text("2")
    assert records.provenance(tmp_path)["dirty"] is True
    git("checkout", "code.py")
    (tmp_path / "more_code.py").write_text("1")
    assert records.provenance(tmp_path)["dirty"] is True
