"""The paper's Tables 1 and 2, which take several benchmarks or suites together: ours, then all rows of the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.reporting import paper
from benchmarks.reporting.cells import MISSING, part_cell, seeds_cell
from benchmarks.reporting.columns import PAPER_BENCHMARKS, Columns
from benchmarks.reporting.latex import to_latex
from benchmarks.reporting.load import Suite, judged
from benchmarks.reporting.long_form import CSV_COLUMNS, our_lines, paper_lines
from benchmarks.reporting.main_tables import ERRORED, ONE_SEED
from benchmarks.reporting.outcomes import (
    EXPERT,
    TABLE_1,
    UNTRAINED,
    WARM_START,
    ArmRow,
    arm_row,
    in_order,
    label,
    start,
    variants,
)
from benchmarks.reporting.paper import PaperRow, footnotes, marks_of
from benchmarks.reporting.provenance import provenance
from benchmarks.reporting.tables import Table, csv_text, to_markdown

JointName = Literal["table1", "table2"]
SUITES: Mapping[JointName, tuple[str, str]] = {
    "table1": ("alfworld", "webshop"),
    "table2": ("ablation", "deepsearch"),
}
"""Whose runs stand in each table."""


@dataclass(frozen=True)
class Block:
    """The columns of one benchmark."""

    columns: Columns
    headings: Mapping[str, str]
    """By measure."""


@dataclass(frozen=True)
class Given:
    """What a suite gives to a joint table."""

    suite: Suite
    rows: Mapping[str, ArmRow]
    """By variant."""
    facts: Mapping[str, str]

    @classmethod
    def of(cls, suite: Suite | None) -> Given | None:
        """None where there are no runs."""
        if suite is None:
            return None
        return cls(suite, {name: arm_row(suite, name) for name in variants(suite)}, provenance(suite))

    def described(self, method: str) -> str:
        """`0.85M params, scale smoke`: what keeps a row from being mistaken for the paper's; no model demonstrates."""
        scale = self.facts["scale"]
        said = [] if method == EXPERT else [self.suite.model_size]
        return ", ".join([*said, *([] if scale == "default" else [f"scale {scale}"])])


@dataclass(frozen=True)
class Ours:
    """Rows of ours that one or several suites fill together."""

    given: tuple[Given | None, ...]
    """For each block, where it has any runs."""
    methods: tuple[str, ...]
    """Rows that are there even when nothing was run."""
    name: str = ""
    """What tells these rows from other ones of ours."""


@dataclass(frozen=True)
class Pair:
    """The suites of a table with one model, where there are runs of them."""

    name: str
    """Of the model."""
    first: Suite | None
    second: Suite | None


@dataclass(frozen=True)
class Joint:
    """A table with its data."""

    table: Table
    facts: Mapping[str, str]
    csv: str

    def files(self, name: JointName) -> dict[str, bytes]:
        """Markdown, CSV and LaTeX, by file name."""
        return {
            f"{name}.md": to_markdown([self.table], self.facts).encode(),
            f"{name}.csv": self.csv.encode(),
            f"{name}.tex": to_latex([self.table]).encode(),
        }


def joint_table(
    name: JointName, first: Suite | None, second: Suite | None, more: Sequence[Pair] = ()
) -> Joint:
    """A table of the paper with the runs of two suites, as `SUITES` names them; what is not there is missing.

    more: the same suites with other models, each pair as rows of its own.
    """
    there = [pair for pair in more if pair.first is not None or pair.second is not None]
    return _table_1(first, second, there) if name == "table1" else _table_2(first, second, there)


def _table_1(alfworld: Suite | None, webshop: Suite | None, more: Sequence[Pair]) -> Joint:
    """ALFWorld by task type and on all tasks; WebShop score and success."""
    games, shop = PAPER_BENCHMARKS["alfworld"], PAPER_BENCHMARKS["webshop"]
    blocks = (
        Block(games, _parts(games) | {"success": "ALFWorld, all"}),
        Block(shop, {"score": "WebShop, score", "success": "WebShop, success"}),
    )
    ours = [Ours((Given.of(alfworld), Given.of(webshop)), TABLE_1)]
    ours += [Ours((Given.of(pair.first), Given.of(pair.second)), (), pair.name) for pair in more]
    return _joint("Table 1: ALFWorld and WebShop (%)", blocks, ours)


def _table_2(ablation: Suite | None, deepsearch: Suite | None, more: Sequence[Pair]) -> Joint:
    """Deep Search by data set, in domain, out of domain and overall."""
    columns = PAPER_BENCHMARKS["deepsearch"]
    blocks = (Block(columns, _parts(columns) | {"success": "Overall"}),)
    methods = tuple(row.method for row in paper.rows_of(columns))
    ours = [Ours((Given.of(ablation),), methods, SUITES["table2"][0])]
    if deepsearch is not None:
        ours.append(Ours((Given.of(deepsearch),), (), SUITES["table2"][1]))
    for pair in more:
        for suite, of in zip((pair.first, pair.second), SUITES["table2"], strict=True):
            if suite is not None:
                ours.append(Ours((Given.of(suite),), (), f"{of}, {pair.name}"))
    says = (
        " ID and OOD: ours are of all questions of the domain, the paper's are means of its data sets. Kinds of "
        "questions that the paper does not have stand in the report of each suite."
    )
    return _joint("Table 2: Deep Search (%)", blocks, ours, says)


def _parts(columns: Columns) -> dict[str, str]:
    return {name: part.heading for name, part in columns.parts.items()}


def _joint(title: str, blocks: Sequence[Block], ours: Sequence[Ours], says: str = "") -> Joint:
    papers = [{(row.base, row.method): row for row in paper.rows_of(b.columns, every=True)} for b in blocks]
    theirs = [[rows[key] for rows in papers] for key in papers[0]]
    marks = marks_of(row for rows in theirs for row in rows)
    pairs = [
        (block, given)
        for one in ours
        for block, given in zip(blocks, one.given, strict=True)
        if given is not None or one.methods
    ]
    several = len(blocks) > 1
    table = Table(
        title=f"{title}; mind the model sizes",
        columns=(
            "method, source",
            *(heading for block in blocks for heading in block.headings.values()),
            *(f"seeds, {block.columns.title}" if several else "seeds" for block in blocks),
        ),
        rows=(
            *(row for one in ours for row in _our_rows(blocks, one)),
            *(_paper_row(blocks, rows, marks) for rows in theirs),
        ),
        note=_note(pairs, says) + footnotes(marks),
        wide=True,
    )
    facts = {
        f"{given.suite.name}, {key}": value
        for _, given in pairs
        if given is not None
        for key, value in given.facts.items()
    }
    return Joint(table, facts, _csv(pairs, blocks, theirs))


def _our_rows(blocks: Sequence[Block], ours: Ours) -> list[tuple[str, ...]]:
    there = [name for given in ours.given if given is not None for name in given.rows]
    trained = in_order(name for name in (*ours.methods, *there) if name not in UNTRAINED)
    starts = in_order(start(given.suite) for given in ours.given if given is not None) or [WARM_START]
    return [_our_row(blocks, ours, name) for name in (*starts, *trained, EXPERT)]


def _our_row(blocks: Sequence[Block], ours: Ours, method: str) -> tuple[str, ...]:
    cells: list[str] = []
    seeds: list[str] = []
    for block, given in zip(blocks, ours.given, strict=True):
        row = None if given is None else given.rows.get(method)
        whole = None if row is None else row.measures["sampled", "success"]
        of = {} if row is None else row.measures
        cells += [part_cell(of.get(("sampled", name)), whole) for name in block.headings]
        seeds.append(MISSING if row is None else seeds_cell(row))
    origin = f"ours: {ours.name}" if ours.name else "ours"
    return (f"{label(method)}, {origin}{_described(blocks, ours, method)}", *cells, *seeds)


def _described(blocks: Sequence[Block], ours: Ours, method: str) -> str:
    """` (0.85M params)`, by benchmark where they differ."""
    found = {
        block.columns.title: given.described(method)
        for block, given in zip(blocks, ours.given, strict=True)
        if given is not None
    }
    if len(set(found.values())) == 1:
        said = next(iter(found.values()))
    else:
        said = "; ".join(f"{title} {words}" for title, words in found.items() if words)
    return f" ({said})" if said else ""


def _paper_row(
    blocks: Sequence[Block], rows: Sequence[PaperRow], marks: Mapping[str, str]
) -> tuple[str, ...]:
    """One row of the paper, from the part of it that each block reads."""
    cells, runs = [], []
    for block, row in zip(blocks, rows, strict=True):
        found = row.marked(marks)
        cells += [found.get(name, MISSING) for name in block.headings]
        spread = any(number.std is not None for number in row.numbers.values())
        runs.append(str(row.runs) if spread and row.runs is not None else MISSING)
    first = rows[0]
    method = paper.LABELS.get(first.method) or label(first.method)
    return (f"{method}, {paper.source(first.base)}{marks[first.remark]}", *cells, *runs)


def _note(pairs: Sequence[tuple[Block, Given | None]], says: str) -> str:
    columns = [block.columns for block, _ in pairs]
    panels = "; ".join(
        f"{block.columns.title}: no runs here"
        if given is None
        else f"{block.columns.title}, suite {given.suite.name}: {given.suite.panel or 'no run is complete'}"
        for block, given in pairs
    )
    scored = any("score" in block.headings for block, _ in pairs)
    intervals = "Wilson's for success" + (", by bootstrap for score" if scored else "")
    printed = paper.TABLES[columns[0].paper_table]
    unsaid = "; ".join(dict.fromkeys(f"for {one.title} {one.not_stated}" for one in columns))
    return (
        f"Ours ({panels}): {judged(given.suite for _, given in pairs if given is not None)}, sampled at temperature 1; "
        f"mean over seeds (± sd over seeds where there are several) and 95% interval over tasks, {intervals}. "
        f"{ONE_SEED}{ERRORED}{says} The paper: {printed.name}, {printed.says}; it does not say {unsaid}. "
        "The levels are not comparable: model, data and training length differ."
    )


def _csv(
    pairs: Sequence[tuple[Block, Given | None]], blocks: Sequence[Block], theirs: Sequence[Sequence[PaperRow]]
) -> str:
    """Long form as in the reports of suites, with the benchmark and the suite of each line."""
    lines: list[Sequence[object]] = []
    for block, given in pairs:
        if given is not None:
            found = our_lines(list(given.rows.values()), given.suite.model_size)
            lines += [(block.columns.title, given.suite.name, *line) for line in found]
    for rows in theirs:
        for block, row in zip(blocks, rows, strict=True):
            lines += [(block.columns.title, "", *line) for line in paper_lines([row])]
    return csv_text(("benchmark", "suite", *CSV_COLUMNS), lines)
