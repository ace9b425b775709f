"""Any model behind an OpenAI-compatible server, for evaluation: it writes text, its tokens are counted, not known."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from agents.chat import Message, MessageFormat
from agents.policies.base import Answer, Failure, Generation, Sampling, Turn
from agents.policies.openai_wire import (
    Endpoint,
    Refusal,
    Reply,
    estimated_tokens,
    out_of_money,
    read_reply,
    refusal,
    request,
)
from agents.policies.pace import Limiter, Pace
from agents.policies.usage import Usage
from envs.client import Exhausted, JsonClient, Patience, Refused

log = logging.getLogger(__name__)

PATIENCE = Patience(timeout_s=300.0, connect_s=10.0, tries=8, first_wait_s=1.0, longest_wait_s=30.0)
"""Eight tries over a minute and a half and more; waits that the server asks for are kept up to three minutes."""
CHECK_TRIES = 3
CHECK = (Message("user", "Answer with the word ready."),)
MOST_FAILURES = 20
"""Answers that may fail in a row, each after all its tries, before the server is given up."""
UNBOUNDED = 2**40
"""Where the server alone knows how long a conversation may be."""


class ServerError(RuntimeError):
    """Going on is useless: the server refuses everything, or has been failing for long."""


class _Closed(Exception):
    """Nobody waits for the answer any more."""


class OpenAIPolicy:
    """Asks a server for one chat completion a turn, at most `parallel` at a time.

    Each request carries the whole conversation. A request that fails is tried again, as far as `patience` goes, and
    then ends its episode as errored; `ServerError` ends the rollout where the key, the model or the URL is refused,
    and after `most_failures` failed answers in a row. The key is read from the environment once and shown nowhere.

    clock, sleep: of the limits and the waits between tries. Raises `ValueError` for a key that no header can hold.
    """

    chat = MessageFormat()
    max_context = UNBOUNDED

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        parallel: int = 16,
        patience: Patience = PATIENCE,
        pace: Pace | None = None,
        most_failures: int = MOST_FAILURES,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if min(parallel, most_failures) < 1:
            raise ValueError(f"parallel is {parallel} and most_failures {most_failures}, expected at least 1")
        self.endpoint, self.parallel = endpoint, parallel
        key = _key(endpoint.api_key_env)
        if key and not endpoint.local and endpoint.base_url.startswith("http://"):
            log.warning("the key in %s travels to %s unencrypted", endpoint.api_key_env, endpoint.base_url)
        self._has_key, self._clock = bool(key), clock
        self._client = JsonClient(
            endpoint.url,
            patience,
            {"authorization": f"Bearer {key}"} if key else {},
            sleep,
            secrets=(key,),
            final=out_of_money,
            connections=parallel,
            environment=not endpoint.local,
        )
        self._limiter = Limiter(pace or Pace(), clock, sleep)
        self._lock = threading.Lock()
        self._usage = Usage()
        self._most_failures, self._failures = most_failures, 0

    @property
    def usage(self) -> Usage:
        """What was asked for since the policy was made."""
        counts = self._client.counts
        with self._lock:
            return self._usage + Usage(requests=counts["requests"], retries=counts["retries"])

    def update(self) -> None:
        """A served model learns nothing."""

    def check(self, sampling: Sampling, max_tokens: int) -> None:
        """Make one request of the form that an evaluation makes; `ServerError` says in one line what is wrong."""
        body = request(self.endpoint, CHECK, sampling, max_tokens, 0)
        try:
            self._complete(body, CHECK, max_tokens, CHECK_TRIES)
        except Refused as error:
            raise ServerError(self._advice(refusal(error.status, error.content))) from None
        except Exhausted as error:
            raise ServerError(
                f"{error}; expected a server with chat completions at {self.endpoint.url}"
            ) from None

    def open(self, episodes: int, sampling: Sampling) -> OpenAISession:
        """A session whose requests begin as soon as they are submitted."""
        return OpenAISession(self, min(self.parallel, episodes), sampling)

    def answer(self, turn: Turn, sampling: Sampling, going_on: Callable[[], None]) -> Generation | Failure:
        """The response to one turn; going_on is called before every try and may raise.

        Raises `ServerError` where no other request would do better.
        """
        body = request(self.endpoint, turn.messages, sampling, turn.max_new_tokens, turn.seed)
        try:
            reply = self._complete(body, turn.messages, turn.max_new_tokens, None, going_on)
        except Refused as error:
            said = refusal(error.status, error.content)
            if said.meaning == "all":
                raise ServerError(self._advice(said)) from None
            return Failure("context", said.line) if said.meaning == "context" else self._failed(said.line)
        except Exhausted as error:
            return self._failed(str(error))
        with self._lock:
            self._failures = 0
        return reply.generation()

    def _failed(self, message: str) -> Failure:
        """An answer that never came; `ServerError` after too many in a row."""
        with self._lock:
            self._failures += 1
            given_up = self._failures >= self._most_failures
        if given_up:
            raise ServerError(f"{self._most_failures} answers in a row failed, the last: {message}")
        return Failure("error", message)

    def _complete(
        self,
        body: dict[str, object],
        messages: Sequence[Message],
        max_tokens: int,
        tries: int | None,
        going_on: Callable[[], None] = lambda: None,
    ) -> Reply:
        """One answered request, within the limits, its use counted."""
        expected = sum(estimated_tokens(message.content) for message in messages) + max_tokens
        began, reserved = self._clock(), 0

        def before() -> None:
            nonlocal reserved
            going_on()
            self._limiter.settle(reserved, 0)  # a try that failed took nothing
            self._limiter.wait(expected)
            reserved = expected

        used = Usage()
        try:
            reply = self._client.post(body, lambda answer: read_reply(answer, messages), tries, before)
            used = reply.usage + Usage(seconds=max(0.0, self._clock() - began))
            return reply
        finally:
            self._limiter.settle(reserved, used.prompt_tokens + used.completion_tokens)
            with self._lock:
                self._usage += used

    def _advice(self, said: Refusal) -> str:
        """A refusal, and what to do about it."""
        expected = {
            401: f"a key in the environment variable {self.endpoint.api_key_env} that the server accepts"
            + ("" if self._has_key else "; none is set"),
            402: "an account with credit",
            403: f"a key in {self.endpoint.api_key_env} that may use the model {self.endpoint.model!r}",
            404: f"a server with the model {self.endpoint.model!r}, and a base URL that ends as in `/v1`",
            429: "an account with quota left",
        }.get(said.status, "a server that takes such requests; see the settings of the request")
        return f"{self.endpoint.url}: {said.line}; expected {expected}"


class OpenAISession:
    """Conversations of an `OpenAIPolicy`: threads that each have one request under way."""

    def __init__(self, policy: OpenAIPolicy, threads: int, sampling: Sampling) -> None:
        self._policy, self._sampling, self._threads = policy, sampling, threads
        self._turns: SimpleQueue[Turn | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[int, Generation | Failure | BaseException]] = SimpleQueue()
        self._asked = set[int]()
        self._closed = threading.Event()
        for number in range(threads):
            # Daemons: a server that does not answer keeps nobody from leaving.
            threading.Thread(target=self._work, name=f"completion-{number}", daemon=True).start()

    def submit(self, turns: Sequence[Turn]) -> None:
        """Hand turns to the next free threads."""
        for turn in turns:
            if turn.episode in self._asked:
                raise ValueError(f"episode {turn.episode} has a turn that is not answered yet")
            if not turn.messages:
                raise ValueError(
                    f"turn of episode {turn.episode} carries no messages; a server reads nothing else"
                )
            self._asked.add(turn.episode)
            self._turns.put(turn)

    def collect(self) -> list[Answer]:
        """The answers that are there, at least one; raises what a request raised."""
        found: list[Answer] = []
        while self._asked and not found:
            for episode, answer in self._arrived():
                if isinstance(answer, BaseException):
                    raise answer
                if episode in self._asked:
                    self._asked.remove(episode)
                    found.append((episode, answer))
        return found

    def close_episode(self, episode: int) -> None:
        """Forget a conversation; an answer that is under way is dropped."""
        self._asked.discard(episode)

    def close(self) -> None:
        """Begin no further request, and wait for none."""
        self._closed.set()
        self._asked.clear()
        for _ in range(self._threads):
            self._turns.put(None)

    def _arrived(self) -> list[tuple[int, Generation | Failure | BaseException]]:
        """Wait for an answer, then take all that are there."""
        arrived = [self._answers.get()]
        while True:
            try:
                arrived.append(self._answers.get_nowait())
            except Empty:
                return arrived

    def _work(self) -> None:
        while (turn := self._turns.get()) is not None:
            answer: Generation | Failure | BaseException
            try:
                answer = self._policy.answer(turn, self._sampling, self._go_on)
            except _Closed:
                return
            except BaseException as error:  # the thread that collects raises it
                self._closed.set()
                answer = error
            self._answers.put((turn.episode, answer))

    def _go_on(self) -> None:
        if self._closed.is_set():
            raise _Closed


def _key(variable: str) -> str:
    """The key in an environment variable, "" where there is none; its value is in no message."""
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ValueError(
            f"the environment variable {variable} holds what is no key; expected printable ASCII"
        )
    return key
