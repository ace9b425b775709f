"""The options of an evaluation behind a server, and what they come to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from typer import Option

from agents.policies.openai_policy import PATIENCE
from agents.policies.openai_wire import Endpoint
from agents.policies.pace import Pace
from agents.policies.usage import Prices
from benchmarks.config import ConfigError
from benchmarks.overrides import given
from envs.client import Patience

OPENAI = "openai"
"""What the command line calls a model behind a server."""
Made = TypeVar("Made")


@dataclass(frozen=True)
class Server:
    """Where the model is and what its server wants in a request."""

    base_url: Annotated[
        str | None, Option(help="openai: URL of an OpenAI-compatible server, up to `/v1`.")
    ] = None
    key_env: Annotated[
        str, Option(help="openai: the environment variable that holds the key, if the server wants one.")
    ] = "OPENAI_API_KEY"
    token_limit: Annotated[
        str, Option(help="openai: `max_tokens`, or `max_completion_tokens` where that is demanded.")
    ] = "max_tokens"
    no_seeds: Annotated[bool, Option("--no-seeds", help="openai: send no seeds.")] = False
    logprobs: Annotated[bool, Option("--logprobs", help="openai: ask for log-probabilities.")] = False
    body: Annotated[str, Option(help="openai: JSON to add to every request, such as '{\"top_p\": 1}'.")] = (
        "{}"
    )

    def endpoint(self, model: str) -> Endpoint:
        """The model behind the server; raises `ConfigError`."""
        if self.base_url is None:
            raise ConfigError("evaluate: no server, expected --base-url such as http://127.0.0.1:8000/v1")
        return _checked(
            Endpoint,
            base_url=self.base_url,
            model=model,
            api_key_env=self.key_env,
            token_limit=self.token_limit,
            seeds=not self.no_seeds,
            logprobs=self.logprobs,
            body=_object(self.body),
        )


@dataclass(frozen=True)
class Limits:
    """How hard a server is asked, and what that costs."""

    parallel: Annotated[int, Option(min=1, help="openai: requests at a time.")] = 16
    timeout: Annotated[float, Option(help="openai: seconds to wait for an answer.")] = PATIENCE.timeout_s
    requests_per_minute: Annotated[float | None, Option(help="openai: most requests a minute.")] = None
    tokens_per_minute: Annotated[
        float | None, Option(help="openai: most tokens a minute, read and written.")
    ] = None
    price_in: Annotated[float | None, Option(help="openai: dollars for a million tokens read.")] = None
    price_cached: Annotated[
        float | None, Option(help="openai: the same where the server had them cached.")
    ] = None
    price_out: Annotated[float | None, Option(help="openai: the same of tokens written.")] = None

    def patience(self) -> Patience:
        """How long to wait; raises `ConfigError`."""
        return _checked(Patience, **{**vars(PATIENCE), "timeout_s": self.timeout})

    def pace(self) -> Pace:
        """How fast to ask; raises `ConfigError`."""
        return _checked(
            Pace, requests_per_minute=self.requests_per_minute, tokens_per_minute=self.tokens_per_minute
        )

    def prices(self) -> Prices | None:
        """What tokens cost, where that is said; raises `ConfigError` for half of it."""
        if self.price_in is None and self.price_out is None and self.price_cached is None:
            return None
        if self.price_in is None or self.price_out is None:
            raise ConfigError("evaluate: half a price, expected both --price-in and --price-out, or neither")
        return _checked(Prices, input=self.price_in, output=self.price_out, cached_input=self.price_cached)


@dataclass(frozen=True)
class Play:
    """How a served model plays."""

    max_tokens: Annotated[
        int, Option(min=1, help="openai: most tokens of an answer, reasoning included.")
    ] = 1024
    layout: Annotated[
        str | None, Option(help="openai: `conversation` or `window`; by default the suite's.")
    ] = None
    mode: Annotated[str, Option(help="openai: `sampled`, `greedy` or `both`.")] = "both"
    samples: Annotated[
        int | None, Option(min=1, help="openai: sampled episodes of each task; by default the suite's.")
    ] = None


def refuse(*groups: Any) -> None:
    """Raises `ConfigError` where options are given that only a served model has."""
    for name in (name for group in groups for name in given(group)):
        raise ConfigError(
            f"evaluate: --{name.replace('_', '-')} is an option of the policy openai, expected that policy"
        )


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"body: {text[:80]!r}, expected a JSON object")
    return found


def _checked(kind: Callable[..., Made], **settings: Any) -> Made:
    try:
        return kind(**settings)
    except ValueError as error:
        raise ConfigError(f"evaluate: {error}") from error
