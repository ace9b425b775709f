"""What an iteration leaves behind of its trained batch: a row per agent step; tokens and gradients where asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from torch import Tensor

from agents.trajectory import Trajectory
from empg.advantages import Modulation
from empg.collection import Collection
from empg.probe import Gradients
from empg.scores import Scores
from empg.update import Scored


class Place(NamedTuple):
    """Where an agent step comes from."""

    attempt: int
    trajectory: Trajectory
    step: int
    """Position in its trajectory, from 0."""


@dataclass(frozen=True, kw_only=True)
class StepRows:
    """A table with a row per agent step, in the batch's order; every field is a column."""

    attempt: list[int]
    """The collect call of the iteration; together with `group` it names the group."""
    group: list[int]
    """The trajectory's own group number."""
    sample: list[int]
    step: list[int]
    """Position in its trajectory, from 0."""

    def columns(self) -> dict[str, list[Any]]:
        """Column name to values; a column that was not measured is full of None."""
        table = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: [None] * len(self.step) if values is None else values for name, values in table.items()}


@dataclass(frozen=True, kw_only=True)
class StepTable(StepRows):
    """The trained batch."""

    task_id: list[str]
    entropy: list[float]
    """Nats, under the policy that sampled the step."""
    entropy_normalised: list[float]
    g: list[float]
    """1 where scaling is off."""
    f: list[float]
    """Before its weight zeta; 0 where the bonus is off."""
    raw_advantage: list[float]
    advantage: list[float]
    """What the step's tokens were trained on (in the first epoch, where the scope is the mini-batch)."""
    tokens: list[int]
    action_valid: list[bool]
    reward: list[float]
    """The trajectory's raw reward."""
    entropy_after: list[float] | None
    """Under the policy after the update; None where it was not measured."""


@dataclass(frozen=True, kw_only=True)
class TokenTable(StepRows):
    """The sampled tokens of some groups of the trained batch; the lists of a row are equally long."""

    token_ids: list[list[int]]
    logprob: list[list[float]]
    """Nats, under the policy that sampled, as the update recomputed it."""
    entropy: list[list[float]]
    """Nats, of the full next-token distribution under the policy that sampled."""
    entropy_after: list[list[float]] | None
    """The same under the policy after the update; None where it was not measured."""


@dataclass(frozen=True, kw_only=True)
class GradientTable(StepRows):
    """Some steps of the trained batch, differentiated one by one before the update; see `empg.probe`."""

    tokens: list[int]
    entropy: list[float]
    """Mean over the step's tokens of the Shannon entropy (nats)."""
    renyi2: list[float]
    """Mean over the step's tokens of the Renyi-2 entropy (nats)."""
    logit_gradient_sq: list[float]
    logit_gradient_expected: list[float]
    gradient_norm: list[float]
    raw_advantage: list[float]
    g: list[float]
    """The scale that EMPG would give, whether or not the run trains with it."""


def places(collection: Collection) -> list[Place]:
    """Every step of the trained batch, in the batch's order."""
    return [
        Place(group.attempt, member, index)
        for group, member in collection.training
        for index in range(len(member.steps))
    ]


def step_table(
    batch_places: Sequence[Place], scored: Scored, modulated: Modulation, entropy_after: Tensor | None
) -> StepTable:
    """The trained batch, step by step; all tensors are [S]."""
    taken = [place.trajectory.steps[place.step] for place in batch_places]
    return StepTable(
        **_keys(batch_places),
        task_id=[place.trajectory.task_id for place in batch_places],
        entropy=_listed(scored.entropy),
        entropy_normalised=_listed(modulated.normalised),
        g=_listed(modulated.g),
        f=_listed(modulated.f),
        raw_advantage=_listed(scored.raw_advantage),
        advantage=_listed(modulated.advantage),
        tokens=[len(step.action_ids) for step in taken],
        action_valid=[step.action_valid for step in taken],
        reward=[place.trajectory.reward for place in batch_places],
        entropy_after=None if entropy_after is None else _listed(entropy_after),
    )


def token_table(
    batch_places: Sequence[Place], groups: int, scored: Scored, after: Scores | None
) -> TokenTable | None:
    """Tokens of the first `groups` groups of the trained batch; None for no groups."""
    if not groups:
        return None
    named = [(place.attempt, place.trajectory.group) for place in batch_places]
    kept = set(list(dict.fromkeys(named))[:groups])
    rows = [number for number, name in enumerate(named) if name in kept]
    taken = [batch_places[number] for number in rows]

    def of_tokens(values: Tensor) -> list[list[float]]:
        split = _by_step(values, scored)
        return [_listed(split[number]) for number in rows]

    return TokenTable(
        **_keys(taken),
        token_ids=[list(place.trajectory.steps[place.step].action_ids) for place in taken],
        logprob=of_tokens(scored.old_logprob),
        entropy=of_tokens(scored.token_entropy),
        entropy_after=None if after is None else of_tokens(after.entropy),
    )


def gradient_table(batch_places: Sequence[Place], scored: Scored, found: Gradients) -> GradientTable:
    """The probed steps with their measurements."""
    steps = found.steps.tolist()
    taken = [batch_places[number] for number in steps]
    return GradientTable(
        **_keys(taken),
        tokens=[len(place.trajectory.steps[place.step].action_ids) for place in taken],
        entropy=_listed(scored.entropy[found.steps]),
        renyi2=_listed(found.renyi2),
        logit_gradient_sq=_listed(found.logit_sq),
        logit_gradient_expected=_listed(found.logit_expected),
        gradient_norm=_listed(found.norm),
        raw_advantage=_listed(scored.raw_advantage[found.steps]),
        g=_listed(found.g),
    )


def _keys(rows: Sequence[Place]) -> dict[str, list[int]]:
    return {
        "attempt": [place.attempt for place in rows],
        "group": [place.trajectory.group for place in rows],
        "sample": [place.trajectory.sample for place in rows],
        "step": [place.step for place in rows],
    }


def _by_step(values: Tensor, scored: Scored) -> tuple[Tensor, ...]:
    """[N, T] values of the sampled tokens, cut into steps: rows and the steps in them follow the step table."""
    sampled = scored.batch.step_of_token >= 0
    counts = torch.bincount(scored.batch.step_of_token[sampled], minlength=scored.batch.num_steps)
    return torch.split(values[sampled], counts.tolist())


def _listed(values: Tensor) -> list[float]:
    listed: list[float] = values.to(torch.float64).tolist()
    return listed
