"""What a run will need, computed before it starts: memory by part, GPUs, tokens, disk. Pure functions.

Weights, gradients, optimiser and cached keys and values are exact. Activations are those that a Llama-like layer
(gated MLP, RMS norms, fused attention) keeps for its backward pass, as counted on such a layer; the tables of logits
that are alive at once were measured. What the allocator, kernels and the GPU's context take comes on top: `USABLE`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

from benchmarks.config import RunConfig
from benchmarks.shapes import Shape
from empg.config import LearnerConfig

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
CARDS = {"80 GB": 80 * 10**9, "141 GB": 141 * 10**9}
"""Memory of the GPUs that are planned for, such as an A100 or H100, and an H200."""
USABLE = 0.9
"""Share of a GPU's memory that the parts counted here may fill."""
MOST_GPUS = 64
SCORED_TABLES, TRAINED_TABLES, TRAINED_TABLES_PLAIN = 4.0, 5.4, 3.1
"""Float32 tables [chunk, vocabulary] alive at once: scoring with entropies; training with an entropy term, without."""
GATHERED_LAYERS = 2
"""Layers that FSDP2 holds whole at a time: the one that runs, and the next one on its way."""
REDUCED = 2 * 4 * 2**26
"""Bytes that summing gradients over data-parallel processes takes: a bucket of `empg.parallel`, and its sum."""
RECORD_BYTES, TOKEN_BYTES = 400, 4.5
"""Of an agent step in the records, and of each token of what it read and wrote, which is kept as text."""


@dataclass(frozen=True)
class Habits:
    """What an average episode is, in tokens, and how many batches an update takes."""

    turns: float
    response_tokens: float
    prompt_tokens: float
    """Of a whole prompt in the window layout."""
    opening_tokens: float
    """Conversation layout: of the system message and the first observation."""
    observation_tokens: float
    """Conversation layout: of each later observation."""
    attempts: float
    """Batches sampled for one update under dynamic sampling."""

    def read(self, layout: str) -> float:
        """Tokens of an episode's prompts, a repeated beginning of a conversation counted once."""
        if layout == "window":
            return self.turns * self.prompt_tokens
        return self.opening_tokens + (self.turns - 1) * self.observation_tokens

    def written(self) -> float:
        """Tokens that the policy writes in an episode."""
        return self.turns * self.response_tokens

    def longest(self, layout: str) -> float:
        """Tokens of the last prompt and response, which is what a cache must hold."""
        if layout == "window":
            return self.prompt_tokens + self.response_tokens
        return self.read(layout) + self.written()


@dataclass(frozen=True)
class Memory:
    """Bytes in one process, by what takes them."""

    weights: int
    reference: int
    gradients: int
    optimizer: int
    gathered: int
    """Weights of the layers that are whole for the moment, where they are sharded."""
    reduction: int
    """Where gradients of data-parallel processes are summed."""
    activations: int
    casts: int
    """Copies of the layers' and the output head's weights in bfloat16, where passes are in it and the weights not."""
    logits: int
    engine: int
    """The copy of the weights that samples: vLLM's, or a whole one beside sharded weights."""
    cache: int
    """Keys and values of the conversations that are played at a time."""
    engine_cache: int
    """How much of it an engine keeps while the policy is trained, unless it sleeps; the torch sessions keep none."""
    sleeps: bool
    """Whether the engine gives its memory back while the policy is trained."""

    @property
    def kept(self) -> int:
        """What stays from one phase to the next."""
        return self.weights + self.reference + self.gradients + self.optimizer

    @property
    def sampling(self) -> int:
        """While episodes are played."""
        return self.kept + self.engine + self.cache

    @property
    def training(self) -> int:
        """While the policy is updated."""
        held = 0 if self.sleeps else self.engine + self.engine_cache
        return self.kept + self.gathered + self.reduction + self.activations + self.casts + self.logits + held

    @property
    def peak(self) -> int:
        """The larger of the two."""
        return max(self.sampling, self.training)


def activations(shape: Shape, tokens: int, size: int, *, mixed: bool, checkpointing: bool) -> int:
    """Bytes that the forward pass of so many tokens keeps for the backward pass; size: bytes of a weight's number.

    A layer keeps: both norms' inputs in float32 and their results before and after the scale; queries, keys, values,
    attention's result; the four tables of the gated MLP; a float32 number for each norm and head. mixed: matrix
    products are in bfloat16 over float32 weights; then each of the five that read a norm's result has its own copy of
    it. With gradient checkpointing all layers keep their input alone, but for the one that is computed again.
    """
    inner = 2 * shape.query + 2 * shape.key_value + 4 * shape.intermediate
    if mixed:
        wide = 16 * shape.hidden + 2 * (5 * shape.hidden + inner)
    else:
        wide = 8 * shape.hidden + size * (4 * shape.hidden + inner)
    layer = wide + 4 * (shape.heads + 2)
    last = (4 + size) * shape.hidden
    kept = shape.layers * size * shape.hidden + layer if checkpointing else shape.layers * layer
    return tokens * (kept + last)


def is_mixed(config: RunConfig, learner: LearnerConfig) -> bool:
    """Whether passes are in bfloat16 over float32 weights."""
    return config.policy.dtype == "float32" and learner.precision == "bfloat16"


def logits(shape: Shape, learner: LearnerConfig) -> int:
    """Bytes of the logits, probabilities and their gradients that exist at once."""
    trained = TRAINED_TABLES if learner.loss.entropy_coef > 0 else TRAINED_TABLES_PLAIN
    return int(max(SCORED_TABLES, trained) * 4 * learner.batch.chunk * shape.vocabulary)


def kept_bytes(shape: Shape, config: RunConfig) -> tuple[int, int, int, int]:
    """(weights, reference, gradients, optimiser) of one whole copy.

    AdamW keeps two numbers of a gradient's type for each trained one, and its count of steps for each tensor.
    Adapters are float32 beside weights of any type; the reference is then the model without them.
    """
    size = BYTES[config.policy.dtype]
    if config.policy.lora is None:
        weights, own = shape.parameters * size, size
        reference = weights
    else:
        weights, own, reference = shape.parameters * size + shape.trained * 4, 4, 0
    return weights, reference, shape.trained * own, 2 * shape.trained * own + 4 * shape.trained_tensors


def memory(
    shape: Shape,
    config: RunConfig,
    learner: LearnerConfig,
    habits: Habits,
    processes: int = 1,
    *,
    sharded: bool,
) -> Memory:
    """What one of so many processes takes; sharded: FSDP2 divides the weights and all that belongs to them."""
    policy, rollout = config.policy, config.rollout
    size = BYTES[policy.dtype]
    parts = processes if sharded else 1
    weights, reference, gradients, optimizer = (-(-one // parts) for one in kept_bytes(shape, config))
    mixed = is_mixed(config, learner)
    inside = (
        2 if mixed and parts > 1 else size
    )  # sharded weights are put together in what passes calculate in
    gathered = 0 if parts == 1 else (shape.outside + GATHERED_LAYERS * shape.largest_layer) * inside
    rows = max(learner.batch.token_budget, math.ceil(habits.longest(rollout.layout)))
    vllm = policy.rollout == "vllm"
    split = policy.vllm.tensor_parallel if vllm else 1
    sampled = BYTES.get(policy.vllm.dtype, size) if vllm else size
    held = max(policy.max_context, rollout.parallel / processes * habits.longest(rollout.layout))
    cache = int(held * 2 * shape.layers * shape.key_value * sampled / split)
    if vllm and policy.vllm.cache_gib is not None:
        cache = int(policy.vllm.cache_gib * 2**30)
    return Memory(
        weights=weights,
        reference=reference,
        gradients=gradients,
        optimizer=optimizer,
        gathered=gathered,
        reduction=min(REDUCED, 2 * 4 * shape.trained) if processes > 1 and not sharded else 0,
        activations=activations(
            shape, rows, inside, mixed=mixed and parts == 1, checkpointing=policy.gradient_checkpointing
        ),
        casts=2 * (shape.parameters - shape.outside + shape.vocabulary * shape.hidden)
        if mixed and parts == 1
        else 0,
        logits=logits(shape, learner),
        engine=shape.parameters * sampled // split if vllm or parts > 1 else 0,
        cache=cache,
        engine_cache=cache if vllm else 0,
        sleeps=vllm and policy.vllm.sleep,
    )


def gpus(
    shape: Shape, config: RunConfig, learner: LearnerConfig, habits: Habits, card: int, *, sharded: bool
) -> int | None:
    """The fewest GPUs of so many bytes, a power of 2, on which a run fits; None where `MOST_GPUS` are too few."""
    count = 1
    while count <= MOST_GPUS:
        found = memory(shape, config, learner, habits, count, sharded=sharded)
        if found.peak <= USABLE * card and _leaves_room(found, config, card):
            return count
        count *= 2
    return None


def _leaves_room(found: Memory, config: RunConfig, card: int) -> bool:
    """Whether the share of a GPU that vLLM takes as a whole holds what it needs, and leaves the rest to the trainer."""
    settings = config.policy.vllm
    if config.policy.rollout != "vllm" or settings.cache_gib is not None:
        return True
    share = settings.memory_utilization * card
    return found.engine + found.cache <= share and found.kept + share <= card


@dataclass(frozen=True)
class Tokens:
    """How much is played and learned from."""

    episodes: float = 0.0
    sampled: float = 0.0
    """Written by the policy."""
    read: float = 0.0
    """Of prompts; what a conversation repeats is counted once, as it stands in the cache."""
    trained: float = 0.0
    """Of the rows that gradients are taken of, prompts included; each is scored twice before."""

    def __add__(self, other: Tokens) -> Tokens:
        """Both together."""
        return Tokens(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


def tokens(config: RunConfig, habits: Habits) -> Tokens:
    """Of a whole run, its evaluation included."""
    layout, learner = config.rollout.layout, config.learner
    modes = config.evaluation
    judged = config.panels.test * sum(modes.samples if one == "sampled" else 1 for one in modes.modes)
    played, kept = 0.0, 0.0
    if learner is not None:
        batch = learner.batch
        attempts = 1.0 if learner.sampling is None else min(learner.sampling.max_attempts, habits.attempts)
        kept = config.iterations * batch.groups_per_batch * batch.group_size * batch.epochs
        played = kept / batch.epochs * attempts
    episodes = judged + played
    read, written = habits.read(layout), habits.written()
    return Tokens(episodes, episodes * written, episodes * read, kept * (read + written))


@dataclass(frozen=True)
class Disk:
    """Bytes of one run's folder."""

    records: int
    checkpoint: int
    """Weights and the optimiser's state; two are there while one is written."""
    policy: int
    """The weights alone, in the form that other programs read."""


def disk(shape: Shape, config: RunConfig, found: Tokens, habits: Habits) -> Disk:
    """What one training run leaves behind."""
    weights, _, _, optimizer = kept_bytes(shape, config)
    observed = habits.read("conversation") + habits.written()
    records = found.episodes * (habits.turns * RECORD_BYTES + TOKEN_BYTES * observed)
    return Disk(int(records), weights + optimizer, shape.parameters * BYTES[config.policy.dtype])


def disk_of_suite(runs: Sequence[Disk]) -> int:
    """All runs when they are complete, and the second checkpoint of one that is written."""
    total = sum(one.records + one.checkpoint + one.policy for one in runs)
    return total + max((one.checkpoint for one in runs), default=0)
