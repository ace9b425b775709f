"""The commands that turn runs into tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.config import load_suite
from benchmarks.plan import suite_folder

app = typer.Typer()
console = Console()

SuiteName = Annotated[
    str | None,
    typer.Argument(help="A suite, or the name of a folder of runs; by default all that have runs."),
]
Scale = Annotated[str, typer.Option(help="A [scale.*] table of the suite.")]
Data = Annotated[Path | None, typer.Option(help="Folder of official files that the suite was run on.")]
Results = Annotated[Path, typer.Option(help="Where runs are kept, and reports go.")]
Chosen = Annotated[str, typer.Option(help="The folder of runs that stands for this suite.")]


@app.command()
def report(
    suite: SuiteName = None,
    scale: Scale = "default",
    data: Data = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            help="A folder of runs anywhere, such as results/published/webshop/runs, instead of a suite."
        ),
    ] = None,
    results: Results = Path("results"),
) -> None:
    """Rebuild tables and figures from run records, in results/published."""
    from benchmarks.publish import publish_everything, publish_report

    if runs is not None:
        publish_report(runs, results, console)
    elif suite is None:
        publish_everything(results, console)
    else:
        publish_report(_records(suite, scale, data, results), results, console)


@app.command()
def figures(
    suite: SuiteName = None, scale: Scale = "default", data: Data = None, results: Results = Path("results")
) -> None:
    """Rebuild the figures of a report alone."""
    from benchmarks.publish import publish_all_figures, publish_figures

    if suite is None:
        publish_all_figures(results, console)
    else:
        publish_figures(_records(suite, scale, data, results), results, console)


@app.command()
def table1(
    alfworld: Chosen = "alfworld", webshop: Chosen = "webshop", results: Results = Path("results")
) -> None:
    """Write the paper's Table 1 with our runs on ALFWorld and WebShop."""
    from benchmarks.publish import publish_joint

    publish_joint("table1", (alfworld, webshop), results, console)


@app.command()
def table2(
    ablation: Chosen = "ablation", deepsearch: Chosen = "deepsearch", results: Results = Path("results")
) -> None:
    """Write the paper's Table 2 with our runs on Deep Search."""
    from benchmarks.publish import publish_joint

    publish_joint("table2", (ablation, deepsearch), results, console)


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The side that is compared with.")],
    b: Annotated[
        str, typer.Argument(metavar="B", help="The side that is judged: differences are B minus A.")
    ],
    suite: Annotated[
        str, typer.Option(help="Whose variants are meant: a suite, or a folder of runs.")
    ] = "webshop",
    out: Annotated[
        Path | None, typer.Option(help="Where to write; by default RESULTS/published/compare/A-vs-B.")
    ] = None,
    scale: Scale = "default",
    data: Data = None,
    results: Results = Path("results"),
) -> None:
    """Compare two variants, suites or groups of runs on the same tasks.

    A and B are each a variant of --suite, the name of a suite that has runs, a folder of runs or of one run, or a
    glob of run folders in quotes. Two suites are compared variant by variant.

    Two variants: compare grpo grpo+empg --suite alfworld

    Two suites, such as runs of two commits or models: compare webshop other/results/runs/webshop

    Groups of runs: compare 'results/runs/webshop/*grpo-s*' 'results/runs/webshop/*grpo-empg-s*'

    One run against the demonstrator: compare results/runs/webshop/webshop-grpo-s0 expert
    """
    from benchmarks.publish import publish_comparison

    runs = Path(suite) if Path(suite).is_dir() else _records(suite, scale, data, results)
    publish_comparison((a, b), runs, results, out, console)


def _records(suite: str, scale: str, data: Path | None, results: Path) -> Path:
    """Where a suite's runs are; a suite at its default scale may also be named by its folder."""
    from benchmarks.reporting.places import records_of

    if scale == "default" and data is None and (found := records_of(results, suite)) is not None:
        return found
    return suite_folder(load_suite(suite, scale, official=data is not None), data, results)
