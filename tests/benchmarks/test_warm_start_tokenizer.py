from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from agents.chat import ChatFormat
from benchmarks.warm_start.phrases import find_commands, find_phrases, find_wordings
from benchmarks.warm_start.small_model import SPECIAL, SmallModelConfig, build_model, train_tokenizer

TEXTS = (
    "Instruction: [SEP] find a dark blue lamp under 21.00 dollars [SEP] B0KATOMILU [SEP] Lumora Lamp, Blue",
    "Thought: dark blue is offered\nAction: click[dark blue]",
    "Thought: the first lamp\nAction: click[B0KATOMILU]",
) * 3
PHRASES = (
    " [SEP] ",
    "Instruction: [SEP] ",
    "Thought: ",
    "\nAction: click[",
    "Buy Now",
    " [SEP] Buy Now [SEP] ",
)
TOKENIZER = train_tokenizer(TEXTS, 420, PHRASES)


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False)


def lower(text: str) -> str:
    return "".join(
        letter.lower() for letter in text
    )  # letter by letter: no special form at the end of a word


def contains(whole: list[int], part: list[int]) -> bool:
    return any(whole[start : start + len(part)] == part for start in range(len(whole)))


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_decoding_restores_any_text_in_lower_case(text):
    assert TOKENIZER.decode(ids(text)) == lower(text)


@given(st.text(alphabet="aB 1.,[]▁Ġ\né|", max_size=40))
def test_decoding_restores_spaces_marks_and_brackets_in_any_order(text):
    assert TOKENIZER.decode(ids(text)) == lower(text)


CONTEXTS = (
    "{}",
    "click[{}]",
    "x [SEP] {} [SEP] y",
    "Thought: it is {} indeed",
    "color: {}, and size",
    "({})",
    "a\n{}\nb",
    "Thought: {}\nAction: click[{}]",
)


@given(st.from_regex(r"[A-Za-z0-9]+([ \-'/][A-Za-z0-9]+)*", fullmatch=True), st.sampled_from(CONTEXTS))
def test_a_value_has_the_same_tokens_wherever_it_stands(value, context):
    assert contains(ids(context.replace("{}", value)), ids(value))


@pytest.mark.parametrize("value", ["B0KATOMILU", "dark blue", "21 in x 35 in", "x-large", "pack of 2"])
@pytest.mark.parametrize("context", CONTEXTS)
def test_typical_ids_and_option_values_have_the_same_tokens_wherever_they_stand(value, context):
    assert contains(ids(context.replace("{}", value)), ids(value))


def test_a_space_between_two_words_costs_no_token():
    assert ids("dark blue") == ids("dark") + ids("blue")


def test_whole_dollars_and_cents_are_a_token_each():
    prices = train_tokenizer([f"${whole}.99" for whole in range(100)] * 3, 600)
    assert prices.convert_ids_to_tokens(prices.encode("$35.99")) == ["$", "35", ".99"]
    assert prices.encode("$7.99")[1:] == prices.encode("7.99")


def test_letter_case_makes_no_difference():
    assert ids("click[B0KATOMILU]") == ids("CLICK[b0katomilu]")


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_is_one_token(phrase):
    assert len(ids(phrase)) == 1


def test_the_longest_phrase_that_fits_wins():
    assert ids("x [SEP] Buy Now [SEP] y") == ids("x") + ids(" [SEP] Buy Now [SEP] ") + ids("y")


def test_a_phrase_does_not_match_inside_a_longer_word():
    assert not contains(ids("Buy Nowhere"), ids("Buy Now"))


def test_phrases_survive_where_special_tokens_are_skipped():
    text = "Thought: dark blue\nAction: click[dark blue]"
    assert TOKENIZER.decode([*ids(text), TOKENIZER.eos_token_id], skip_special_tokens=True) == text.lower()


def test_training_twice_gives_the_same_tokenizer():
    again = train_tokenizer(TEXTS, 420, PHRASES)
    assert again.backend_tokenizer.to_str() == TOKENIZER.backend_tokenizer.to_str()


def test_a_saved_tokenizer_reads_back_with_its_template(tmp_path):
    TOKENIZER.save_pretrained(tmp_path)
    again = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    text = "".join(TEXTS)
    assert again.encode(text) == TOKENIZER.encode(text)
    assert again.chat_template == TOKENIZER.chat_template


def test_the_chat_template_is_prefix_stable_and_ends_turns_with_one_token():
    chat = ChatFormat(TOKENIZER)
    assert chat.prefix_stable
    assert chat.stop_ids == (SPECIAL.index("<|im_end|>"),)


def test_a_vocabulary_that_cannot_hold_the_bytes_is_refused():
    with pytest.raises(ValueError, match=r"vocab_size must be at least .*, got 100"):
        train_tokenizer(TEXTS, 100)


def test_the_vocabulary_is_never_larger_than_asked_for():
    assert len(TOKENIZER) <= 420
    assert len(train_tokenizer(TEXTS, 300, PHRASES)) == 300


def test_phrases_are_runs_of_segments_that_nearly_all_episodes_show():
    episodes = [
        [f"Shop [SEP] Wanted: [SEP] {value}", f"Wanted: [SEP] {value} [SEP] Back [SEP] Go"]
        for value in ("small", "small", "large", "large", "huge")
    ]
    assert set(find_phrases(episodes)) == {
        "Shop [SEP] Wanted: [SEP] ",
        "Wanted: [SEP] ",
        " [SEP] Back [SEP] Go",
        " [SEP] ",
    }


def test_the_phrases_kept_are_those_that_save_most_words():
    episodes = [[f"A [SEP] {n} [SEP] b c d e", f"x{n} [SEP] b c d e"] for n in range(4)]
    assert find_phrases(episodes, most=1) == (" [SEP] b c d e",)


def test_pages_without_separators_have_no_phrases():
    assert find_phrases([["a b", "a c"], ["a b"]]) == ()


def test_commands_are_verbs_and_actions_that_most_episodes_use():
    episodes = [["search[a]", "click[1]", "click[go]"], ["search[b]", "click[2]", "click[go]"], ["look"]]
    assert set(find_commands(episodes)) == {"search[", "click[", "click[go]"}


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_a_model_depends_on_its_seed_only_and_leaves_the_global_generator_alone(architecture):
    config = SmallModelConfig(architecture=architecture, hidden=16, layers=1, heads=2, intermediate=16)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first, again, other = (build_model(config, 50, seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first.get_input_embeddings().weight, again.get_input_embeddings().weight)
    assert not torch.equal(first.get_input_embeddings().weight, other.get_input_embeddings().weight)
    assert first.lm_head.weight is first.get_input_embeddings().weight
    assert (first.config.pad_token_id, first.config.eos_token_id) == (
        TOKENIZER.pad_token_id,
        TOKENIZER.eos_token_id,
    )


@pytest.mark.parametrize(("heads", "built"), [(None, 4), (2, 2)])
def test_fewer_heads_for_keys_and_values_are_built_when_asked(heads, built):
    model = build_model(SmallModelConfig(hidden=16, layers=1, key_value_heads=heads), 50, seed=0)
    assert model.model.layers[0].self_attn.k_proj.weight.shape == (built * 4, 16)


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"layers": 0}, "layers"), ({"hidden": 100}, "hidden"), ({"key_value_heads": 3}, "key_value_heads")],
)
def test_an_impossible_shape_is_refused(settings, said):
    with pytest.raises(ValueError, match=f"{said} must .*got {settings[said]}"):
        SmallModelConfig(**settings)


ROOM = (
    (
        "You arrive at desk 1. On the desk 1, you see a mug 1, and a pen 2.",
        "You pick up the mug 1 from the desk 1.",
    ),
    ("You arrive at shelf 3. On the shelf 3, you see a cup 1.", "You pick up the cup 2 from the shelf 1."),
)


def test_wordings_are_the_constant_runs_of_words_between_names_and_numbers():
    assert set(find_wordings(ROOM)) == {
        "You arrive at",
        ". On the",
        ", you see a",
        "You pick up the",
        "from the",
    }


def test_a_wording_that_few_episodes_show_or_that_has_a_number_is_none():
    rare = [*ROOM, ("You arrive at bed 1.",), ("You arrive at bed 1.",)]
    assert find_wordings(rare) == ("You arrive at",)
    assert find_wordings([("bed 1 bed 1",)] * 5) == ()
    assert find_wordings([]) == ()


def test_no_more_wordings_are_joined_than_asked_for():
    assert len(find_wordings(ROOM, most=1)) == 1
