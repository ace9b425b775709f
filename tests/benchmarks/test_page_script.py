"""Data files are scripts: no text in them may become markup or code."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reporting.page.script import data_script, script_json, source_hash

HOSTILE = "</script><!--<script>alert(1)</script>&\u2028\u2029"


def test_nothing_that_ends_a_script_or_opens_a_comment_is_left() -> None:
    assert not set(script_json({"said": HOSTILE})) & set("<>&\u2028\u2029")


@given(st.text())
def test_escaped_json_says_the_same(text: str) -> None:
    assert json.loads(script_json([text])) == [text]


def test_values_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json(float("nan"))


def test_a_data_file_is_one_call_with_name_and_value() -> None:
    assert data_script("run/3", {"a": [1, None, True]}) == b'lensData("run/3",{"a":[1,null,true]});\n'


@pytest.mark.skipif(shutil.which("node") is None, reason="no node to run the file with")
def test_javascript_reads_a_data_file_as_it_was_meant() -> None:
    script = b"globalThis.lensData = (name, value) => console.log(JSON.stringify([name, value]));"
    done = subprocess.run(
        ["node", "-"], input=script + data_script(HOSTILE, HOSTILE), capture_output=True, check=True
    )
    assert json.loads(done.stdout) == [HOSTILE, HOSTILE]


def test_the_hash_of_inline_code_is_the_base64_of_its_sha256() -> None:
    digest = base64.b64encode(hashlib.sha256(b"x = 1").digest()).decode()
    assert source_hash("x = 1") == f"'sha256-{digest}'"
