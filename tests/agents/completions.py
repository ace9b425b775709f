"""A chat-completions server on loopback that answers as told, and counts what it was asked and what it gave."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What is sent back."""

    status: int = 200
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Respond = Callable[[dict[str, Any], int], Reply]
"""(request body, number of the request from 0) -> answer."""


def said(
    content: str | None, prompt: int = 10, completion: int = 4, reason: str = "stop", **more: Any
) -> Reply:
    """A complete answer of the interface."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    message = {"role": "assistant", "content": content, **more}
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    answer = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    return Reply(200, json.dumps(answer).encode())


def wrong(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    """An error of the interface."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps({"error": error}).encode(), named)


class Server:
    """What the server saw."""

    def __init__(self, respond: Respond) -> None:
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.most_at_once = 0
        self.prompt_tokens = self.completion_tokens = 0
        self._respond, self._lock, self._now = respond, threading.Lock(), 0

    def answer(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            number = len(self.bodies)
            self.bodies.append(body)
            self.paths.append(path)
            self.headers.append(headers)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            return self._respond(body, number)
        finally:
            with self._lock:
                self._now -= 1

    def note(self, reply: Reply) -> None:
        """Count the tokens of an answer that says them."""
        try:
            usage = json.loads(reply.content)["usage"]
        except (ValueError, KeyError, TypeError):
            return
        with self._lock:
            self.prompt_tokens += usage["prompt_tokens"]
            self.completion_tokens += usage["completion_tokens"]


@contextmanager
def completions(respond: Respond) -> Iterator[Server]:
    """Serve until the block ends."""
    seen = Server(respond)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            lowered = {name.lower(): value for name, value in self.headers.items()}
            reply = seen.answer(self.path, body, lowered)
            seen.note(reply)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.content)))
            self.end_headers()
            self.wfile.write(reply.content)

        def log_message(self, format: str, *args: object) -> None: ...

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None: ...  # a client that left

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    seen.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
