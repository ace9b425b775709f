"""Opening a world: the generated encyclopedia, or a folder with a corpus and published questions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from envs.base import EnvError, Progress, Split, silent
from envs.deepsearch.corpus import Corpus, FileCorpus, MemoryCorpus
from envs.deepsearch.encyclopedia import Encyclopedia, MultiHopQuestion, Settings, generate
from envs.deepsearch.questions import Domain, Question, QuestionError, read_questions
from envs.deepsearch.retrieval.base import Retriever, RetrieverDown
from envs.deepsearch.scorers import make_scorer
from envs.deepsearch.world import DeepSearchWorld

CORPUS = "corpus.jsonl"
DENSE = "dense:"
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv")
SHARES = (0.5, 0.6)
"""Where a data set without a train file is cut into train, dev and test questions."""
ScorerName = Literal["em", "f1", "contains", "judge"]


def load_world(
    data: Path | str | None = None,
    *,
    seed: int = 0,
    passages: int = 4000,
    train_questions: int = 3600,
    test_questions: int = 100,
    id_datasets: Sequence[str] = ("hotpotqa",),
    ood_datasets: Sequence[str] = ("2wikimultihopqa",),
    retriever: str = "bm25",
    scorer: ScorerName = "em",
    scorer_settings: dict[str, Any] | None = None,
    max_steps: int = 15,
    results: int = 3,
    passage_words: int = 120,
    page_words: int = 200,
    cache: Path | str | None = None,
    progress: Progress = silent,
) -> DeepSearchWorld:
    """The world of a folder of published data, or of a generated encyclopedia.

    `seed` to `test_questions` concern the encyclopedia; it has as many out-of-domain test questions as in-domain ones.
    `id_datasets` and `ood_datasets` name the data sets of the folder: a data set is the files that begin with its name.
    `retriever` is `bm25`, `dense:` and the folder or name of a model, or the URL of a server.

    Raises `EnvError` for data that is missing or malformed or a server that does not answer, `ValueError` for a
    setting that does not exist.
    """
    kept = None if cache is None else Path(cache)
    corpus: Corpus
    if data is None:
        held_out = dict.fromkeys(("dev", "test", "ood_dev", "ood_test"), test_questions)
        found = generate(Settings(seed=seed, passages=passages, train=train_questions, **held_out))
        corpus, questions, source = MemoryCorpus(found.passages), _asked(found), found.describe()
    else:
        corpus = FileCorpus(Path(data) / CORPUS, kept, progress)
        questions, source = _published(Path(data), id_datasets, ood_datasets)
    return DeepSearchWorld(
        corpus,
        open_retriever(retriever, corpus, kept, progress),
        questions,
        make_scorer(scorer, **(scorer_settings or {})),
        source=source,
        settings={
            "max_steps": max_steps,
            "results": results,
            "passage_words": passage_words,
            "page_words": page_words,
        },
    )


def open_corpus(
    data: Path | str | None, seed: int, passages: int, cache: Path | None, progress: Progress = silent
) -> Corpus:
    """The corpus of a folder, or the generated one of this seed and size."""
    if data is None:
        return MemoryCorpus(generate(Settings(seed, passages, 0, 0, 0, 0, 0)).passages)
    return FileCorpus(Path(data) / CORPUS, cache, progress)


def open_retriever(name: str, corpus: Corpus, cache: Path | None, progress: Progress = silent) -> Retriever:
    """`bm25`, `dense:MODEL`, or the URL of a server that speaks Search-R1's protocol; `ValueError` for another name."""
    if name == "bm25":
        from envs.deepsearch.retrieval.bm25 import Bm25Retriever

        return Bm25Retriever(corpus, cache, progress)
    if name.startswith(DENSE) and name != DENSE:
        from envs.deepsearch.retrieval.dense import DenseRetriever

        return DenseRetriever(corpus, name.removeprefix(DENSE), cache, progress)
    if name.startswith(("http://", "https://")):
        from envs.deepsearch.retrieval.http import HttpRetriever

        try:
            return HttpRetriever(name)
        except RetrieverDown as error:
            raise EnvError(str(error)) from error
    raise ValueError(f"retriever is {name!r}, expected bm25, dense:MODEL or the URL of a server")


def _asked(found: Encyclopedia) -> dict[Split, Sequence[Question]]:
    parts: dict[Split, tuple[str, ...]] = {
        "train": ("train",),
        "dev": ("dev", "ood_dev"),
        "test": ("test", "ood_test"),
    }
    return {
        split: [_generated(one) for name in names for one in found.questions[name]]
        for split, names in parts.items()
    }


def _generated(one: MultiHopQuestion) -> Question:
    domain: Domain = "ood" if one.domain == "ood" else "id"
    return Question(one.id, one.text, one.golds, one.form, domain, one.supporting_titles)


def _published(
    folder: Path, id_datasets: Sequence[str], ood_datasets: Sequence[str]
) -> tuple[dict[Split, Sequence[Question]], dict[str, Any]]:
    """Questions by split, and what they are from."""
    if not id_datasets or set(id_datasets) & set(ood_datasets):
        raise ValueError(f"id_datasets {list(id_datasets)} and ood_datasets {list(ood_datasets)} must differ")
    splits: dict[Split, list[Question]] = {"train": [], "dev": [], "test": []}
    files: dict[str, Any] = {}
    for dataset in id_datasets:
        train, rest = _read(folder, dataset, "id", files)
        parts = (train, [], rest) if train else _divided(rest)
        for split, found in zip(splits, parts, strict=True):
            splits[split] += found
    for dataset in ood_datasets:
        splits["test"] += _read(folder, dataset, "ood", files)[1]
    if not splits["train"]:
        raise QuestionError(f"{folder}: {list(id_datasets)} have no train questions, expected some")
    return dict(splits), {"data": "official", "files": files}


def _read(
    folder: Path, dataset: str, domain: Domain, files: dict[str, Any]
) -> tuple[list[Question], list[Question]]:
    """Train questions and all others of a data set."""
    paths = sorted(path for path in folder.glob(f"{dataset}*") if path.suffix in SUFFIXES)
    if not paths:
        there = ", ".join(sorted(path.name for path in folder.iterdir())) if folder.is_dir() else "no folder"
        raise QuestionError(f"{folder}: no file {dataset}*{'|'.join(SUFFIXES)}; there is: {there}")
    train: list[Question] = []
    others: list[Question] = []
    for path in paths:
        found = read_questions(path, dataset, domain)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        files[path.name] = {"questions": len(found), "domain": domain, "sha256": digest}
        (train if "train" in path.stem.lower() else others).extend(found)
    return train, others


def _divided(questions: Iterable[Question]) -> tuple[list[Question], list[Question], list[Question]]:
    """Train, dev and test parts by the hashes of the ids, so that the file's order plays no part."""
    ordered = sorted(questions, key=lambda one: hashlib.sha256(one.id.encode()).hexdigest())
    first, second = (round(share * len(ordered)) for share in SHARES)
    return ordered[:first], ordered[first:second], ordered[second:]
