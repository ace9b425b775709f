from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.policies.ragged import RaggedCache, Segment, attend

HEADS, SHARED, DIM = 4, 2, 3
CPU = torch.device("cpu")


def plain_attention(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """One query `[H, D]` over keys and values `[KV, L, D]`, written out."""
    keys, values = (x.repeat_interleave(HEADS // SHARED, 0) for x in (keys, values))
    weights = torch.softmax(torch.einsum("hd,hld->hl", query, keys) * 0.5, -1)
    return torch.einsum("hl,hld->hd", weights, values)


@settings(max_examples=40, deadline=None)
@given(
    passes=st.lists(
        st.dictionaries(st.integers(0, 4), st.integers(1, 5), min_size=1) | st.just({0: 1, 2: 1, 4: 1}),
        min_size=1,
        max_size=6,
    ),
    call_bytes=st.sampled_from([0.0, 100.0, 1000.0, math.inf]),
)
def test_ragged_attention_equals_attention_written_out_token_by_token(
    passes: list[dict[int, int]], call_bytes: float
) -> None:
    cache = RaggedCache(5, CPU, call_bytes)
    held: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {row: [] for row in range(5)}
    generator = torch.Generator().manual_seed(0)
    for counts in passes:
        segments = [Segment(row, len(held[row]), counts[row]) for row in sorted(counts)]
        total = sum(counts.values())
        query = torch.randn(1, HEADS, total, DIM, generator=generator)
        key, value = (torch.randn(1, SHARED, total, DIM, generator=generator) for _ in range(2))
        cache.begin(segments, torch.float32)
        out = cache.attend(0, query, key, value, 0.5)
        assert out.shape == (1, total, HEADS, DIM)
        place = 0
        for segment in segments:
            for _ in range(segment.count):
                held[segment.row].append((key[0, :, place], value[0, :, place]))
                keys, values = (torch.stack(x, 1) for x in zip(*held[segment.row], strict=True))
                expected = plain_attention(query[0, :, place], keys, values)
                torch.testing.assert_close(out[0, place], expected, atol=1e-5, rtol=1e-5)
                place += 1


def test_positions_are_those_within_each_conversation() -> None:
    cache = RaggedCache(3, CPU)
    cache.begin([Segment(0, 4, 2), Segment(2, 0, 3)], torch.float32)
    assert cache.positions.tolist() == [[4, 5, 0, 1, 2]]


def test_a_cache_that_grows_keeps_what_it_held() -> None:
    cache = RaggedCache(1, CPU)
    ones = torch.ones(1, 1, 300, 1)
    cache.begin([Segment(0, 0, 300)], torch.float32)
    cache.attend(0, ones, ones, ones, 1.0)
    cache.begin([Segment(0, 300, 700)], torch.float32)
    new = torch.zeros(1, 1, 700, 1)
    out = cache.attend(0, new, new, new, 1.0)
    assert float(out[0, -1, 0, 0]) == pytest.approx(0.3)  # 300 ones among 1,000 equal weights


def test_a_copied_row_answers_like_its_source() -> None:
    cache = RaggedCache(3, CPU)
    state = torch.randn(1, 2, 6, DIM)
    cache.begin([Segment(1, 0, 6)], torch.float32)
    cache.attend(0, state, state, state, None)
    cache.copy_row(1, [0, 2], 6)
    new = torch.randn(1, 2, 1, DIM).expand(1, 2, 3, DIM)
    cache.begin([Segment(row, 6, 1) for row in range(3)], torch.float32)
    out = cache.attend(0, new, new, new, None)
    torch.testing.assert_close(out[0, 0], out[0, 1])
    torch.testing.assert_close(out[0, 2], out[0, 1])


def test_an_attention_that_needs_more_than_a_mask_is_refused() -> None:
    state = torch.ones(1, 1, 1, 1)
    with pytest.raises(ValueError, match="Linear uses softcap"):
        attend(torch.nn.Linear(1, 1), state, state, state, None, softcap=30.0)
    with pytest.raises(ValueError, match="does not hand keyword arguments"):
        attend(torch.nn.Linear(1, 1), state, state, state, None)


def test_a_pass_that_was_not_announced_is_a_programming_error() -> None:
    state = torch.ones(1, 1, 1, 1)
    with pytest.raises(RuntimeError, match="begin"):
        RaggedCache(1, CPU).attend(0, state, state, state, None)
