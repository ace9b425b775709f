"""From the runs in a folder of results to what is published of them; nothing but run records is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from rich.console import Console

from benchmarks.collection import runs_of_models
from benchmarks.config import ConfigError
from benchmarks.reporting import aggregates
from benchmarks.reporting.compare_report import compared_name, write_comparison
from benchmarks.reporting.compare_sides import open_sides
from benchmarks.reporting.figures import build_overview
from benchmarks.reporting.files import write_whole
from benchmarks.reporting.joint import SUITES, JointName, Pair, joint_table
from benchmarks.reporting.load import Suite, load_suite
from benchmarks.reporting.places import COMPARISONS, PUBLISHED, RUNS, published, records_of, suites_with_runs
from benchmarks.reporting.report import write_figures, write_report
from benchmarks.reporting.schema import RecordError
from benchmarks.reporting.tables import print_tables


def publish_report(runs: Path, results: Path, console: Console) -> None:
    """The whole report of a suite; `ConfigError` when its records cannot be read or compared."""
    with _readable():
        report = write_report(runs, _place(runs, results), console)
    _say(console, f"report: {report.folder}")


def publish_figures(runs: Path, results: Path, console: Console) -> None:
    """The figures of a suite's report alone; `ConfigError` as above."""
    with _readable():
        written = write_figures(runs, _place(runs, results))
    for path in written:
        _say(console, str(path))


def publish_overview(results: Path, console: Console) -> None:
    """The figure over all benchmarks, from the suites that the tables of the paper take; `ConfigError` without any."""
    with _readable():
        suites = [suite for name in chain(*SUITES.values()) if (suite := _suite(results, name)) is not None]
        if not suites:
            raise _no_runs(results)
        files = build_overview(suites)
    for name, content in files.items():
        write_whole(results / PUBLISHED / name, content)
        _say(console, str(results / PUBLISHED / name))


def publish_joint(name: JointName, chosen: tuple[str, str], results: Path, console: Console) -> None:
    """A table of the paper over two suites; `chosen` are the names of their folders.

    Runs of the collection that the table is named after, of the paper's own models, stand below.
    """
    with _readable():
        first, second = (_suite(results, each) for each in chosen)
        more = [
            Pair(model, *(None if one is None else _suite(results, one) for one in folders))
            for model, folders in runs_of_models(name, SUITES[name], results).items()
        ]
        joint = joint_table(name, first, second, more)
    for file, content in joint.files(name).items():
        write_whole(results / PUBLISHED / file, content)
    print_tables(console, [joint.table], joint.facts)
    _say(console, f"{name}: {results / PUBLISHED / name}.md, .csv, .tex")


def publish_aggregates(results: Path, console: Console) -> None:
    """Success over the benchmarks that have runs; nothing where that is one alone."""
    with _readable():
        suites = [suite for name in aggregates.SUITES if (suite := _suite(results, name)) is not None]
        if len(suites) < 2:
            return
        tables, files = aggregates.build(suites)
    for name, content in files.items():
        write_whole(results / PUBLISHED / name, content)
    print_tables(console, tables, {})
    _say(console, f"aggregates: {', '.join(str(results / PUBLISHED / name) for name in files)}")


def publish_comparison(
    sides: tuple[str, str], runs: Path, results: Path, out: Path | None, console: Console
) -> None:
    """A against B; `runs`: of the suite whose variants they may name; `out`: by default a folder below `compare`."""
    with _readable():
        a, b = open_sides(*sides, runs, results)
        folder = out or published(results, COMPARISONS) / compared_name(a, b)
        write_comparison(a, b, folder, console)
    _say(console, f"comparison: {folder}")


def publish_all_figures(results: Path, console: Console) -> None:
    """The figures of every suite that has runs, and the one over all benchmarks, also of published records."""
    suites = [partial(publish_figures, runs, results, console) for runs in suites_with_runs(results)]
    _each([*suites, partial(publish_overview, results, console)])


def publish_everything(results: Path, console: Console) -> None:
    """The report of every suite that has runs, then what the paper shows over several of them."""
    suites = suites_with_runs(results)
    if not suites:
        raise _no_runs(results)
    names = {runs.name for runs in suites}
    reports = [partial(publish_report, runs, results, console) for runs in suites]
    joint = [
        partial(publish_joint, name, chosen, results, console)
        for name, chosen in SUITES.items()
        if names & set(chosen)
    ]
    over_all = [partial(publish_overview, results, console), partial(publish_aggregates, results, console)]
    _each([*reports, *joint, *(over_all if joint else [])])


def _each(tasks: Iterable[Callable[[], None]]) -> None:
    """All of them, also where one cannot be done; then what went wrong in any, as one `ConfigError`."""
    failed: dict[str, None] = {}
    for task in tasks:
        try:
            task()
        except ConfigError as error:
            failed[str(error)] = None
    if failed:
        raise ConfigError("; ".join(failed))


def _no_runs(results: Path) -> ConfigError:
    return ConfigError(f"no runs below {results / RUNS}, expected some that `empg-bench run` has made")


def _suite(results: Path, name: str) -> Suite | None:
    """None where there are no runs of it."""
    folder = records_of(results, name)
    return None if folder is None else replace(load_suite(folder), name=name)


def _place(runs: Path, results: Path) -> Path:
    """Where a report goes: by the name of the folder of runs, or of the one that holds published records."""
    return published(results, (runs.parent if runs.name == RUNS else runs).name)


@contextmanager
def _readable() -> Iterator[None]:
    """Errors of records and of the disk as errors for the command line."""
    try:
        yield
    except (RecordError, OSError) as error:
        raise ConfigError(str(error)) from error


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
