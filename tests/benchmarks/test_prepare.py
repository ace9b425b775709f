"""What a loaded policy knows of its tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from benchmarks.prepare import LoadedPolicy
from benchmarks.warm_start import store

SHIPPED = Path(store.__file__).parent / "webshop"
TEXT = "thought: look for a red chair\naction: search[red chair]"


def _policy(tokenizer):
    return LoadedPolicy(None, None, tokenizer, {}, {})


def test_tokens_of_a_byte_level_tokenizer_join_to_the_text():
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED)
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    texts = _policy(tokenizer).texts_of(ids)
    assert len(texts) == len(ids) > 5
    assert "".join(texts) == tokenizer.decode(ids)


def test_a_space_is_kept_where_the_tokenizer_drops_it_from_a_token_that_stands_alone():
    vocabulary = {"\u2581red": 0, "\u2581chair": 1, "s": 2}
    model = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    model.pre_tokenizer, model.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=model)
    assert tokenizer.decode([1]) == "chair"
    assert _policy(tokenizer).texts_of([0, 1, 2]) == ["red", " chair", "s"]


@pytest.mark.parametrize("cut", [1, 2])
def test_a_character_that_is_cut_between_tokens_shows_as_a_replacement_and_spoils_no_other(cut):
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED)
    accent = tokenizer.encode("\u20ac", add_special_tokens=False)  # three bytes
    assert len(accent) > 1
    ids = [
        *tokenizer.encode("go", add_special_tokens=False),
        *accent[:cut],
        *tokenizer.encode("a", add_special_tokens=False),
    ]
    texts = _policy(tokenizer).texts_of(ids)
    assert "".join(texts).startswith("go")
    assert "".join(texts).endswith("a")
    assert len(texts) == len(ids)
