"""What a model says about sampled tokens: their log-probability and the entropy of their whole distribution.

Logits exist only for positions that predict a sampled token, and only for `chunk` of them at a time; in the
training pass each chunk is recomputed in the backward pass instead of being stored. Peak memory therefore
does not grow with tokens x vocabulary.

That path takes the base model's last hidden states through the output layer. `open_model` tests on a few
tokens whether the model's own logits are just that. Where they are not (soft-capped or scaled logits,
adapters on the head), the model's own forward is used: the same numbers, but with the logits of a whole
micro-batch in memory.

Every pass (old policy, reference, training) runs in eval mode: dropout would make the policy that is trained
differ from the one that sampled. All passes calculate in the same precision, so that the first ratio is 1;
log-probabilities and entropies are float32 in any case.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from empg.batch import Batch, passes
from empg.modes import Precision, calculating, evaluating, recomputed_layers
from empg.parallel import ALONE, Processes

logger = logging.getLogger(__name__)

LogitsOf = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Scores:
    """What a policy says about a batch's sampled tokens; 0 at every other position."""

    logprob: Tensor
    """[N, T] float32: log-probability (nats) at the sampling temperature."""
    entropy: Tensor
    """[N, T] float32: Shannon entropy (nats) of the full next-token distribution at that temperature."""


@dataclass(frozen=True)
class LanguageModel:
    """A causal language model with what is known about its parts."""

    model: nn.Module
    base: nn.Module | None
    """Gives hidden states; None where base and head do not reproduce the model's own logits."""
    head: nn.Module | None
    takes_positions: bool
    needs_mask: bool
    """Whether padding on the right changes what stands left of it; never so for plain causal attention."""
    root: nn.Module | None = None
    """Calls a function while sharded weights are at hand (`empg.sharding`); None where they always are."""
    precision: Precision = "float32"
    """What its passes calculate in."""

    @property
    def device(self) -> torch.device:
        """Where the model's inputs belong."""
        return next(self.model.parameters()).device

    def logits_of(self, states: Tensor) -> Tensor:
        """The head over [n, D] hidden states."""
        assert self.head is not None
        with calculating(self.device, self.precision):
            logits: Tensor = self.head(states)
        return logits


class Predictions(NamedTuple):
    """What predicts n sampled tokens."""

    states: Tensor
    """[n, D] hidden states, or [n, V] logits where the model's own forward is used."""
    targets: Tensor
    """[n] the tokens that were sampled."""
    logits_of: LogitsOf
    """From `states` to [n, V] logits."""


class TokenScores(NamedTuple):
    """Flat scores of n sampled tokens, in the order of `step_of_token >= 0`."""

    logprob: Tensor
    entropy: Tensor | None


def entropy_of_logits(logits: Tensor) -> Tensor:
    """Shannon entropy (nats) of [..., V] logits -> [...]; impossible tokens (-inf) add nothing."""
    logp = torch.log_softmax(logits, dim=-1)
    return _entropy(logp)


def flat_scores(
    hidden: Tensor, targets: Tensor, logits_of: LogitsOf, *, temperature: float, chunk: int, entropy: bool
) -> TokenScores:
    """Score n tokens from the hidden states that predict them, `chunk` tokens at a time.

    hidden: [n, D]; targets: [n]; returns [n] each, float32; entropy only if asked for.
    """

    def part(rows: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        logp = torch.log_softmax(logits_of(rows).float() / temperature, dim=-1)
        chosen = logp.gather(-1, wanted[:, None]).squeeze(-1)
        return chosen, _entropy(logp) if entropy else chosen.new_zeros(0)

    if chunk < 1:
        raise ValueError(f"chunk must be at least 1 token, got {chunk}")
    spans = [slice(start, start + chunk) for start in range(0, max(1, hidden.shape[0]), chunk)]
    if not torch.is_grad_enabled():
        # One buffer: small results that outlive their chunk would keep the freed memory around them.
        logprob, entropies = hidden.new_empty((2, hidden.shape[0]), dtype=torch.float32)
        for span in spans:
            chosen, spread = part(hidden[span], targets[span])
            logprob[span] = chosen
            if entropy:
                entropies[span] = spread
        return TokenScores(logprob, entropies if entropy else None)
    # A single chunk is within the memory bound anyway, so it is not worth computing twice.
    parts = [
        checkpoint(part, hidden[span], targets[span], use_reentrant=False, preserve_rng_state=False)
        if len(spans) > 1
        else part(hidden[span], targets[span])
        for span in spans
    ]
    logprob = torch.cat([one for one, _ in parts])
    return TokenScores(logprob, torch.cat([two for _, two in parts]) if entropy else None)


def open_model(model: nn.Module, precision: Precision = "float32") -> LanguageModel:
    """Find a causal model's base and head, and test on eight tokens what may be relied on.

    Raises `ValueError` where gradient checkpointing is on and the model's layers cannot do it.
    """
    recomputed_layers(model)
    takes_positions = "position_ids" in inspect.signature(model.forward).parameters
    whole = LanguageModel(model, None, None, takes_positions, needs_mask=True)
    base, head = _parts(model)
    with evaluating(model), torch.no_grad():
        causal = _ignores_the_right(whole)
        plain = base is not None and head is not None and _is_base_then_head(whole, base, head)
    if not plain:
        logger.warning(
            "%s: its logits are not its output layer over its last hidden states, so the logits of a whole "
            "micro-batch are held in memory",
            type(model).__name__,
        )
    parts = (base, head) if plain else (None, None)
    return LanguageModel(model, *parts, takes_positions, needs_mask=not causal, precision=precision)


def predictions(lm: LanguageModel, batch: Batch, rows: Tensor) -> Predictions:
    """What predicts the sampled tokens of some rows, in the order of `batch.step_of_token[rows] >= 0`.

    Token t is predicted by position t - 1. Padding beyond the longest of the rows is left out. Gradients flow
    if the caller's context allows; the caller also sets eval mode.
    """
    lengths = batch.lengths[rows]
    width = int(lengths.max())
    token_ids = batch.token_ids[rows, :width]
    row, column = torch.nonzero(batch.step_of_token[rows, :width] >= 0, as_tuple=True)
    targets = token_ids[row, column].to(lm.device)
    where = (row.to(lm.device), column.to(lm.device) - 1)
    inputs = _inputs(lm, token_ids, lengths)
    with calculating(lm.device, lm.precision):
        if lm.base is None or lm.head is None:
            return Predictions(lm.model(**inputs).logits[where], targets, _same)
        return Predictions(lm.base(**inputs).last_hidden_state[where], targets, lm.logits_of)


def token_scores(
    lm: LanguageModel, batch: Batch, rows: Tensor, *, temperature: float, chunk: int, entropy: bool
) -> TokenScores:
    """Score the sampled tokens of some rows; order and context as in `predictions`."""

    def work() -> TokenScores:
        found = predictions(lm, batch, rows)
        return flat_scores(
            found.states,
            found.targets,
            found.logits_of,
            temperature=temperature,
            chunk=chunk,
            entropy=entropy,
        )

    if lm.root is None:
        return work()
    scored: TokenScores = lm.root(work)
    return scored


def score(
    model: nn.Module | LanguageModel,
    batch: Batch,
    *,
    temperature: float,
    token_budget: int,
    chunk: int,
    entropy: bool = True,
    processes: Processes = ALONE,
) -> Scores:
    """Log-probabilities and exact entropies of all sampled tokens, in eval mode and without gradient.

    Rows are scored in length-sorted micro-batches of at most `token_budget` tokens and put back in their
    places: the result is that of one row at a time. Without `entropy` (a reference needs none) that table is
    all 0. Several processes score a share each, and all get the whole.

    returns tensors on the batch's device.
    """
    lm = model if isinstance(model, LanguageModel) else open_model(model)
    logprob = torch.zeros(batch.token_ids.shape)
    entropies = torch.zeros(batch.token_ids.shape)
    with evaluating(lm.model), torch.no_grad():
        for rows, counts in passes(batch.lengths, token_budget, processes.rank, processes.count):
            scored = token_scores(lm, batch, rows, temperature=temperature, chunk=chunk, entropy=entropy)
            if not counts:
                continue
            row, column = torch.nonzero(batch.step_of_token[rows] >= 0, as_tuple=True)
            logprob[rows[row], column] = scored.logprob.to(logprob)
            if scored.entropy is not None:
                entropies[rows[row], column] = scored.entropy.to(entropies)
    return Scores(processes.sum_tensor(logprob), processes.sum_tensor(entropies) if entropy else entropies)


def _entropy(logp: Tensor) -> Tensor:
    # The clamp keeps 0 * -inf out of both the value and the gradient.
    return -(logp.exp() * logp.clamp(min=-1e4)).sum(dim=-1)


def _same(logits: Tensor) -> Tensor:
    return logits


def _inputs(lm: LanguageModel, token_ids: Tensor, lengths: Tensor) -> dict[str, Any]:
    """The model's arguments for right-padded rows; a mask only where `needs_mask` says so."""
    rows, width = token_ids.shape
    positions = torch.arange(width, device=lm.device).expand(rows, width)
    inputs: dict[str, Any] = {"input_ids": token_ids.to(lm.device), "use_cache": False}
    if lm.takes_positions:
        inputs["position_ids"] = positions
    if lm.needs_mask:
        inputs["attention_mask"] = (positions < lengths.to(lm.device)[:, None]).long()
    return inputs


def _parts(model: nn.Module) -> tuple[nn.Module | None, nn.Module | None]:
    decoder = getattr(model, "get_decoder", None)
    output = getattr(model, "get_output_embeddings", None)
    base = decoder() if callable(decoder) else getattr(model, "base_model", None)
    head = output() if callable(output) else None
    return (base, head) if isinstance(base, nn.Module) and base is not model else (None, None)


def _probe(lm: LanguageModel, token_ids: list[int]) -> Tensor:
    ids = torch.tensor([token_ids])
    logits: Tensor = lm.model(**_inputs(lm, ids, torch.tensor([len(token_ids)]))).logits
    return logits[0].float()


def _ignores_the_right(lm: LanguageModel) -> bool:
    """Whether other tokens on the right leave the logits on the left as they are."""
    here, there = _probe(lm, [1, 2, 3, 4, 0, 0, 0, 0])[:4], _probe(lm, [1, 2, 3, 4, 3, 2, 1, 4])[:4]
    return torch.allclose(here, there, rtol=1e-3, atol=1e-3 * float(here.abs().max()))


def _is_base_then_head(lm: LanguageModel, base: nn.Module, head: nn.Module) -> bool:
    """Whether logits are `head(base(...))`, also for states large enough to show a soft cap."""
    replaced: list[Tensor] = []

    def enlarge(_module: nn.Module, _inputs: Any, output: Any) -> Any:
        states = output.last_hidden_state
        noise = torch.randn(states.shape, generator=torch.Generator().manual_seed(0))
        replaced.append(100 * noise.to(states))
        output.last_hidden_state = replaced[0]
        return output

    hook = base.register_forward_hook(enlarge)
    try:
        own = _probe(lm, [1, 2, 3, 4])
    finally:
        hook.remove()
    if not replaced:
        return False
    ours = head(replaced[0])[0].float()
    return own.shape == ours.shape and torch.allclose(
        own, ours, rtol=1e-2, atol=1e-3 * float(ours.abs().max())
    )
