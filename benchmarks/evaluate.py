"""Playing a pinned panel, by a policy or the scripted demonstrator: rows of `eval.jsonl` and their totals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from agents.policies.base import Policy, Sampling
from agents.prompts import Prompts
from agents.rollout import Episode, RolloutConfig
from agents.trajectory import Trajectory
from benchmarks.config import Evaluation
from benchmarks.processes import play
from benchmarks.seeding import Stream
from empg.parallel import ALONE, Processes
from envs.base import EnvError, TaskPanel, World

Mode = Literal["sampled", "greedy"]
Row = dict[str, Any]
OnDone = Callable[[Row], None]
Key = tuple[str, str, int]
"""Names an evaluated episode of one split: its mode, its task and its sample."""

_MODE_NUMBER: dict[Mode, int] = {"sampled": 0, "greedy": 1}


def episodes_of(mode: Mode, panel: TaskPanel, evaluation: Evaluation) -> list[Episode]:
    """Every episode of one mode, samples of a task side by side; greedy ones are alike, so one is enough."""
    samples = evaluation.samples if mode == "sampled" else 1
    stream = Stream.DEV if panel.split == "dev" else Stream.EVALUATE
    return [
        Episode(
            task_id=task,
            group=index,
            sample=sample,
            place=(stream, _MODE_NUMBER[mode], index, sample),
        )
        for index, task in enumerate(panel.task_ids)
        for sample in range(samples)
    ]


def evaluate_policy(
    policy: Policy,
    world: World,
    panel: TaskPanel,
    config: RolloutConfig,
    evaluation: Evaluation,
    *,
    prompts: Prompts,
    seed: int,
    iteration: int,
    on_done: OnDone | None = None,
    processes: Processes = ALONE,
    played: Collection[Key] = (),
) -> list[Row]:
    """Play the panel at temperature 1 and greedily, as `evaluation.modes` asks.

    seed: of the sampled episodes; iteration: how many updates the policy has behind it; on_done: is given each row
    when its episode ends; played: episodes that are left out. Several processes play a share each, and all get all
    rows.
    """
    rows: list[Row] = []
    for mode in evaluation.modes:
        trajectories = play(
            policy,
            world.make_env,
            [
                episode
                for episode in episodes_of(mode, panel, evaluation)
                if (mode, episode.task_id, episode.sample) not in played
            ],
            replace(config, sampling=Sampling(temperature=1.0, greedy=mode == "greedy")),
            prompts=prompts,
            seed=seed,
            on_done=None if on_done is None else partial(_tell, on_done, panel, mode, iteration),
            processes=processes,
        )
        rows += [_row(trajectory, panel, mode, iteration) for trajectory in trajectories]
    return rows


def evaluate_demonstrator(
    world: World, panel: TaskPanel, evaluation: Evaluation, *, seed: int, on_done: OnDone | None = None
) -> list[Row]:
    """Play the panel by the skilled script. It has no temperature, so both modes hold the same play."""
    rows = []
    for mode in evaluation.modes:
        for episode in episodes_of(mode, panel, evaluation):
            rows.append(_demonstrate(world, panel, episode, mode, seed))
            if on_done is not None:
                on_done(rows[-1])
    return rows


def _demonstrate(world: World, panel: TaskPanel, episode: Episode, mode: Mode, seed: int) -> Row:
    row: Row = _head(panel, mode, 0, episode.task_id, episode.sample) | {"sampled_tokens": 0}
    steps = 0
    try:
        env = world.make_env()
        player = world.demonstrator((seed, Stream.DEMONSTRATE, episode.group, episode.sample))
        observation, info = env.reset(options={"task": episode.task_id})
        terminated = truncated = False
        while not (terminated or truncated):
            action = player.decide(observation, info).action  # type: ignore[arg-type]  # gymnasium types info as a dict
            observation, _, terminated, truncated, info = env.step(action)
            steps += 1
    except EnvError as error:
        return row | _outcome(False, 0.0, "error", str(error), steps) | {"task_type": ""}
    end = "terminated" if terminated else "truncated"
    outcome = _outcome(bool(info["success"]), float(info["score"]), end, None, steps)
    return row | outcome | {"task_type": info["task_type"]}


def key_of(row: Row) -> Key:
    """Which episode a row is of."""
    return row["mode"], row["task_id"], row["sample"]


def _tell(on_done: OnDone, panel: TaskPanel, mode: Mode, iteration: int, trajectory: Trajectory) -> None:
    on_done(_row(trajectory, panel, mode, iteration))


def _row(trajectory: Trajectory, panel: TaskPanel, mode: Mode, iteration: int) -> Row:
    return (
        _head(panel, mode, iteration, trajectory.task_id, trajectory.sample)
        | _outcome(
            trajectory.success, trajectory.score, trajectory.end, trajectory.error, len(trajectory.steps)
        )
        | {
            "task_type": trajectory.task_type,
            "sampled_tokens": sum(len(step.action_ids) for step in trajectory.steps),
        }
    )


def _head(panel: TaskPanel, mode: Mode, iteration: int, task: str, sample: int) -> Row:
    return {"iteration": iteration, "split": panel.split, "mode": mode, "task_id": task, "sample": sample}


def _outcome(success: bool, score: float, end: str, error: str | None, steps: int) -> Row:
    return {"success": success, "score": score, "end": end, "error": error, "steps": steps}


def totals(rows: Sequence[Row]) -> dict[str, dict[str, dict[str, float | int | None]]]:
    """Split -> mode -> counts and rates; an errored episode is counted in its own column and in no rate."""
    found: dict[str, dict[str, dict[str, float | int | None]]] = {}
    for split in sorted({row["split"] for row in rows}):
        for mode in sorted({row["mode"] for row in rows if row["split"] == split}):
            played = [row for row in rows if row["split"] == split and row["mode"] == mode]
            found.setdefault(split, {})[mode] = _rates(played)
    return found


def _rates(played: Sequence[Row]) -> dict[str, float | int | None]:
    usable = [row for row in played if row["end"] != "error"]
    successes = sum(row["success"] for row in usable)
    n = len(usable)
    return {
        "n": n,
        "errored": len(played) - n,
        "successes": successes,
        "success": successes / n if n else None,
        "score": sum(row["score"] for row in usable) / n if n else None,
    }
