"""Everything a run needs, opened and checked before any work: a bad setting costs seconds, never hours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, cast

import torch

from agents.policies.adapters import merged_weights
from agents.policies.base import Policy
from agents.policies.torch_policy import TorchPolicy
from agents.policies.vllm_engine import open_engine
from agents.policies.vllm_policy import VllmPolicy
from agents.prompts import Prompts
from agents.rollout import RolloutConfig
from benchmarks import records
from benchmarks.config import ConfigError, PolicySettings, RunConfig
from benchmarks.models import adapt, check_settings, load_model, save_model
from benchmarks.plan import Run
from benchmarks.progress import Status
from benchmarks.prompting import prompts_of
from benchmarks.tasks import check_disjoint
from benchmarks.warm_start import store
from benchmarks.warm_start.demonstrations import Elsewhere, Progress, silent
from benchmarks.worlds import BENCHMARKS, elsewhere
from empg import checkpoint
from envs.base import EnvError, TaskPanel, World

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Tasks:
    """The opened data of a benchmark."""

    world: World
    train: TaskPanel
    test: TaskPanel
    dev: TaskPanel | None
    """Chooses weights; None where the last ones are judged."""
    elsewhere: Elsewhere | None
    """Other worlds like this one, to be taught in; None where the data is official."""
    prompts: Prompts
    """What the agent is told."""

    @property
    def panels(self) -> tuple[TaskPanel, ...]:
        """All that take part."""
        return (self.train, self.test) if self.dev is None else (self.train, self.test, self.dev)

    def told_by(self, rollout: RolloutConfig) -> Tasks:
        """The same tasks with the prompts of other settings."""
        try:
            return replace(self, prompts=prompts_of(self.world, rollout))
        except (EnvError, ValueError) as error:
            raise ConfigError(one_line(error)) from error

    def record(self) -> dict[str, Any]:
        """Which data and tasks these are, for `run.json`."""
        panels = {panel.split: {"digest": panel.digest, "size": len(panel)} for panel in self.panels}
        return {"world": self.world.describe(), "panels": panels}


@dataclass(frozen=True)
class LoadedPolicy:
    """The policy that training starts from."""

    policy: Policy
    model: Any
    tokenizer: Any
    record: dict[str, Any]
    """What it is: architecture, size and the SHA-256 of its weights."""
    origin: dict[str, Any]
    """How it came to be; for people, and no part of a run's identity."""

    @property
    def pad_id(self) -> int:
        """What rows are filled up with; any token will do, because padding is masked by length."""
        pad = self.tokenizer.pad_token_id
        return int(self.policy.chat.turn_end if pad is None else pad)

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """What each token of a text says, special ones by name.

        Each is read behind the one before it, since some tokenizers drop the space of a token that stands alone. A
        character that is cut between tokens shows as U+FFFD.
        """
        texts = []
        for before, token in pairwise([None, *tokens]):
            own = str(self.tokenizer.decode([token]))
            start = "" if before is None else str(self.tokenizer.decode([before]))
            both = own if before is None else str(self.tokenizer.decode([before, token]))
            texts.append(both[len(start) :] if both.startswith(start) else own)
        return texts

    def save(self, folder: Path) -> None:
        """Write model and tokenizer in the form that `policy.model` reads."""
        save_model(self.model, self.tokenizer, folder)


def open_world(
    config: RunConfig, data: Path | None, cache: Path | None = None, progress: Progress = silent
) -> World:
    """Open the data; large official files are put into `cache` first. `ConfigError`: missing or malformed files."""
    return open_benchmark(config.benchmark, config.world, data, cache, progress)


def open_benchmark(
    name: str,
    settings: Mapping[str, Any],
    data: Path | None,
    cache: Path | None = None,
    progress: Progress = silent,
) -> World:
    """Open the data of a benchmark under checked settings; `ConfigError`: missing or malformed files."""
    benchmark = BENCHMARKS[name]
    if data is not None and not data.is_dir():
        raise ConfigError(f"data: no folder {data}, expected the folder of {name}'s official files")
    try:
        return benchmark.load(
            data,
            benchmark.settings(**settings),
            cache,
            lambda stage, done, total: progress(Status(stage, done, total)),
        )
    except (EnvError, ValueError, OSError) as error:
        raise ConfigError(one_line(error)) from error


def _other_worlds(config: RunConfig) -> Elsewhere:
    benchmark = BENCHMARKS[config.benchmark]
    here = benchmark.settings(**config.world)
    return lambda number: benchmark.load(None, elsewhere(here, number), None, lambda *_: None)


def open_tasks(
    config: RunConfig, data: Path | None, cache: Path | None = None, progress: Progress = silent
) -> Tasks:
    """Open the data and its panels.

    Raises `ConfigError`: files are missing or malformed, a panel exceeds its split, the splits overlap.
    """
    world = open_world(config, data, cache, progress)
    try:
        tasks = Tasks(
            world,
            world.panel("train", config.panels.train),
            world.panel("test", config.panels.test),
            world.panel("dev", config.panels.dev) if config.evaluation.checkpoint == "best-on-dev" else None,
            _other_worlds(config) if data is None else None,
            prompts_of(world, config.rollout),
        )
    except (EnvError, ValueError) as error:
        raise ConfigError(one_line(error)) from error
    check_disjoint(*tasks.panels)
    return tasks


def choose_device() -> torch.device:
    """The first GPU where there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def one_line(error: BaseException) -> str:
    """An error as one line; `KeyError` would otherwise show its message in quotes."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return " ".join(text.split()) or type(error).__name__


def check_writable(folder: Path) -> None:
    """Create a folder and try to write in it; raises `ConfigError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # of its own name: other runs probe the same folder
            pass
    except OSError as error:
        raise ConfigError(
            f"results: cannot write in {folder}: {error.strerror}, expected a writable folder"
        ) from None


def identity(run: Run, tasks: Tasks, policy: dict[str, Any] | None) -> dict[str, Any]:
    """What decides a run's numbers; two runs of equal identity may share a folder."""
    found = {
        "config": run.config.table(),
        **tasks.record(),
        "policy": policy,
        "prompt": tasks.prompts.record(),
    }
    return cast(dict[str, Any], json.loads(records.dumps(found)))  # as it will be read back


def differing_keys(old: Any, new: Any, where: str = "") -> list[str]:
    """Dotted names of what differs between two JSON values, each with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = sorted(old.keys() | new.keys())
        found = [
            differing_keys(old.get(name), new.get(name), f"{where}.{name}" if where else name)
            for name in names
        ]
        return [key for keys in found for key in keys]
    return [] if old == new else [f"{where} ({old!r} there, {new!r} here)"]


def check_unchanged(run: Run, new: dict[str, Any]) -> dict[str, Any] | None:
    """The run's record if it was begun before, else None; `ConfigError` when it was another experiment."""
    path = run.folder / "run.json"
    if not path.exists():
        return None
    try:
        record = records.read_json(path)
    except (OSError, ValueError) as error:
        raise ConfigError(one_line(error)) from error
    if record.get("digest") == records.digest(new):
        return record
    differing = differing_keys({key: record.get(key) for key in new}, new)
    listed = ", ".join(differing[:4]) + (f" and {len(differing) - 4} more" if len(differing) > 4 else "")
    raise ConfigError(
        f"{run.folder} holds a run with other settings: {listed}; "
        "remove that folder or give another results folder"
    )


def open_policy(config: RunConfig, tasks: Tasks, cache: Path, progress: Progress = silent) -> LoadedPolicy:
    """The policy that training starts from: a given model, or the warm start of this benchmark and data.

    Raises `ConfigError`: no such model, a tokenizer without chat template, a context beyond the model's.
    """
    settings = config.policy
    if settings.model is not None:
        model, tokenizer, origin = load_model(settings, cache, lambda stage: progress(Status(stage, 0, 1)))
    else:
        check_settings(settings)
        model, tokenizer, origin = _warm_start(config, tasks, cache, progress)
        adapt(model.to(getattr(torch, settings.dtype)), settings)
    model = model.to(choose_device())
    try:
        policy, engine = sampler(model, tokenizer, settings, config.rollout.parallel)
    except ValueError as error:
        raise ConfigError(f"policy: {one_line(error)}") from error
    origin = origin | {"engine": engine}
    record = {
        "architecture": type(model).__name__,
        "name": origin.get("name", "warm start"),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "weights": checkpoint.digest(checkpoint.model_tensors(model)),
    }
    return LoadedPolicy(policy, model, tokenizer, record, origin)


def sampler(
    model: Any, tokenizer: Any, settings: PolicySettings, parallel: int
) -> tuple[Policy, dict[str, str]]:
    """What plays the episodes with a model's weights, and which engine that is.

    parallel: conversations that are played at a time. Raises `ValueError` where the engine cannot run the model.
    """
    size, template = settings.max_context, settings.template
    if settings.rollout == "torch":
        return TorchPolicy(model, tokenizer, max_context=size, template=template), {"name": "torch"}
    engine = open_engine(model, size, settings.vllm, parallel)
    policy = VllmPolicy(
        engine,
        model,
        tokenizer,
        max_context=size,
        weights=lambda: merged_weights(model),
        template=template,
        sleeps=settings.vllm.sleep,
        engine_dtype=engine.dtype,
    )
    return policy, {"name": "vllm", "version": engine.version, "dtype": str(engine.dtype)}


def _warm_start(
    config: RunConfig, tasks: Tasks, cache: Path, progress: Progress
) -> tuple[Any, Any, dict[str, Any]]:
    try:
        found = store.obtain(
            tasks.world,
            config.warm_start,
            config.rollout,
            cache=cache,
            elsewhere=tasks.elsewhere,
            progress=progress,
        )
    except (ValueError, OSError) as error:
        raise ConfigError(f"warm_start: {one_line(error)}") from error
    return found.model, found.tokenizer, found.record
