"""One run: check everything, train, evaluate and record, going on where a kill stopped it.

Of several processes all do the same work in the same order, each its share of it; the main one alone writes.
"""

from __future__ import annotations

import copy
import logging
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from agents.trajectory import Trajectory
from benchmarks import records, selection
from benchmarks.evaluate import Row, evaluate_demonstrator, evaluate_policy, totals
from benchmarks.folder import EVAL, SUMMARY, locked, open_record, team
from benchmarks.live import Live
from benchmarks.parts import forget_parts, join_parts, write_parts
from benchmarks.plan import Run
from benchmarks.prepare import (
    LoadedPolicy,
    Tasks,
    check_writable,
    open_policy,
    open_tasks,
)
from benchmarks.processes import play
from benchmarks.progress import Reporter, Status
from benchmarks.tasks import train_episodes
from empg.checkpoint import latest
from empg.collection import Collected
from empg.parallel import ALONE, Processes
from empg.sharding import take_over
from empg.trainer import IterationOutcome, Learner
from envs.base import EnvError

log = logging.getLogger(__name__)

METRICS, EPISODES, TIMING = "metrics.jsonl", "episodes.jsonl", "timing.jsonl"
CHECKPOINTS, GRADIENTS = "checkpoints", "gradients.jsonl"
UPDATE_WEIGHT = 2
"""A training episode costs about as much to learn from as to play; used for estimates of time only."""


def execute(run: Run, cache: Path, live: Live | None = None, processes: Processes = ALONE) -> None:
    """Make one run complete. `cache` holds warm-start policies and large data that were prepared before.

    Raises `ConfigError` before any work: bad data, an impossible panel, a policy without chat template, a
    folder that cannot be written, that another process works in, or that holds a run with other settings.
    """
    disable_progress_bar()  # transformers' own bars would fill the log
    with ExitStack() as stack:
        if processes.is_main:
            check_writable(run.folder.parent)
            run.folder.mkdir(exist_ok=True)
            stack.enter_context(locked(run.folder))
        if processes.from_main((run.folder / SUMMARY).exists()):
            log.info("%s is complete", run.name)
            return
        begun = time.perf_counter()
        with processes.main_first():
            tasks = open_tasks(run.config, run.data, cache)
            policy = None if run.config.kind == "expert" else open_policy(run.config, tasks, cache)
        record = processes.from_main(
            open_record(run, tasks, policy, processes) if processes.is_main else None
        )
        assert record is not None  # the main process has it
        torch.set_num_threads(record["device"]["threads"])  # sums depend on it, so a resume must keep it
        loading = time.perf_counter() - begun
        _Execution(run, tasks, policy, live or Live(), loading, processes).complete()
        processes.barrier()


def _silent(_status: Status, *, now: bool = False) -> None:
    """Stands for a reporter where another process reports."""


class _Execution:
    """The work of one run, once everything is open."""

    def __init__(
        self,
        run: Run,
        tasks: Tasks,
        policy: LoadedPolicy | None,
        live: Live,
        loading_seconds: float,
        processes: Processes,
    ) -> None:
        self._run = run
        self._loading_seconds = loading_seconds
        self._live = live
        self._processes = processes
        self._config = run.config
        self._tasks = tasks
        self._policy = policy
        self._report = Reporter(run.folder) if processes.is_main else _silent
        self._counted = Counter(tasks.world.counts())
        evaluation = run.config.evaluation
        per_task = sum(evaluation.samples if mode == "sampled" else 1 for mode in evaluation.modes)
        learner = run.config.learner
        batch = learner.batch.groups_per_batch * learner.batch.group_size if learner else 0
        self._judged = run.config.iterations
        """Iterations behind the weights that are evaluated."""
        self._training = float(run.config.iterations * batch * UPDATE_WEIGHT)
        self._total = self._training + len(tasks.test) * per_task

    def complete(self) -> None:
        """Train, evaluate, and write the summary last."""
        if self._config.kind == "train":
            self._train()
        begun = time.perf_counter()
        rows = self._evaluate()
        seconds, service = time.perf_counter() - begun, self._service()
        if self._processes.is_main:
            records.write_jsonl(self._run.folder / EVAL, rows)
            self._summarise(rows, seconds, service)

    def _train(self) -> None:
        assert self._policy is not None
        assert self._config.learner is not None
        folder = self._run.folder
        learner = Learner(
            self._to_train(self._policy),
            self._config.learner,
            pad_id=self._policy.pad_id,
            processes=self._processes,
        )
        start = learner.restore(folder / CHECKPOINTS) if latest(folder / CHECKPOINTS) else 0
        self._hand_over(learner)
        if self._processes.is_main:
            forget_after(folder, start)
            self._live.follow(folder / METRICS)
        log.info("%s: iterations %d to %d", self._run.name, start, self._config.iterations)
        for iteration in range(start, self._config.iterations):
            self._say(iteration, f"iteration {iteration + 1}/{self._config.iterations}")
            begun = time.perf_counter()
            outcome = learner.iterate(iteration, self._collect)
            self._hand_over(learner)
            seconds = time.perf_counter() - begun
            self._record(iteration, outcome, seconds)
            looked = self._look(iteration)
            every, last = self._config.checkpoint_every, self._config.iterations
            if looked or selection.due(iteration, every, last):  # no look is ever repeated
                learner.save(folder / CHECKPOINTS)
            log.info("%s", _headline(iteration, outcome, seconds))
        self._choose()
        if self._processes.is_main:
            self._policy.save(folder / "policy")

    def _to_train(self, policy: LoadedPolicy) -> Any:
        """The model for the learner: the one that plays, or a copy to be divided between the processes."""
        if not self._processes.shards:
            return policy.model
        device = policy.model.device
        copied = copy.deepcopy(policy.model.to("cpu"))  # a GPU need not hold it and what is made of it
        if self._config.policy.rollout == "torch":  # vLLM samples by a copy of its own
            policy.model.to(device)
        return copied

    def _hand_over(self, learner: Learner) -> None:
        """Let the policy play with the learner's present weights."""
        assert self._policy is not None
        if self._processes.shards:
            take_over(self._policy.model, learner.weights())
        self._policy.policy.update()

    def _look(self, iteration: int) -> bool:
        """Play the dev panel where it chooses the weights and its turn has come; whether it did."""
        asked, dev = self._config.evaluation, self._tasks.dev
        if dev is None or not selection.due(iteration, asked.dev_every, self._config.iterations):
            return False
        assert self._policy is not None
        self._say(iteration + 1, f"dev panel after iteration {iteration + 1}")
        rows = evaluate_policy(
            self._policy.policy,
            self._tasks.world,
            dev,
            self._config.rollout,
            asked.model_copy(update={"modes": ("sampled",)}),
            prompts=self._tasks.prompts,
            seed=self._config.seed,
            iteration=iteration + 1,
            processes=self._processes,
        )
        look = {"iteration": iteration, **totals(rows)[dev.split]["sampled"]}
        if self._processes.is_main:
            selection.note(self._run.folder, look, self._policy.model)
        return True

    def _choose(self) -> None:
        """Take the weights that are to be judged."""
        if self._tasks.dev is None:
            return
        assert self._policy is not None
        chosen = selection.load_best(self._run.folder, self._policy.model)
        if chosen is None:
            raise EnvError(
                f"{self._run.name}: every episode on the dev panel failed, so no weights were chosen"
            )
        self._policy.policy.update()
        self._judged = chosen + 1
        log.info("%s: weights after iteration %d, the best on dev", self._run.name, self._judged)

    def _collect(self, iteration: int, attempt: int) -> Sequence[Trajectory]:
        """Play one attempt's episodes with the present weights."""
        assert self._policy is not None
        assert self._config.learner is not None
        batch = self._config.learner.batch
        episodes = train_episodes(
            self._tasks.train,
            self._config.data_seed,
            iteration,
            attempt,
            groups=batch.groups_per_batch,
            group_size=batch.group_size,
        )
        return play(
            self._policy.policy,
            self._tasks.world.make_env,
            episodes,
            self._config.rollout,
            prompts=self._tasks.prompts,
            seed=self._config.seed,
            processes=self._processes,
        )

    def _record(self, iteration: int, outcome: IterationOutcome, seconds: float) -> None:
        """Everything about an iteration; the checkpoint that follows makes it final."""
        folder, service = self._run.folder, self._service()
        if not self._processes.is_main:
            return
        records.append_jsonl(folder / EPISODES, [episode_row(iteration, each) for each in outcome.collected])
        if outcome.records is not None:
            assert self._policy is not None
            write_parts(folder, self._run.name, iteration, outcome.records, self._policy.texts_of)
            if outcome.records.variances is not None:
                records.append_jsonl(folder / GRADIENTS, [outcome.records.variances])
        timing = {"iteration": iteration, "total": seconds, **outcome.seconds, **service}
        timing |= team(self._processes)
        records.append_jsonl(folder / TIMING, [timing])
        records.append_jsonl(folder / METRICS, [outcome.metrics])
        self._live.follow(folder / METRICS)

    def _service(self) -> dict[str, dict[str, int]]:
        """What was asked of servers since the last call; nothing where there are none."""
        now = Counter[str]()
        for counts in self._processes.gather_objects(self._tasks.world.counts()):
            now.update(counts)
        new, self._counted = now - self._counted, now
        return {"service": dict(new)} if now else {}

    def _evaluate(self) -> list[Row]:
        done = 0
        planned = int(self._total - self._training)

        def on_done(_: Row) -> None:
            nonlocal done
            done = min(done + self._processes.count, planned)  # the others are about as far
            self._report(Status(f"evaluating {done}/{planned}", self._training + done, self._total))

        seed, evaluation, panel = self._config.seed, self._config.evaluation, self._tasks.test
        if self._policy is None:
            return evaluate_demonstrator(self._tasks.world, panel, evaluation, seed=seed, on_done=on_done)
        return evaluate_policy(
            self._policy.policy,
            self._tasks.world,
            panel,
            self._config.rollout,
            evaluation,
            prompts=self._tasks.prompts,
            seed=seed,
            iteration=self._judged,
            on_done=on_done,
            processes=self._processes,
        )

    def _summarise(
        self, rows: Sequence[Row], evaluation_seconds: float, service: dict[str, dict[str, int]]
    ) -> None:
        folder = self._run.folder
        if self._config.kind == "train":
            join_parts(folder)
        metrics = records.read_jsonl(folder / METRICS)
        timing = records.read_jsonl(folder / TIMING)
        evaluated = totals(rows)
        records.write_json(
            folder / SUMMARY,
            {
                "iterations": self._config.iterations,
                "eval": evaluated,
                "judged": self._judged,
                "panels": {self._tasks.test.split: self._tasks.test.digest},
                "sampled_tokens": metrics[-1]["sampled_tokens_total"] if metrics else 0,
                "episodes": sum(row["episodes"] for row in metrics),
                "loading_seconds": self._loading_seconds,
                "evaluation_seconds": evaluation_seconds,
                "wall_seconds": sum(row["total"] for row in timing) + evaluation_seconds,
                "service": dict(
                    sum((Counter(row.get("service", {})) for row in [*timing, service]), Counter())
                ),
            },
        )
        rates = [
            f"{mode} {rate(each['success'])}" for mode, each in evaluated[self._tasks.test.split].items()
        ]
        self._report(Status("complete", self._total, self._total, ", ".join(rates)), now=True)
        log.info("%s: %s", self._run.name, ", ".join(rates))

    def _say(self, iteration: int, stage: str) -> None:
        if not self._processes.is_main:
            return
        done = self._training * iteration / self._config.iterations
        rows = records.read_jsonl(self._run.folder / METRICS)
        note = f"success {rate(rows[-1]['success'])}" if rows else ""
        self._report(Status(stage, done, self._total, note), now=True)


def forget_after(folder: Path, start: int) -> None:
    """Remove what a killed try recorded of iterations that its checkpoint does not hold."""
    for name in (METRICS, EPISODES, TIMING, GRADIENTS, selection.DEV):
        records.keep_rows(folder / name, lambda row: row["iteration"] < start)
    forget_parts(folder, start)


def episode_row(iteration: int, collected: Collected) -> dict[str, Any]:
    """A training episode as `episodes.jsonl` keeps it."""
    episode = collected.trajectory
    turns = [
        {
            "thought": step.thought,
            "action": step.action,
            "observation": step.observation,
            "well_formed": step.well_formed,
            "action_valid": step.action_valid,
            "tokens": len(step.action_ids),
        }
        for step in episode.steps
    ]
    return {
        "iteration": iteration,
        "attempt": collected.attempt,
        "kept": collected.kept,
        "task_id": episode.task_id,
        "task_type": episode.task_type,
        "group": episode.group,
        "sample": episode.sample,
        "success": episode.success,
        "score": episode.score,
        "reward": episode.reward,
        "end": episode.end,
        "error": episode.error,
        "steps": len(episode.steps),
        "sampled_tokens": sum(len(step.action_ids) for step in episode.steps),
        "opening": episode.opening,
        "turns": turns,
    }


def rate(value: float | None) -> str:
    """A success rate for people; nothing was measured where there is none."""
    return "-" if value is None else f"{value:.3f}"


def _headline(iteration: int, outcome: IterationOutcome, seconds: float) -> str:
    metrics = outcome.metrics
    return (
        f"iteration {iteration}: success {rate(metrics['success'])}, "
        f"steps {rate(metrics['steps_per_episode'])}, "
        f"entropy {rate(metrics['entropy'])}, kl {rate(metrics['kl_loss'])}, {seconds:.1f} s"
    )
