"""Search by vectors: sentence-transformers (extra `dense`), and exact inner products over a memory-mapped matrix."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.base import EnvError, Progress, silent
from envs.deepsearch.cache import kept
from envs.deepsearch.corpus import Corpus
from envs.deepsearch.retrieval.base import Hit, best

BLOCK = 65_536
"""Passages that are compared with the queries at a time."""
BATCH = 64
"""Passages that are encoded at a time."""
_FORMAT = 1
_VECTORS = "vectors.npy"


class DenseRetriever:
    """Passages nearest to a query in meaning; vectors have length 1, so the score is the cosine."""

    def __init__(
        self, corpus: Corpus, model: str | Path, cache: Path | None = None, progress: Progress = silent
    ) -> None:
        """`model`: folder or name of a sentence-transformers model that is already on this machine.

        Raises `EnvError` without the extra, or for a model that cannot be loaded.
        """
        self._corpus = corpus
        self._model = _load(str(model))
        self._identity = _identity(str(model))
        self._vectors = _vectors(
            corpus, self._model, self._facts(), cache, progress
        )  # [passages, dimensions]

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """The `k` nearest passages for each query, nearest first, equally near ones by position."""
        if not queries:
            return []
        asked = _encode(self._model, queries)  # [queries, dimensions]
        scores = np.empty((len(queries), len(self._vectors)), dtype=np.float32)
        for start in range(0, len(self._vectors), BLOCK):
            block = np.asarray(self._vectors[start : start + BLOCK], dtype=np.float32)
            scores[:, start : start + BLOCK] = asked @ block.T
        return [tuple(self._hit(int(number), row[number]) for number in best(row, k)) for row in scores]

    def describe(self) -> dict[str, Any]:
        """JSON-ready facts for the run record."""
        return {"name": "dense", **self._facts(), "dimensions": int(self._vectors.shape[1])}

    def close(self) -> None:
        """Nothing is held but memory."""

    def _facts(self) -> dict[str, Any]:
        from importlib.metadata import version

        return {**self._identity, "sentence_transformers": version("sentence-transformers")}

    def _hit(self, number: int, score: np.float32) -> Hit:
        passage = self._corpus.passage(number)
        return Hit(passage.id, passage.title, passage.text, float(score))


def _load(model: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise EnvError(f"the dense retriever needs: pip install 'empg-bench[dense]' ({error})") from error
    try:
        return SentenceTransformer(model, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise EnvError(
            f"the model {model!r} of the dense retriever cannot be loaded from this machine: {error}"
        ) from error


def _identity(model: str) -> dict[str, str]:
    """What tells a model from others: folders of different ones may have one name."""
    folder = Path(model)
    if not folder.is_dir():
        return {"model": model}
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return {"model": folder.name, "model_sha256": digest.hexdigest()}


def _encode(model: Any, texts: Sequence[str]) -> NDArray[np.float32]:
    """`[texts, dimensions]`, of length 1."""
    found = model.encode(
        list(texts),
        batch_size=BATCH,
        normalize_embeddings=True,
        show_progress_bar=False,
        convert_to_numpy=True,
    )
    return np.asarray(found, dtype=np.float32)


def _vectors(
    corpus: Corpus, model: Any, facts: dict[str, Any], cache: Path | None, progress: Progress
) -> NDArray[np.float16]:
    """`[passages, dimensions]`, from the cache where it is there."""
    if cache is None:
        return np.concatenate([part for _, part in _encoded(corpus, model, progress)])
    settings = {"format": _FORMAT, "corpus": corpus.digest, "passages": len(corpus), **facts}

    def fill(folder: Path) -> dict[str, Any]:
        whole: Any = None  # a memory map, which numpy types as a plain array
        for start, part in _encoded(corpus, model, progress):
            if whole is None:
                shape = (len(corpus), part.shape[1])
                whole = np.lib.format.open_memmap(folder / _VECTORS, "w+", np.float16, shape)
            whole[start : start + len(part)] = part
        assert whole is not None
        whole.flush()
        return {"dimensions": int(whole.shape[1])}

    folder, _ = kept(cache, "dense", settings, fill)
    vectors: NDArray[np.float16] = np.load(folder / _VECTORS, mmap_mode="r")
    return vectors


def _encoded(corpus: Corpus, model: Any, progress: Progress) -> Any:
    """(position, `[BATCH, dimensions]` float16) of all passages."""
    for start in range(0, len(corpus), BATCH):
        numbers = range(start, min(start + BATCH, len(corpus)))
        passages = [corpus.passage(number) for number in numbers]
        texts = [f"{passage.title}. {passage.text}" for passage in passages]
        yield start, _encode(model, texts).astype(np.float16)
        progress("encoding passages", numbers.stop, len(corpus))
