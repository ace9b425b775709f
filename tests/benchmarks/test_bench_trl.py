from __future__ import annotations

from benchmarks.bench_trl import SHAPES, Shape, _row, our_side, trajectories
from empg.batch import make_batch
from tests.agents.toys import tiny_model

SMALL = Shape("small", prompt=5, turns=(1, 3), written=2, read=4)


def test_a_shape_counts_the_tokens_of_its_rows() -> None:
    batch = make_batch(trajectories(SMALL, 264), pad_id=0)
    assert batch.lengths.tolist() == [5 + 2, 5 + 3 * 2 + 2 * 4]
    assert int(batch.lengths.sum()) == SMALL.tokens
    for shape in SHAPES:
        assert int(make_batch(trajectories(shape, 264), pad_id=0).lengths.sum()) == shape.tokens


def test_both_sides_get_the_same_rows_and_the_same_sampled_tokens() -> None:
    played = trajectories(SMALL, 264)
    batch = make_batch(played, pad_id=0)
    for index, episode in enumerate(played):
        prompt, completion, sampled = _row(episode)
        length = int(batch.lengths[index])
        assert batch.token_ids[index, :length].tolist() == prompt + completion
        assert (batch.step_of_token[index, :length] >= 0).long().tolist() == [0] * len(prompt) + sampled


def test_our_side_trains_on_them() -> None:
    model = tiny_model()
    before = model.lm_head.weight.clone()
    assert our_side(model, trajectories(SMALL, 264), token_budget=64)() > 0
    assert not before.equal(model.lm_head.weight)
