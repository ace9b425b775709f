"""Evaluating a served model: a run that only plays the test panel, goes on where it stopped, and counts its cost."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from rich.console import Console

from agents.policies.base import Sampling
from agents.policies.openai_policy import OpenAIPolicy, ServerError
from agents.policies.openai_wire import Endpoint
from agents.policies.usage import Prices, Usage
from agents.rollout import RolloutConfig
from benchmarks import records
from benchmarks.config import ConfigError, RunConfig, Suite
from benchmarks.evaluate import Key, Mode, Row, episodes_of, evaluate_policy, key_of, totals
from benchmarks.folder import EVAL, SUMMARY, keep_record, locked
from benchmarks.overrides import NOTHING, Overrides, given, model_name
from benchmarks.plan import Run, suite_folder
from benchmarks.prepare import Tasks, check_unchanged, check_writable, identity, one_line
from benchmarks.progress import Display, Status, display
from benchmarks.records import safe_name
from benchmarks.served_options import Limits, Play, Server
from benchmarks.suite import obtain_tasks, rate_line
from benchmarks.warm_start.store import WarmStartConfig
from envs.base import EnvError

USAGE = "usage.json"
PROMPT = "react"
"""The style for models that know no other instructions than their prompt's."""
_MINE = frozenset({"model", "prompt", "shots", "retriever"})
"""What the command line may replace; the rest is about models in this process."""


@dataclass(frozen=True)
class Serving:
    """All that was said of a served model."""

    endpoint: Endpoint
    limits: Limits
    prices: Prices | None


def without_model(overrides: Overrides) -> Overrides:
    """What of the overrides decides the suite itself; `ConfigError` for those that no served model can follow."""
    for name in given(overrides).keys() - _MINE:
        raise ConfigError(f"evaluate: --{name} is not for a served model, expected it to be left out")
    return replace(NOTHING, retriever=overrides.retriever)


def evaluate_served(
    suite: Suite,
    overrides: Overrides,
    options: tuple[Server, Limits, Play],
    data: Path | None,
    size: int | None,
    results: Path,
    console: Console,
) -> None:
    """Play what is missing of the test panel, write the record, and print rates, use and cost.

    suite: as `without_model(overrides)` leaves it. size: of the test panel. Raises `ConfigError` before any work for
    bad settings, for a server that is not there or refuses key or model, and for a folder with another experiment;
    and later where the server fails for good: what was answered is kept.
    """
    server, limits, play = options
    if overrides.model is None:
        raise ConfigError("evaluate: no model, expected --model with the name that the server knows")
    serving = Serving(server.endpoint(overrides.model), limits, limits.prices())
    patience, pace = limits.patience(), limits.pace()
    run = served_run(suite, overrides, play, data, size, results)
    check_writable(run.folder.parent)
    tasks = obtain_tasks(run.config, data, results / "cache", console)
    try:
        policy = OpenAIPolicy(serving.endpoint, parallel=limits.parallel, patience=patience, pace=pace)
    except ValueError as error:
        raise ConfigError(f"evaluate: {one_line(error)}") from error
    new = identity(run, tasks, serving.endpoint.describe())
    check_unchanged(run, new)
    if len(_kept(run.folder)) < len(_planned(run.config, tasks)):
        _check(policy, run.config)  # before a folder is made
    run.folder.mkdir(exist_ok=True)
    with locked(run.folder):
        host = urlsplit(serving.endpoint.base_url).netloc
        origin = {"base_url": serving.endpoint.base_url}
        keep_record(run, new, device={"type": "server", "name": host}, origin=origin)
        _Evaluation(run, tasks, policy, serving, console).complete()


def served_run(
    suite: Suite, overrides: Overrides, play: Play, data: Path | None, size: int | None, results: Path
) -> Run:
    """The run of a served model; one on another panel than the suite's lies in a folder of its own.

    Raises `ConfigError` for settings that do not exist.
    """
    assert overrides.model is not None
    base = suite.base
    modes = get_args(Mode) if play.mode == "both" else (play.mode,)
    if not set(modes) <= set(get_args(Mode)):
        raise ConfigError(f"evaluate: mode is {play.mode!r}, expected sampled, greedy or both")
    rollout = _rollout(base.rollout, overrides, play)
    changed: list[str] = [rollout.prompt] if rollout.prompt != PROMPT else []
    changed += [f"{rollout.shots}shot"] if rollout.shots else []
    changed += [rollout.layout] if rollout.layout != base.rollout.layout else []
    name = "-".join(["openai", safe_name(model_name(overrides.model)) or "model", *changed])
    changes: dict[str, Any] = {
        "kind": "served",
        "variant": name,
        "rollout": rollout,
        "warm_start": WarmStartConfig(),
        "policy": base.policy.model_copy(update={"model": overrides.model}),
        "evaluation": base.evaluation.model_copy(
            update={"modes": modes, "samples": play.samples or base.evaluation.samples, "checkpoint": "last"}
        ),
    }
    folder = suite_folder(suite, data, results)
    if size not in (None, base.panels.test):
        changes["panels"] = base.panels.model_copy(update={"test": size})
        folder = folder.with_name(f"{folder.name}-{size}tasks")
    config = base.model_copy(update=changes)
    return Run(name, folder.name, suite.scale, folder / name, config, data, suite.variants)


def _rollout(base: RolloutConfig, overrides: Overrides, play: Play) -> RolloutConfig:
    """How episodes are played: the suite's way, with room for a language model's answers."""
    changes: dict[str, Any] = {
        "max_new_tokens": play.max_tokens,
        "max_observation_tokens": None,
        "layout": play.layout or base.layout,
        "prompt": overrides.prompt or PROMPT,
        "shots": overrides.shots or 0,
    }
    try:
        return replace(base, **changes)
    except ValueError as error:
        raise ConfigError(f"evaluate: {one_line(error)}") from error


def _check(policy: OpenAIPolicy, config: RunConfig) -> None:
    """One request in each mode, so that a wrong key, URL or model costs seconds."""
    try:
        for mode in config.evaluation.modes:
            sampling = Sampling(temperature=1.0, greedy=mode == "greedy")
            policy.check(sampling, config.rollout.max_new_tokens)
    except ServerError as error:
        raise ConfigError(one_line(error)) from error


def _planned(config: RunConfig, tasks: Tasks) -> list[Key]:
    """Every episode, in the order of the record."""
    return [
        (mode, episode.task_id, episode.sample)
        for mode in config.evaluation.modes
        for episode in episodes_of(mode, tasks.test, config.evaluation)
    ]


def _kept(folder: Path) -> list[Row]:
    """What was played before and need not be played again."""
    return [row for row in records.read_jsonl(folder / EVAL) if row["end"] != "error"]


class _Evaluation:
    """The work of one served run, once everything is open."""

    def __init__(
        self, run: Run, tasks: Tasks, policy: OpenAIPolicy, serving: Serving, console: Console
    ) -> None:
        self._run, self._tasks, self._policy = run, tasks, policy
        self._serving, self._console = serving, console
        self._config = run.config
        self._rows, self._planned = _kept(run.folder), _planned(run.config, tasks)
        self._before, self._before_seconds = _read_usage(run.folder / USAGE)
        self._began = time.perf_counter()

    @property
    def _usage(self) -> Usage:
        """Of all processes that worked on this run."""
        return self._before + self._policy.usage

    @property
    def _seconds(self) -> float:
        return self._before_seconds + time.perf_counter() - self._began

    def complete(self) -> None:
        """Play what is missing, then write the summary last."""
        folder, done = self._run.folder, len(self._rows)
        missing = len(self._planned) - done
        if missing:
            kept = f"; {done} were played before and are kept" if done else ""
            self._print(f"{self._run.name}: {missing} episodes on {self._serving.endpoint.url}{kept}")
            (folder / SUMMARY).unlink(missing_ok=True)  # errored episodes of a complete run are played again
            records.write_jsonl(folder / EVAL, self._rows)
            self._play()
        if missing or not (folder / SUMMARY).exists():
            self._finish()
        self._say()

    def _play(self) -> None:
        with display(self._console) as shown:

            def on_done(row: Row) -> None:
                records.append_jsonl(self._run.folder / EVAL, [row])
                self._rows.append(row)
                self._note_usage()
                self._show(shown)

            self._show(shown)
            try:
                evaluate_policy(
                    self._policy,
                    self._tasks.world,
                    self._tasks.test,
                    replace(self._config.rollout, parallel=self._serving.limits.parallel),
                    self._config.evaluation,
                    prompts=self._tasks.prompts,
                    seed=self._config.seed,
                    iteration=0,
                    on_done=on_done,
                    played={key_of(row) for row in self._rows},
                )
            except (ServerError, EnvError) as error:
                raise ConfigError(
                    f"{one_line(error)}; {len(self._rows)} of {len(self._planned)} episodes are kept, and the same "
                    "command goes on"
                ) from error
            finally:
                self._note_usage()

    def _show(self, shown: Display) -> None:
        usable = [row for row in self._rows if row["end"] != "error"]
        rate = f"success {sum(row['success'] for row in usable) / len(usable):.3f}" if usable else ""
        stage = f"evaluating {len(self._rows)}/{len(self._planned)}"
        note = "  ".join(part for part in (rate, self._dollars()) if part)
        shown.update(self._run.name, Status(stage, len(self._rows), len(self._planned), note))

    def _note_usage(self) -> None:
        """What was paid for is known whatever happens next."""
        record = {**asdict(self._usage), "wall_seconds": self._seconds}
        records.write_json(self._run.folder / USAGE, record)

    def _finish(self) -> None:
        """All rows in the order of the panel, and the summary last."""
        place: dict[Key, int] = {key: number for number, key in enumerate(self._planned)}
        self._rows.sort(key=lambda row: place[key_of(row)])
        folder, usage, test = self._run.folder, self._usage, self._tasks.test
        records.write_jsonl(folder / EVAL, self._rows)
        prices = self._serving.prices
        records.write_json(
            folder / SUMMARY,
            {
                "iterations": 0,
                "judged": 0,
                "eval": totals(self._rows),
                "panels": {test.split: test.digest},
                "sampled_tokens": 0,
                "episodes": 0,
                "wall_seconds": self._seconds,
                "service": dict(Counter(self._tasks.world.counts()) + Counter(_service(usage))),
                "usage": asdict(usage),
                "prices": None if prices is None else asdict(prices),
                "dollars": None if prices is None else prices.dollars(usage),
            },
        )

    def _say(self) -> None:
        for mode, found in totals(self._rows)[self._tasks.test.split].items():
            self._print(rate_line(mode, found))
        self._print(usage_line(self._usage, self._dollars()))
        if errored := sum(row["end"] == "error" for row in self._rows):
            self._print(f"{errored} episodes ended in an error; the same command plays them again")
        self._print(f"record: {self._run.folder}")

    def _dollars(self) -> str:
        prices = self._serving.prices
        return "" if prices is None else f"${prices.dollars(self._usage):.2f}"

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def usage_line(usage: Usage, dollars: str) -> str:
    """Requests, tokens, time and cost in words."""
    read = f"{usage.prompt_tokens:,} tokens read ({usage.cached_tokens:,} cached)"
    written = f"{usage.completion_tokens:,} written"
    if usage.reasoning_tokens:
        written += f" ({usage.reasoning_tokens:,} reasoning)"
    parts = [f"{usage.requests:,} requests ({usage.retries:,} again)", read, written]
    if usage.estimated:
        parts.append(f"tokens of {usage.estimated:,} answers estimated, as the server did not count them")
    if usage.answers:
        parts.append(f"{usage.seconds / usage.answers:.1f} s an answer")
    return ", ".join([*parts, *([dollars] if dollars else [])])


def _service(usage: Usage) -> dict[str, int]:
    """The use as a report sums it up, apart from that of retrievers and judges."""
    names = ("requests", "retries", "prompt_tokens", "completion_tokens")
    return {f"model_{name}": getattr(usage, name) for name in names}


def _read_usage(path: Path) -> tuple[Usage, float]:
    """What earlier processes used, and for how many seconds; nothing where there were none."""
    if not path.exists():
        return Usage(), 0.0
    try:
        record = records.read_json(path)
        seconds = float(record.pop("wall_seconds"))
        return Usage.of(record), seconds
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path}: no record of use: {one_line(error)}; remove the file to count anew"
        ) from error
