"""Servers that fail in every way that users met: nothing hangs, nothing is lost, and nothing is scored 0."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from envs.client import Exhausted, JsonClient, Patience, Refused
from envs.deepsearch.retrieval.base import Hit, QueryFailed, RetrieverDown
from envs.deepsearch.retrieval.http import HttpRetriever
from envs.deepsearch.retrieval.server import RetrievalServer
from tests.envs.libraries import PASSAGES, Counting, world
from tests.envs.test_deepsearch_env import play

FAST = Patience(timeout_s=0.3, connect_s=0.3, tries=4, first_wait_s=0.01, longest_wait_s=0.02)
Answer = Callable[[dict[str, Any], int], tuple[int, bytes]]
"""(request body, number of the request from 0) -> (status, body)."""


@contextmanager
def serving(answer: Answer, port: int = 0) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A loopback server that answers as told; gives its URL and the bodies that it was sent."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append({**body, "_headers": dict(self.headers)})
            status, content = answer(body, len(seen) - 1)
            self.send_response(status)
            if status == 429:
                self.send_header("retry-after", "7")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def retrieval(port: int = 0) -> Iterator[str]:
    """Our own server over the library."""
    server = RetrievalServer(Counting(), port=port)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.server_close()


def good(body: dict[str, Any]) -> bytes:
    hits = [{"document": {"id": "1", "contents": '"T"\nt'}, "score": 1.5}]
    return json.dumps({"result": [hits for _ in body["queries"]]}).encode()


def ready_then(answer: Answer) -> Answer:
    """Answers the probes well, and everything else as told; its requests are counted without the probes."""
    count = [0]

    def respond(body: dict[str, Any], number: int) -> tuple[int, bytes]:
        if body["queries"] == ["ready"]:
            return 200, good(body)
        count[0] += 1
        return answer(body, count[0] - 1)

    return respond


def opened(url: str, sleeps: list[float] | None = None) -> HttpRetriever:
    return HttpRetriever(url, FAST, ready_s=0.0, sleep=time.sleep if sleeps is None else sleeps.append)


def library(body: dict[str, Any], number: int) -> tuple[int, bytes]:
    """The library's answer; each is the last one of its connection."""
    found = Counting().search(body["queries"], body["topk"])
    lists = [
        [
            {"document": {"id": hit.id, "contents": f'"{hit.title}"\n{hit.text}'}, "score": hit.score}
            for hit in hits
        ]
        for hits in found
    ]
    return 200, json.dumps({"result": lists}).encode()


HIT = (Hit("1", "T", "t", 1.5),)


def test_a_search_over_our_own_server_equals_the_retriever_behind_it() -> None:
    queries = ["Red Kite", "Ana Moor prizes", "zzz", "Café"]
    with retrieval() as url:
        assert opened(url).search(queries, 2) == Counting().search(queries, 2)


def test_the_request_is_that_of_search_r1_in_batches_of_64() -> None:
    with serving(lambda body, _: (200, good(body))) as (url, seen):
        found = opened(url).search([f"q{number}" for number in range(70)], 5)
    assert found == [HIT] * 70
    assert [(len(body["queries"]), body["topk"], body["return_scores"]) for body in seen] == [
        (1, 1, True), (64, 5, True), (6, 5, True),
    ]  # fmt: skip


def test_documents_without_scores_are_ranked_by_their_order() -> None:
    documents = [{"contents": '"A"\na', "id": 3}, {"contents": "B\nb", "id": "x"}]
    content = json.dumps({"result": [documents]}).encode()
    with serving(lambda body, _: (200, content)) as (url, _):
        assert opened(url).search(["q"], 2) == [(Hit("3", "A", "a", 0.0), Hit("x", "B", "b", -1.0))]


def test_a_server_that_gives_more_than_was_asked_for_is_cut_to_it() -> None:
    documents = [{"contents": f'"{name}"\nt', "id": name} for name in "ABC"]
    content = json.dumps({"result": [documents]}).encode()
    with serving(lambda body, _: (200, content)) as (url, _):
        (found,) = opened(url).search(["q"], 2)
    assert [hit.id for hit in found] == ["A", "B"]


@pytest.mark.parametrize(
    "broken",
    [
        (500, b"oops"),
        (503, b""),
        (200, b"not json"),
        (200, b'{"result": []}'),
        (200, b'{"result": [{"document": 1}]}'),
        (200, b'{"result": [[{"document": {"contents": 5}, "score": 1}]]}'),
        (200, b'{"result": [[{"document": {"id": "1", "contents": "T"}, "score": "high"}]]}'),
        (200, b"[]"),
    ],
)
def test_an_answer_that_fails_three_times_is_asked_for_again(broken: tuple[int, bytes]) -> None:
    respond = ready_then(lambda body, number: broken if number < 3 else (200, good(body)))
    with serving(respond) as (url, _):
        retriever = opened(url)
        assert retriever.search(["q"], 1) == [HIT]
        kind = "server_errors" if broken[0] >= 500 else "bad_answers"
        assert retriever.counts() == {"requests": 5, "retries": 3, kind: 3}


def test_a_query_that_always_fails_while_others_are_answered_is_told_apart() -> None:
    respond = ready_then(lambda body, _: (500, b"no") if "bad" in body["queries"] else (200, good(body)))
    with serving(respond) as (url, _):
        retriever = opened(url)
        with pytest.raises(QueryFailed, match=r"500 'no' \(4 tries\), while other queries are answered"):
            retriever.search(["bad"], 1)
        with pytest.raises(QueryFailed):
            retriever.search(["good", "bad"], 1)
        assert retriever.search(["good"], 1) == [HIT]
        counts = retriever.counts()
        assert (counts["failed_queries"], counts["failed_batches"]) == (1, 1)


def test_a_server_that_never_answers_is_down_after_its_timeouts() -> None:
    stop = threading.Event()

    def hang(body: dict[str, Any], number: int) -> tuple[int, bytes]:
        if number:
            stop.wait(10)
        return 200, good(body)

    with serving(hang) as (url, seen):
        retriever = opened(url)
        with pytest.raises(
            RetrieverDown, match=r"the retriever is down: .*no answer in time .*run the same command"
        ):
            retriever.search(["q"], 1)
        stop.set()
        assert retriever.counts()["timeouts"] == 5  # four tries and a probe
        assert len(seen) == 6


def test_a_server_that_refuses_connections_is_not_ready_and_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    waits: list[float] = []
    with pytest.raises(RetrieverDown, match=rf"not ready after 6 s: {url}/retrieve: .*\(1 tries\); start it"):
        HttpRetriever(url, FAST, ready_s=5.0, sleep=waits.append)
    assert waits == [2.0, 2.0, 2.0]


def test_a_server_that_takes_its_time_is_waited_for() -> None:
    with serving(lambda body, number: (503, b"loading") if number < 3 else (200, good(body))) as (url, seen):
        waits: list[float] = []
        HttpRetriever(url, FAST, ready_s=60.0, sleep=waits.append)
        assert (waits, len(seen)) == ([2.0, 2.0, 2.0], 4)


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_request_that_is_called_wrong_is_not_repeated(status: int) -> None:
    respond = ready_then(lambda body, _: (status, b"no such thing"))
    with serving(respond) as (url, seen):
        retriever = opened(url)
        with pytest.raises(RetrieverDown, match=f"{status} 'no such thing'; expected a server of Search-R1"):
            retriever.search(["q"], 1)
        assert len(seen) == 2


def test_a_server_that_dies_and_comes_back_on_its_port_costs_retries_only() -> None:
    with serving(library) as (url, _):
        port = int(url.rpartition(":")[2])
        retriever = opened(url)
        before = retriever.search(["Red Kite"], 2)
    revived: list[Any] = []

    def revive(seconds: float) -> None:
        if len(revived) == 2:
            revived.append(serving(library, port))
            revived[-1].__enter__()
        else:
            revived.append(seconds)

    retriever._client._sleep = revive
    try:
        assert retriever.search(["Red Kite"], 2) == before
        counts = retriever.counts()
        assert counts["retries"] == 3
        assert "failed_queries" not in counts
    finally:
        revived[-1].__exit__(None, None, None)


def test_the_default_patience_outlasts_ten_seconds_and_ends_within_two_minutes() -> None:
    patience = Patience()
    waits = [patience.wait_s(failed, b"here") for failed in range(1, patience.tries)]
    assert waits == sorted(waits)
    assert 20 < sum(waits) < 60
    assert patience.wait_s(3, b"here") != patience.wait_s(3, b"there")
    assert all(2.0 <= patience.wait_s(3, bytes([place])) <= 2.5 for place in range(50))


def test_a_wait_that_the_server_asks_for_is_kept() -> None:
    waits: list[float] = []
    with serving(lambda body, number: (429, b"slow down") if number == 0 else (200, b"{}")) as (url, _):
        client = JsonClient(url, Patience(tries=3), sleep=waits.append)
        assert client.post({}, lambda answer: answer) == {}
    assert waits == [7.0]


def test_tries_are_bounded_and_the_last_failure_is_named() -> None:
    with serving(lambda body, _: (200, b"{}")) as (url, seen):
        client = JsonClient(url, FAST, sleep=lambda _: None)

        def refuse(answer: Any) -> None:
            raise ValueError("no lists")

        with pytest.raises(Exhausted, match=r"not the expected answer: no lists \(4 tries\)"):
            client.post({}, refuse)
        assert len(seen) == 4
    with serving(lambda body, _: (401, b"key")) as (url, _), pytest.raises(Refused, match="401 'key'"):
        JsonClient(url, FAST).post({}, lambda answer: answer)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"queries": "q"}, "expected a list of texts"),
        ({"queries": [1]}, "expected a list of texts"),
        ({"queries": ["q"], "topk": 0}, "expected a whole number from 1"),
        ({"queries": ["q"], "topk": True}, "expected a whole number from 1"),
        ({"queries": ["q"] * 2000}, "2000 queries, expected at most 1024"),
        ([], "the body is list"),
    ],
)
def test_our_server_says_what_is_wrong_with_a_request(body: Any, said: str) -> None:
    with retrieval() as url:
        answer = httpx.post(f"{url}/retrieve", json=body)
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_our_server_binds_to_loopback_tells_its_health_and_limits_bodies() -> None:
    with retrieval() as url:
        assert url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{url}/health").json()["retriever"]["name"] == "bm25"
        assert httpx.get(f"{url}/other").status_code == 404
        assert httpx.post(f"{url}/other", json={}).status_code == 404
        connection = HTTPConnection(url.removeprefix("http://"), timeout=5)
        connection.putrequest("POST", "/retrieve")
        connection.putheader("content-length", str(10**8))
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()
        documents = httpx.post(f"{url}/retrieve", json={"queries": ["Red Kite"], "topk": 1}).json()["result"]
    assert documents == [[{"id": "p0", "contents": PASSAGES[0].contents}]]


def test_a_failing_retriever_behind_our_server_is_a_500_and_the_server_lives_on() -> None:
    server = RetrievalServer(Counting({"bad": QueryFailed("broken")}), port=0)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        answers = [httpx.post(f"{server.url}/retrieve", json={"queries": [q]}) for q in ("bad", "Red Kite")]
        assert [answer.status_code for answer in answers] == [500, 200]
        assert answers[0].json() == {"error": "QueryFailed: broken"}
    finally:
        server.shutdown()
        server.server_close()


def test_many_threads_get_the_answers_of_one() -> None:
    queries = ("Red Kite", "Elmwick", "1950")

    expected = Counting().search(queries, 3)
    with retrieval() as url, ThreadPoolExecutor(8) as pool:
        retriever = opened(url)
        for found in pool.map(lambda _: retriever.search(queries, 3), range(24)):
            assert found == expected


def test_episodes_over_a_server_equal_those_over_its_retriever_and_a_bad_query_costs_one_of_them() -> None:
    with serving(lambda body, _: (500, b"no") if "bad" in body["queries"] else library(body, 0)) as (url, _):
        there = world(opened(url))  # type: ignore[arg-type]  # a retriever like any other
        played = play(there, {"q0": "bad", "q1": "Elmwick", "q2": "Red Kite"})
    assert [one.end for one in played] == ["error", "terminated", "terminated"]
    assert played[1].steps[0].observation == play(world(), {"q1": "Elmwick"})[0].steps[0].observation
