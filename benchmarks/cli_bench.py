"""Commands that measure: speed and memory of this machine, and the reports' intervals."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.config import ConfigError

app = typer.Typer()
console = Console()

Model = Annotated[str, typer.Argument(help="A folder, a Hugging Face id, or `smollm2`.")]
Repeats = Annotated[int, typer.Option(min=1, help="Pairs of measurements.")]
Results = Annotated[Path, typer.Option(help="Below it a converted model is kept.")]


@app.command()
def bench(
    webshop_products: Annotated[
        int | None, typer.Option(min=50, help="Measure mapped against held catalogues of this size instead.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Official files to compare with the official environment on.")
    ] = None,
) -> None:
    """Measure speed and memory ratios on this machine."""
    if data is not None and not data.is_dir():
        raise ConfigError(f"data: no folder {data}, expected one of official files")
    if webshop_products is not None:
        from benchmarks.bench_catalogue import run_bench

        run_bench(console, webshop_products)
        return
    from benchmarks.bench import main as measure

    measure(data)


@app.command()
def coverage(
    tables: Annotated[int, typer.Option(min=1, help="Simulated tables for each setting.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulation.")] = 0,
) -> None:
    """Simulate how often the intervals of the reports hold the truth."""
    from benchmarks.coverage import run_coverage

    run_coverage(console, tables, seed)


@app.command("bench-trl")
def bench_trl(
    model: Model = "smollm2",
    repeats: Repeats = 3,
    results: Results = Path("results"),
) -> None:
    """Compare the learner's speed with TRL's GRPOTrainer; needs the environment of `make bench-trl`."""
    from benchmarks.bench_trl import run_bench

    run_bench(console, model, results / "cache", repeats)


@app.command("bench-vllm")
def bench_vllm(
    model: Model = "smollm2",
    repeats: Repeats = 2,
    results: Results = Path("results"),
) -> None:
    """Compare rollouts by vLLM and by the torch policy; needs the environment of `make bench-vllm`."""
    from benchmarks.bench_rollout import Size, run_bench

    run_bench(console, model, results / "cache", Size(repeats=repeats))


@app.command("gpu-check")
def gpu_check(
    model: Annotated[
        str | None, typer.Option(help="A folder, a Hugging Face id, or `smollm2`; by default a random one.")
    ] = None,
    device: Annotated[str, typer.Option(help="cuda, or cpu for the same steps at tiny size.")] = "cuda",
    results: Annotated[Path, typer.Option(help="Where the report goes, as gpu-check.json.")] = Path(
        "results"
    ),
) -> None:
    """Check a GPU in a few minutes: bfloat16, sampling, an update, new weights, memory; exit code 1 if one fails."""
    if device not in ("cuda", "cpu"):
        raise ConfigError(f"device: {device!r}, expected cuda or cpu")
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # read when torch first looks for GPUs
    from benchmarks.gpu_check import run_check

    if not run_check(model, "cpu" if device == "cpu" else "cuda", results, console):
        raise typer.Exit(1)
