"""Averages of the paper's Tables 1 and 2 as bars, ours beside the paper's: its Figure 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmarks.reporting.cells import MISSING
from benchmarks.reporting.columns import PAPER_BENCHMARKS, Columns
from benchmarks.reporting.figures.style import GREY, Chart, Look, legend, looks, number, sentence
from benchmarks.reporting.load import Suite, judged
from benchmarks.reporting.outcomes import arm_row, in_order, label, trained_variants
from benchmarks.reporting.paper import TABLES, rows_of, slips
from benchmarks.reporting.tables import csv_text, one_line

MODE, MEASURE = "sampled", "success"


@dataclass(frozen=True)
class Bar:
    """One average, in percent."""

    method: str
    mean: float
    low: float
    """Where its whisker begins; NaN where nothing is known of its chance."""
    high: float
    whisker: str
    """What the whisker is."""
    tasks: int | None
    seeds: int | None
    """None where the source does not say."""


@dataclass(frozen=True)
class Group:
    """What one source reports of one benchmark."""

    source: str
    """`ours` or `paper`."""
    model: str
    """With its size, so that a small model is never mistaken for the paper's."""
    bars: Mapping[str, Bar]
    """By method; one that is not there has no result."""


@dataclass(frozen=True)
class Panel:
    """One suite beside the paper's results of its benchmark, or the latter alone."""

    benchmark: str
    suite: str
    """Empty where no suite of the benchmark was given."""
    panel: str
    """The evaluated tasks in words."""
    methods: tuple[str, ...]
    groups: tuple[Group, ...]
    partial: tuple[str, ...]
    """Methods of ours that lack a seed, in words."""


def panels_of(suites: Sequence[Suite]) -> tuple[Panel, ...]:
    """Every suite beside the paper, in the paper's order of benchmarks; those without a suite stay visible."""
    found: list[Panel] = []
    for columns in PAPER_BENCHMARKS.values():
        own = [suite for suite in suites if suite.columns.title == columns.title]
        found += [_panel(suite.columns, suite) for suite in own] or [_panel(columns, None)]
    known = {columns.title for columns in PAPER_BENCHMARKS.values()}
    found += [_panel(suite.columns, suite) for suite in suites if suite.columns.title not in known]
    return tuple(found)


def _panel(columns: Columns, suite: Suite | None) -> Panel:
    trained = () if suite is None else trained_variants(suite)
    theirs = _paper_groups(columns)
    methods = {*trained, *(method for group in theirs for method in group.bars)}
    ours, partial = ({}, ()) if suite is None else _our_bars(suite, trained)
    return Panel(
        benchmark=columns.title,
        suite="" if suite is None else suite.name,
        panel="" if suite is None else suite.panel,
        methods=tuple(in_order(sorted(methods))),
        groups=(Group("ours", "no suite" if suite is None else suite.model_size, ours), *theirs),
        partial=partial,
    )


def _our_bars(suite: Suite, methods: Sequence[str]) -> tuple[dict[str, Bar], tuple[str, ...]]:
    bars, partial = {}, []
    for method in methods:
        row = arm_row(suite, method)
        measure = row.measures[MODE, MEASURE]
        if 0 < row.seeds < row.planned:
            partial.append(f"{one_line(row.label)} ({row.seeds}/{row.planned} seeds)")
        if measure is not None:
            mean, interval, seeds = measure.spread.mean, measure.interval, len(measure.spread.values)
            whisker = f"{interval.method} 95% over {interval.unit}"
            bars[method] = Bar(
                method, 100 * mean, 100 * interval.low, 100 * interval.high, whisker, interval.n, seeds
            )
    return bars, tuple(partial)


def _paper_groups(columns: Columns) -> tuple[Group, ...]:
    if not columns.paper:
        return ()
    bars: dict[str, dict[str, Bar]] = {base: {} for base in TABLES[columns.paper_table].bases}
    for row in rows_of(columns):
        found, nan = row.numbers[MEASURE], float("nan")
        spread = (nan, nan, "none given", None) if found.std is None else (
            found.mean - found.std, found.mean + found.std, "std over seeds", row.runs
        )  # fmt: skip
        low, high, whisker, seeds = spread
        bars[row.base][row.method] = Bar(row.method, found.mean, low, high, whisker, None, seeds)
    return tuple(Group("paper", base.removesuffix("-Instruct"), of_base) for base, of_base in bars.items())


def chart(suites: Sequence[Suite]) -> Chart:
    """A panel for each suite, and for each of the paper's benchmarks without one."""
    panels = panels_of(suites)
    methods = in_order(method for panel in panels for method in panel.methods)
    look = looks(methods)

    def draw(figure: Figure) -> None:
        for axes, panel in zip(figure.subplots(len(panels), 1, squeeze=False).flat, panels, strict=True):
            _draw_panel(axes, panel, look)
        keys = [
            Patch(
                facecolor=look[name].colour,
                hatch=look[name].hatch,
                edgecolor="white",
                label=one_line(label(name)),
            )
            for name in methods
        ]
        legend(figure, keys)

    partial = [f"{one_line(panel.suite)}: {', '.join(panel.partial)}." for panel in panels if panel.partial]
    return Chart(
        name="figure1",
        title="Average success beside the paper's",
        note=sentence(
            f"Success on all tasks, {judged(suites)}. Ours (filled): mean over seeds, sampled at temperature 1, with "
            "95% Wilson interval over tasks. The paper's (outlined): Tables 1 and 2, ± std over 3 seeds where it gives "
            f"one. {MISSING}: no result. Mind the model sizes: the levels are not comparable, and the two kinds of "
            "whisker say different things.",
            *(slip.says for slip in slips("figure1")),
            *partial,
        ),
        csv=_csv(panels),
        draw=draw,
        size=(8.0, 1.2 + 2.3 * len(panels)),
    )


def _draw_panel(axes: Axes, panel: Panel, look: Mapping[str, Look]) -> None:
    width, ticks = len(panel.methods) + 1, []
    for place, group in enumerate(panel.groups):
        for offset, method in enumerate(panel.methods):
            at, style = place * width + offset, look[method]
            bar = group.bars.get(method)
            if bar is None:
                axes.text(at, 1.0, MISSING, ha="center", va="bottom", color=GREY)
                continue
            face, edge = (style.colour, "white") if group.source == "ours" else ("white", style.colour)
            axes.bar(at, bar.mean, 0.84, hatch=style.hatch, facecolor=face, edgecolor=edge)
            axes.vlines(at, bar.low, bar.high, color="black", linewidth=1.2)
            top = bar.mean if bar.high != bar.high else bar.high
            axes.text(at, top + 1.5, f"{bar.mean:.1f}", ha="center", va="bottom", fontsize=7.5)
        ticks.append((place * width + (len(panel.methods) - 1) / 2, _tick(group)))
    axes.set_xticks([at for at, _ in ticks], [name for _, name in ticks])
    axes.grid(visible=False, axis="x")
    axes.set(ylabel="success (%)", ylim=(0, 112), yticks=range(0, 101, 25))
    axes.set_xlim(-1, width * len(panel.groups) - 1)
    axes.set_title(_heading(panel), loc="left")


def _tick(group: Group) -> str:
    """`ours, n=3 seeds` above the model."""
    seeds = sorted({bar.seeds for bar in group.bars.values() if bar.seeds is not None})
    span = "–".join(map(str, dict.fromkeys((*seeds[:1], *seeds[-1:]))))
    stated = f", n={span} {'seed' if span == '1' else 'seeds'}" if seeds else ""
    return f"{group.source}{stated}\n{group.model}"


def _heading(panel: Panel) -> str:
    if not panel.suite:
        return f"{panel.benchmark}: no results of ours"
    return one_line(f"{panel.benchmark}: suite {panel.suite}, {panel.panel or 'no panel'}")


def _csv(panels: Sequence[Panel]) -> str:
    columns = (
        "benchmark", "suite", "source", "model", "method", "success_percent", "low", "high", "interval", "tasks",
        "seeds",
    )  # fmt: skip
    return csv_text(columns, (line for panel in panels for line in _lines(panel)))


def _lines(panel: Panel) -> Iterator[Sequence[object]]:
    for group in panel.groups:
        place = panel.benchmark, panel.suite if group.source == "ours" else "", group.source, group.model
        for method in panel.methods:
            bar = group.bars.get(method)
            if bar is None:
                yield (*place, method, "", "", "", "no result", "", "")
            else:
                limits = (number(value) for value in (bar.mean, bar.low, bar.high))
                known = ("" if count is None else count for count in (bar.tasks, bar.seeds))
                yield (*place, method, *limits, bar.whisker, *known)
