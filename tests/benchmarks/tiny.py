"""A suite that runs in seconds: fifty products, a random policy of a few thousand parameters."""

from __future__ import annotations

from pathlib import Path

from benchmarks.config import load_suite
from benchmarks.plan import Run, find
from benchmarks.warm_start.small_model import SmallModelConfig, build_model, train_tokenizer
from envs.webshop import load_world

NAME = "webshop-grpo-empg-s0"
SUITE = """
title = "tiny"
benchmark = "webshop"
iterations = 3

[world]
products = 50
max_steps = 2

[panels]
train = 6
test = 3

[policy]
model = "{policy}"
max_context = 600

[rollout]
max_new_tokens = 6

[learner]
rescore_every = 2
token_groups = 1
probe = {{ every = 2, steps = 2 }}
batch = {{ groups_per_batch = 2, group_size = 2, minibatch_trajectories = 2 }}
optimizer = {{ lr = 0.01, schedule = "linear" }}

[empg]
zeta = 0.05

[variants."grpo+empg"]
preset = "grpo"
empg = true

[variants.dapo]
preset = "dapo"
empg = false
learner.sampling = {{ max_attempts = 2 }}

[scale.default]

[scale.short]
iterations = 1
"""


def write_policy(folder: Path, hidden: int = 16) -> Path:
    """A random Llama with its tokenizer, in the form that `policy.model` reads."""
    world = load_world(products=50)
    env = world.make_env()
    texts = [env.reset(options={"task": task})[0] for task in world.panel("train", 10).task_ids]
    tokenizer = train_tokenizer([*texts, "Thought: why\nAction: search[words] or click[button]"], 300)
    shape = SmallModelConfig(
        hidden=hidden, layers=1, heads=2, intermediate=32, vocab_size=300, max_context=600
    )
    build_model(shape, len(tokenizer), seed=0).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_suite(folder: Path, policy: Path) -> Path:
    """The suite as a file, for commands that take one."""
    path = folder / "tiny.toml"
    path.write_text(SUITE.format(policy=policy))
    return path


def planned(suite: Path, results: Path, name: str = NAME, scale: str = "default") -> Run:
    """A run of the suite in that file."""
    return find(load_suite(str(suite), scale), name, None, results)
