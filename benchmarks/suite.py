"""A whole suite: shared checks and the warm start once, every run that is not complete, then the report."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from transformers.utils.logging import disable_progress_bar

from benchmarks.collection import Collection
from benchmarks.config import ConfigError, RunConfig, Suite
from benchmarks.evaluate import evaluate_demonstrator, evaluate_policy, totals
from benchmarks.launch import Failure, Job, cores, launch, share_cores
from benchmarks.plan import EXPERT, Run, plan, suite_folder
from benchmarks.prepare import (
    LoadedPolicy,
    Tasks,
    check_unchanged,
    check_writable,
    choose_device,
    identity,
    open_policy,
    open_tasks,
)
from benchmarks.progress import display
from benchmarks.publish import publish_joint, publish_report
from benchmarks.reporting.joint import SUITES
from benchmarks.reporting.stats import wilson
from benchmarks.warm_start import store
from empg.parallel import Kind


def complete_collection(
    collection: Collection,
    seeds: int | None,
    results: Path,
    jobs: int | None,
    console: Console,
    live: Sequence[str] = (),
    processes: int = 1,
    kind: Kind = "ddp",
) -> None:
    """Make every suite of a collection complete, one after the other, then write the table that they fill.

    seeds: how many; None: as many as the collection says. A suite in which runs failed does not keep the next ones from
    their turn; `SystemExit(1)` follows then. `ConfigError` as in `complete_suite`.
    """
    failed = False
    for number, part in enumerate(collection.parts, 1):
        if len(collection.parts) > 1:
            console.print(f"part {number} of {len(collection.parts)}", highlight=False)
        try:
            counted = range(seeds or collection.seeds)
            complete_suite(
                part.suite, part.source, counted, part.data, results, jobs, console, live, processes, kind
            )
        except SystemExit:
            failed = True
    if collection.table is not None:
        publish_joint(collection.table, SUITES[collection.table], results, console)
    if failed:
        raise SystemExit(1)


def complete_suite(
    suite: Suite,
    source: str,
    seeds: Sequence[int],
    data: Path | None,
    results: Path,
    jobs: int | None,
    console: Console,
    live: Sequence[str] = (),
    processes: int = 1,
    kind: Kind = "ddp",
) -> None:
    """Make every run complete, then write the report.

    source: the suite as named on the command line, for the runs' own processes. live: the boards that show them while
    they train. processes, kind: of each run; with several, one run at a time unless `jobs` says more. Raises
    `ConfigError` before any run starts when one of them could not; `SystemExit(1)` after all others ended when some
    failed.
    """
    disable_progress_bar()  # transformers' own bars; this package shows progress itself
    runs = plan(suite, seeds, data, results)
    missing = check_all(suite, runs, results / "cache", console)
    alone = 1 if processes > 1 or _fills_a_gpu(suite) else None
    parallel, threads = share_cores(jobs or alone, len(missing), max(1, cores() // processes))
    if missing:
        console.print(
            f"{suite.name} ({suite.scale}): {len(runs)} runs, {len(runs) - len(missing)} complete; "
            f"{parallel} at a time with {f'{processes} processes of ' if processes > 1 else ''}"
            f"{threads} thread{'s' if threads > 1 else ''} each",
            highlight=False,
        )
    with display(console) as shown:
        work = [job(run, source, suite.scale, results, live, processes, kind) for run in missing]
        failures = launch(work, parallel=parallel, threads=threads, display=shown)
    describe(failures)
    publish_report(suite_folder(suite, data, results), results, console)
    if failures:
        raise SystemExit(1)


def _fills_a_gpu(suite: Suite) -> bool:
    """A given model takes a GPU for itself; a small policy does not."""
    return suite.base.policy.model is not None and choose_device().type == "cuda"


def check_all(suite: Suite, runs: Sequence[Run], cache: Path, console: Console) -> list[Run]:
    """Check what every run will need, obtain the warm start, and say which runs are to be made."""
    check_writable(runs[0].folder.parent)
    tasks = obtain_tasks(suite.base, runs[0].data, cache, console)
    console.print(
        f"{suite.benchmark}: {len(tasks.train)} train and {len(tasks.test)} test tasks, "
        f"test panel {tasks.test.digest[:12]}",
        highlight=False,
    )
    policy = obtain_policy(suite, tasks, cache, console)
    for run in runs:
        told = tasks.told_by(run.config.rollout)
        check_unchanged(run, identity(run, told, None if run.config.kind == "expert" else policy.record))
    return [run for run in runs if not (run.folder / "summary.json").exists()]


def job(
    run: Run,
    source: str,
    scale: str,
    results: Path,
    live: Sequence[str] = (),
    processes: int = 1,
    kind: Kind = "ddp",
) -> Job:
    """The command that makes one run complete."""
    command = [sys.executable, "-m", "benchmarks", "run-one", source, run.name, "--tied"]
    command += ["--scale", scale, "--results", str(results)]
    if run.data is not None:
        command += ["--data", str(run.data)]
    command += run.overrides.arguments()
    command += [f"--{board}" for board in live]
    if processes > 1 and run.config.kind != "expert":  # the script plays in a moment
        command += ["--processes", str(processes), "--parallel", kind]
    return Job(run.name, run.folder, tuple(command))


def describe(failures: Sequence[Failure]) -> None:
    """Name each failed run and show the end of its log."""
    for failure in failures:
        print(
            f"error: {failure.name} failed with exit code {failure.exit_code}; {failure.log} ends:",
            file=sys.stderr,
        )
        for line in failure.tail:
            print(f"    {line}", file=sys.stderr)


def obtain_tasks(config: RunConfig, data: Path | None, cache: Path, console: Console) -> Tasks:
    """The data that all runs share; where it must be put into the cache first, progress is shown."""
    with display(console) as shown:
        return open_tasks(config, data, cache, lambda status: shown.update("data", status))


def obtain_policy(suite: Suite, tasks: Tasks, cache: Path, console: Console) -> LoadedPolicy:
    """The policy that all runs start from; where it must be built first, its progress is shown."""
    with display(console) as shown:
        return open_policy(suite.base, tasks, cache, lambda status: shown.update("policy", status))


def evaluate_once(
    suite: Suite, policy: str | None, data: Path | None, size: int | None, cache: Path, console: Console
) -> None:
    """Play the test panel and print the rates.

    policy: `expert`, one of the suite's baselines, or a model; by default what training starts from.
    """
    base = suite.base
    if policy in suite.baselines:
        base = base.model_copy(update={"rollout": suite.baselines[policy]})
    elif policy not in (None, EXPERT):
        base = base.model_copy(update={"policy": base.policy.model_copy(update={"model": policy})})
    if size is not None:
        base = base.model_copy(update={"panels": base.panels.model_copy(update={"test": size})})
    tasks = obtain_tasks(base, data, cache, console)
    if policy == EXPERT:
        rows = evaluate_demonstrator(tasks.world, tasks.test, base.evaluation, seed=base.seed)
    else:
        player = obtain_policy(suite.model_copy(update={"base": base}), tasks, cache, console).policy
        rows = evaluate_policy(
            player,
            tasks.world,
            tasks.test,
            base.rollout,
            base.evaluation,
            prompts=tasks.prompts,
            seed=base.seed,
            iteration=0,
        )
    for mode, found in totals(rows)[tasks.test.split].items():
        console.print(rate_line(mode, found), highlight=False)


def rate_line(mode: str, found: Mapping[str, float | int | None]) -> str:
    """Success with its Wilson interval over episodes, the mean score and the errored episodes."""
    n, success, score = int(found["n"] or 0), found["success"], found["score"]
    if success is None or score is None:
        return f"{mode}: no episode was finished, {found['errored']} ended in an error"
    interval = wilson(success, n)
    errored = f", {found['errored']} errored" if found["errored"] else ""
    bounds = f"[{interval.low:.3f}, {interval.high:.3f}]"
    return f"{mode}: success {success:.3f} {bounds}, score {score:.3f}, n={n}{errored}"


def rebuild_warm_start(suite: Suite, source: str, data: Path | None, console: Console) -> None:
    """Teach the suite's warm-start policy again, make it the shipped one, and print how it was judged."""
    config = suite.base.warm_start
    if config.name is None or data is not None:
        raise ConfigError(
            f"{suite.name}: only a [warm_start] with a name, on generated data, ships with the package"
        )
    tasks = open_tasks(suite.base, data)
    command = f"python -m benchmarks warm-start {source} --scale {suite.scale}"
    with display(console) as shown:
        made = store.build_and_save(
            config.name,
            tasks.world,
            config,
            suite.base.rollout,
            command=command,
            elsewhere=tasks.elsewhere,
            progress=lambda status: shown.update("warm start", status),
        )
    console.print_json(data=made.record["measured"])
