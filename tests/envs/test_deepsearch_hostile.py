"""Servers that break off, hang or answer nonsense, and clients that send it: told apart at the level of the socket."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.client import Patience
from envs.deepsearch.corpus import MemoryCorpus, Passage
from envs.deepsearch.retrieval import http as http_module
from envs.deepsearch.retrieval.base import Hit, RetrieverDown
from envs.deepsearch.retrieval.bm25 import Bm25Retriever
from envs.deepsearch.retrieval.http import HttpRetriever
from envs.deepsearch.retrieval.server import RetrievalServer

FAST = Patience(timeout_s=0.2, connect_s=0.2, tries=3, first_wait_s=0.01, longest_wait_s=0.02)
GOOD = b'{"result": [[{"document": {"id": "1", "contents": "T\\nt"}, "score": 1.5}]]}'
HITS = [(Hit("1", "T", "t", 1.5),)]
Reply = Callable[[int], bytes | None]
"""Number of the request, from 0 -> all that is sent before the connection is closed; None: nothing, left open."""


def response(content: bytes, *, length: int | None = None) -> bytes:
    stated = len(content) if length is None else length
    return b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (stated, content)


@contextmanager
def raw_server(reply: Reply) -> Iterator[tuple[str, list[int]]]:
    """Reads one request a connection and sends bytes as told; gives its URL and the numbers of the requests."""
    seen: list[int] = []
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def work() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection.makefile("rb") as request:
                    length = 0
                    while (line := request.readline().strip()) != b"":
                        if line.lower().startswith(b"content-length:"):
                            length = int(line.split(b":")[1])
                    request.read(length)
                seen.append(len(seen))
                sent = reply(seen[-1])
                if sent is None:
                    held.append(connection)
                    continue
                with connection:
                    connection.sendall(sent)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for connection in held:
                connection.close()


@contextmanager
def serving(retriever: Bm25Retriever) -> Iterator[str]:
    server = RetrievalServer(retriever, port=0)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.server_close()


def scored(score: str) -> bytes:
    return GOOD.replace(b"1.5", score.encode())


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (b"", "connections"),
        (b"HTTP/1.1 200 OK\r\ncontent-le", "connections"),
        (response(GOOD[:20], length=len(GOOD)), "connections"),
        (b"SSH-2.0-OpenSSH\r\n", "connections"),
        (response(GOOD[:20]), "bad_answers"),
        (response(b"\xff\xfe\x00"), "bad_answers"),
        (response(b"[" * 100_000), "bad_answers"),
        (response(b"no gzip").replace(b"\r\n", b"\r\ncontent-encoding: gzip\r\n", 1), "bad_answers"),
        (response(scored("NaN")), "bad_answers"),
        (response(scored("Infinity")), "bad_answers"),
        (response(scored("true")), "bad_answers"),
    ],
)
def test_an_answer_that_breaks_off_or_is_nonsense_is_asked_for_again(broken: bytes, kind: str) -> None:
    with raw_server(lambda number: broken if number == 1 else response(GOOD)) as (url, _):
        retriever = HttpRetriever(url, FAST)
        assert retriever.search(["q"], 1) == HITS
        assert retriever.counts() == {"requests": 3, "retries": 1, kind: 1}


def test_a_server_that_hangs_after_it_was_ready_is_asked_again_and_then_answers() -> None:
    with raw_server(lambda number: None if number in (1, 2) else response(GOOD)) as (url, _):
        retriever = HttpRetriever(url, FAST)
        assert retriever.search(["q"], 1) == HITS
        assert retriever.counts() == {"requests": 4, "retries": 2, "timeouts": 2}


def test_waiting_for_a_server_that_hangs_counts_the_time_of_its_timeouts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_module, "POLL_S", 0.001)
    with (
        raw_server(lambda number: None) as (url, seen),
        pytest.raises(RetrieverDown, match=r"not ready after .*no answer in time"),
    ):
        HttpRetriever(url, FAST, ready_s=0.5)
    assert len(seen) <= 3  # a timeout of 0.2 s each


def test_a_server_that_dies_for_good_stops_the_search_with_what_to_do() -> None:
    with raw_server(lambda number: response(GOOD)) as (url, _):
        retriever = HttpRetriever(url, FAST)
    with pytest.raises(RetrieverDown, match=r"the retriever is down: .*run the same command again") as raised:
        retriever.search(["q"], 1)
    assert url in str(raised.value)


# Our own server


PASSAGES = (
    Passage("1", '"Heroes" (album)', 'It begins with "Beauty and the Beast".\nThen comes the rest.'),
    Passage("2", "北京", "首都 \u2028 é \U0001f98a"),
    Passage("3", "Owl", ""),
    Passage("4", "owl", "The owl hunts."),
)
TEXT = st.text(max_size=20) | st.sampled_from(["owl", "heroes beast", "首都", "\ud800 owl", "\0", '"]}'])


def test_over_our_server_every_query_has_the_hits_of_the_retriever_itself() -> None:
    local = Bm25Retriever(MemoryCorpus(PASSAGES))

    with serving(local) as url:
        there = HttpRetriever(url, FAST)

        @settings(max_examples=60, deadline=None)
        @given(st.lists(TEXT, max_size=4), st.integers(1, 6))
        def equal(queries: list[str], k: int) -> None:
            assert there.search(queries, k) == local.search(queries, k)

        equal()


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"queries": ["q"], "topk": 1e3}'])
def test_a_body_that_is_no_request_is_a_400_with_a_reason_and_the_server_lives_on(body: bytes) -> None:
    with serving(Bm25Retriever(MemoryCorpus(PASSAGES))) as url:
        answer = httpx.post(f"{url}/retrieve", content=body)
        assert answer.status_code == 400
        assert answer.json()["error"]
        after = httpx.post(f"{url}/retrieve", json={"queries": ["hunts"], "topk": 1, "return_scores": True})
    assert json.loads(after.content)["result"][0][0]["document"]["id"] == "4"


def test_an_answer_that_trickles_without_end_is_no_answer_in_time() -> None:
    stop = threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", "1000000")
            self.end_headers()
            with suppress(OSError):
                while not stop.wait(0.02):
                    self.wfile.write(b" ")

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        with pytest.raises(RetrieverDown, match="no answer in time"):
            HttpRetriever(f"http://127.0.0.1:{server.server_port}", FAST, ready_s=0.0)
    finally:
        stop.set()
        server.shutdown()
        server.server_close()
