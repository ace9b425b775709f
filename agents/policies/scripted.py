"""A policy that plays by rule, for tests and for demonstrators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from agents.chat import ChatFormat
from agents.policies.base import Generation, RoundSession, Sampling, Turn
from agents.prompts import Prompts
from envs.base import Decision, StepInfo

Player = Callable[[str, StepInfo], str | Decision]
"""What to write, given the observation and the environment's facts: a whole response, or a decision."""

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_tokenizer(chat_template: str | None = CHATML) -> PreTrainedTokenizerFast:
    """A tokenizer with a token for each byte, `<|im_start|>` and `<|im_end|>`; built in code, no files."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(
        models.BPE(vocab={symbol: number for number, symbol in enumerate(alphabet)}, merges=[])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = chat_template
    return tokenizer


class ScriptedPolicy:
    """Writes what a player says, one byte a token; its trajectories are as complete as a model's.

    `make_player` is called with the number of each episode of a session and returns its player, which is
    then asked once a turn. Decisions are written in the form of `prompts`, the brief one by default.
    Log-probabilities are 0: there was no choice.
    """

    def __init__(
        self,
        make_player: Callable[[int], Player],
        *,
        max_context: int = 1_000_000,
        prompts: Prompts | None = None,
    ) -> None:
        self.chat = ChatFormat(byte_tokenizer())
        self.max_context = max_context
        self._make_player = make_player
        self._tokenizer = byte_tokenizer()
        self._prompts = prompts or Prompts(system="")

    @classmethod
    def of(cls, player: Player) -> ScriptedPolicy:
        """A policy that plays every episode by one function without memory."""
        return cls(lambda episode: player)

    def open(self, episodes: int, sampling: Sampling) -> ScriptedSession:
        """A session; neither argument matters to a script."""
        return ScriptedSession(self._make_player, self._prompts, self._tokenizer, self.chat.turn_end)

    def update(self) -> None:
        """A script learns nothing."""


class ScriptedSession(RoundSession):
    """Conversations of a `ScriptedPolicy`."""

    def __init__(
        self,
        make_player: Callable[[int], Player],
        prompts: Prompts,
        tokenizer: PreTrainedTokenizerFast,
        turn_end: int,
    ) -> None:
        self._make_player, self._prompts = make_player, prompts
        self._tokenizer, self._turn_end = tokenizer, turn_end
        self._players: dict[int, Player] = {}

    def generate(self, turns: Sequence[Turn]) -> list[Generation]:
        """What each player says, cut at `max_new_tokens`."""
        return [self._write(turn) for turn in turns]

    def close_episode(self, episode: int) -> None:
        """Forget the episode's player."""
        self._players.pop(episode, None)

    def _write(self, turn: Turn) -> Generation:
        if turn.info is None:
            raise ValueError(f"turn of episode {turn.episode} carries no info; a scripted player needs it")
        if turn.episode not in self._players:
            self._players[turn.episode] = self._make_player(turn.episode)
        said = self._players[turn.episode](turn.observation, turn.info)
        text = said if isinstance(said, str) else self._prompts.format(said.thought, said.action)
        ids = (*self._tokenizer.encode(text, add_special_tokens=False), self._turn_end)
        kept = ids[: turn.max_new_tokens]
        return Generation(kept, (0.0,) * len(kept), "stop" if len(kept) == len(ids) else "length")
