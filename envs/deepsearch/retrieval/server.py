"""A server for any retriever, so that many workers share one index; it speaks Search-R1's protocol.

`POST /retrieve` as in `http.py`; `GET /health` says that it is ready and what it serves. It binds to loopback unless
told otherwise: whoever reaches it can search.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from envs.base import EnvError
from envs.deepsearch.corpus import Passage
from envs.deepsearch.retrieval.base import Hit, Retriever

HOST, PORT = "127.0.0.1", 8000
MOST_BYTES = 4_000_000
MOST_QUERIES = 1024
MOST_RESULTS = 1000


class RetrievalServer(ThreadingHTTPServer):
    """Answers each connection in a thread of its own; the retriever is asked by one at a time."""

    daemon_threads = True

    def __init__(self, retriever: Retriever, host: str = HOST, port: int = PORT) -> None:
        """`OSError` where the port is taken; port 0 takes a free one."""
        super().__init__((host, port), _Handler)
        self.retriever = retriever
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where it is reached."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RetrievalServer

    def do_GET(self) -> None:
        if self.path != "/health":
            self._answer(404, {"error": f"{self.path!r:.100}, expected /health or a POST to /retrieve"})
        else:
            self._answer(200, {"status": "ready", "retriever": self.server.retriever.describe()})

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not length.isdigit() or int(length) > MOST_BYTES:
            self.close_connection = True  # the body is not read, so that nothing can follow it
            self._answer(413, {"error": f"content-length is {length!r:.20}, expected at most {MOST_BYTES}"})
            return
        content = self.rfile.read(int(length))
        if self.path != "/retrieve":
            self._answer(404, {"error": f"{self.path!r:.100}, expected /retrieve"})
            return
        try:
            queries, k, scores = _request(content)
        except ValueError as error:
            self._answer(400, {"error": str(error)})
            return
        try:
            with self.server.lock:
                found = self.server.retriever.search(queries, k)
        except (EnvError, RuntimeError) as error:
            self._answer(500, {"error": f"{type(error).__name__}: {error}"})
            return
        self._answer(200, {"result": [[_document(hit, scores) for hit in hits] for hits in found]})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged one by one."""


def _request(content: bytes) -> tuple[list[str], int, bool]:
    """Queries, number of results, and whether scores are wanted; `ValueError` says what is wrong."""
    try:
        body = json.loads(content)
    except RecursionError:
        raise ValueError("the body is nested too deeply, expected an object with queries and topk") from None
    if not isinstance(body, dict):
        raise ValueError(f"the body is {type(body).__name__}, expected an object with queries and topk")
    queries, k = body.get("queries"), body.get("topk", 3)
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise ValueError(f"queries is {queries!r:.100}, expected a list of texts")
    if len(queries) > MOST_QUERIES:
        raise ValueError(f"{len(queries)} queries, expected at most {MOST_QUERIES}")
    if isinstance(k, bool) or not isinstance(k, int) or not 0 < k <= MOST_RESULTS:
        raise ValueError(f"topk is {k!r:.100}, expected a whole number from 1 to {MOST_RESULTS}")
    return queries, k, body.get("return_scores") is True


def _document(hit: Hit, scores: bool) -> dict[str, Any]:
    document = {"id": hit.id, "contents": Passage(hit.id, hit.title, hit.text).contents}
    return {"document": document, "score": hit.score} if scores else document
