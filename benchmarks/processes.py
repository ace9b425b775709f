"""One run in several processes: started together, joined by accelerate, each playing a share of the episodes."""

from __future__ import annotations

import logging
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from itertools import groupby
from typing import Any, get_args

import torch

from agents.policies.base import Policy
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig, rollout
from agents.trajectory import Trajectory
from benchmarks.config import ConfigError
from benchmarks.launch import printable
from empg.parallel import ALONE, Kind, Launched, PeerLost, Processes
from envs.base import TextEnv

PATIENCE = timedelta(hours=6)
"""How long a process waits for the others: one may play long episodes, or be the only one that writes."""
_COUNT = "WORLD_SIZE"
"""Set by torchrun and `accelerate launch`."""


def check(processes: int, parallel: str) -> Kind:
    """What `--processes` and `--parallel` ask for; raises `ConfigError`."""
    kinds = get_args(Kind)
    if parallel not in kinds:
        raise ConfigError(f"parallel: {parallel!r}, expected one of: {', '.join(kinds)}")
    if processes == 1 and parallel == "fsdp2":
        raise ConfigError(
            "parallel: fsdp2 divides the weights between processes, expected at least 2 processes"
        )
    if processes > 1 and find_spec("accelerate") is None:
        raise ConfigError("processes: accelerate is not installed, expected `pip install 'empg-bench[gpu]'`")
    if torch.cuda.is_available() and processes > torch.cuda.device_count():
        raise ConfigError(
            f"processes: {processes}, but there are {torch.cuda.device_count()} GPUs, expected no more"
        )
    return "fsdp2" if parallel == "fsdp2" else "ddp"


def launched() -> int:
    """How many processes a launcher started, this one among them; 1 without a launcher."""
    return int(os.environ.get(_COUNT, "1"))


@contextmanager
def joined(kind: Kind) -> Iterator[Processes]:
    """The processes of the launcher within the block; whoever started them is told of an error in it."""
    if launched() == 1:
        yield ALONE
        return
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    handler = get_error_handler()
    handler.initialize()
    try:
        yield _join(kind)
    except PeerLost as error:
        raise SystemExit(1) from error  # the one that is lost says why
    except Exception as error:
        handler.record_exception(error)
        raise
    torch.distributed.destroy_process_group()


def _join(kind: Kind) -> Processes:
    """Meet the others, on a GPU each or on the CPU."""
    from accelerate import Accelerator, InitProcessGroupKwargs

    accelerator = Accelerator(
        cpu=not torch.cuda.is_available(), kwargs_handlers=[InitProcessGroupKwargs(timeout=PATIENCE)]
    )
    return Launched(accelerator, kind)


def start(processes: int, arguments: Sequence[str]) -> None:
    """Run `python -m benchmarks ARGUMENTS` in several processes on this machine; the first failure ends all.

    Raises `SystemExit` with the exit code of the one that failed; what it had to say is on stderr.
    """
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        monitor_interval=0.1,
    )
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    try:
        elastic_launch(config, sys.executable)("-m", "benchmarks", *arguments)
    except ChildFailedError as error:
        first = min(error.failures.values(), key=_told)
        said = first.message["message"] if isinstance(first.message, dict) else first.message
        named = f"error: process {first.local_rank} of {processes} failed, so all were ended"
        print(f"{named}: {printable(' '.join(said.split()))}", file=sys.stderr)
        raise SystemExit(first.exitcode if first.exitcode > 0 else 1) from None


def _told(failure: Any) -> tuple[bool, bool]:
    """Sorts the cause to the front: what one recorded or was killed by; the others only lost that one."""
    was_killed = failure.exitcode < 0 and failure.exitcode != -signal.SIGTERM
    return failure.error_file == "<N/A>", not was_killed


def play(
    policy: Policy,
    make_env: Callable[[], TextEnv],
    episodes: Sequence[Episode],
    config: RolloutConfig,
    *,
    prompts: Prompts,
    seed: int,
    on_done: Callable[[Trajectory], None] | None = None,
    processes: Processes = ALONE,
) -> list[Trajectory]:
    """`rollout`, the groups divided between the processes: each plays its share and gets all trajectories.

    They come in the order of `episodes`, whose groups stand together. `on_done` sees those of this process.
    """
    groups = [list(members) for _, members in groupby(episodes, key=lambda episode: episode.group)]
    own = [episode for members in processes.share(groups) for episode in members]
    played = rollout(policy, make_env, own, config, prompts=prompts, seed=seed, on_done=on_done)
    return [trajectory for part in processes.gather_objects(played) for trajectory in part]
