"""The command line: thin commands over the other modules. Bad input is one line on stderr and exit code 2."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from typer.exceptions import TyperException

from benchmarks.cli_bench import app as benches
from benchmarks.cli_report import app as reports
from benchmarks.collection import collection_names, open_collection
from benchmarks.config import ConfigError, load_suite, suite_names
from benchmarks.overrides import Overrides, with_options, with_overrides
from benchmarks.plan import find
from benchmarks.served_options import OPENAI, Limits, Play, Server, refuse

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Run, evaluate and report the benchmarks of Entropy-Modulated Policy Gradients.",
)
console = Console()
app.add_typer(reports)
app.add_typer(benches)

SuiteName = Annotated[
    str, typer.Argument(help="A suite (or, to run or plan, a collection) of the package, or a TOML file.")
]
Scale = Annotated[str, typer.Option(help="A [scale.*] table of the suite.")]
Data = Annotated[Path | None, typer.Option(help="Folder of official files; by default data is generated.")]
Seeds = Annotated[
    int | None,
    typer.Option(min=1, help="How many seeds, counted from 0; by default 1, or what a collection says."),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Runs at a time; by default one for each core.")]
Results = Annotated[Path, typer.Option(help="Where runs and caches are kept.")]
TensorBoard = Annotated[
    bool, typer.Option("--tensorboard", help="Also write TensorBoard event files beside each run's records.")
]
WandB = Annotated[bool, typer.Option("--wandb", help="Also show each run in Weights & Biases.")]
Several = Annotated[
    int, typer.Option(min=1, help="Processes of a run, on a GPU each; on a machine without one, of the CPU.")
]
Parallel = Annotated[
    str, typer.Option(help="Whether each process holds all weights (ddp) or a part of them (fsdp2).")
]
RunName = Annotated[str, typer.Argument(help="Name of the run, as `plan` lists it.")]


@app.command()
@with_overrides
def run(
    overrides: Overrides,
    suite: SuiteName = "webshop",
    scale: Scale = "default",
    data: Data = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    tensorboard: TensorBoard = False,
    wandb: WandB = False,
    results: Results = Path("results"),
    processes: Several = 1,
    parallel: Parallel = "ddp",
) -> None:
    """Make every run of a suite complete, several at a time, then write its report; of a collection, suite by suite."""
    from benchmarks.live import live_view
    from benchmarks.processes import check
    from benchmarks.suite import complete_collection

    kind = check(processes, parallel)
    boards = boards_of(tensorboard, wandb)
    live_view(boards)  # a missing package is said now
    collection = open_collection(suite, scale, data, overrides)
    complete_collection(collection, seeds, results, jobs, console, boards, processes, kind)


@app.command("run-one")
@with_overrides
def run_one(
    overrides: Overrides,
    suite: SuiteName,
    name: RunName,
    scale: Scale = "default",
    data: Data = None,
    tensorboard: TensorBoard = False,
    wandb: WandB = False,
    results: Results = Path("results"),
    processes: Several = 1,
    parallel: Parallel = "ddp",
    tied: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Make one run complete, in this process or in several that this one, torchrun or `accelerate launch` starts."""
    from benchmarks import processes as several
    from benchmarks.launch import tie_to_launcher
    from benchmarks.live import Live, live_view
    from benchmarks.run import execute

    if tied:
        tie_to_launcher()
    kind = several.check(max(processes, several.launched()), parallel)
    loaded = load_suite(suite, scale, official=data is not None, overrides=overrides)
    chosen = find(loaded, name, data, results)
    live = live_view(boards_of(tensorboard, wandb))
    if processes > several.launched():
        several.start(processes, sys.argv[1:])
        return
    with several.joined(kind) as team:
        level = logging.INFO if team.is_main else logging.WARNING
        logging.basicConfig(level=level, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
        execute(chosen, cache_folder(results), live if team.is_main else Live(), team)


@app.command("plan")
@with_overrides
def show_plan(
    overrides: Overrides,
    suite: SuiteName = "webshop",
    scale: Scale = "default",
    data: Data = None,
    seeds: Seeds = None,
    results: Results = Path("results"),
) -> None:
    """List the runs of a suite or a collection, what they need, and what this machine lacks for them."""
    from benchmarks import plan_report
    from benchmarks.planning import plans

    collection = open_collection(suite, scale, data, overrides)
    parts = plans(collection, range(seeds or collection.seeds), results)
    plan_report.show_plan(collection, parts, results, console)


@app.command()
@with_options(overrides=Overrides, server=Server, limits=Limits, play=Play)
def evaluate(
    overrides: Overrides,
    server: Server,
    limits: Limits,
    play: Play,
    suite: SuiteName,
    policy: Annotated[
        str | None,
        typer.Argument(
            help="`expert`, a model as in --model, such as a run's `policy`, or `openai` for one behind --base-url; "
            "by default where the suite starts."
        ),
    ] = None,
    scale: Scale = "default",
    data: Data = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Test tasks; by default the suite's panel.")
    ] = None,
    results: Results = Path("results"),
) -> None:
    """Play the test panel with a policy and print its success; writes a record of `openai` alone."""
    if policy == OPENAI:
        from benchmarks.served import evaluate_served, without_model

        loaded = load_suite(suite, scale, official=data is not None, overrides=without_model(overrides))
        evaluate_served(loaded, overrides, (server, limits, play), data, tasks, results, console)
        return
    from benchmarks.suite import evaluate_once

    refuse(server, limits, play)
    if policy is not None and overrides.model is not None:
        raise ConfigError(f"evaluate: both {policy!r} and --model {overrides.model}, expected one policy")
    evaluate_once(
        load_suite(suite, scale, official=data is not None, overrides=overrides),
        policy,
        data,
        tasks,
        cache_folder(results),
        console,
    )


@app.command()
def play(
    benchmark: Annotated[str, typer.Argument(help="A benchmark, such as `webshop`.")],
    task: Annotated[
        str | None, typer.Option(help="Id of the task; by default the first of the split.")
    ] = None,
    split: Annotated[str, typer.Option(help="Where the default task is from: train, dev or test.")] = "test",
    data: Data = None,
    observation_mode: Annotated[
        str | None, typer.Option(help="Form of what is shown, such as `text_rich` in webshop.")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="Who plays: `person`, or the scripted `expert` (also `demonstrator`).")
    ] = "person",
    pause: Annotated[
        bool, typer.Option("--pause", help="Wait for Enter before each move of the expert.")
    ] = False,
    results: Results = Path("results"),
) -> None:
    """Play an episode in the terminal, or watch the scripted demonstrator play it."""
    from benchmarks.play import Game
    from benchmarks.play import play as play_game

    game = Game(benchmark, task, split, observation_mode, policy, pause)
    play_game(game, data, cache_folder(results), console)


@app.command("data")
def check_data(
    suite: SuiteName = "webshop",
    scale: Scale = "default",
    data: Data = None,
    fetch: Annotated[
        bool,
        typer.Option("--download", help="Fetch the official files into --data first (alfworld, deepsearch)."),
    ] = False,
    results: Results = Path("results"),
) -> None:
    """Say which official files a suite reads; with --data, check them and prepare what runs will share."""
    from benchmarks.data import describe_needed, prepare_data
    from benchmarks.download import download

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    loaded = load_suite(suite, scale, official=data is not None)
    describe_needed(loaded.base.benchmark, console)
    if fetch:
        if data is None:
            raise ConfigError("download: no folder is named, expected --data FOLDER")
        download(loaded.base, data, console)
    if data is not None:
        prepare_data(loaded.base, data, cache_folder(results), console)


@app.command("parity")
def check_parity(
    benchmark: Annotated[str, typer.Argument(help="`webshop` or `alfworld`.")],
    golden: Annotated[Path | None, typer.Argument(help="webshop: folder of recorded transcripts.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Official files; by default beside or above the transcripts, or where ALFWORLD_DATA says."
        ),
    ] = None,
    games: Annotated[
        int | None, typer.Option(min=1, help="alfworld: how many games; by default all.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="alfworld: of the random commands.")] = 0,
    shard: Annotated[str, typer.Option(help="alfworld: i/n plays every n-th game.")] = "1/1",
    results: Results = Path("results"),
) -> None:
    """Compare with the official environment; exit code 1 where anything differs.

    webshop: replay recorded transcripts. alfworld: play every game by both engines; a stopped run goes on.
    """
    if benchmark == "webshop":
        from benchmarks.parity import data_of, replay_webshop

        if golden is None or not golden.is_dir():
            raise ConfigError(f"golden: no folder {golden or ''}, expected one of recorded transcripts")
        outcomes = replay_webshop(golden, data or data_of(golden), console)
        differing = sum(outcome.first is not None for outcome in outcomes)
    elif benchmark == "alfworld":
        from benchmarks.parity_alfworld import Shard, replay_alfworld

        part = Shard.parse(shard)
        name = f"alfworld-{games or 'all'}-seed{seed}-{part.number}of{part.of}.jsonl"
        out = results / "parity" / name
        differing = replay_alfworld(data, out, console, games=games, seed=seed, shard=part)
    else:
        raise ConfigError(
            f"parity: no official engine of {benchmark!r} is known, expected webshop or alfworld"
        )
    if differing:
        raise typer.Exit(1)


@app.command("warm-start")
def warm_start(
    suite: SuiteName = "webshop",
    scale: Scale = "default",
    data: Data = None,
) -> None:
    """Teach a suite's warm-start policy again and make it the one that ships with the package."""
    from benchmarks.suite import rebuild_warm_start

    rebuild_warm_start(load_suite(suite, scale, official=data is not None), suite, data, console)


@app.command()
def suites() -> None:
    """List the suites and collections that come with the package."""
    for name in (*suite_names(), *collection_names()):
        console.print(f"{name}: {open_collection(name).title}", markup=False, highlight=False)


@app.command()
def serve(
    data: Data = None,
    retriever: Annotated[str, typer.Option(help="bm25 or dense:MODEL.")] = "bm25",
    host: Annotated[str, typer.Option(help="Whoever reaches it can search.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    results: Results = Path("results"),
) -> None:
    """Serve the passages of Deep Search to many workers, by Search-R1's protocol, until Ctrl-C."""
    from benchmarks.serve import serve_passages

    serve_passages(data, retriever, host, port, cache_folder(results), console)


def boards_of(tensorboard: bool, wandb: bool) -> list[str]:
    """The boards that the options ask for."""
    return [name for name, asked in (("tensorboard", tensorboard), ("wandb", wandb)) if asked]


def cache_folder(results: Path) -> Path:
    """Where policies that do not ship with the package are kept, and data that is too large to hold in memory."""
    return results / "cache"


INTERRUPTED = 130
"""What a shell reports for a command that Ctrl-C ended."""


def main() -> NoReturn:
    """Entry point of the console script: every expected error is one line, and no traceback."""
    try:
        code = app(standalone_mode=False)
    except ConfigError as error:
        fail(str(error))
    except TyperException as error:
        if not error.format_message():  # a bare command has shown its help
            raise SystemExit(2) from None
        fail(error.format_message())
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:  # typer answers Ctrl-C by this code rather than by the exception
        print("interrupted; the same command goes on where this one stopped", file=sys.stderr)
    raise SystemExit(code if isinstance(code, int) else 0)


def fail(message: str) -> NoReturn:
    """Say what is wrong in one line that cannot steer the terminal, and leave."""
    from benchmarks.launch import printable

    print(f"error: {printable(' '.join(message.split()))}", file=sys.stderr)
    raise SystemExit(2) from None
