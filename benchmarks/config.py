"""Suites as strict data: one TOML file, optional scale tables merged over it, and no key that nobody reads.

A suite describes one artefact of the paper. `[variants.*]` tables are merged over the suite's own tables,
and a `[scale.*]` table over both, so every number of a run stands in exactly one resolved `RunConfig`. A scale's own
`official` table comes next, where official data is given: real pages are longer than generated ones. Its `given_model`
table comes last, where the command line names the model: a language model needs other prompts and steps than a small
policy. A suite that names its model itself is written for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from agents.policies.vllm_engine import EngineSettings
from agents.rollout import RolloutConfig
from benchmarks.overrides import NOTHING, Overrides
from benchmarks.strict import ConfigError as ConfigError
from benchmarks.strict import Strict, merge
from benchmarks.strict import validate as validate
from benchmarks.warm_start.store import WarmStartConfig
from benchmarks.worlds import BENCHMARKS
from empg import EmpgConfig
from empg.config import LearnerConfig
from empg.losses import LOSSES

SUITES = Path(__file__).parent / "suites"


class Panels(Strict):
    """How many tasks of each split are used."""

    train: int | None = Field(default=None, ge=1)
    """None: all there are."""
    test: int = Field(ge=1)
    dev: int | None = Field(default=None, ge=1)
    """Of the split that chooses weights, where `evaluation.checkpoint` asks for that; None: all there are."""


class Evaluation(Strict):
    """How a policy is judged on the test panel."""

    modes: tuple[Literal["sampled", "greedy"], ...] = ("sampled", "greedy")
    samples: int = Field(default=1, ge=1)
    """Episodes of each task in the sampled mode; greedy episodes are all alike."""
    checkpoint: Literal["last", "best-on-dev"] = "last"
    """Which weights the test panel judges: the last ones, or those with most sampled success on the dev panel."""
    dev_every: int = Field(default=1, ge=1)
    """Iterations between two looks at the dev panel; after the last one there always is one."""


class LoraSettings(Strict):
    """Low-rank adapters (peft): the model's own weights stay as they are, and are the reference policy."""

    rank: int = Field(ge=1)
    alpha: int | None = Field(default=None, ge=1)
    """The adapters' product counts alpha / rank times; None: twice the rank."""
    target_modules: str | tuple[str, ...] = "all-linear"
    """Endings of module names, or every linear layer but the output head."""
    seed: int = Field(default=0, ge=0)
    """Of the random half of the adapters; the other half starts at 0, so training starts at the model itself."""


class PolicySettings(Strict):
    """Which policy is trained, and in what form it is held."""

    model: str | None = Field(default=None, min_length=1)
    """A causal language model with a chat template: a folder, a hub id such as `Qwen/Qwen2.5-1.5B-Instruct`, or
    `smollm2`, which a package ships. None: the warm start."""
    max_context: int = Field(ge=16)
    """Tokens an episode's context may hold."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of the weights; those of adapters are float32 in any case."""
    attention: Literal["sdpa", "eager", "flash_attention_2"] | None = None
    """Which implementation scores and trains; None: the model's default. The torch rollouts have their own."""
    gradient_checkpointing: bool = False
    """Compute each layer again in the backward pass instead of keeping it: slower, with less memory."""
    lora: LoraSettings | None = None
    """None: all weights are trained."""
    template: dict[str, Any] = Field(default={})
    """Further arguments of the chat template, such as `enable_thinking = false` of Qwen3."""
    rollout: Literal["torch", "vllm"] = "torch"
    """What samples the episodes."""
    vllm: EngineSettings = EngineSettings()
    """How vLLM does, where it is asked for."""


class Variant(Strict):
    """One way of training: a preset of the loss, what differs from it, and EMPG on or off."""

    preset: Literal["grpo", "dapo"]
    empg: bool | dict[str, Any]
    """Off, as in the suite's `[empg]` table, or with settings that replace some of it."""
    loss: dict[str, Any] = Field(default={})
    """Settings that replace the preset's."""
    learner: dict[str, Any] = Field(default={})
    """Settings that replace the suite's `[learner]` table, such as dynamic sampling."""


class Baseline(Strict):
    """The given model itself, judged under other prompts than those it is trained with."""

    rollout: dict[str, Any] = Field(default={})
    """Settings that replace the suite's `[rollout]` table."""


BaselineName = Literal["zero-shot", "few-shot"]


class _SuiteFile(Strict):
    """A suite file after its scale table was merged in, before its variants are resolved."""

    title: str
    benchmark: str
    world: dict[str, Any] = Field(default={})
    data_seed: int = Field(default=0, ge=0)
    iterations: int = Field(ge=1)
    checkpoint_every: int = Field(default=1, ge=1)
    panels: Panels
    policy: PolicySettings
    warm_start: WarmStartConfig = WarmStartConfig()
    rollout: RolloutConfig
    learner: dict[str, Any] = Field(default={})
    empg: EmpgConfig
    evaluation: Evaluation = Evaluation()
    baselines: dict[BaselineName, Baseline] = Field(default={})
    variants: dict[str, Variant] = Field(min_length=1)


Kind = Literal["train", "warm_start", "base", "expert", "served"]
"""`warm_start` and `base` judge what training starts from: a policy of ours, or a given model."""


class RunConfig(Strict):
    """Everything that decides the numbers of one run, apart from the data itself."""

    kind: Kind
    benchmark: str
    variant: str
    seed: int
    """Of the policy's samples; runs of different variants with one seed begin alike."""
    data_seed: int
    """Of the order of the train tasks; the same for every seed and variant."""
    world: dict[str, Any]
    panels: Panels
    policy: PolicySettings
    warm_start: WarmStartConfig
    rollout: RolloutConfig
    evaluation: Evaluation
    iterations: int = 0
    checkpoint_every: int = 1
    """Iterations between two checkpoints, which a stopped run goes back to; after the last one there always is one."""
    learner: LearnerConfig | None = None
    """None for runs that only evaluate."""

    def table(self) -> dict[str, Any]:
        """As plain JSON values."""
        table = self.model_dump(mode="json")
        assert isinstance(table, dict)
        return table


class Suite(Strict):
    """A suite at one scale, checked throughout."""

    name: str
    scale: str
    title: str
    benchmark: str
    variants: tuple[str, ...]
    base: RunConfig
    """What all runs share; `variant`, `kind`, `seed` and the learner are filled in by the plan."""
    learners: dict[str, LearnerConfig]
    """The resolved learner of each variant."""
    baselines: dict[str, RolloutConfig]
    """What is judged without training, with the prompts of each: where training starts, then what else is asked for."""
    iterations: int
    overrides: Overrides = NOTHING
    """What the command line replaced; the rest of this says so already."""
    told: tuple[str, ...] = ()
    """What of that stands in the name of the suite's folder."""


def suite_names() -> tuple[str, ...]:
    """The suites that come with the package."""
    return tuple(sorted(path.stem for path in SUITES.glob("*.toml")))


def load_suite(
    name: str, scale: str = "default", *, official: bool = False, overrides: Overrides = NOTHING
) -> Suite:
    """Read, merge and check a suite, given by its name or as the path of a TOML file.

    official: whether the run is on official data rather than generated data. overrides: what replaces its settings;
    where they change the world, a shipped warm start is taken as it is: how it does there is the question.

    Raises `ConfigError`: no such suite or scale, not TOML, an unknown key, a value of the wrong kind.
    """
    path = Path(name) if name.endswith(".toml") else SUITES / f"{name}.toml"
    return build_suite(path.stem, scale, _read_suite(path), official=official, overrides=overrides)


def _read_suite(path: Path) -> dict[str, Any]:
    """A suite file, merged over the one of the package that it extends; the variants are its own alone."""
    if not path.is_file():
        known = ", ".join(suite_names())
        raise ConfigError(f"no suite {path.stem!r}, expected one of: {known}, or a .toml file")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    extended = table.pop("extends", None)
    if extended is None:
        return table
    if extended not in suite_names():
        raise ConfigError(f"{path}: extends is {extended!r}, expected one of: {', '.join(suite_names())}")
    return merge(_without_variants(_read_suite(SUITES / f"{extended}.toml")), table)


def _without_variants(table: Mapping[str, Any]) -> dict[str, Any]:
    """Nor in the tables of its scales, and of their cases."""
    return {
        key: _without_variants(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if key != "variants"
    }


def build_suite(
    name: str,
    scale: str,
    table: Mapping[str, Any],
    *,
    official: bool = False,
    overrides: Overrides = NOTHING,
) -> Suite:
    """A suite from its parsed file; see `load_suite`."""
    own = _at_scale(name, scale, table, official=official, given_model=overrides.model is not None)
    body = merge(own, overrides.table())
    file = validate(_SuiteFile, body, name)
    if file.benchmark not in BENCHMARKS:
        known = ", ".join(sorted(BENCHMARKS))
        raise ConfigError(f"{name}.benchmark: unknown benchmark {file.benchmark!r}, expected one of: {known}")
    settings = validate(BENCHMARKS[file.benchmark].settings, file.world, f"{name}.world")
    if file.evaluation.checkpoint == "last" and (file.panels.dev or file.evaluation.dev_every > 1):
        raise ConfigError(
            f'{name}.evaluation.checkpoint: "last", so nobody reads panels.dev and evaluation.dev_every; '
            'expected "best-on-dev" with them'
        )
    if file.rollout.sampling.greedy:
        raise ConfigError(f"{name}.rollout.sampling.greedy: training samples, expected false")
    learners = {variant: _learner(file, variant, f"{name}.variants") for variant in file.variants}
    base = RunConfig(
        kind="warm_start",
        benchmark=file.benchmark,
        variant="",
        seed=0,
        data_seed=file.data_seed,
        world=asdict(settings),
        panels=file.panels,
        policy=file.policy,
        warm_start=_start(file, moved=body.get("world") != own.get("world")),
        rollout=file.rollout,
        evaluation=file.evaluation,
        checkpoint_every=file.checkpoint_every,
    )
    return Suite(
        name=name,
        scale=scale,
        title=file.title,
        benchmark=file.benchmark,
        variants=tuple(file.variants),
        base=base,
        learners=learners,
        baselines=_baselines(file, name),
        iterations=file.iterations,
        overrides=overrides,
        told=overrides.names(validate(_SuiteFile, own, name).model_dump()),
    )


def _at_scale(name: str, scale: str, table: Mapping[str, Any], **asked: bool) -> dict[str, Any]:
    """A suite's tables with those of a scale merged over them, and with that scale's own for what is `asked`."""
    scales = table.get("scale", {})
    if not isinstance(scales, Mapping) or not isinstance(scales.get(scale), Mapping):
        known = (
            ", ".join(sorted(scales)) if isinstance(scales, Mapping) and scales else "a [scale.default] table"
        )
        raise ConfigError(f"{name}: no scale {scale!r}, expected one of: {known}")
    chosen = dict(scales[scale])
    further = {case: chosen.pop(case, {}) for case in asked}
    body = merge({key: value for key, value in table.items() if key != "scale"}, chosen)
    for case, wanted in asked.items():
        body = merge(body, further[case]) if wanted else body
    return body


def _start(file: _SuiteFile, *, moved: bool) -> WarmStartConfig:
    """The suite's warm start, but nothing of it where the policy is a given model; moved: to another world."""
    if file.policy.model is not None:
        return WarmStartConfig()
    return replace(file.warm_start, as_shipped=True) if moved and file.warm_start.name else file.warm_start


def _baselines(file: _SuiteFile, where: str) -> dict[str, RolloutConfig]:
    """The policy that training starts from, by the name of what it is, then the suite's own baselines."""
    if file.policy.model is None:
        start = "warm-start"
        if file.baselines:
            raise ConfigError(
                f"{where}.baselines: {', '.join(file.baselines)}, expected none without policy.model"
            )
    else:
        start = "few-shot" if file.rollout.shots else "zero-shot"
    found = {start: file.rollout}
    for name, asked in file.baselines.items():
        table = merge(asdict(file.rollout), asked.rollout)
        rollout = validate(RolloutConfig, table, f"{where}.baselines.{name}.rollout")
        if name == start or (name == "few-shot") != (rollout.shots > 0):
            raise ConfigError(
                f"{where}.baselines.{name}.rollout.shots: {rollout.shots}, and training has {file.rollout.shots}; "
                "expected 0 of zero-shot and more of few-shot, and the one that training does not have"
            )
        found[name] = rollout
    return found


def _learner(file: _SuiteFile, variant: str, where: str) -> LearnerConfig:
    """The suite's learner, then the preset's loss, then what the variant replaces; `false` leaves a part out.

    Temperature and length of the schedule are the rollout's and the suite's, so they cannot disagree.
    """
    chosen = file.variants[variant]
    given = merge(file.learner, chosen.learner)
    given |= {part: None for part in ("sampling", "overlong", "probe") if given.get(part) is False}
    table = merge({"temperature": file.rollout.sampling.temperature}, given)
    table["optimizer"] = merge({"total_iterations": file.iterations}, given.get("optimizer", {}))
    table["loss"] = merge(merge(asdict(LOSSES[chosen.preset]), table.get("loss", {})), chosen.loss)
    changed = chosen.empg if isinstance(chosen.empg, dict) else {}
    table["empg"] = None if chosen.empg is False else merge(asdict(file.empg), changed)
    learner = validate(LearnerConfig, table, f"{where}.{variant}")
    if learner.temperature != file.rollout.sampling.temperature:
        raise ConfigError(
            f"{where}.{variant}.temperature: {learner.temperature}, but episodes are sampled at "
            f"{file.rollout.sampling.temperature}; expected the same"
        )
    return learner
