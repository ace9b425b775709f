"""The method needs torch and nothing else."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT

SCRIPT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"transformers", "safetensors", "numpy", "pandas", "scipy", "gymnasium",
                                  "pydantic", "agents", "envs", "benchmarks"}:
            raise ModuleNotFoundError(f"{name} is not installed")

sys.meta_path.insert(0, Absent())
import torch
from empg import EmpgConfig, group_advantage, modulate, step_entropy

advantage = group_advantage(torch.tensor([1.0, 0.0]), torch.tensor([0, 0]))
entropy = step_entropy(torch.tensor([[0.0, 1.0]]), torch.tensor([[0, 1]]), 2)
result = modulate(torch.ones(2), entropy, torch.tensor([1, -1]), EmpgConfig())
print(" ".join(f"{value:.4f}" for value in [*advantage.tolist(), *result.tolist()]))
"""


def test_the_method_works_where_only_torch_is_installed():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0.7071", "-0.7071", "0.4713", "-0.4713"]
