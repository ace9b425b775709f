"""Sampling from a Hugging Face causal language model, with a key-value cache kept across turns."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from agents.chat import ChatFormat
from agents.policies.base import Generation, RoundSession, Sampling, Turn
from agents.policies.ragged import RaggedCache, Segment, ragged_attention

_PREFILL_TOKENS_CPU = 1024
"""New tokens of one prefill pass; on a CPU more do not go faster."""
_PREFILL_TOKENS_ACCELERATOR = 16_384
_LEAST_CONTEXT = 32


class TorchPolicy:
    """Any Hugging Face causal language model, sampled without top-p or top-k.

    The model is used in place: a session opened after an optimiser step sees the new weights. It runs in
    evaluation mode and is put back afterwards. `keep_cache=False` reads every conversation from its first
    token at every turn; it exists to measure what keeping the cache is worth. `template`: further arguments of
    the chat template.

    Raises `ValueError` for a tokenizer without chat template, a context beyond the model's positions, and
    models that `ragged` cannot run: recurrent layers, sliding windows shorter than the context, attention
    that is not taken from transformers' shared interface (Bloom, Falcon, MPT). A short conversation is
    compared with the model's own forward pass when the policy is built.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_context: int,
        device: torch.device | str | None = None,
        keep_cache: bool = True,
        template: Mapping[str, Any] | None = None,
    ) -> None:
        self.chat = ChatFormat(tokenizer, template)
        _check_model(model.config, max_context)
        self.max_context = max_context
        self.keep_cache = keep_cache
        self.model = model if device is None else model.to(device)
        self._selects_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._check_against_plain_forward()

    @property
    def device(self) -> torch.device:
        """Where the model lies."""
        device: torch.device = self.model.device
        return device

    def open(self, episodes: int, sampling: Sampling) -> TorchSession:
        """A session for at most `episodes` conversations open at once."""
        return TorchSession(self, episodes, sampling)

    def update(self) -> None:
        """Nothing to do: the model is sampled in place."""

    def last_logits(
        self, ids: Sequence[int] | torch.Tensor, segments: Sequence[Segment], cache: RaggedCache
    ) -> torch.Tensor:
        """Float32 logits `[B, V]` behind the last token of each segment of one forward pass."""
        cache.begin(segments, self.model.dtype)
        ends = torch.tensor([segment.count for segment in segments]).cumsum(0) - 1
        output = self.model(
            input_ids=torch.as_tensor(ids, device=self.device)[None],
            position_ids=cache.positions,
            use_cache=False,
            ragged=cache,
            **({"logits_to_keep": ends.to(self.device)} if self._selects_logits else {}),
        )
        logits: torch.Tensor = output.logits[0]
        return (logits if self._selects_logits else logits[ends]).float()

    def _check_against_plain_forward(self) -> None:
        """Compare two short conversations with the model's own attention."""
        session = self.open(2, Sampling(greedy=True))
        turns = [_probe(0, 7, restart=True), _probe(1, 3, restart=True)]
        more = _probe(0, 2, restart=False)
        name = type(self.model).__name__
        try:
            first, _ = session.generate(turns)
            again = session.generate([more])[0]
        except TypeError as error:  # a forward pass that takes no further arguments
            raise ValueError(
                f"{name} does not take its attention from the shared interface: {error}"
            ) from error
        context = [*turns[0].new_ids, *first.token_ids, *more.new_ids]
        with torch.inference_mode(), _evaluating(self.model):
            ids = torch.tensor([[*context, *again.token_ids]], device=self.device)
            logits = self.model(input_ids=ids, use_cache=False).logits[0, len(context) - 1 : -1]
        plain = torch.log_softmax(logits.float(), -1).cpu()
        expected = plain.gather(1, torch.tensor(again.token_ids)[:, None])[:, 0]
        gap = (expected - torch.tensor(again.logprobs)).abs().max().item()
        most = 1e-3 if self.model.dtype == torch.float32 else 0.25  # deep models round more
        if not gap <= most:
            raise ValueError(
                f"{name} reading a cached conversation differs by {gap:.3g} nats from its own forward pass; "
                f"expected at most {most}"
            )


@dataclass
class _Row:
    """One conversation: its tokens, and how many of them lie in the cache."""

    episode: int | None = None
    ids: list[int] = field(default_factory=list)
    cached: int = 0

    def read(self, turn: Turn, keep: bool) -> None:
        """Take in a turn's new tokens; a restart keeps what is cached of an equal beginning, if `keep`."""
        if turn.restart:
            known = _common_prefix(self.ids[: self.cached], turn.new_ids)
            self.ids, self.cached = list(turn.new_ids), min(known, len(turn.new_ids) - 1)
        else:
            self.ids.extend(turn.new_ids)
        if not keep:
            self.cached = 0


class TorchSession(RoundSession):
    """Conversations of a `TorchPolicy`; use it while the weights stay the same."""

    def __init__(self, policy: TorchPolicy, episodes: int, sampling: Sampling) -> None:
        if episodes < 1:
            raise ValueError(f"a session for {episodes} episodes; expected at least 1")
        self._policy, self._sampling = policy, sampling
        self._cache = RaggedCache(episodes, policy.device)
        self._rows = [_Row() for _ in range(episodes)]
        on_cpu = policy.device.type == "cpu"
        self._prefill_tokens = _PREFILL_TOKENS_CPU if on_cpu else _PREFILL_TOKENS_ACCELERATOR

    def generate(self, turns: Sequence[Turn]) -> list[Generation]:
        """Write one response for each turn; `ValueError` if one might outgrow the policy's context."""
        if not turns:
            return []
        seats = self._seat(turns)
        for row, turn in seats.items():
            self._rows[row].read(turn, self._policy.keep_cache)
            self._check_room(self._rows[row], turn)
        model = self._policy.model
        with torch.inference_mode(), _evaluating(model), ragged_attention(model):
            written = self._decode(seats, self._prefill(list(seats)))
        for row, generation in written.items():
            self._rows[row].ids.extend(generation.token_ids)
        by_episode = {self._rows[row].episode: generation for row, generation in written.items()}
        return [by_episode[turn.episode] for turn in turns]

    def close_episode(self, episode: int) -> None:
        """Free the conversation's row; what it holds may still serve the beginning of the next one there."""
        for row in self._rows:
            if row.episode == episode:
                row.episode = None

    def _check_room(self, row: _Row, turn: Turn) -> None:
        need = len(row.ids) + turn.max_new_tokens
        if need > self._policy.max_context:
            raise ValueError(
                f"episode {turn.episode} may reach {need} tokens, "
                f"the context holds {self._policy.max_context}"
            )

    def _seat(self, turns: Sequence[Turn]) -> dict[int, Turn]:
        """The turns by cache row, in the order of the rows; new conversations take free rows."""
        taken = {row.episode: index for index, row in enumerate(self._rows) if row.episode is not None}
        free = iter([index for index, row in enumerate(self._rows) if row.episode is None])
        seats: dict[int, Turn] = {}
        for turn in turns:
            index = taken.get(turn.episode)
            if index is None:
                if not turn.restart:
                    raise ValueError(f"episode {turn.episode} has no conversation to continue")
                index = next(free, None)
            if index is None:
                raise ValueError(f"all {len(self._rows)} rows are taken; close an episode first")
            if index in seats:
                raise ValueError(f"two turns of one call name episode {turn.episode}")
            seats[index] = turn
            taken[turn.episode] = index
        for index, turn in seats.items():
            self._rows[index].episode = turn.episode
        return dict(sorted(seats.items()))

    def _prefill(self, seats: Sequence[int]) -> torch.Tensor:
        """Read what each row has not cached; logits `[B, V]` behind each last token.

        Conversations with the same tokens are read once: samples of one task open with the same prompt.
        """
        first: dict[tuple[int, ...], int] = {}
        source = {index: first.setdefault(tuple(self._rows[index].ids), index) for index in seats}
        logits: dict[int, torch.Tensor] = {}
        for batch in self._micro_batches(list(first.values())):
            rows = [self._rows[index] for index in batch]
            segments = [
                Segment(index, row.cached, len(row.ids) - row.cached)
                for index, row in zip(batch, rows, strict=True)
            ]
            ids = [token for row in rows for token in row.ids[row.cached :]]
            logits.update(zip(batch, self._policy.last_logits(ids, segments, self._cache), strict=True))
        for origin in first.values():
            copies = [index for index in seats if source[index] == origin and index != origin]
            if copies:
                self._cache.copy_row(origin, copies, len(self._rows[origin].ids))
        for index in seats:
            self._rows[index].cached = len(self._rows[index].ids)
        return torch.stack([logits[source[index]] for index in seats])

    def _micro_batches(self, order: Sequence[int]) -> Iterator[list[int]]:
        """Cut rows into passes of at most so many new tokens; a longer row is a pass of its own."""
        batch: list[int] = []
        total = 0
        for index in order:
            new = len(self._rows[index].ids) - self._rows[index].cached
            if batch and total + new > self._prefill_tokens:
                yield batch
                batch, total = [], 0
            batch.append(index)
            total += new
        yield batch

    def _decode(self, seats: Mapping[int, Turn], logits: torch.Tensor) -> dict[int, Generation]:
        """Write until every row has stopped; a finished row leaves the batch.

        The last written token of a row is not read here but with its next turn.
        """
        device = self._policy.device
        written: dict[int, list[tuple[int, float]]] = {index: [] for index in seats}
        alive = list(seats)
        uniforms = _stack_uniforms(list(seats.values())).to(device)
        kept = torch.arange(len(alive), device=device)  # the alive rows' lines in `uniforms`
        while alive:
            step = len(written[alive[0]])
            token, logprob = sample(logits, uniforms[kept, step], self._sampling)
            drawn = list(zip(alive, token.tolist(), logprob.tolist(), strict=True))
            for index, one, value in drawn:
                if not math.isfinite(value):
                    raise ValueError(f"the model's log-probability of token {one} is {value}")
                written[index].append((one, value))
            going = [
                place
                for place, (index, one, _) in enumerate(drawn)
                if one not in self._policy.chat.stop_ids and step + 1 < seats[index].max_new_tokens
            ]
            if not going:
                break
            if len(going) < len(alive):
                alive = [alive[place] for place in going]
                chosen = torch.tensor(going, device=device)
                token, kept = token[chosen], kept[chosen]
            segments = [Segment(index, self._rows[index].cached, 1) for index in alive]
            logits = self._policy.last_logits(token, segments, self._cache)
            for index in alive:
                self._rows[index].cached += 1
        stops = self._policy.chat.stop_ids
        return {index: _generation(tokens, stops) for index, tokens in written.items()}


def sample(
    logits: torch.Tensor, uniforms: torch.Tensor, sampling: Sampling
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token and log-probability for each row of logits `[B, V]`, by inverse CDF at uniforms `[B]`.

    The distribution is the float32 softmax at the temperature. The token is the first whose cumulative
    probability exceeds the row's uniform, so one of probability zero is never drawn. Greedy takes the argmax.
    """
    logprobs = torch.log_softmax(logits.float() / sampling.temperature, dim=-1)
    if sampling.greedy:
        token = logits.argmax(dim=-1)
    else:
        cdf = logprobs.exp().cumsum(-1, dtype=torch.float64)
        total = cdf[:, -1:]
        target = torch.minimum(uniforms[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
        token = torch.searchsorted(cdf, target, right=True)[:, 0].clamp_(max=cdf.shape[1] - 1)  # NaN: V
    return token, logprobs.gather(-1, token[:, None])[:, 0]


def _generation(drawn: Sequence[tuple[int, float]], stop_ids: Sequence[int]) -> Generation:
    ids, logprobs = zip(*drawn, strict=True)
    return Generation(ids, logprobs, "stop" if ids[-1] in stop_ids else "length")


def _probe(episode: int, tokens: int, restart: bool) -> Turn:
    """A turn of arbitrary tokens, for the check at construction."""
    return Turn(episode, tuple(range(1, tokens + 1)), restart, 3, np.zeros(3))


def _stack_uniforms(turns: Sequence[Turn]) -> torch.Tensor:
    """`[B, most new tokens]`, float64; a row's numbers behind its own limit are never used."""
    width = max(turn.max_new_tokens for turn in turns)
    stacked = np.zeros((len(turns), width))
    for line, turn in enumerate(turns):
        stacked[line, : turn.max_new_tokens] = turn.uniforms[: turn.max_new_tokens]
    return torch.from_numpy(stacked)


def _common_prefix(held: Sequence[int], new: Sequence[int]) -> int:
    """Number of equal tokens at the beginning of both."""
    for index, (a, b) in enumerate(zip(held, new, strict=False)):
        if a != b:
            return index
    return min(len(held), len(new))


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Evaluation mode (no dropout), undone afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def _check_model(config: Any, max_context: int) -> None:
    """Refuse models whose layers do not attend to the whole context."""
    if max_context < _LEAST_CONTEXT:
        raise ValueError(f"max_context is {max_context}; expected at least {_LEAST_CONTEXT}")
    config = config.get_text_config()
    most = getattr(config, "max_position_embeddings", None)
    if most is not None and max_context > most:
        raise ValueError(f"max_context is {max_context}; the model has {most} positions")
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention", "sliding_attention"}
    if kinds:
        raise ValueError(f"the model has {sorted(kinds)} layers; expected full attention only")
    if window is not None and window < max_context:
        raise ValueError(f"max_context is {max_context}; the model's attention reaches {window} tokens")
