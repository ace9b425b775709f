"""Fetching official data: ALFWorld's games by its own package, questions and passages from the Hugging Face hub."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.config import ConfigError, RunConfig
from benchmarks.prepare import one_line
from benchmarks.worlds import DeepSearchSettings

QUESTIONS, PASSAGES = "RUC-NLPIR/FlashRAG_datasets", "PeterJinGo/wiki-18-corpus"
"""Data sets of the hub: published questions in one form, and the passages of Wikipedia as of 2018."""
PASSAGES_FILE = "wiki-18.jsonl.gz"
SPLITS: Mapping[str, tuple[str, ...]] = {
    "nq": ("train", "test"),
    "triviaqa": ("train", "test"),
    "popqa": ("test",),
    "hotpotqa": ("train", "dev"),
    "2wikimultihopqa": ("train", "dev"),
    "musique": ("train", "dev"),
    "bamboogle": ("test",),
}
"""Question files of each data set: the train file, where there is one, and the one that results are published on."""


def download(config: RunConfig, data: Path, console: Console) -> None:
    """Fetch the official files of a benchmark into a folder; what is there already stays.

    Raises `ConfigError`: nothing offers the files, what fetches them is missing, or it failed.
    """
    if config.benchmark not in _FETCH:
        raise ConfigError(
            f"download: {config.benchmark} has no package that downloads its files; see `origin` above"
        )
    data.mkdir(parents=True, exist_ok=True)
    _FETCH[config.benchmark](config, data, console)


def _alfworld(config: RunConfig, data: Path, console: Console) -> None:
    program = shutil.which("alfworld-download", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
    if program is None:
        raise ConfigError(
            "download: no program alfworld-download, expected the official package: "
            "pip install 'empg-bench[alfworld]'"
        )
    ended = subprocess.run(
        [program, "--data-dir", str(data)], check=False, env={**os.environ, "ALFWORLD_DATA": str(data)}
    )
    if ended.returncode:
        raise ConfigError(
            f"download: alfworld-download ended with code {ended.returncode}; its messages are above"
        )


def _deepsearch(config: RunConfig, data: Path, console: Console) -> None:
    """The questions of the suite's data sets and the passages; those of `ood_datasets` without their train file."""
    from envs.deepsearch.load import CORPUS

    settings = DeepSearchSettings(**config.world)
    trained, tested = settings.id_datasets, settings.ood_datasets
    if unknown := sorted({*trained, *tested} - SPLITS.keys()):
        raise ConfigError(
            f"download: {QUESTIONS} is not known to have {', '.join(unknown)}, expected any of {', '.join(SPLITS)}; "
            f"fetch them by hand into {data}"
        )
    wanted = {
        f"{name}_{split}.jsonl": (QUESTIONS, f"{name}/{split}.jsonl")
        for name in (*trained, *tested)
        for split in SPLITS[name]
        if name in trained or split != "train"
    }
    wanted[CORPUS] = (PASSAGES, PASSAGES_FILE)
    for name, (dataset, file) in wanted.items():
        if (data / name).exists():
            console.print(f"{name} is there", markup=False, highlight=False)
            continue
        console.print(f"{name}: {file} of {dataset}", markup=False, highlight=False)
        _place(_from_hub(dataset, file), data / name)


def _from_hub(dataset: str, file: str) -> Path:
    """A file of a hub's data set in the hub's own cache, which shows progress and goes on where it stopped."""
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(dataset, file, repo_type="dataset"))
    except (ValueError, OSError) as error:
        raise ConfigError(
            f"download: {file} of {dataset} cannot be fetched ({one_line(error)}); without a network, put the files "
            "named above into the folder by hand"
        ) from error


def _place(source: Path, target: Path) -> None:
    """Copy a file, unpacked, whole or not at all."""
    opened: Any = gzip.open if source.suffix == ".gz" else open
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as draft:
        try:
            with opened(source, "rb") as packed:
                shutil.copyfileobj(packed, draft)
            draft.close()
            os.chmod(draft.name, 0o644)  # temporary files are private, these are not
            os.replace(draft.name, target)
        except BaseException:
            os.unlink(draft.name)
            raise


_FETCH: Mapping[str, Callable[[RunConfig, Path, Console], None]] = {
    "alfworld": _alfworld,
    "deepsearch": _deepsearch,
}
