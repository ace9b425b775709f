"""A plan as tables for the terminal, 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks import estimate
from benchmarks.collection import Collection
from benchmarks.estimate import CARDS, USABLE, Memory, Tokens, disk_of_suite
from benchmarks.machine import gib, gpus_here, missing_disk
from benchmarks.overrides import model_name
from benchmarks.planning import PartPlan

MISSING, NO = "-", "no"
SHARDED = 8
"""Processes of the example of sharded weights: those of one node."""


def show_plan(collection: Collection, parts: Sequence[PartPlan], results: Path, console: Console) -> None:
    """Print everything."""
    console.print(collection.title, markup=False, highlight=False)
    tables = {"": _runs(parts[0]) if len(parts) == 1 else _overview(parts)}
    tables |= {
        "Memory of a run (GiB in one process), and the GPUs that follow": _memory(parts),
        "Episodes (thousands) and tokens (millions), evaluation included": _tokens(parts),
        "Disk (GiB)": _disk(parts),
    }
    for title, table in tables.items():
        console.print(f"\n{title}" if title else "", markup=False, highlight=False)
        console.print(table)
    for line in ["", *_assumptions(parts), "", *_missing(parts, results)]:
        console.print(line, markup=False, highlight=False)


def _table(first: str, *columns: str) -> Table:
    table = Table(box=None)
    table.add_column(first)
    for name in columns:
        table.add_column(escape(name), justify="right")
    return table


def _runs(part: PartPlan) -> Table:
    table = Table("run", "variant", "seed", "iterations", "state", box=None)
    for run, state in zip(part.runs, part.states, strict=True):
        trains = run.config.kind == "train"
        numbers = (str(run.config.seed), str(run.config.iterations)) if trains else (MISSING, MISSING)
        table.add_row(escape(run.name), escape(run.config.variant), *numbers, escape(state))
    return table


def _overview(parts: Sequence[PartPlan]) -> Table:
    table = Table("part", "suite", "scale", "model", "runs", "complete", "begun", box=None)
    for number, part in enumerate(parts, 1):
        suite = part.part.suite
        complete = part.states.count("complete")
        begun = len(part.states) - complete - part.states.count("not begun")
        counts = (str(len(part.runs)), str(complete), str(begun))
        table.add_row(str(number), escape(suite.name), suite.scale, escape(_model(part)), *counts)
    return table


def _model(part: PartPlan) -> str:
    model = part.config.policy.model
    return "warm start" if model is None else model_name(model)


def _headings(parts: Sequence[PartPlan]) -> list[str]:
    return [_model(parts[0])] if len(parts) == 1 else [f"part {number}" for number, _ in enumerate(parts, 1)]


def _memory(parts: Sequence[PartPlan]) -> Table:
    """GiB by what takes them in one process, then the GPUs that follow."""
    table = _table("", *_headings(parts))
    shapes = [part.shape for part in parts]
    table.add_row("parameters, millions", *(_millions(one.parameters) if one else MISSING for one in shapes))
    table.add_row("trained, millions", *(_millions(one.trained) if one else MISSING for one in shapes))
    alone = [part.memory() for part in parts]
    names = {
        "weights": "weights", "reference": "reference policy", "gradients": "gradients", "optimizer": "optimiser",
        "activations": "activations, as set", "casts": "weights in bfloat16",
        "logits": "logits of a chunk", "engine": "engine's weights",
        "cache": "keys and values", "sampling": "peak while sampling", "training": "peak while training",
    }  # fmt: skip
    for name, label in names.items():
        table.add_row(label, *(MISSING if one is None else gib(getattr(one, name)) for one in alone))
        if name == "activations":
            table.add_row(
                "activations, checkpointing " + "/".join(sorted({_other(part) for part in parts})),
                *(MISSING if part.shape is None else gib(_otherwise(part)) for part in parts),
            )
    sharded = [part.memory(SHARDED, sharded=True) for part in parts]
    table.add_row(f"peak, FSDP2 over {SHARDED}", *(_peak(one) for one in sharded))
    for kind, card in CARDS.items():
        for label, shards in (("data parallel", False), ("FSDP2", True)):
            counts = [None if part.shape is None else part.gpus(card, sharded=shards) for part in parts]
            cells = [
                MISSING if part.shape is None else NO if count is None else str(count)
                for part, count in zip(parts, counts, strict=True)
            ]
            table.add_row(f"{kind} GPUs, {label}", *cells)
    return table


def _other(part: PartPlan) -> str:
    return "off" if part.config.policy.gradient_checkpointing else "on"


def _otherwise(part: PartPlan) -> int:
    """Bytes of activations under the other choice of gradient checkpointing."""
    policy = part.config.policy
    other = policy.model_copy(update={"gradient_checkpointing": not policy.gradient_checkpointing})
    config = part.config.model_copy(update={"policy": other})
    assert part.shape is not None
    return estimate.memory(part.shape, config, part.learner, part.habits, sharded=False).activations


def _peak(found: Memory | None) -> str:
    return MISSING if found is None else gib(found.peak)


def _tokens(parts: Sequence[PartPlan]) -> Table:
    """Episodes and tokens in millions, of a run of each kind and of all."""
    columns = ("runs", "episodes", "sampled", "read", "trained")
    table = _table("each run of", *columns)
    total, runs = Tokens(), 0
    for number, part in enumerate(parts, 1):
        kinds: dict[Tokens, list[str]] = {}
        for run, found in zip(part.runs, part.tokens, strict=True):
            kinds.setdefault(found, []).append(run.config.variant)
            total += found
            runs += 1
        for found, variants in kinds.items():
            names = list(dict.fromkeys(variants))
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            head = f"{number}: " if len(parts) > 1 else ""
            table.add_row(escape(f"{head}{names[0]}{more}"), str(len(variants)), *_numbers(found))
    table.add_row("all together", str(runs), *_numbers(total))
    return table


def _numbers(found: Tokens) -> Iterator[str]:
    for one in fields(found):
        yield _short(getattr(found, one.name) / (1e3 if one.name == "episodes" else 1e6))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.3g}"


def _millions(count: int) -> str:
    return _short(count / 1e6)


def _disk(parts: Sequence[PartPlan]) -> Table:
    columns = ("a run's records", "its checkpoint", "its policy", "all runs")
    table = _table("", *columns)
    for heading, part in zip(_headings(parts), parts, strict=True):
        if not part.disk:
            table.add_row(escape(heading), *[MISSING] * len(columns))
            continue
        largest = max(part.disk, key=lambda one: one.records)
        sizes = (largest.records, largest.checkpoint, largest.policy, disk_of_suite(part.disk))
        table.add_row(escape(heading), *map(gib, sizes))
    return table


def _assumptions(parts: Sequence[PartPlan]) -> Iterator[str]:
    """What the numbers of tokens rest on, for each benchmark and layout."""
    seen: dict[str, None] = {}
    for part in parts:
        layout = part.config.rollout.layout
        used = {
            "turns an episode": ("turns", part.habits.turns),
            "tokens a response": ("response_tokens", part.habits.response_tokens),
            "batches an update under dynamic sampling": ("attempts", part.habits.attempts),
        }
        if layout == "window":
            used["tokens a prompt"] = ("prompt_tokens", part.habits.prompt_tokens)
        else:
            used["tokens of the opening"] = ("opening_tokens", part.habits.opening_tokens)
            used["tokens an observation"] = ("observation_tokens", part.habits.observation_tokens)
        said = ", ".join(
            f"{label} {value:.4g}{' (measured)' if name in part.measured else ''}"
            for label, (name, value) in used.items()
        )
        seen[f"Assumed of {part.part.suite.benchmark}, {layout} layout: {said}."] = None
    yield from seen
    yield (
        f"Memory: {USABLE:.0%} of a GPU may be filled; activations are those of one micro-batch, keys and values "
        "those of the conversations that are played at a time."
    )


def _missing(parts: Sequence[PartPlan], results: Path) -> Iterator[str]:
    """What this machine lacks, each thing once; disk for all parts together."""
    here = gpus_here()
    yield f"GPUs here: {len(here.names)}, {here.names[0]}" if here.names else "GPUs here: none"
    hungriest = max(parts, key=lambda part: found.peak if (found := part.memory()) else 0)
    found = dict.fromkeys(
        [
            *hungriest.missing_gpus(here),
            *(line for part in parts for line in part.missing_parts(here)),
            *missing_disk(sum(disk_of_suite(part.disk) for part in parts), results),
        ]
    )
    yield "Missing on this machine:" if found else "Nothing is missing on this machine."
    for line in found:
        yield f"- {line}"
