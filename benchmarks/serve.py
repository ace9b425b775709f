"""Serving the passages of Deep Search to many workers."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from benchmarks.config import ConfigError, load_suite
from benchmarks.prepare import one_line
from benchmarks.progress import Status, display
from envs.base import EnvError

SUITE = "deepsearch"


def serve_passages(
    data: Path | None, retriever: str, host: str, port: int, cache: Path, console: Console
) -> None:
    """Open the corpus of a folder, or the generated one of the suite, and answer until Ctrl-C.

    Raises `ConfigError`: no corpus there, no such retriever, the port is taken.
    """
    from envs.deepsearch.load import open_corpus, open_retriever
    from envs.deepsearch.retrieval.server import RetrievalServer

    settings = load_suite(SUITE, official=data is not None).base.world
    with display(console) as shown:

        def progress(stage: str, done: int, total: int) -> None:
            shown.update("passages", Status(stage, done, total))

        try:
            corpus = open_corpus(data, settings["seed"], settings["passages"], cache, progress)
            server = RetrievalServer(open_retriever(retriever, corpus, cache, progress), host, port)
        except (EnvError, ValueError, OSError) as error:
            raise ConfigError(one_line(error)) from error
    said = f"{len(corpus):,} passages by {retriever} at {server.url}/retrieve; Ctrl-C ends it"
    console.print(said, markup=False, highlight=False, soft_wrap=True)
    try:
        server.serve_forever()
    finally:
        server.server_close()
