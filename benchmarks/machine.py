"""What this machine lacks for a suite, found without a network and without starting anything."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks import smollm2
from benchmarks.config import ConfigError, RunConfig
from benchmarks.models import is_whole, local_copy
from benchmarks.worlds import BENCHMARKS
from envs.base import EnvError


@dataclass(frozen=True)
class Gpus:
    """The GPUs of this machine."""

    names: tuple[str, ...] = ()
    bytes: tuple[int, ...] = ()
    """Memory of each."""


def gpus_here() -> Gpus:
    """What torch sees."""
    found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    return Gpus(tuple(one.name for one in found), tuple(int(one.total_memory) for one in found))


def missing_gpus(needed: int | None, largest: int, here: Gpus) -> list[str]:
    """needed: of the present kind, None where no number of them would do; largest: bytes that one process takes."""
    if not here.bytes:
        return [f"a GPU: none is here, and a run takes {gib(largest)} GiB in one process"]
    kind = f"{here.names[0]} with {gib(min(here.bytes))} GiB"
    if needed is None:
        return [f"larger GPUs, or adapters (LORA=): a run does not fit on any number of {kind}"]
    if needed > len(here.bytes):
        return [f"{needed} GPUs: a run needs so many of {kind}, and {len(here.bytes)} are here"]
    return []


def missing_packages(config: RunConfig, processes: int) -> list[str]:
    """Packages that the settings ask for and this environment lacks."""
    policy = config.policy
    wanted = {
        "vllm": (policy.rollout == "vllm", "'empg-bench[vllm]', or ROLLOUT=torch"),
        "peft": (policy.lora is not None, "'empg-bench[lora]'"),
        "accelerate": (processes > 1, "'empg-bench[gpu]'"),
        "flash_attn": (policy.attention == "flash_attention_2", "flash-attn"),
    }
    return [
        f"the package {name}: pip install {install}"
        for name, (asked, install) in wanted.items()
        if asked and find_spec(name) is None
    ]


def missing_model(model: str | None) -> list[str]:
    """Whether the weights are here: the warm start is made, others are found or fetched."""
    if model is None:
        return []
    if model == smollm2.NAME:
        try:
            smollm2.gguf_file()
        except ConfigError as error:
            return [str(error).removeprefix("policy.model: ")]
        return []
    folder = local_copy(model)
    if folder is None:
        return [f"the model {model}: `hf download {model}`, or the folder of a copy as MODEL="]
    return [] if is_whole(folder) else [f"a whole copy of {model}: the one in {folder} lacks files"]


def missing_data(config: RunConfig, data: Path | None) -> list[str]:
    """Whether official files were given and are there, by name; their content is checked by `data`."""
    name = config.benchmark
    if data is None:
        return [
            f"official data of {name}: none was given (DATA=), so it is generated; {BENCHMARKS[name].origin}"
        ]
    try:
        return [f"official data of {name}: {one}" for one in _lacking(name, config.world, data)]
    except (EnvError, ValueError, OSError) as error:
        return [f"official data of {name}: {' '.join(str(error).split())}"]


def _lacking(benchmark: str, world: dict[str, Any], data: Path) -> list[str]:
    if benchmark == "webshop":
        from envs.webshop.catalogue import find_files

        find_files(data)
        return []
    if benchmark == "alfworld":
        from envs.alfworld.games import OFFICIAL_COUNTS, find_tree, list_games

        tree = find_tree(data)
        counts = {part: (len(list_games(tree, part)), whole) for part, whole in OFFICIAL_COUNTS.items()}
        return [
            f"{found:,} of {whole:,} games of {part}"
            for part, (found, whole) in counts.items()
            if found < whole
        ]
    from envs.deepsearch.load import CORPUS, SUFFIXES

    wanted = [*world["id_datasets"], *world["ood_datasets"]]
    lacking = [] if (data / CORPUS).is_file() else [f"no {CORPUS} in {data}"]
    for dataset in wanted:
        if not any(path.suffix in SUFFIXES for path in data.glob(f"{dataset}*")):
            lacking.append(f"no questions of {dataset} in {data}")
    return lacking


def missing_disk(needed: int, folder: Path) -> list[str]:
    """Space below a folder, or where it would be made."""
    place = next(parent for parent in (folder.resolve(), *folder.resolve().parents) if parent.exists())
    free = shutil.disk_usage(place).free
    if needed <= free:
        return []
    return [f"disk: {gib(needed)} GiB are needed in {place}, {gib(free)} GiB are free"]


def gib(count: float) -> str:
    """Bytes in GiB, for people: three digits or whole numbers."""
    value = count / 2**30
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
