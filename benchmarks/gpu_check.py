"""One run through everything that training on a GPU rests on, step by step, each with what it found.

A failed step does not end the check: what does not need it goes on, and what does is skipped.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from transformers.utils.logging import disable_progress_bar

from agents.rollout import rollout
from agents.trajectory import Trajectory
from benchmarks import estimate, records
from benchmarks.config import RunConfig, load_suite
from benchmarks.estimate import Habits
from benchmarks.machine import gib
from benchmarks.overrides import Overrides
from benchmarks.prepare import LoadedPolicy, Tasks, one_line, open_policy, open_tasks
from benchmarks.shapes import measure
from benchmarks.strict import ConfigError
from benchmarks.tasks import train_episodes
from benchmarks.warm_start.small_model import SmallModelConfig, build_model, train_tokenizer
from empg.batch import make_batch
from empg.parallel import ALONE
from empg.scores import open_model, score
from empg.trainer import IterationOutcome, Learner, LearnerConfig

SUITE = Path(__file__).parent / "gpu_check.toml"
REPORT = "gpu-check.json"
TOLERANCE = 0.15
"""Nats by which log-probabilities of engine and trainer may differ on average. Both round to bfloat16; that moves those
of SmolLM2-135M by 0.05."""
STALE = 3.0
"""So many times closer must samples be to the new weights than to the old ones."""
SPARE = 1.15
"""So far may the peak of memory exceed the estimate."""
RANDOM = {
    "cuda": SmallModelConfig("qwen2", 512, 8, 8, 2, 1536, 4096, 2048),
    "cpu": SmallModelConfig("qwen2", 64, 2, 2, 1, 128, 512, 2048),
}
"""The random model of each device."""
Device = Literal["cuda", "cpu"]
Status = Literal["PASS", "FAIL", "SKIP"]


class Failed(Exception):
    """A step found something wrong; the message says what."""


class Skipped(Exception):
    """A step could not be done here; the message says why."""


@dataclass(frozen=True)
class Check:
    """A step that was done."""

    name: str
    status: Status
    says: str
    seconds: float


@dataclass
class Bench:
    """What the steps hand on."""

    device: Device
    config: RunConfig
    cache: Path
    tasks: Tasks | None = None
    loaded: LoadedPolicy | None = None
    before: int = 0
    """Bytes that the GPU held before the learner was made."""
    learner: Learner | None = None
    trajectories: list[Trajectory] = field(default_factory=list)
    speed: float = 0.0
    """Tokens sampled in a second, in the last rollout: the first one warms up."""
    outcome: IterationOutcome | None = None

    @property
    def settings(self) -> LearnerConfig:
        """Of the learner."""
        assert self.config.learner is not None
        return self.config.learner


def run_check(model: str | None, device: Device, results: Path, console: Console) -> bool:
    """Do all steps, print each, write the report; whether none failed.

    Raises `ConfigError` where there is no GPU and none was left out by asking for the CPU.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("gpu-check: torch sees no GPU here, expected one, or --device cpu for a tiny check")
    disable_progress_bar()  # transformers' own bars
    with tempfile.TemporaryDirectory() as scratch:
        config = _config(model or str(_random_model(RANDOM[device], Path(scratch) / "random-qwen2")), device)
        bench = Bench(device, config, results / "cache")
        checks = []
        for step in STEPS:
            checks.append(found := _do(step, bench))
            console.print(
                f"{found.status}  {found.name}: {found.says} ({found.seconds:.1f} s)",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
    results.mkdir(parents=True, exist_ok=True)
    report = {
        "device": device,
        "model": model or "random Qwen2",
        "checks": [asdict(check) for check in checks],
        "metrics": dict(bench.outcome.metrics) if bench.outcome else None,
    }
    records.write_json(results / REPORT, report)
    return all(check.status != "FAIL" for check in checks)


def _do(step: Callable[[Bench], str], bench: Bench) -> Check:
    begun = time.perf_counter()
    status: Status = "PASS"
    try:
        says = step(bench)
    except Skipped as reason:
        status, says = "SKIP", str(reason)
    except Exception as error:  # whatever a driver, an engine or a kernel raises is what this looks for
        status, says = "FAIL", one_line(error) if isinstance(error, Failed) else _named(error)
    name = step.__name__.strip("_").replace("_", " ")
    return Check(name, status, says, time.perf_counter() - begun)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(error)[:400]}"


def _config(model: str, device: Device) -> RunConfig:
    engine = "vllm" if find_spec("vllm") is not None else "torch"
    suite = load_suite(str(SUITE), device, overrides=Overrides(model=model, rollout=engine))
    (learner,) = suite.learners.values()
    return suite.base.model_copy(update={"kind": "train", "iterations": 1, "learner": learner})


def _random_model(shape: SmallModelConfig, folder: Path) -> Path:
    """A random model and a tokenizer with a chat template, as a folder that `policy.model` reads."""
    from envs.webshop import load_world

    world = load_world(products=50)
    env = world.make_env()
    texts = [env.reset(options={"task": task})[0] for task in world.panel("train", 20).task_ids]
    tokenizer = train_tokenizer(texts, shape.vocab_size)
    build_model(shape, len(tokenizer), seed=0).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _device(bench: Bench) -> str:
    torch_says = f"torch {torch.__version__}"
    if bench.device == "cpu":
        return f"CPU ({platform.machine()}), {torch_says}"
    found = torch.cuda.get_device_properties(0)
    return (
        f"{found.name}, {gib(found.total_memory)} GiB, compute capability {found.major}.{found.minor}, "
        f"driver {_driver()}, CUDA {torch.version.cuda}, {torch_says}"
    )


def _driver() -> str:
    """The version of the driver, as its own tool tells it."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "unknown (no nvidia-smi)"
    command = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return "unknown (nvidia-smi failed)"
    return done.stdout.split("\n")[0].strip()


def _bfloat16(bench: Bench) -> str:
    """Products in bfloat16 are near those in float32."""
    if bench.device == "cuda" and not torch.cuda.is_bf16_supported():
        raise Failed("this GPU has no bfloat16")
    drawn = torch.Generator().manual_seed(0)
    left, right = (torch.randn(256, 256, generator=drawn).to(bench.device) for _ in range(2))
    exact = left @ right
    with torch.autocast(bench.device, dtype=torch.bfloat16):
        rounded = left @ right
    if rounded.dtype != torch.bfloat16:
        raise Failed(f"autocast computed in {rounded.dtype}")
    off = float((rounded.float() - exact).norm() / exact.norm())
    if not off < 0.01:
        raise Failed(f"a product in bfloat16 is off by {off:.3g} of its size, expected below 0.01")
    return f"a product is off by {off:.2g} of its size"


def _model_and_engine(bench: Bench) -> str:
    bench.tasks = open_tasks(bench.config, None, bench.cache)
    bench.loaded = open_policy(bench.config, bench.tasks, bench.cache)
    engine = bench.loaded.origin["engine"]
    words = " ".join(str(engine[key]) for key in ("name", "version", "dtype") if key in engine)
    policy = bench.config.policy
    millions = bench.loaded.record["parameters"] / 1e6
    said = f"{bench.loaded.record['name']}, {millions:,.1f}M parameters in {policy.dtype}"
    if policy.rollout == "torch":
        return f"{said}; sampled by torch, since vllm is not installed"
    return f"{said}; sampled by {words}"


def _sampling(bench: Bench) -> str:
    bench.trajectories = _play(bench, 0)
    tokens = _written(bench.trajectories)
    ends = {end: sum(one.end == end for one in bench.trajectories) for end in ("error", "context")}
    if ends["error"]:
        raise Failed(f"{ends['error']} of {len(bench.trajectories)} episodes ended in an error")
    gap = getattr(_ready(bench).policy, "gap", None)
    own = "" if gap is None else f"; the engine's own check found {gap:.2g} nats"
    return f"{len(bench.trajectories)} episodes, {tokens:,} tokens, {bench.speed:,.0f} tokens/s{own}"


def _update(bench: Bench) -> str:
    """One GRPO+EMPG update in the precision that is trained in."""
    loaded = _ready(bench)
    if not bench.trajectories:
        raise Skipped("nothing was sampled")
    if bench.device == "cuda":
        torch.cuda.synchronize()
        bench.before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
    before = {name: one.detach().to("cpu", copy=True) for name, one in loaded.model.named_parameters()}
    learner = Learner(loaded.model, bench.settings, pad_id=loaded.pad_id)
    bench.outcome = learner.iterate(0, lambda *_: bench.trajectories)
    bench.learner = learner
    metrics = bench.outcome.metrics
    moved = sum(
        bool((one.detach().cpu() != before[name]).any()) for name, one in loaded.model.named_parameters()
    )
    if not metrics["grad_norm"]:
        raise Failed(f"the gradient's norm is {metrics['grad_norm']}, expected above 0")
    if not moved:
        raise Failed("no weight moved")
    return (
        f"loss {metrics['loss']:.4g}, gradient norm {metrics['grad_norm']:.3g}, "
        f"{moved} of {len(before)} tensors moved, entropy {metrics['entropy']:.3g} nats"
    )


def _log_probabilities(bench: Bench) -> str:
    """Those of what sampled against those of the trainer, before the update."""
    metrics = _updated(bench).metrics
    mean, most = metrics["rollout_logprob_gap"], metrics["rollout_logprob_gap_max"]
    assert mean is not None
    if not mean <= TOLERANCE:
        raise Failed(f"engine and trainer differ by {mean:.3g} nats on average, expected at most {TOLERANCE}")
    return f"engine and trainer differ by {mean:.2g} nats on average, {most:.2g} at most"


def _new_weights(bench: Bench) -> str:
    """After the update, episodes are sampled by the new weights and not by the old ones."""
    loaded, learner = _ready(bench), bench.learner
    _updated(bench)
    assert learner is not None
    begun = time.perf_counter()
    loaded.policy.update()
    loaded.policy.open(1, bench.config.rollout.sampling).close()
    handed = time.perf_counter() - begun
    batch = make_batch(_play(bench, 1), loaded.pad_id)
    sizes, sampled = bench.settings.batch, batch.step_of_token >= 0
    lm = open_model(loaded.model, bench.settings.precision)
    new = score(lm, batch, temperature=1.0, token_budget=sizes.token_budget, chunk=sizes.chunk).logprob
    old = learner.reference.logprob(batch, bench.settings, ALONE)
    to_new, to_old = (float((batch.sampled_logprobs - one)[sampled].abs().mean()) for one in (new, old))
    if not (to_new <= TOLERANCE and STALE * to_new <= to_old):
        raise Failed(
            f"samples are {to_new:.3g} nats from the new weights and {to_old:.3g} from the old ones, expected at most "
            f"{TOLERANCE} and {STALE:g} times as much"
        )
    return f"handed over in {handed:.2f} s; {to_new:.2g} nats from the new weights, {to_old:.2g} from the old ones"


def _weights_and_gradients(bench: Bench) -> str:
    """Their bytes against the plan's numbers, which are exact."""
    _updated(bench)
    loaded = _ready(bench)
    shape = measure(loaded.model.config)
    weights, _, gradients, _ = estimate.kept_bytes(shape, bench.config)
    own = [*loaded.model.parameters()]
    found = (_bytes(own), _bytes([one.grad for one in own if one.grad is not None]))
    if found != (weights, gradients):
        raise Failed(f"weights and gradients have {found} bytes, planned were {(weights, gradients)}")
    return f"weights and gradients have the planned {weights:,} and {gradients:,} bytes"


def _peak_memory(bench: Bench) -> str:
    """The GPU memory of the update against the plan's estimate."""
    _updated(bench)
    if bench.device == "cpu":
        raise Skipped("measured on a GPU alone")
    shape = measure(_ready(bench).model.config)
    planned = estimate.memory(shape, bench.config, bench.settings, Habits(*[1.0] * 6), sharded=False)
    kept = planned.reference + planned.gradients + planned.optimizer
    expected = kept + planned.activations + planned.casts + planned.logits
    found = torch.cuda.max_memory_allocated() - bench.before
    said = f"the update added {gib(found)} GiB at its peak, planned were {gib(expected)} ({found / expected:.0%})"
    if found > SPARE * expected:
        raise Failed(f"{said}, expected at most {SPARE:.0%}")
    return said


def _speed(bench: Bench) -> str:
    outcome = _updated(bench)
    batch = make_batch(bench.trajectories, _ready(bench).pad_id)
    rows = int(batch.lengths.sum())
    return (
        f"sampled {bench.speed:,.0f} tokens/s; of rows, scored "
        f"{2 * rows / outcome.seconds['score']:,.0f} and trained {rows / outcome.seconds['update']:,.0f} tokens/s"
    )


STEPS: tuple[Callable[[Bench], str], ...] = (
    _device,
    _bfloat16,
    _model_and_engine,
    _sampling,
    _update,
    _log_probabilities,
    _weights_and_gradients,
    _peak_memory,
    _new_weights,
    _speed,
)


def _ready(bench: Bench) -> LoadedPolicy:
    if bench.loaded is None:
        raise Skipped("no model was loaded")
    return bench.loaded


def _updated(bench: Bench) -> IterationOutcome:
    if bench.outcome is None:
        raise Skipped("there was no update")
    return bench.outcome


def _play(bench: Bench, iteration: int) -> list[Trajectory]:
    """A batch of training episodes with the present weights."""
    loaded, tasks = _ready(bench), bench.tasks
    assert tasks is not None
    batch = bench.settings.batch
    episodes = train_episodes(
        tasks.train, 0, iteration, 0, groups=batch.groups_per_batch, group_size=batch.group_size
    )
    config = bench.config.rollout
    begun = time.perf_counter()
    played = rollout(loaded.policy, tasks.world.make_env, episodes, config, prompts=tasks.prompts, seed=0)
    bench.speed = _written(played) / (time.perf_counter() - begun)
    return played


def _written(trajectories: Sequence[Trajectory]) -> int:
    return sum(len(step.action_ids) for one in trajectories for step in one.steps)


def _bytes(tensors: Sequence[Any]) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)
