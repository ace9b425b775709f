"""A causal language model small enough to train on a laptop, and a tokenizer made for copying.

A tiny transformer solves a text world mostly by copying: a product id from a page into `click[...]`, an
option value from an instruction. Copying is easy when a string has the same tokens wherever it stands, so the
tokenizer is uncased and context-free: a word is cut in the same way after a space, a bracket or a line break. A
single space before a word costs nothing: two maximal words cannot touch, so it is implied and comes back when
decoding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

TURN_START, TURN_END, PAD = "<|im_start|>", "<|im_end|>", "<|pad|>"
SPECIAL = (PAD, TURN_START, TURN_END)
"""Special tokens in order of their ids, from 0."""
ROLES = ("system", "user", "assistant")

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    + ("{{ '" + TURN_START + "' + message['role'] + '\\n' + message['content'] + '" + TURN_END + "\\n' }}")
    + "{% endfor %}{% if add_generation_prompt %}{{ '"
    + TURN_START
    + "assistant\\n' }}{% endif %}"
)
"""ChatML: every render is a prefix of the render with more messages."""

_WORD_MARK = "▁"  # outside the alphabet of byte-level text, so no input can contain it
_SPACE = "Ġ"  # byte-level spelling of a space
_MARKED_WORD = _WORD_MARK + "[a-z][a-z0-9]*"
_NUMBER = "[.][0-9]{2}(?![0-9])|[0-9]{1,3}"
_PIECE = rf"{_MARKED_WORD}|{_NUMBER}|[a-z]+|[,.:;]{_SPACE}(?!{_SPACE})|[^ -~{_WORD_MARK}{_SPACE}Ċ]+|."
"""Word, cents or up to three digits, letters after digits, clause mark with its space, run of non-ASCII bytes, any
other single character. Whole dollars are one token, so that comparing two prices is comparing two tokens."""


@dataclass(frozen=True)
class SmallModelConfig:
    """Shape of the model; the defaults have 0.8 million parameters."""

    architecture: Literal["llama", "qwen2"] = "llama"
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    key_value_heads: int | None = None
    """Heads of keys and values, None: as many as `heads`; fewer make the cache smaller and decoding faster."""
    intermediate: int = 256
    vocab_size: int = 1024
    max_context: int = 2048
    rope_theta: float = 10000.0
    tied_embeddings: bool = True

    def __post_init__(self) -> None:
        for name in ("hidden", "layers", "heads", "intermediate", "vocab_size", "max_context"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if self.hidden % (2 * self.heads):
            raise ValueError(
                f"hidden must be a multiple of 2 x heads, got {self.hidden} for {self.heads} heads"
            )
        shared = self.key_value_heads
        if shared is not None and (shared < 1 or self.heads % shared):
            raise ValueError(f"key_value_heads must divide heads, got {shared} for {self.heads} heads")


_ARCHITECTURES: dict[str, tuple[type[Any], type[Any]]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
}


def build_model(config: SmallModelConfig, vocab_size: int, seed: int) -> Any:
    """A randomly initialised float32 model for `vocab_size` tokens; the global generator is untouched."""
    make_config, make_model = _ARCHITECTURES[config.architecture]
    shape = make_config(
        vocab_size=vocab_size,
        hidden_size=config.hidden,
        intermediate_size=config.intermediate,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.key_value_heads or config.heads,
        max_position_embeddings=config.max_context,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
        tie_word_embeddings=config.tied_embeddings,
        attention_dropout=0.0,
        pad_token_id=SPECIAL.index(PAD),
        bos_token_id=None,
        eos_token_id=SPECIAL.index(TURN_END),
        attn_implementation="sdpa",
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make_model(shape).eval()


def train_tokenizer(
    texts: Iterable[str], vocab_size: int, phrases: Sequence[str] = ()
) -> PreTrainedTokenizerFast:
    """Byte-level BPE over words, trained on `texts`; each phrase becomes one token wherever it stands.

    Lossless but for letter case: everything is read and written in lower case. The vocabulary is at most
    `vocab_size`, less where the texts offer fewer merges. Phrases are ordinary tokens: they survive
    `skip_special_tokens`, and the longest one that fits wins.

    Raises `ValueError` when the fixed part of the vocabulary already exceeds `vocab_size`.
    """
    normalizer = _normalizer()
    fixed = tuple(dict.fromkeys(normalizer.normalize_str(p) for p in (*phrases, *(f"{r}\n" for r in ROLES))))
    alphabet = [*sorted(pre_tokenizers.ByteLevel.alphabet()), _WORD_MARK]
    known = dict.fromkeys((*SPECIAL, *alphabet, *fixed))
    if len(known) > vocab_size:
        raise ValueError(f"vocab_size must be at least {len(known)} for these phrases, got {vocab_size}")
    merges = _train_merges(texts, vocab_size, fixed, alphabet)
    vocab = {token: place for place, token in enumerate(known)}
    used = []
    for left, right in merges:
        if left + right not in vocab:
            if len(vocab) == vocab_size:
                break
            vocab[left + right] = len(vocab)
        used.append((left, right))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=used, ignore_merges=True))
    tokenizer.normalizer = normalizer
    pieces = "|".join([*_alternatives(fixed), _PIECE])  # one pattern: a second split would cut phrases again
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pieces), "isolated")
    tokenizer.decoder = _decoder()
    tokenizer.add_special_tokens(list(SPECIAL))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=PAD,
        additional_special_tokens=[TURN_START],
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def _train_merges(
    texts: Iterable[str], vocab_size: int, phrases: Sequence[str], alphabet: list[str]
) -> list[tuple[str, str]]:
    """BPE merges in order, learned from what stands between the phrases."""
    draft = Tokenizer(models.BPE())
    draft.normalizer = _normalizer()
    between = [pre_tokenizers.Split(Regex("|".join(_alternatives(phrases))), "removed")]
    draft.pre_tokenizer = pre_tokenizers.Sequence([*between, pre_tokenizers.Split(Regex(_PIECE), "isolated")])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=2, initial_alphabet=alphabet, show_progress=False
    )
    draft.train_from_iterator(texts, trainer)
    return [(left, right) for left, right in json.loads(draft.to_str())["model"]["merges"]]


def _alternatives(phrases: Sequence[str]) -> list[str]:
    """Patterns of normalised phrases, longest first; one that ends in a letter must end its word."""
    ordered = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return [re.escape(p) + ("(?![a-z0-9])" if p[-1].isascii() and p[-1].isalpha() else "") for p in ordered]


def _normalizer() -> Any:
    """Lower case, bytes as characters, a mark before each word, and no single space between two words."""
    return normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.ByteLevel(),
            normalizers.Replace(Regex("(?<![a-z0-9])(?=[a-z])"), _WORD_MARK),
            normalizers.Replace(Regex(f"(?<=[a-z0-9]){_SPACE}(?={_WORD_MARK})"), ""),
        ]
    )


def _decoder() -> Any:
    """The inverse of `_normalizer` on the joined tokens."""
    return decoders.Sequence(
        [
            decoders.Fuse(),
            decoders.Replace(Regex(f"(?<=[a-z0-9]){_WORD_MARK}"), _SPACE),
            decoders.Replace(_WORD_MARK, ""),
            decoders.ByteLevel(),
        ]
    )
