"""What a retriever finds and costs: recall on real questions, latency, and the index's time, bytes and memory.

`python -m benchmarks.bench_deepsearch --data FOLDER --passages 1000000 --dense MODEL`. The folder has `corpus.jsonl`
and HotpotQA questions whose `metadata.supporting_titles` say which pages they need; `--passages` asks for as many
generated passages beside them. An index is built in one process and searched in another, as a training run does.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.bench_tools import anonymous_bytes, figure, peak_bytes, resident_bytes, run_apart
from envs.deepsearch.load import CORPUS
from envs.deepsearch.questions import Question, read_questions
from envs.deepsearch.retrieval.base import Retriever

QUESTIONS = "hotpotqa_dev100.jsonl"
DEPTHS = (5, 10)
BATCH = 64
QUERIES = 256
"""Queries over generated passages."""
QUERY_WORDS, PASSAGE_WORDS = 12, 60
VOCABULARY, SHIFT = 200_000, 30
"""Words follow Zipf's law without its 30 most frequent ones, which a search leaves out as stop words."""
CHUNK = 10_000
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


@dataclass(frozen=True)
class Built:
    """Making an index, in a process of its own."""

    corpus_s: float
    """Reading the passages' positions from the file."""
    index_s: float
    corpus_bytes: int
    """Of positions in the cache."""
    index_bytes: int
    """Of the index in the cache."""
    peak_bytes: int


@dataclass(frozen=True)
class Recall:
    """Of supporting titles among the best passages."""

    depth: int
    titles: float
    """Share of a question's titles, mean over questions."""
    whole: float
    """Share of questions with all of their titles."""


@dataclass(frozen=True)
class Searched:
    """Searching an index that was kept, in a process of its own; milliseconds of wall time."""

    open_s: float
    median_ms: float
    p99_ms: float
    median_cpu_ms: float
    """CPU time of the process; above the wall time where several threads work."""
    batch_ratio: float
    """Time of queries one by one, against that of batches of 64."""
    added_bytes: int | None
    """Memory that is no mapped file, added by opening and searching."""
    resident_bytes: int | None
    """All memory of the process after searching, with what is mapped."""
    recall: tuple[Recall, ...]
    """Empty for generated passages, which answer no question."""


@dataclass(frozen=True)
class Costs:
    """One retriever over one corpus."""

    retriever: str
    passages: int
    corpus: str
    built: Built
    searched: Searched


# Generated passages


def word(number: int) -> str:
    """A pronounceable word for a rank."""
    parts = []
    number += len(SYLLABLES)
    while number:
        number, syllable = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[syllable])
    return "".join(parts)


def salad(passages: int, seed: int = 0) -> Iterator[tuple[str, list[str]]]:
    """(title, words) of generated passages; each draw depends on the seed and the passage's place alone."""
    words = np.array([word(number) for number in range(VOCABULARY)], dtype=object)
    shares = np.cumsum(1 / (np.arange(VOCABULARY) + 1 + SHIFT))
    shares /= shares[-1]
    for chunk in range(0, passages, CHUNK):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(chunk,)))
        drawn = words[np.searchsorted(shares, rng.random((min(CHUNK, passages - chunk), PASSAGE_WORDS)))]
        for number, row in enumerate(drawn.tolist(), start=chunk):
            yield f"{row[0]} {row[1]} {number}".title(), row


def write_salad(folder: Path, passages: int, seed: int = 0) -> tuple[Path, Path]:
    """A corpus file of generated passages and a file of queries, each of some words of one passage."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus, queries, apart = folder / CORPUS, list[str](), max(1, passages // QUERIES)
    with corpus.open("w", encoding="utf-8") as file:
        for number, (title, words) in enumerate(salad(passages, seed)):
            file.write(json.dumps({"id": str(number), "contents": f'"{title}"\n{" ".join(words)}'}) + "\n")
            if number % apart == 0 and len(queries) < QUERIES:
                queries.append(" ".join(words[:: PASSAGE_WORDS // QUERY_WORDS]))
    asked = folder / "queries.json"
    asked.write_text(json.dumps(queries), encoding="utf-8")
    return corpus, asked


# Measurements, each in a process of its own


def opened(corpus: Path, cache: Path, retriever: str) -> tuple[Retriever, float, float]:
    """A retriever over a file, and the seconds that corpus and index took."""
    from envs.deepsearch.corpus import FileCorpus
    from envs.deepsearch.load import open_retriever

    began = time.perf_counter()
    passages = FileCorpus(corpus, cache)
    read = time.perf_counter()
    found = open_retriever(retriever, passages, cache)
    return found, read - began, time.perf_counter() - read


def measure_build(corpus: Path, cache: Path, retriever: str) -> Built:
    """Build what the cache lacks, in this process."""
    _, corpus_s, index_s = opened(corpus, cache, retriever)
    kept: dict[str, int] = {}
    for path in (cache / "deepsearch").rglob("*"):
        if path.is_file():
            kind = path.parent.name.partition("-")[0]
            kept[kind] = kept.get(kind, 0) + path.stat().st_size
    index = kept[retriever.partition(":")[0]]
    return Built(corpus_s, index_s, kept["corpus"], index, peak_bytes())


def measure_search(corpus: Path, cache: Path, retriever: str, asked: Path) -> Searched:
    """Search what the cache holds, in this process; the first search is not counted."""
    questions = [] if asked.suffix == ".json" else list(read_questions(asked, "hotpotqa", "id"))
    queries = [one.text for one in questions] or json.loads(asked.read_text(encoding="utf-8"))
    before = anonymous_bytes()
    found, corpus_s, index_s = opened(corpus, cache, retriever)
    deepest = max(DEPTHS)
    found.search(queries[:1], deepest)
    took = np.array([_timed(found, [query], deepest) for query in queries])  # [queries, (wall, CPU)]
    batches = [queries[start : start + BATCH] for start in range(0, len(queries), BATCH)]
    together = sum(_timed(found, batch, deepest)[0] for batch in batches)
    after = anonymous_bytes()
    wall: NDArray[np.float64] = 1000 * took[:, 0]
    return Searched(
        open_s=corpus_s + index_s,
        median_ms=float(np.median(wall)),
        p99_ms=float(np.quantile(wall, 0.99)),
        median_cpu_ms=float(np.median(1000 * took[:, 1])),
        batch_ratio=float(took[:, 0].sum() / together),
        added_bytes=None if before is None or after is None else after - before,
        resident_bytes=resident_bytes(),
        recall=tuple(recall(found, questions, depth) for depth in DEPTHS) if questions else (),
    )


def _timed(retriever: Retriever, queries: Sequence[str], k: int) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    retriever.search(queries, k)
    return time.perf_counter() - wall, time.process_time() - cpu


def recall(retriever: Retriever, questions: Sequence[Question], depth: int) -> Recall:
    """How many of the pages that questions need are found by searching for the questions themselves."""
    shares = []
    for one, hits in zip(questions, retriever.search([q.text for q in questions], depth), strict=True):
        titles = {hit.title for hit in hits}
        shares.append(sum(title in titles for title in one.supporting_titles) / len(one.supporting_titles))
    return Recall(depth, sum(shares) / len(shares), sum(share == 1 for share in shares) / len(shares))


# The whole


def measure_apart(corpus: Path, asked: Path, retriever: str, name: str, cache: Path) -> Costs:
    """Build and search, in processes of their own."""
    arguments = [f"--corpus={corpus}", f"--cache={cache}", f"--retriever={retriever}"]
    module = "benchmarks.bench_deepsearch"
    built = Built(**run_apart(module, [*arguments, "--part=build"], f"building {retriever}"))
    found: dict[str, Any] = run_apart(
        module, [*arguments, "--part=search", f"--asked={asked}"], f"searching {retriever}"
    )
    found["recall"] = tuple(Recall(**one) for one in found["recall"])
    with corpus.open("rb") as file:
        passages = sum(1 for _ in file)
    shown = retriever if ":" not in retriever else f"dense ({Path(retriever.partition(':')[2]).name})"
    return Costs(shown, passages, name, built, Searched(**found))


def measure(data: Path | None, passages: int, dense: str | None, folder: Path) -> list[Costs]:
    """The real passages with every retriever, and generated ones with bm25."""
    folder = folder.resolve()
    costs = []
    if data is not None:
        corpus, asked = (data / CORPUS).resolve(), (data / QUESTIONS).resolve()
        for retriever in ("bm25", *([f"dense:{dense}"] if dense else [])):
            cache = folder / f"real-{retriever.partition(':')[0]}"
            costs.append(measure_apart(corpus, asked, retriever, "real", cache))
    if passages:
        corpus, asked = write_salad(folder / f"salad-{passages}", passages)
        costs.append(
            measure_apart(corpus, asked, "bm25", "generated", folder / f"salad-{passages}" / "cache")
        )
    return costs


def rows(costs: Sequence[Costs]) -> list[tuple[str, ...]]:
    """Cells of the table: what, then one for each of `costs`."""

    def mib(count: int | None) -> str:
        return "" if count is None else figure(count / 2**20)

    lines: list[tuple[str, list[str]]] = [
        ("passages", [f"{one.passages:,} {one.corpus}" for one in costs]),
        ("positions: seconds", [figure(one.built.corpus_s) for one in costs]),
        ("positions: MiB", [mib(one.built.corpus_bytes) for one in costs]),
        ("index: seconds", [figure(one.built.index_s) for one in costs]),
        ("index: MiB", [mib(one.built.index_bytes) for one in costs]),
        ("peak memory of the build, MiB", [mib(one.built.peak_bytes) for one in costs]),
        ("open again, seconds", [figure(one.searched.open_s) for one in costs]),
        ("memory added by open and search, MiB", [mib(one.searched.added_bytes) for one in costs]),
        ("memory with mapped files, MiB", [mib(one.searched.resident_bytes) for one in costs]),
        ("search: median, ms", [figure(one.searched.median_ms) for one in costs]),
        ("search: p99, ms", [figure(one.searched.p99_ms) for one in costs]),
        ("search: median CPU, ms", [figure(one.searched.median_cpu_ms) for one in costs]),
        (f"one by one / batches of {BATCH}", [f"{figure(one.searched.batch_ratio)}×" for one in costs]),
    ]
    for place, depth in enumerate(DEPTHS):
        found = [one.searched.recall[place] if one.searched.recall else None for one in costs]
        lines.append(
            (f"recall of titles at {depth}", [f"{100 * one.titles:.1f}%" if one else "" for one in found])
        )
        lines.append(
            (
                f"questions with all titles at {depth}",
                [f"{100 * one.whole:.0f}%" if one else "" for one in found],
            )
        )
    return [(name, *cells) for name, cells in lines]


def show_costs(console: Console, costs: Sequence[Costs]) -> None:
    """A column for each retriever and corpus."""
    table = Table("Deep Search", box=SIMPLE_HEAD, show_edge=False)
    for one in costs:
        table.add_column(one.retriever, justify="right")
    for row in rows(costs):
        table.add_row(*row)
    console.print(table)
    console.print(
        f"Searches for {max(DEPTHS)} passages, after a first one; each column's index was built in one process and "
        "searched in another, one run.",
        markup=False,
    )


def main() -> None:
    """Measure all and show a table, or, for a part, measure it here and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help=f"folder with {CORPUS} and {QUESTIONS}")
    parser.add_argument("--passages", type=int, default=0, help="generated passages to measure too")
    parser.add_argument("--dense", metavar="MODEL", help="folder of a sentence-transformers model")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    parser.add_argument("--part", choices=("build", "search"), help=argparse.SUPPRESS)
    for hidden in ("--corpus", "--cache", "--asked"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--retriever", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part == "build":
        print(json.dumps(asdict(measure_build(chosen.corpus, chosen.cache, chosen.retriever))))
    elif chosen.part == "search":
        found = measure_search(chosen.corpus, chosen.cache, chosen.retriever, chosen.asked)
        print(json.dumps(asdict(found)))
    elif chosen.data is None and not chosen.passages:
        parser.error("nothing to measure: give --data, --passages or both")
    else:
        with tempfile.TemporaryDirectory() as folder:
            costs = measure(chosen.data, chosen.passages, chosen.dense, Path(folder))
        if chosen.json is not None:
            chosen.json.write_text(json.dumps([asdict(one) for one in costs], indent=1), encoding="utf-8")
        show_costs(Console(), costs)


if __name__ == "__main__":
    main()
