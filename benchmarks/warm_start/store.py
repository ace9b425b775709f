"""Where the warm-start policy comes from: shipped with the package, kept in a cache, or built here and now.

A policy belongs to the data, prompts, layout and settings it was taught with; a digest of all of them is in
its record and decides whether a stored one may be used. Weights are stored as float16 and computed with as
float32, and a freshly built policy is rounded to float16 too, so all three ways lead to the same numbers.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from agents.prompts import Prompts
from agents.rollout import RolloutConfig
from benchmarks import records
from benchmarks.prompting import prompts_of
from benchmarks.warm_start.demonstrations import (
    Demonstration,
    DemonstrationConfig,
    Elsewhere,
    Progress,
    collect_everywhere,
    silent,
)
from benchmarks.warm_start.examples import make_examples
from benchmarks.warm_start.measure import MeasureConfig, measure
from benchmarks.warm_start.phrases import find_commands, find_phrases, find_wordings
from benchmarks.warm_start.small_model import SmallModelConfig, build_model, train_tokenizer
from benchmarks.warm_start.supervised import SupervisedConfig, train
from envs.base import World

log = logging.getLogger(__name__)

SHIPPED = Path(__file__).parent
"""Folder of the policies that come with the package, one folder each."""
MOST_BYTES = 3_000_000
"""Largest weights file that may ship."""
FORMAT = 1
RECORD, WEIGHTS = "record.json", "model.safetensors"


@dataclass(frozen=True)
class WarmStartConfig:
    """Everything that decides a warm-start policy, apart from the data and the rollout's layout."""

    name: str | None = None
    """Folder of a shipped policy that is used if its digest fits; it does not enter the digest."""
    as_shipped: bool = False
    """Take the shipped policy of that name whatever it was taught on: how it does on other data is the question."""
    seed: int = 0
    model: SmallModelConfig = field(default_factory=SmallModelConfig)
    demonstrations: DemonstrationConfig = field(default_factory=DemonstrationConfig)
    supervised: SupervisedConfig = field(default_factory=SupervisedConfig)
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    """How the result is judged; it does not enter the digest."""


@dataclass(frozen=True)
class WarmStart:
    """A taught policy, ready to sample from or to train."""

    model: Any
    tokenizer: Any
    record: dict[str, Any]
    """Its digest and what that stands for, what teaching did, how the result was judged, and `source`."""


def obtain(
    world: World,
    config: WarmStartConfig,
    rollout: RolloutConfig,
    *,
    cache: Path,
    elsewhere: Elsewhere | None = None,
    progress: Progress = silent,
) -> WarmStart:
    """The policy of these settings: the shipped one, else the cached one, else a new one, then cached.

    Raises `ValueError` where the shipped one is asked for as it is, and there is none, and where one has to be taught
    `elsewhere`, and there is no such place.
    """
    if config.as_shipped:
        return _as_shipped(config.name)
    digest = records.digest(identity(world, config, rollout))
    if config.name is not None and (found := _read(SHIPPED / config.name, digest, "shipped")):
        return found
    kept = cache / f"{world.name}-{digest[:16]}"
    if found := _read(kept, digest, "cached"):
        return found
    log_file = _beside(kept, "log")
    built = build(world, config, rollout, elsewhere=elsewhere, progress=progress, log_file=log_file)
    save(built, kept)
    return built


def _as_shipped(name: str | None) -> WarmStart:
    known = sorted(path.parent.name for path in SHIPPED.glob(f"*/{RECORD}"))
    if name not in known:
        raise ValueError(f"no policy {name!r} ships with the package, expected one of {', '.join(known)}")
    policy = load(SHIPPED / name)
    return WarmStart(
        policy.model, policy.tokenizer, policy.record | {"source": "shipped, taught on other data"}
    )


def build_and_save(
    name: str,
    world: World,
    config: WarmStartConfig,
    rollout: RolloutConfig,
    *,
    command: str,
    elsewhere: Elsewhere | None = None,
    progress: Progress = silent,
) -> WarmStart:
    """Build a policy and make it the shipped one of that name.

    `command` goes into its record as what made it. Raises `ValueError`, before any work, if its weights would
    be too large to ship.
    """
    largest = build_model(config.model, config.model.vocab_size, config.seed)
    size = 2 * sum(parameter.numel() for parameter in largest.parameters())
    if size > MOST_BYTES:
        raise ValueError(f"the weights of {name} may take {size} bytes, expected at most {MOST_BYTES}")
    built = build(world, replace(config, name=name), rollout, elsewhere=elsewhere, progress=progress)
    made = WarmStart(built.model, built.tokenizer, built.record | {"command": command})
    save(made, SHIPPED / name)
    return made


def build(
    world: World,
    config: WarmStartConfig,
    rollout: RolloutConfig,
    *,
    elsewhere: Elsewhere | None = None,
    progress: Progress = silent,
    log_file: Path | None = None,
) -> WarmStart:
    """Play demonstrations, train tokenizer and model on them, judge the result."""
    known = identity(world, config, rollout)
    prompts = prompts_of(world, rollout)
    shown = collect_everywhere(
        world, config.demonstrations, seed=config.seed, elsewhere=elsewhere, progress=progress
    )
    tokenizer = make_tokenizer(shown, config.model.vocab_size, prompts)
    max_context = config.model.max_context
    examples = make_examples(
        shown, tokenizer, rollout, prompts=prompts, max_context=max_context, progress=progress
    )
    model = build_model(config.model, len(tokenizer), config.seed)
    taught = []
    for cycle in range(config.supervised.cycles):
        taught.append(
            train(
                model,
                examples,
                config.supervised,
                seed=config.seed,
                pad_id=tokenizer.pad_token_id,
                cycle=cycle,
                progress=progress,
                log=log_file,
            )
        )
        round_to_float16(model)
    judged = measure(
        model, tokenizer, world, rollout, config.measure,
        prompts=prompts, max_context=max_context, seed=config.seed, progress=progress,
    )  # fmt: skip
    record = {
        "format": FORMAT,
        "digest": records.digest(known),
        "identity": known,
        "demonstrations": describe(shown, config.demonstrations),
        "tokens_per_demonstration": round(sum(len(e.ids) for e in examples) / len(shown), 1),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "vocabulary": len(tokenizer),
        "supervised": [asdict(cycle) for cycle in taught],
        "measured": judged,
        "made": records.provenance(SHIPPED.parent.parent),
        "source": "built",
    }
    return WarmStart(model, tokenizer, record)


def make_tokenizer(demonstrations: Sequence[Demonstration], vocab_size: int, prompts: Prompts) -> Any:
    """A tokenizer for the pages and responses of these demonstrations, with tokens for fixed phrases."""
    pages = [demonstration.observations for demonstration in demonstrations]
    furniture = find_phrases(pages) or find_wordings(pages)
    commands = find_commands([[decision.action for decision in shown.decisions] for shown in demonstrations])
    before, between, _ = prompts.format("\0", "\0").split("\0")
    phrases = [
        prompts.system,
        *furniture,
        before,
        between,
        *(between + command for command in commands),
        *commands,
    ]
    responses = [prompts.format(d.thought, d.action) for shown in demonstrations for d in shown.decisions]
    texts = [text for episode in pages for text in episode] + responses
    return train_tokenizer(texts, vocab_size, phrases)


def identity(world: World, config: WarmStartConfig, rollout: RolloutConfig) -> dict[str, Any]:
    """What a policy was made from, as JSON; policies of equal identity are interchangeable."""
    settings = asdict(config)
    for silent_key in ("name", "measure"):
        del settings[silent_key]
    del settings["as_shipped"]  # it is about where a policy is from
    for later in ("max_steps", "worlds"):
        if settings["demonstrations"][later] is None:
            del settings["demonstrations"][later]  # policies from before it existed stay valid
    layout = ("layout", "window", "max_observation_tokens", "max_new_tokens")
    found = {
        "format": FORMAT,
        "world": world.describe(),
        "prompt": prompts_of(world, rollout).digest(),
        "rollout": {name: getattr(rollout, name) for name in layout},
        "config": settings,
    }
    return cast(dict[str, Any], json.loads(records.dumps(found)))  # as it will be read back


def save(policy: WarmStart, folder: Path) -> None:
    """Write the policy and its record as a Hugging Face folder (float16 safetensors), whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        policy.model.config.save_pretrained(draft)
        tied = _tied(policy.model)
        half = {name: value.half() for name, value in policy.model.state_dict().items() if name not in tied}
        save_file(half, draft / WEIGHTS, metadata={"format": "pt"})
        policy.tokenizer.save_pretrained(draft, save_jinja_files=False)
        records.write_json(draft / RECORD, policy.record)
        for path in (draft, *draft.iterdir()):  # temporary files are private, these are not
            path.chmod(0o755 if path.is_dir() else 0o644)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def load(folder: Path) -> WarmStart:
    """Read a saved policy, in float32; runs no code from the folder and reads safetensors only."""
    record = records.read_json(folder / RECORD)
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    with torch.random.fork_rng(devices=[]):  # the random initialisation is overwritten at once
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")
    weights = load_file(folder / WEIGHTS)
    left_out = model.load_state_dict({name: value.float() for name, value in weights.items()}, strict=False)
    if left_out.unexpected_keys or set(left_out.missing_keys) != _tied(model):
        raise ValueError(f"{folder / WEIGHTS} does not fit its config.json: {left_out}")
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    return WarmStart(model.eval(), tokenizer, record)


def _tied(model: Any) -> set[str]:
    """Names of weights that are another one under a second name."""
    return {"lm_head.weight"} if model.config.tie_word_embeddings else set()


def round_to_float16(model: Any) -> None:
    """Give every weight a value that float16 holds exactly, in place."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().to(parameter.dtype))


def _read(folder: Path, digest: str, source: str) -> WarmStart | None:
    """The policy in a folder if it is there and of this digest."""
    if not (folder / RECORD).is_file():
        return None
    found = records.read_json(folder / RECORD).get("digest")
    if found != digest:
        log.warning(
            "the %s warm start %s was made for other data or settings (digest %s, expected %s): not used",
            source, folder.name, str(found)[:12], digest[:12],
        )  # fmt: skip
        return None
    policy = load(folder)
    return WarmStart(policy.model, policy.tokenizer, policy.record | {"source": source})


def _beside(folder: Path, ending: str) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder.parent / f"{folder.name}.{ending}"


def describe(shown: Sequence[Demonstration], config: DemonstrationConfig) -> dict[str, Any]:
    """How often each player of the mixture played and won, and how many decisions of each kind there are."""
    kinds: dict[str, int] = {}
    for decision in (decision for demonstration in shown for decision in demonstration.decisions):
        kinds[decision.kind] = kinds.get(decision.kind, 0) + 1
    players = []
    for number, player in enumerate(config.players):
        wins = [demonstration.success for demonstration in shown if demonstration.player == number]
        rate = round(sum(wins) / len(wins), 4) if wins else None
        players.append(asdict(player) | {"episodes": len(wins), "success": rate})
    return {"episodes": len(shown), "decisions": dict(sorted(kinds.items())), "players": players}
