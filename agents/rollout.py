"""Episodes played side by side: an episode's next turn is asked for as soon as its environment has answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from agents.chat import Message
from agents.policies.base import Answer, Failure, Generation, Policy, Sampling, Turn
from agents.prompts import Prompts, Style
from agents.responses import Parsed
from agents.trajectory import EndReason, Step, Trajectory
from envs.base import EnvError, StepInfo, TextEnv


@dataclass(frozen=True)
class Episode:
    """One episode to play."""

    task_id: str
    group: int
    sample: int
    place: tuple[int, ...]
    """Names its randomness, such as (iteration, attempt, task, sample); unique within a seed."""


@dataclass(frozen=True)
class RolloutConfig:
    """How episodes are played."""

    max_new_tokens: int = 64
    """Most tokens of one response; a context without room for so many ends its episode."""
    sampling: Sampling = field(default_factory=Sampling)
    layout: Literal["conversation", "window"] = "conversation"
    """One growing chat, or a prompt for each step: task, last steps, observation, admissible actions."""
    window: int = 2
    """Earlier observations and actions that a prompt of the window layout shows."""
    prompt: Style = "brief"
    """What the agent is told: a few words for a small policy, or full instructions for a language model, which answers
    in the Thought and Action form (`react`) or in tags (`tags`)."""
    shots: int = 0
    """Worked examples of the demonstrator, on train tasks, before the episode."""
    shot_observation_chars: int = 600
    """After so many characters their observations are cut."""
    reward: Literal["success", "score"] = "success"
    """What `Trajectory.reward` holds: 1 or 0 by success, or the graded score."""
    max_observation_tokens: int | None = None
    """Longer observations, but for the opening one, are cut for the policy; trajectories keep them whole."""
    parallel: int = 64
    """Most episodes in progress at once; waiting ones take the places of finished ones."""

    def __post_init__(self) -> None:
        floors = {
            "max_new_tokens": 1,
            "window": 0,
            "shots": 0,
            "shot_observation_chars": 1,
            "parallel": 1,
            "max_observation_tokens": 1,
        }
        for name, floor in floors.items():
            value = getattr(self, name)
            if value is not None and value < floor:
                raise ValueError(f"{name} is {value}; expected at least {floor}")
        choices: dict[str, tuple[str, ...]] = {
            "layout": ("conversation", "window"),
            "prompt": get_args(Style),
            "reward": ("success", "score"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}; expected one of {known}")


def rollout(
    policy: Policy,
    make_env: Callable[[], TextEnv],
    episodes: Sequence[Episode],
    config: RolloutConfig,
    *,
    prompts: Prompts,
    seed: int,
    on_done: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play all episodes; trajectories come in the order of `episodes`, `on_done` sees each when it ends.

    `prompts` is what the agent is told and how it answers, `seed` the run's. Turn t of an episode draws from
    `SeedSequence(seed, spawn_key=(*place, t))`, so what an episode samples does not depend on which others
    run beside it. Every `reset` gets the same `seed`: samples of one task see one world.

    An `EnvError` from making, resetting or stepping an environment ends that episode with `end="error"` and
    the steps so far; any other exception ends the rollout. An episode whose context has no room for another
    prompt and a whole response ends with `end="context"`. `ValueError` if that is so for a first prompt, or
    if two episodes share a place.
    """
    places = [episode.place for episode in episodes]
    if len(set(places)) != len(places):
        repeated = next(place for place in places if places.count(place) > 1)
        raise ValueError(f"two episodes have the place {repeated}; expected each to name its own randomness")
    if not episodes:
        return []
    table = _Table(policy, make_env, episodes, config, prompts, seed, on_done)
    try:
        table.play()
    finally:
        table.close()
    return [table.done[index] for index in range(len(episodes))]


@dataclass
class _Live:
    """An episode in progress."""

    index: int
    episode: Episode
    env: TextEnv
    observation: str
    """What the environment shows now; the policy has not answered it yet."""
    info: StepInfo
    opening: str
    steps: list[Step] = field(default_factory=list)
    context: int = 0
    """Tokens of the conversation up to now."""
    stopped: bool = True
    """Whether the last written turn ended with the template's end of turn."""
    chat: list[Message] = field(default_factory=list)
    """What the policy reads next, as messages."""
    asked: Turn | None = None
    """The turn that the policy has not answered yet."""


class _Table:
    """The episodes of one rollout: waiting, in progress, done."""

    def __init__(
        self,
        policy: Policy,
        make_env: Callable[[], TextEnv],
        episodes: Sequence[Episode],
        config: RolloutConfig,
        prompts: Prompts,
        seed: int,
        on_done: Callable[[Trajectory], None] | None,
    ) -> None:
        self.done: dict[int, Trajectory] = {}
        self._policy, self._make_env, self._config = policy, make_env, config
        self._prompts, self._seed, self._on_done = prompts, seed, on_done
        self._waiting = deque(enumerate(episodes))
        self._live: list[_Live] = []
        self._idle: list[TextEnv] = []
        self._session = policy.open(min(config.parallel, len(episodes)), config.sampling)

    def play(self) -> None:
        while self._waiting or self._live:
            while self._waiting and len(self._live) < self._config.parallel:
                self._start(*self._waiting.popleft())
            self._session.submit([turn for live in list(self._live) if (turn := self._next_turn(live))])
            self._take(self._session.collect())

    def _take(self, answers: Sequence[Answer]) -> None:
        """Let the environments answer what was written."""
        by_index = {live.index: live for live in self._live}
        written: list[tuple[_Live, Generation, str, Parsed]] = []
        for episode, answer in answers:
            live = by_index[episode]
            if isinstance(answer, Failure):
                self._fail(live, answer)
                continue
            text = self._policy.chat.text_of(answer.token_ids) if answer.text is None else answer.text
            written.append((live, answer, text, self._prompts.parse(text)))
        _prepare([(live.env, parsed.action) for live, _, _, parsed in written])
        for live, answer, text, parsed in written:
            live.chat.append(Message("assistant", text))
            self._advance(live, answer, parsed)

    def _fail(self, live: _Live, failure: Failure) -> None:
        """End an episode whose response could not be written; one without a step has no result to keep."""
        if failure.end == "context" and live.steps:
            self._leave(live, "context")
        else:
            live.env.close()
            self._leave(live, "error", failure.message)

    def close(self) -> None:
        self._session.close()
        for env in self._idle + [live.env for live in self._live]:
            env.close()

    def _start(self, index: int, episode: Episode) -> None:
        env: TextEnv | None = None
        try:
            env = self._idle.pop() if self._idle else self._make_env()
            observation, info = env.reset(seed=self._seed, options={"task": episode.task_id})
        except EnvError as error:
            if env is not None:
                env.close()
            self._finish(index, _trajectory(episode, self._config, "error", error=_describe(error)))
            return
        self._live.append(_Live(index, episode, env, observation, _facts(info), opening=observation))

    def _next_turn(self, live: _Live) -> Turn | None:
        """The request for the next response; none while one is under way, or if a full context ends the episode."""
        if live.asked is not None:
            return None
        ids, restart = self._prompt(live)
        held = 0 if restart else live.context
        need = held + len(ids) + self._config.max_new_tokens
        if need > self._policy.max_context:
            if not live.steps:
                raise ValueError(
                    f"the first prompt of task {live.episode.task_id} has {len(ids)} tokens; with a response "
                    f"of {self._config.max_new_tokens} that is more than the {self._policy.max_context} "
                    "tokens of the policy's context"
                )
            self._leave(live, "context")
            return None
        live.context = held + len(ids)
        draws = np.random.SeedSequence(self._seed, spawn_key=(*live.episode.place, len(live.steps)))
        live.asked = Turn(
            episode=live.index,
            new_ids=ids,
            restart=restart,
            max_new_tokens=self._config.max_new_tokens,
            uniforms=np.random.default_rng(draws).random(self._config.max_new_tokens),
            seed=int(draws.generate_state(1, np.uint64)[0] >> np.uint64(1)),
            messages=tuple(live.chat),
            observation=live.observation,
            info=live.info,
        )
        return live.asked

    def _prompt(self, live: _Live) -> tuple[tuple[int, ...], bool]:
        """Tokens to read before the next response, and whether they are the whole prompt."""
        chat, first = self._policy.chat, not live.steps
        windowed = self._config.layout == "window"
        if first or windowed:
            live.chat = list(self._prompts.head)
            shown = self._window(live) if windowed else live.observation
        else:
            shown = self._clipped(live.observation)
        live.chat.append(Message("user", shown))
        if first or windowed or not chat.prefix_stable:
            return chat.whole_ids(live.chat), True
        return chat.next_ids(shown, live.stopped), False

    def _window(self, live: _Live) -> str:
        """The user message of the window layout; the opening observation is shown once, as the task."""
        seen = ["", *(self._clipped(step.observation) for step in live.steps)]
        acted = [step.action for step in live.steps]
        first_shown = max(0, len(acted) - self._config.window)
        history = list(zip(seen[first_shown:-1], acted[first_shown:], strict=True))
        admissible = live.info["admissible"]
        return self._prompts.window(live.opening, history, seen[-1], admissible, len(acted))

    def _clipped(self, observation: str) -> str:
        limit = self._config.max_observation_tokens
        return observation if limit is None else self._policy.chat.clip(observation, limit)

    def _advance(self, live: _Live, written: Generation, parsed: Parsed) -> None:
        """Let the environment answer a response, and note the step."""
        turn, live.asked = live.asked, None
        assert turn is not None  # only what was asked for is answered
        live.context += len(written.token_ids)
        live.stopped = written.token_ids[-1] == self._policy.chat.turn_end
        try:
            observation, reward, terminated, truncated, info = live.env.step(parsed.action)
        except EnvError as error:
            live.env.close()
            self._leave(live, "error", _describe(error))
            return
        live.observation, live.info = observation, _facts(info)
        live.steps.append(
            Step(
                prompt_ids=turn.new_ids,
                continues=not turn.restart,
                action_ids=written.token_ids,
                action_logprobs=written.logprobs,
                stop=written.stop,
                thought=parsed.thought,
                action=parsed.action,
                well_formed=parsed.well_formed and written.stop == "stop",
                action_valid=live.info["action_valid"],
                observation=observation,
                reward=float(reward),
            )
        )
        if terminated or truncated:
            self._leave(live, "terminated" if terminated else "truncated")

    def _leave(self, live: _Live, end: EndReason, error: str | None = None) -> None:
        """Take an ended episode off the table; its environment serves another unless it failed."""
        self._live.remove(live)
        self._session.close_episode(live.index)
        if end != "error":
            self._idle.append(live.env)
        self._finish(live.index, _trajectory(live.episode, self._config, end, live, error))

    def _finish(self, index: int, trajectory: Trajectory) -> None:
        self.done[index] = trajectory
        if self._on_done is not None:
            self._on_done(trajectory)


def _prepare(coming: Sequence[tuple[TextEnv, str]]) -> None:
    """Tell each kind of environment which actions are coming."""
    for kind in dict.fromkeys(type(env) for env, _ in coming):
        kind.prepare([(env, action) for env, action in coming if type(env) is kind])


def _trajectory(
    episode: Episode,
    config: RolloutConfig,
    end: EndReason,
    live: _Live | None = None,
    error: str | None = None,
) -> Trajectory:
    """An ended episode, one that never began without `live`.

    Only a terminated one can be a success, and a failed environment pays nothing.
    """
    known = live.info if live is not None and end != "error" else None
    success = known is not None and known["success"] and end == "terminated"
    score = float(known["score"]) if known is not None else 0.0
    return Trajectory(
        task_id=episode.task_id,
        task_type=live.info["task_type"] if live is not None else "unknown",
        group=episode.group,
        sample=episode.sample,
        steps=tuple(live.steps) if live is not None else (),
        reward=score if config.reward == "score" else float(success),
        success=success,
        score=score,
        end=end,
        error=error,
        opening=live.opening if live is not None else None,
    )


def _facts(info: object) -> StepInfo:
    """The environment contract's typed info; gymnasium types it as a plain dict."""
    return info  # type: ignore[return-value]


def _describe(error: EnvError) -> str:
    return f"{type(error).__name__}: {error}"
