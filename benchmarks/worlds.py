"""Which benchmarks exist, what their data can be asked for, and how it is opened.

A loader imports its environment only when called, so listing the benchmarks costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from benchmarks.seeding import Stream, generator
from envs.base import Progress, World


@dataclass(frozen=True)
class WebShopSettings:
    """What a WebShop suite may say in its `[world]` table."""

    products: int = 1000
    """Size of the generated catalogue; official files bring their own."""
    goal_source: Literal["synthetic", "human"] = "synthetic"
    seed: int = 0
    """Seed of the generated catalogue."""
    max_steps: int = 15
    """Actions an episode may take; the paper's number."""
    observation_mode: Literal["text", "text_rich"] = "text"
    """The official text form of pages."""
    show_attributes: bool = False
    """Offer the attributes sub-page, which shows what the reward looks for."""
    prefix_queries: bool = True
    """Let `search[<c> category]` and `search[<q> query]` list a whole kind, as in the official shop."""
    reward: Literal["official", "strict"] = "official"
    """How purchases are judged; under `strict`, options must be equal instead of similar."""
    search: Literal["bm25", "lucene"] = "bm25"
    """The built-in engine, or the Lucene index in the folder `indexes` of the official files."""
    nouns: Literal["auto", "spacy", "stored", "words"] = "auto"
    """Where title nouns come from, which the reward compares; officially spaCy tags them."""

    def __post_init__(self) -> None:
        if self.products < 1:
            raise ValueError(f"products must be positive, got {self.products}")


@dataclass(frozen=True)
class AlfworldSettings:
    """What an ALFWorld suite may say in its `[world]` table; the first four concern generated games only."""

    seed: int = 0
    train_games: int = 1200
    test_games: int = 134
    """Of the seen and of the unseen part each."""
    most_receptacles: int = 35
    """Rooms have 10 to this many."""
    evaluate_on: Literal["unseen", "seen"] = "unseen"
    """The part that is the test split: rooms of no train game, or other games in the rooms of train games."""
    max_steps: int = 50
    """Actions an episode may take; the paper's number."""
    aliases: bool = False
    """Whether `put o in/on r` is understood where the game says `move o to r`, and the reverse."""
    backend: Literal["native", "textworld"] = "native"
    """The built-in engine, or the official one (extra `alfworld`), which gives the same and is slow."""

    def __post_init__(self) -> None:
        if min(self.train_games, self.test_games, self.max_steps) < 1:
            raise ValueError(
                f"train_games {self.train_games}, test_games {self.test_games}, max_steps {self.max_steps}: "
                "each must be positive"
            )


@dataclass(frozen=True)
class DeepSearchSettings:
    """What a Deep Search suite may say in its `[world]` table; the first four concern the generated encyclopedia."""

    seed: int = 0
    passages: int = 4000
    train_questions: int = 3600
    test_questions: int = 100
    """In domain; there are as many out of domain."""
    id_datasets: tuple[str, ...] = ("hotpotqa",)
    """Data sets of the official folder whose questions are trained on and tested in domain."""
    ood_datasets: tuple[str, ...] = ("2wikimultihopqa",)
    """Those that are only tested."""
    retriever: str = "bm25"
    """`bm25`, `dense:` and the folder or name of a sentence-transformers model, or the URL of a server that speaks
    Search-R1's protocol."""
    scorer: Literal["em", "f1", "contains", "judge"] = "em"
    scorer_settings: dict[str, Any] = field(default_factory=dict)
    """`threshold` of `f1`; `base_url`, `model` and so on of `judge`."""
    max_steps: int = 15
    """Actions an episode may take."""
    results: int = 3
    """Passages that a search shows."""
    passage_words: int = 120
    """After so many words a shown passage is cut."""
    page_words: int = 200
    """Words that `open` and `next` show at a time."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: the settings of its data, the function that opens it, and where official data comes from."""

    settings: type[Any]
    load: Callable[[Path | None, Any, Path | None, Progress], World]
    """(folder of official files or None for generated data, settings, cache, progress) -> world. Large official
    data is put into the cache once and shared from there; None holds all in memory."""
    needed: Mapping[str, str]
    """What each official file is, by its name."""
    origin: str
    """Where the official files come from, in one line."""


def _webshop(data: Path | None, settings: WebShopSettings, cache: Path | None, progress: Progress) -> World:
    from envs.webshop import load_world

    return load_world(data, cache=cache, progress=progress, **asdict(settings))


def _alfworld(data: Path | None, settings: AlfworldSettings, cache: Path | None, progress: Progress) -> World:
    from envs.alfworld import load_world

    return load_world(data, cache=cache, progress=progress, **asdict(settings))


def _deepsearch(
    data: Path | None, settings: DeepSearchSettings, cache: Path | None, progress: Progress
) -> World:
    from envs.deepsearch import load_world

    return load_world(data, cache=cache, progress=progress, **asdict(settings))


BENCHMARKS: Mapping[str, Benchmark] = {
    "webshop": Benchmark(
        WebShopSettings,
        _webshop,
        needed={
            "items_shuffle.json or items_shuffle_1000.json": "products",
            "items_ins_v2.json or items_ins_v2_1000.json": "attributes and synthetic instructions",
            "items_human_ins.json": "instructions that people wrote",
        },
        origin=(
            "setup.sh of the WebShop repository (princeton-nlp/WebShop) downloads them into its folder data: "
            "`-d all` the full set of about 1.18 million products, `-d small` 1,000 products"
        ),
    ),
    "alfworld": Benchmark(
        AlfworldSettings,
        _alfworld,
        needed={
            "json_2.1.1/train, valid_seen and valid_unseen": "a folder for each game",
            "game.tw-pddl in each": "the game: its PDDL problem and its text grammar",
            "traj_data.json in each": "the type of the task",
        },
        origin=(
            "alfworld-download of the official package (alfworld/alfworld, 0.4.2: pip install "
            "'empg-bench[alfworld]') downloads them into the folder that ALFWORLD_DATA names, 3,553 + 140 + 134 games; "
            "--download calls it"
        ),
    ),
    "deepsearch": Benchmark(
        DeepSearchSettings,
        _deepsearch,
        needed={
            "corpus.jsonl": 'passages: {"id", "contents": "\\"title\\"\\ntext"} a line',
            "hotpotqa*.jsonl and so on": "questions of each data set; with `train` in the name: of the train split",
        },
        origin=(
            "RUC-NLPIR/FlashRAG_datasets on the Hugging Face hub has the questions, "
            "PeterJinGo/wiki-18-corpus the passages (21 million, 14 GB); --download fetches them"
        ),
    ),
}


def elsewhere(settings: Any, number: int) -> Any:
    """Settings of another generated world, the same but for its seed."""
    seed = int(generator(settings.seed, Stream.WORLDS, number).integers(2**31))
    if isinstance(settings, DeepSearchSettings):  # a server has the passages of one world only
        return replace(settings, seed=seed, retriever="bm25")
    return replace(settings, seed=seed)
