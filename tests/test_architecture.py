"""The shape of the code base: one direction of imports, small files, imports without effects."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "envs": set[str](),
    "agents": {"envs"},
    "empg": {"agents"},
    "benchmarks": {"envs", "agents", "empg"},
}
FORBIDDEN = {
    "envs": {"torch", "transformers", "tokenizers"},
    "agents": set[str](),
    "empg": {"transformers", "tokenizers"},
    "benchmarks": set[str](),
}
LONGEST_FILE = 420
SOURCES = sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Top-level names of everything a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            yield str(node.module).split(".")[0]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_one_way(package):
    files = list((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        names = set(imported(path))
        assert names & MAY_IMPORT.keys() <= MAY_IMPORT[package] | {package}, path
        assert not names & FORBIDDEN[package], path


def test_no_file_is_too_long_to_read():
    long = {str(path.relative_to(ROOT)): count for path in SOURCES if (count := lines(path)) > LONGEST_FILE}
    assert not long


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_nothing_that_arrives_from_outside_is_executed():
    risky = {"eval", "exec", "pickle", "marshal", "shelve"}
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = {
            n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        assert not risky & (calls | set(imported(path))), path
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "trust_remote_code":
                assert isinstance(node.value, ast.Constant), path
                assert node.value.value is False, path


def test_importing_every_module_changes_no_global_random_state_and_writes_no_file(tmp_path):
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in SOURCES]
    modules = [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]
    code = (
        "import importlib, os, random, sys\n"
        "import numpy as np, torch, matplotlib.pyplot, rich.progress\n"
        "from transformers import LlamaForCausalLM, Qwen2ForCausalLM  # what these draw is not ours\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "def state(): return (random.getstate(), np.random.get_state()[1].tobytes(), "
        "torch.random.get_rng_state().numpy().tobytes(), torch.get_default_dtype(), "
        "torch.get_num_threads())\n"
        "before = state()\n"
        f"[importlib.import_module(name) for name in {modules!r}]\n"
        "assert state() == before, 'an import changed global state'\n"
        "assert os.listdir() == [], os.listdir()\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
