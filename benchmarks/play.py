"""An episode in the terminal, played by a person or by the scripted demonstrator.

It knows an environment by the contract in `envs.base` alone: what is shown, what is admissible, what it earned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, cast, get_args

from rich.console import Console

from benchmarks.config import ConfigError, validate
from benchmarks.launch import printable
from benchmarks.prepare import one_line, open_benchmark
from benchmarks.progress import display
from benchmarks.worlds import BENCHMARKS
from envs.base import Demonstrator, EnvError, Split, StepInfo, TextEnv, World

PLAYERS = ("person", "expert", "demonstrator")
LEAVE = "q"

_BLANK = re.compile(r"<[a-z][a-z _-]*>")
"""Where an admissible action is a template, such as `search[<keywords>]`."""


@dataclass(frozen=True)
class Game:
    """Which task is played, how it is shown, and who plays it; raises `ConfigError` for what does not exist."""

    benchmark: str
    task: str | None = None
    """None: the first of the split."""
    split: str = "test"
    observation_mode: str | None = None
    """None: what the benchmark's policies are shown by default."""
    policy: str = "person"
    pause: bool = False
    """Whether to wait before each move of the demonstrator."""

    def __post_init__(self) -> None:
        for name, known in (("benchmark", BENCHMARKS), ("split", get_args(Split)), ("policy", PLAYERS)):
            if (value := getattr(self, name)) not in known:
                raise ConfigError(f"{name}: unknown {value!r}, expected one of: {', '.join(known)}")

    def settings(self) -> dict[str, Any]:
        """Settings of the benchmark's world; `ConfigError` for an observation mode that it does not have."""
        changed = {} if self.observation_mode is None else {"observation_mode": self.observation_mode}
        return asdict(validate(BENCHMARKS[self.benchmark].settings, changed, self.benchmark))


def play(game: Game, data: Path | None, cache: Path, console: Console) -> None:
    """Open the data and play one episode, until its end or until the player leaves.

    Raises `ConfigError`: missing or malformed data, an unknown task, an engine that fails.
    """
    settings = game.settings()
    with display(console) as shown:
        world = open_benchmark(
            game.benchmark, settings, data, cache, lambda status: shown.update(game.benchmark, status)
        )
    try:
        with closing(world.make_env()) as env:
            play_in(env, world, game, console)
    except EnvError as error:
        raise ConfigError(f"{game.benchmark} failed: {one_line(error)}") from error


def play_in(env: TextEnv, world: World, game: Game, console: Console) -> None:
    """Play one episode in an environment of a world.

    Raises `ConfigError` for an unknown task and `EnvError` where the engine fails.
    """
    try:
        task = game.task or world.panel(cast(Split, game.split), 1).task_ids[0]
        observation, facts = env.reset(options={"task": task})
    except (KeyError, ValueError) as error:
        raise ConfigError(one_line(error)) from error
    player = None if game.policy == "person" else world.demonstrator((0,))
    info, steps, reward = cast(StepInfo, facts), 0, 0.0
    say(console, f"{world.name}, task {info['task_id']} ({info['task_type']}), at most {env.max_steps} steps")
    templates, truncated, over = dict[str, None](), False, False
    while not over:
        say(console, "", *observation.splitlines(), "")
        templates |= dict.fromkeys(filter(_BLANK.search, info["admissible"]))
        if player is None:
            action = ask_action(info["admissible"], tuple(templates), console)
        else:
            action = watch(player, observation, info, game.pause, console)
        if action is None:
            say(console, f"left after {counted(steps)}")
            return
        observation, paid, terminated, truncated, facts = env.step(action)
        info, steps, reward = cast(StepInfo, facts), steps + 1, reward + float(paid)
        over = terminated or truncated
        if not info["action_valid"]:
            say(console, f"not understood: {action}")
    say(console, "", *observation.splitlines(), "", *outcome(info, reward, steps, truncated))


def watch(
    player: Demonstrator, observation: str, info: StepInfo, pause: bool, console: Console
) -> str | None:
    """The demonstrator's next action, shown with its thought; None where the watcher leaves."""
    if pause and ask(console, f"Enter goes on, {LEAVE} leaves: ") in (None, LEAVE):
        return None
    decision = player.decide(observation, info)
    say(console, f"Thought: {decision.thought}", f"Action: {decision.action}")
    return decision.action


def ask_action(admissible: Sequence[str], templates: Sequence[str], console: Console) -> str | None:
    """What a person chooses to do; None to leave."""
    numbered = {str(number): action for number, action in enumerate(admissible, 1)}
    say(console, *(f"{number:>4}  {action}" for number, action in numbered.items()))
    while True:
        typed = ask(console, f"number, action or {LEAVE} to leave: ")
        if typed is None or typed == LEAVE:
            return None
        action = numbered.get(typed)
        if action is not None and not _BLANK.search(action):
            return action
        if action is not None:
            say(console, f"type {action} with your own words")
        elif typed.isdigit():
            say(console, f"no action {typed}, expected 1 to {len(numbered)}")
        elif typed:
            return complete(typed, templates)


def complete(typed: str, templates: Sequence[str]) -> str:
    """What was typed as an action: `search red shoes` fills the template `search[<keywords>]`.

    The templates are those offered so far. What fits none is taken as it is; the environment answers it.
    """
    word, _, rest = typed.partition(" ")
    for template in templates:
        before, after = _BLANK.split(template, maxsplit=1)
        if rest.strip() and before.rstrip("[( ") == word and not _BLANK.search(after):
            return f"{before}{rest.strip()}{after}"
    return typed


def outcome(info: StepInfo, reward: float, steps: int, truncated: bool) -> Iterator[str]:
    """How an episode ended, with the parts of its reward where it has some."""
    end = "the step limit ended it" if truncated else "the task is over"
    yield f"{end} after {counted(steps)}: success {'yes' if info['success'] else 'no'}"
    yield f"reward {reward:.4g}, score {info['score']:.4g}"
    parts: Any = info.get("reward_parts")
    if is_dataclass(parts) and not isinstance(parts, type):
        for name, value in asdict(parts).items():
            yield f"  {name:<16} {value:.4g}" if isinstance(value, float) else f"  {name:<16} {value}"


def counted(steps: int) -> str:
    """`1 step`, `2 steps`."""
    return f"{steps} step" if steps == 1 else f"{steps} steps"


def say(console: Console, *lines: str) -> None:
    """Print lines that cannot steer the terminal."""
    for line in lines:
        console.print(printable(line), markup=False, highlight=False, emoji=False, soft_wrap=True)


def ask(console: Console, prompt: str) -> str | None:
    """A line that was typed, stripped; None at the end of input."""
    try:
        return console.input(printable(prompt), markup=False, emoji=False).strip()
    except EOFError:
        return None
