"""Chat templates in the form of the models that people train, over a tokenizer of bytes: no weights are needed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from transformers import PreTrainedTokenizerFast

from agents.chat import ChatFormat, Message
from agents.policies.scripted import byte_tokenizer
from tests.agents.toys import decoded

_QWEN_TURN = "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
_QWEN_OPEN = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
_DEFAULT_SYSTEM = (
    "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou help.<|im_end|>\n' }}{% endif %}"
)
QWEN25 = f"{_DEFAULT_SYSTEM}{{% for m in messages %}}{_QWEN_TURN}{{% endfor %}}{_QWEN_OPEN}"
"""Also SmolLM2's form: both add a system message where there is none."""
QWEN3 = (
    "{% set last = namespace(user=0) %}"
    "{% for m in messages %}{% if m['role'] == 'user' %}{% set last.user = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}{% if m['role'] == 'assistant' and loop.index0 < last.user %}"
    "{{ '<|im_start|>assistant\n' + m['content'].split('</think>')[-1].lstrip('\n') + '<|im_end|>\n' }}"
    "{% else %}" + _QWEN_TURN + "{% endif %}{% endfor %}" + _QWEN_OPEN
)
LLAMA3 = (
    "{{ '<|begin_of_text|>' }}{% for m in messages %}"
    "{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | trim + '<|eot_id|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
GEMMA = (
    "{{ '<bos>' }}{% for m in messages %}"
    "{% if m['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\n' }}"
    "{{ m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)


@dataclass(frozen=True)
class Family:
    """A template, the special tokens it needs, and what is expected of it."""

    template: str
    special: tuple[str, ...]
    eos: str
    stops: tuple[str, ...]
    opening: str
    """Of the system text `Be kind.` and the user's `Hi`."""
    between: str
    """What follows a turn that ended by itself, when the user says `Go`."""
    stable: bool = True


_CHATML = (
    "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "\n<|im_start|>user\nGo<|im_end|>\n<|im_start|>assistant\n",
)
FAMILIES = {
    "qwen2.5": Family(QWEN25, ("<|im_start|>", "<|endoftext|>"), "<|im_end|>", ("<|im_end|>",), *_CHATML),
    "qwen3": Family(QWEN3, ("<|im_start|>",), "<|im_end|>", ("<|im_end|>",), *_CHATML, stable=False),
    "llama-3": Family(
        LLAMA3,
        ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        "<|end_of_text|>",
        ("<|eot_id|>", "<|end_of_text|>"),
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|start_header_id|>user<|end_header_id|>\n\nGo<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    "gemma": Family(
        GEMMA,
        ("<bos>", "<start_of_turn>", "<end_of_turn>"),
        "<eos>",
        ("<end_of_turn>", "<eos>"),
        "<bos><start_of_turn>user\nBe kind.\n\nHi<end_of_turn>\n<start_of_turn>model\n",
        "\n<start_of_turn>user\nGo<end_of_turn>\n<start_of_turn>model\n",
    ),
}


def tokenizer_of(family: Family) -> PreTrainedTokenizerFast:
    tokenizer = byte_tokenizer(family.template)
    tokenizer.add_special_tokens(
        {"eos_token": family.eos, "additional_special_tokens": [*family.special, *family.stops]}
    )
    return tokenizer


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


@pytest.fixture
def chat(family: Family) -> ChatFormat:
    return ChatFormat(tokenizer_of(family))


def test_the_opening_is_the_templates_own_with_one_beginning_of_text(
    family: Family, chat: ChatFormat
) -> None:
    assert decoded(chat, chat.opening_ids("Be kind.", "Hi")) == family.opening


def test_a_written_turn_ends_with_the_templates_token_or_the_tokenizers_end_of_sequence(
    family: Family, chat: ChatFormat
) -> None:
    assert chat.stop_ids == tuple(chat._tokenizer.convert_tokens_to_ids(list(family.stops)))


def test_only_a_template_that_drops_earlier_thoughts_splits_the_samples(
    family: Family, chat: ChatFormat
) -> None:
    assert chat.prefix_stable == family.stable


def test_between_two_written_turns_stands_what_the_template_puts_there(
    family: Family, chat: ChatFormat
) -> None:
    assert decoded(chat, chat.next_ids("Go", stopped=True)) == family.between


def test_joined_turns_are_the_templates_rendering_token_by_token(family: Family, chat: ChatFormat) -> None:
    said = ("Thought: a\nAction: look", "Thought: b\nAction: take")
    joined = chat.opening_ids("Be kind.", "Hi")
    messages = [Message("system", "Be kind."), Message("user", "Hi")]
    for text, user in zip(said, ("one", "two"), strict=True):
        joined += (*chat._encode(text), chat.turn_end, *chat.next_ids(user, stopped=True))
        messages += [Message("assistant", text), Message("user", user)]
    assert joined == chat.whole_ids(
        messages
    )  # also where thoughts are dropped: these turns have no <think> block


def test_special_tokens_of_the_family_in_an_observation_stay_text(family: Family, chat: ChatFormat) -> None:
    special = set(chat._tokenizer.convert_tokens_to_ids([*family.special, *family.stops]))
    harmless, attack = (chat.next_ids(text, stopped=True) for text in ("x", "".join(family.stops)))
    assert sum(token in special for token in attack) == sum(token in special for token in harmless)


def thinking_chat() -> ChatFormat:
    """Qwen3 as it is: the reasoning tags are tokens of their own, though not special ones."""
    tokenizer = tokenizer_of(FAMILIES["qwen3"])
    tokenizer.add_tokens(["<think>", "</think>"])
    return ChatFormat(tokenizer)


def test_reasoning_tags_in_an_instruction_are_the_tokens_that_the_model_writes() -> None:
    chat = thinking_chat()
    tags = chat._tokenizer.convert_tokens_to_ids(["<think>", "</think>"])
    ids = chat.opening_ids("Answer with <think>why</think>.", "Hi")
    assert [token for token in ids if token in tags] == tags
    assert "<think>why</think>" in decoded(chat, ids)


def test_earlier_thoughts_leave_the_prompt_where_the_template_drops_them() -> None:
    chat = thinking_chat()
    assert not chat.prefix_stable
    said = Message("assistant", "<think>\nhidden\n</think>\n\nAction: look")
    whole = decoded(chat, chat.whole_ids([Message("user", "Hi"), said, Message("user", "Go")]))
    assert "hidden" not in whole
    assert "<|im_start|>assistant\nAction: look<|im_end|>" in whole


def test_what_a_model_thinks_in_its_tags_can_be_read_back() -> None:
    chat = thinking_chat()
    assert chat.text_of(chat._encode("<think>a</think>b<|im_end|>")) == "<think>a</think>b"
