"""Tables as LaTeX, read back by a parser that is not ours: foreign text stays text, and rows stay rows."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db
from pylatexenc.latexwalker import LatexEnvironmentNode, LatexMacroNode, LatexWalker

from benchmarks import records
from benchmarks.reporting.latex import HEADER, SYMBOLS, latex_escape, to_latex
from benchmarks.reporting.tables import Table, one_line
from tests.benchmarks.report_runs import add_run, full_suite, report_of

ALLOWED = {
    "\\", "begin", "end", "centering", "caption", "toprule", "midrule", "bottomrule", "par", "smallskip", "raggedright",
    "footnotesize", "linewidth",
}  # fmt: skip
"""Macros of our own tables, beside those that stand for a character."""
CHARACTERS = {
    "textbackslash", "{", "}", "$", "&", "%", "#", "_", "textasciicircum", "textasciitilde",
    "textquotedbl", "textasciigrave", "ldots", "pm", "times", "cdot", "geq", "leq", "neq", "to", "zeta",
    "Vert", "textsuperscript", "texttt",
}  # fmt: skip
HOSTILE = "\\input{/etc/passwd} $x^2$ & 50% #1 _a_ ~ {} \\\\ [1ex] * \\end{table} ^^M \x1b[31m\n\n\\write18{rm -rf /}"


def text_of(latex: str) -> str:
    context = get_default_latex_context_db()
    known = [MacroTextSpec("textquotedbl", '"'), MacroTextSpec("textasciicircum", "^")]
    context.add_context_category("characters", macros=known, prepend=True)
    reader = LatexNodes2Text(context, keep_comments=True, strict_latex_spaces=True)
    return reader.latex_to_text(latex)


def macros(latex: str) -> set[str]:
    found = set()
    nodes = list(LatexWalker(latex, tolerant_parsing=False).get_latex_nodes()[0])
    while nodes:
        node = nodes.pop()
        if isinstance(node, LatexMacroNode):
            found.add(node.macroname)
        inner = [
            getattr(node, "nodelist", None) or [],
            getattr(getattr(node, "nodeargd", None), "argnlist", None) or [],
        ]
        nodes += [each for group in inner for each in group if each is not None]
    return found


@given(st.text(string.printable, max_size=60))
def test_any_ascii_text_comes_back_from_an_independent_parser_as_it_was(text: str) -> None:
    assert text_of(latex_escape(text)) == one_line(text)


@given(st.text(max_size=60))
def test_no_text_becomes_a_command_or_a_character_that_fonts_may_lack(text: str) -> None:
    escaped = latex_escape(text)
    assert macros(escaped) <= CHARACTERS
    assert "\n" not in escaped
    assert all(one.isascii() or "À" <= one <= "ÿ" for one in escaped)


def test_letters_without_a_font_are_named_by_their_code_point_and_dashes_are_no_ligatures() -> None:
    assert latex_escape("漢 é --- ,,x''") == r"\texttt{U+6F22} é -{}-{}- ,{},x'{}'"


@pytest.mark.parametrize(("symbol", "latex"), SYMBOLS.items())
def test_symbols_of_our_tables_mean_the_same_in_latex(symbol: str, latex: str) -> None:
    alike = {"−": "-", "’": "'", "′": "'", "…": "…", "‖": "‖"}
    plain = dict(zip("ᵃᵇᶜᵈᵉᶠᵍ", "abcdefg", strict=True))
    assert text_of(latex) in (symbol, alike.get(symbol), plain.get(symbol))


def test_hostile_names_stay_in_their_cells_and_every_row_has_every_column() -> None:
    table = Table(
        HOSTILE,
        ("name", HOSTILE),
        ((HOSTILE, "-1.5 [-2.0, +0.5]"), ("[x]", "—"), ("*", "1")),
        f"a\n\n{HOSTILE}",
    )
    latex = to_latex([table])
    assert macros(latex) <= ALLOWED | CHARACTERS
    body = latex[latex.index(r"\toprule") : latex.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if not line.endswith("rule")]
    assert len(rows) == 4
    assert all(len(re.findall(r"(?<!\\)&", row)) == 1 and row.endswith(r" \\") for row in rows)
    assert not any(row.startswith(("[", "*")) for row in rows)
    assert rows[1].endswith(r"& $-$1.5 {[}$-$2.0, +0.5{]} \\")


@pytest.mark.usefixtures("undrawn")
def test_every_table_of_a_report_is_one_environment_with_its_notes_below(tmp_path: Path) -> None:
    report = report_of(full_suite(tmp_path / "webshop", seeds=(0, 1)))
    latex = (report.folder / "table.tex").read_text()
    assert latex.startswith(HEADER)
    assert all(line.startswith("%") for line in HEADER.splitlines())
    nodes, _, _ = LatexWalker(latex, tolerant_parsing=False).get_latex_nodes()
    tables = [node for node in nodes if isinstance(node, LatexEnvironmentNode)]
    assert [node.environmentname for node in tables] == ["table"] * 4
    assert macros(latex) <= ALLOWED | CHARACTERS
    for node in tables:
        inner = [each for each in node.nodelist if isinstance(each, LatexEnvironmentNode)]
        assert [each.environmentname for each in inner] == ["adjustbox", "minipage"]
    assert r"45.0 $\pm$ 5.0" not in latex  # seeds 0 and 1 solved 8 and 9 of 20
    assert r"GRPO & 42.5 $\pm$ 3.5 {[}" in latex
    assert "U+" not in latex


@pytest.mark.usefixtures("undrawn")
def test_a_variant_that_is_named_like_a_command_stays_a_name(tmp_path: Path) -> None:
    suite = tmp_path / "webshop"
    folder = add_run(suite, "grpo", device=HOSTILE)
    record = records.read_json(folder / "run.json")
    records.write_json(folder / "run.json", record | {"variant": "\\write18{rm}&"})
    latex = (report_of(suite).folder / "table.tex").read_text()
    assert macros(latex) <= ALLOWED | CHARACTERS
    assert r"\textbackslash{}write18\{rm\}\&" in latex
