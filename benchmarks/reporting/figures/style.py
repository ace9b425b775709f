"""How figures look, and how they become files whose bytes depend on the data alone.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; line style, marker and hatch repeat the
distinction for print. Files carry no date, version or random id. Letters are drawn as paths: an SVG looks the
same where the font is missing, and its words stand in its title and description for those who cannot see it.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from benchmarks.reporting.stats import Array
from benchmarks.reporting.tables import one_line

DPI = 150
LISTED = 8
GREY = "#404040"
CROWD = 20
"""Seeds of one variant."""
SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "svg.fonttype": "path",
    "svg.hashsalt": "empg-bench",  # ids in the file follow from its content
    "text.parse_math": False,  # a dollar sign in a name starts no formula
}
NOTE_POINTS = 7.5
NOTE_CHARACTERS = 17
"""Per inch, at that size."""
LOG_TICKS = {10.0: (1.0, 1.5, 2.0, 3.0, 5.0, 7.0), 1e3: (1.0, 2.0, 5.0), math.inf: (1.0,)}
"""Within a decade, by how many times the largest value is the smallest."""
LEGEND_CHARACTERS, LEGEND_HANDLE = 14, 9
"""Per inch, and what the line before a name takes."""


@dataclass(frozen=True)
class Look:
    """How a variant is drawn in every figure."""

    colour: str
    line: Literal["-", "--", "-.", ":"]
    marker: str
    hatch: str


LOOKS: Mapping[str, Look] = {
    "grpo": Look("#0072B2", "-", "o", ""),
    "grpo+empg": Look("#D55E00", "--", "s", "//"),
    "dapo": Look("#009E73", "-.", "^", ".."),
    "dapo+empg": Look("#CC79A7", ":", "D", "xx"),
}
SPARE_LOOKS = (
    Look("#E69F00", "-", "v", "\\\\"),
    Look("#56B4E9", "--", "P", "++"),
    Look("#000000", "-.", "X", "--"),
    Look("#8C8C8C", ":", "*", "oo"),
)


def looks(variants: Iterable[str]) -> dict[str, Look]:
    """The fixed look of each known variant; others take the spare colours in turn, in another line each time round."""
    found: dict[str, Look] = {}
    spare = 0
    for variant in variants:
        if variant not in LOOKS:
            turn, place = divmod(spare, len(SPARE_LOOKS))
            form = SPARE_LOOKS[(place + turn) % len(SPARE_LOOKS)]
            found[variant] = Look(SPARE_LOOKS[place].colour, form.line, form.marker, form.hatch)
            spare += 1
        else:
            found[variant] = LOOKS[variant]
    return found


@dataclass(frozen=True)
class Chart:
    """A figure with the data that it shows, not drawn yet."""

    name: str
    """Of its files, without ending."""
    title: str
    """What it shows, in a few words."""
    note: str
    """What was aggregated and how, and what is missing; stands below the figure."""
    csv: str
    draw: Callable[[Figure], None]
    size: tuple[float, float]
    """Width and height in inches."""

    def files(self) -> dict[str, bytes]:
        """Data, PNG and SVG by file name."""
        drawn: dict[str, Any] = {f"{self.name}.{kind}": content for kind, content in render(self).items()}
        return {f"{self.name}.csv": self.csv.encode(), **drawn}


def render(chart: Chart) -> dict[str, bytes]:
    """`png` and `svg`, drawn under matplotlib's own defaults, so that a user's settings change no byte."""
    with matplotlib.style.context(["default", SETTINGS]):
        figure = laid_out(chart)
        described = {"Title": chart.title, "Description": chart.note, "Date": None, "Creator": None}
        return {
            "png": _saved(figure, "png", {"Software": None}),
            "svg": _saved(figure, "svg", described),
        }


def laid_out(chart: Chart) -> Figure:
    """The drawing with its note below, every part in its place; under the settings of the caller."""
    figure = Figure(figsize=chart.size, dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    chart.draw(figure)
    note = textwrap.fill(chart.note, int(NOTE_CHARACTERS * chart.size[0]), break_on_hyphens=False)
    figure.supxlabel(note, x=0.01, ha="left", fontsize=NOTE_POINTS, linespacing=1.3)
    figure.draw_without_rendering()
    figure.set_layout_engine(None)  # once, for both files
    return figure


def _saved(figure: Figure, kind: str, metadata: Mapping[str, str | None]) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format=kind, metadata=metadata)
    return out.getvalue()


def line(axes: Axes, at: Sequence[float] | Array, values: Array, look: Look, **changes: Any) -> None:
    """Points joined by a line; a NaN leaves a gap."""
    every = max(1, len(at) // 20)
    drawn: dict[str, Any] = {
        "color": look.colour, "linestyle": look.line, "marker": look.marker, "markersize": 4, "markevery": every,
        "linewidth": 1.4,
    }  # fmt: skip
    axes.plot(at, values, **(drawn | changes))


def raw_lines(axes: Axes, at: Iterable[Sequence[float] | Array], values: Array, look: Look) -> None:
    """Each seed's points, paler than what is made of all seeds; `at` and `values` have a row for each.

    A single seed is its own mean, which is drawn already. Many are drawn without markers, in an SVG as an image.
    """
    crowded = len(values) > CROWD
    for place, of_seed in zip(at, values, strict=True) if len(values) > 1 else ():
        line(
            axes, place, of_seed, look, linestyle="-", linewidth=0.7, markersize=2.5, markevery=1, alpha=0.45,
            rasterized=crowded, **({"marker": ""} if crowded else {}),
        )  # fmt: skip


def band(axes: Axes, at: Sequence[float] | Array, low: Array, high: Array, look: Look) -> None:
    """The area between two lines."""
    axes.fill_between(at, low, high, color=look.colour, alpha=0.15, linewidth=0)


def key(look: Look, name: str) -> Line2D:
    """A legend entry; the space keeps a name that begins with an underscore from being hidden."""
    shown = f" {name}" if name.startswith("_") else name
    return Line2D(
        [], [], color=look.colour, linestyle=look.line, marker=look.marker, markersize=4, linewidth=1.4,
        label=shown,
    )  # fmt: skip


def legend(figure: Figure, keys: Sequence[Any]) -> None:
    """Above all panels, where it hides no data; in as few lines as fit, of equally many entries."""
    width = int(figure.get_figwidth() * LEGEND_CHARACTERS)
    names = [str(each.get_label()) for each in keys]
    fit = max(1, width // (max(map(len, names)) + LEGEND_HANDLE))
    columns = math.ceil(len(keys) / math.ceil(len(keys) / fit))
    figure.legend(
        list(keys),
        [textwrap.fill(name, width - LEGEND_HANDLE, break_on_hyphens=False) for name in names],
        loc="outside upper left",
        ncols=columns,
        fontsize="small",
        frameon=False,
        handlelength=3.4,
    )


def whole_numbers(axes: Axes) -> None:
    """Ticks of the horizontal axis at whole numbers only."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def log_scale(axes: Axes, which: Literal["x", "y"], values: Array) -> None:
    """A logarithmic axis for positive values, NaN aside, with plain numbers; without any it stays linear."""
    known = values[np.isfinite(values)]
    if not known.size:
        return
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    subs = next(subs for span, subs in LOG_TICKS.items() if known.max() < span * known.min())
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def number(value: float, digits: int = 9) -> str:
    """As data files show it: with so many significant digits, nothing for NaN."""
    return "" if np.isnan(value) else f"{value:.{digits}g}"


def listed(numbers: Sequence[int]) -> str:
    """`0, 5, 10`; the middle of a long list is left out: `0, 5, …, 145`."""
    shown = [str(each) for each in numbers]
    return ", ".join(shown if len(shown) <= LISTED else [*shown[: LISTED - 2], "…", shown[-1]])


def sentence(*parts: str) -> str:
    """A note of the parts that are not empty, on one line whatever foreign text is in it."""
    return one_line(" ".join(part for part in parts if part))
