"""Attention over many conversations of unequal length, without padding.

All new tokens of a forward pass are laid end to end in one row, `[1, N]`; a table of segments says which
conversation each stretch continues. Only attention needs to know: it writes the new keys and values into a
cache that has a row for each conversation, and attends segment by segment. Everything else in a transformer
treats tokens one by one, so any Hugging Face model that takes its attention from the shared interface can run
this way (the layout is that of variable-length attention kernels; the cache is kept across turns).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

ATTENTION = "ragged_rows"
"""Name of `attend` in transformers' attention interface."""

_FIRST_CAPACITY = 256
_CALL_BYTES_CPU = 160_000
"""What a further attention call costs, as bytes of keys and values that could be read meanwhile."""


@dataclass(frozen=True)
class Segment:
    """A stretch of new tokens of one conversation."""

    row: int
    start: int
    """Tokens of the conversation that are cached already."""
    count: int

    @property
    def end(self) -> int:
        """Tokens of the conversation once these are cached."""
        return self.start + self.count


@dataclass(frozen=True)
class _Group:
    """Neighbouring cache rows that a decode step attends to in one call."""

    first: int
    last: int
    """One more than the last row."""
    begin: int
    stop: int
    """The group's queries are `begin..stop` of the pass."""
    span: int
    inner: torch.Tensor | None
    """Where its queries lie within the rows; none if every row has one."""


@dataclass(frozen=True)
class _Plan:
    """One forward pass, as every layer needs it."""

    segments: tuple[Segment, ...]
    rows: torch.Tensor
    columns: torch.Tensor
    """Cache row and column of each new token, `[N]`."""
    groups: tuple[_Group, ...]
    """Empty unless every segment is one token."""
    masks: tuple[torch.Tensor | None, ...]
    """An additive mask for each group, or each segment."""


class RaggedCache:
    """Keys and values `[rows, heads, capacity, dim]` of each layer.

    What lies behind a row's end is stale but finite, is hidden by masks, and is overwritten as the row grows.
    Capacity doubles on demand, so appending a token copies nothing on average. `call_bytes` weighs a separate
    attention call against padding neighbouring rows to one length: on an accelerator one call takes them all.
    """

    def __init__(self, rows: int, device: torch.device, call_bytes: float | None = None) -> None:
        self.rows = rows
        if call_bytes is None:
            call_bytes = _CALL_BYTES_CPU if device.type == "cpu" else math.inf
        self._call_bytes = call_bytes
        self._device = device
        self._capacity = _FIRST_CAPACITY
        self._keys: dict[int, torch.Tensor] = {}
        self._values: dict[int, torch.Tensor] = {}
        self._heads = 0
        self._dim = 0
        self._plan: _Plan | None = None

    def begin(self, segments: Sequence[Segment], dtype: torch.dtype) -> None:
        """Announce the next forward pass; segments of single tokens must come in the order of their rows."""
        while self._capacity < max(segment.end for segment in segments):
            self._capacity *= 2
        rows = [segment.row for segment in segments]
        counts = torch.tensor([segment.count for segment in segments])
        if len(segments) == int(counts.sum()):
            columns = torch.tensor([segment.start for segment in segments])
            groups = tuple(self._groups(segments))
            masks = self._decode_masks(segments, groups, dtype)
        else:
            columns = torch.cat([torch.arange(segment.start, segment.end) for segment in segments])
            groups = ()
            masks = tuple(self._segment_mask(segment, dtype) for segment in segments)
        all_rows = torch.tensor(rows).repeat_interleave(counts)
        device = self._device
        self._plan = _Plan(tuple(segments), all_rows.to(device), columns.to(device), groups, masks)

    @property
    def positions(self) -> torch.Tensor:
        """Position of each token of the announced pass in its conversation, `[1, N]`."""
        return self._announced.columns[None]

    def copy_row(self, source: int, targets: Sequence[int], length: int) -> None:
        """Overwrite the first `length` columns of `targets` by those of `source`."""
        for buffers in (self._keys, self._values):
            for buffer in buffers.values():
                buffer[list(targets), :, :length] = buffer[source, :, :length]

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float | None
    ) -> torch.Tensor:
        """Cache new keys and values `[1, KV, N, D]`, attend with queries `[1, H, N, D]` → `[1, N, H, D]`."""
        plan = self._announced
        self._keys[layer] = self._stored(self._keys.get(layer), key, plan)
        self._values[layer] = self._stored(self._values.get(layer), value, plan)
        self._heads, self._dim = key.shape[1], key.shape[3]
        attend = self._attend_groups if plan.groups else self._attend_segments
        return attend(plan, query, self._keys[layer], self._values[layer], scale)

    @property
    def _announced(self) -> _Plan:
        if self._plan is None:
            raise RuntimeError("begin() comes before a forward pass")
        return self._plan

    def _stored(self, buffer: torch.Tensor | None, states: torch.Tensor, plan: _Plan) -> torch.Tensor:
        if buffer is None or buffer.shape[2] < self._capacity:
            # Zeros, not `empty`: a masked NaN would still poison the attention's weighted sum.
            grown = states.new_zeros(self.rows, states.shape[1], self._capacity, states.shape[3])
            if buffer is not None:
                grown[:, :, : buffer.shape[2]] = buffer
            buffer = grown
        buffer.transpose(1, 2)[plan.rows, plan.columns] = states[0].transpose(0, 1)
        return buffer

    def _attend_segments(
        self, plan: _Plan, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float | None
    ) -> torch.Tensor:
        """Each segment by itself; heads that share keys become a batch, so that keys are never repeated."""
        heads, shared = query.shape[1], query.shape[1] // keys.shape[1]
        out = query.new_empty(1, query.shape[2], heads, values.shape[3])
        begin = 0
        for segment, mask in zip(plan.segments, plan.masks, strict=True):
            stop = begin + segment.count
            result = scaled_dot_product_attention(
                query[0, :, begin:stop].reshape(keys.shape[1], shared, segment.count, -1),
                keys[segment.row, :, None, : segment.end].expand(-1, shared, -1, -1),
                values[segment.row, :, None, : segment.end].expand(-1, shared, -1, -1),
                attn_mask=mask,
                is_causal=mask is None and segment.count > 1,
                scale=scale,
            )
            out[0, begin:stop] = result.flatten(0, 1).transpose(0, 1)
            begin = stop
        return out

    def _attend_groups(
        self, plan: _Plan, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float | None
    ) -> torch.Tensor:
        """One new token a row: rows side by side, heads that share keys as queries of one call."""
        count, width = query.shape[2:]
        queries = query[0].transpose(0, 1).reshape(count, keys.shape[1], -1, width)  # [N, KV, H / KV, D]
        results = []
        for group, mask in zip(plan.groups, plan.masks, strict=True):
            asked = queries[group.begin : group.stop]
            if group.inner is not None:
                spread = asked.new_zeros(group.last - group.first, *asked.shape[1:])
                spread[group.inner] = asked
                asked = spread
            result = scaled_dot_product_attention(
                asked,
                keys[group.first : group.last, :, : group.span],
                values[group.first : group.last, :, : group.span],
                attn_mask=mask,
                scale=scale,
            )
            results.append(result if group.inner is None else result[group.inner])
        return torch.cat(results).flatten(1, 2)[None]

    def _groups(self, segments: Sequence[Segment]) -> Iterator[_Group]:
        """Join neighbouring rows while padding them to one length costs less than a call of its own."""
        begin, span, used = 0, 0, 0
        for index, segment in enumerate(segments):
            wider, longer = max(span, segment.end), used + segment.end
            covered = (segment.row + 1 - segments[begin].row) * wider
            if index > begin and covered - longer > (index - begin) * self._columns_per_call():
                yield self._group(segments, begin, index, span)
                begin, span, used = index, segment.end, segment.end
            else:
                span, used = wider, longer
        yield self._group(segments, begin, len(segments), span)

    def _group(self, segments: Sequence[Segment], begin: int, stop: int, span: int) -> _Group:
        first, last = segments[begin].row, segments[stop - 1].row + 1
        inner = None
        if last - first > stop - begin:
            inner = torch.tensor([s.row - first for s in segments[begin:stop]], device=self._device)
        return _Group(first, last, begin, stop, span, inner)

    def _columns_per_call(self) -> float:
        """Columns of one row's float32 keys and values that could be read in the time of a call."""
        return self._call_bytes / (8 * max(1, self._heads * self._dim))

    def _decode_masks(
        self, segments: Sequence[Segment], groups: Sequence[_Group], dtype: torch.dtype
    ) -> tuple[torch.Tensor | None, ...]:
        """Hide what lies behind each row's end; idle rows within a group read their first column."""
        ends = torch.ones(self.rows, dtype=torch.long)
        ends[[segment.row for segment in segments]] = torch.tensor([segment.end for segment in segments])
        span = max(group.span for group in groups)
        hidden = torch.arange(span, device=self._device) >= ends.to(self._device)[:, None]
        mask = torch.zeros(hidden.shape, dtype=dtype, device=self._device)
        mask.masked_fill_(hidden, torch.finfo(dtype).min)
        return tuple(
            None
            if group.inner is None and all(s.end == group.span for s in segments[group.begin : group.stop])
            else mask[group.first : group.last, None, None, : group.span]
            for group in groups
        )

    def _segment_mask(self, segment: Segment, dtype: torch.dtype) -> torch.Tensor | None:
        """Token i of a segment sees what is cached and the new tokens up to its own; none if that is all."""
        if segment.start == 0 or segment.count == 1:
            return None
        shape = (segment.count, segment.end)
        mask = torch.full(shape, torch.finfo(dtype).min, dtype=dtype, device=self._device)
        return mask.triu_(segment.start + 1)


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    ragged: RaggedCache | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """The attention function that transformers calls in each layer; the pass must carry `ragged=cache`."""
    for name in ("softcap", "s_aux", "position_bias"):
        if kwargs.get(name) is not None:
            raise ValueError(f"{type(module).__name__} uses {name}, which the ragged attention does not have")
    if ragged is None:
        raise ValueError(f"{type(module).__name__} does not hand keyword arguments to its attention")
    return ragged.attend(module.layer_idx, query, key, value, scaling), None


@contextmanager
def ragged_attention(model: Any) -> Iterator[None]:
    """Let a model's layers call `attend` within the block."""
    ALL_ATTENTION_FUNCTIONS.register(ATTENTION, attend)
    configs = {id(module.config): module.config for module in model.modules() if hasattr(module, "config")}
    before = {key: config._attn_implementation for key, config in configs.items()}
    try:
        for config in configs.values():
            config._attn_implementation = ATTENTION
        yield
    finally:
        for key, config in configs.items():
            config._attn_implementation = before[key]
