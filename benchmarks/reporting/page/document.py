"""`index.html`: tables, figures and provenance as HTML, with styles and scripts inline and everything else shut out.

Jinja2 escapes all text. The policy in the page's head lets run what is hashed here and data files beside the
page, and lets nothing reach the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from benchmarks.reporting.cells import MISSING
from benchmarks.reporting.load import Suite
from benchmarks.reporting.outcomes import label
from benchmarks.reporting.page.cells import Grid, grid
from benchmarks.reporting.page.images import figures_of
from benchmarks.reporting.page.script import source_hash
from benchmarks.reporting.schema import RunInfo
from benchmarks.reporting.tables import Table, one_line

STYLES = ("base.css", "tables.css", "lens.css", "steps.css")
EARLY_SCRIPTS = ("theme.js",)
"""Before anything is drawn, so that the page does not flash in the other theme."""
SCRIPTS = (
    "dom.js", "tables.js", "store.js", "view.js", "credit.js", "tokens.js", "steps.js", "episodes.js",
    "loading.js", "lens.js",
)  # fmt: skip
HASH_SHOWN = 12


def render(
    suite: Suite,
    tables: Sequence[Table],
    figures: Mapping[str, bytes],
    facts: Mapping[str, str],
) -> str:
    """The whole document."""
    style = _source(STYLES)
    early = _source(EARLY_SCRIPTS)
    late = _source(SCRIPTS)
    environment = Environment(
        loader=PackageLoader("benchmarks.reporting.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("index.html.j2").render(
        suite=suite,
        title=suite.columns.title,
        grids=[grid(table) for table in tables],
        figures=figures_of(figures),
        facts={name: one_line(value) for name, value in facts.items()},
        records=provenance_grids(suite),
        policy=policy(style, early, late),
        style=Markup(style),
        early=Markup(early),
        late=Markup(late),
    )


def policy(style: str, *scripts: str) -> str:
    """The Content-Security-Policy: the given inline code and files beside the page, no network, no handlers."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {' '.join(map(source_hash, scripts))}",
            f"style-src {source_hash(style)}",
            "img-src 'self' data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def provenance_grids(suite: Suite) -> list[Grid]:
    """Runs, panels and versions as tables."""
    infos = [(run.info, f"{run.iterations}") for run in suite.runs]
    infos += [(info, "not complete") for info in suite.incomplete]
    return [
        grid(_run_table(infos)),
        grid(_panel_table([info for info, _ in infos])),
        grid(_version_table([info for info, _ in infos])),
    ]


def _run_table(infos: Sequence[tuple[RunInfo, str]]) -> Table:
    return Table(
        title="Runs",
        columns=("run", "method", "seed", "iterations", "commit", "config digest"),
        rows=tuple(
            (
                info.run,
                label(info.variant),
                str(info.seed),
                done,
                (info.commit or MISSING)[:HASH_SHOWN] + (" + uncommitted changes" if info.dirty else ""),
                info.digest[:HASH_SHOWN],
            )
            for info, done in infos
        ),
        note="The first twelve digits of each hash; run.json has all of them, and the resolved configuration.",
    )


def _panel_table(infos: Sequence[RunInfo]) -> Table:
    panels = {split: panel for info in infos for split, panel in info.panels.items()}
    return Table(
        title="Task panels",
        columns=("split", "tasks", "SHA-256 of the tasks"),
        rows=tuple((split, f"{panel.size:,}", panel.digest) for split, panel in sorted(panels.items())),
        note="Every run of this suite saw the same panels; others are refused.",
    )


def _version_table(infos: Sequence[RunInfo]) -> Table:
    names = sorted({name for info in infos for name in info.versions})
    return Table(
        title="Versions",
        columns=("package", "version"),
        rows=tuple(
            (name, ", ".join(sorted({info.versions[name] for info in infos if name in info.versions})))
            for name in names
        ),
        note="All versions that any run used.",
    )


def _source(names: Sequence[str]) -> str:
    folder = files("benchmarks.reporting.page") / "static"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
