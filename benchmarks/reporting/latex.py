"""Tables as LaTeX: one `table` with booktabs rules each, its notes below it, and no foreign text that is a command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.reporting.tables import Table, one_line, paragraphs

HEADER = """\
% Tables to \\input into a document. Its preamble needs:
%   \\usepackage[T1]{fontenc}  \\usepackage{booktabs}  \\usepackage{adjustbox}
"""
SPECIAL: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # after a line's end it would be an argument, and so would a star
    "]": "{]}",
    "*": "{*}",
}
SYMBOLS: Mapping[str, str] = {
    "—": "---",
    "–": "--",
    "…": r"\ldots{}",
    "’": "'",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≠": r"$\neq$",
    "→": r"$\to$",
    "′": "$'$",
    "ζ": r"$\zeta$",
    "‖": r"$\Vert$",
} | {mark: rf"\textsuperscript{{{plain}}}" for mark, plain in zip("ᵃᵇᶜᵈᵉᶠᵍ", "abcdefg", strict=True)}
_LIGATURE = re.compile(r"([-,'])(?=\1)")
_NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")


def to_latex(tables: Iterable[Table]) -> str:
    r"""A file to `\input`: the packages it needs as a comment, then one `table` environment for each table."""
    return "\n".join([HEADER, *map(_environment, tables)])


def latex_escape(text: str) -> str:
    """Foreign text as LaTeX prints it, on one line; a letter that T1 fonts may lack is named by its code point."""
    apart = _LIGATURE.sub("\\1\0", one_line(text))
    return "".join(map(_character, apart)).replace("\0", "{}")


def _character(one: str) -> str:
    if one in SPECIAL or one in SYMBOLS:
        return SPECIAL.get(one) or SYMBOLS[one]
    if one.isascii() or "À" <= one <= "ÿ":
        return one
    return rf"\texttt{{U+{ord(one):04X}}}"


def _environment(table: Table) -> str:
    notes = "\n\n".join(map(latex_escape, paragraphs(table.note)))
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        rf"\caption{{{latex_escape(table.title)}}}",
        r"\begin{adjustbox}{max width=\linewidth}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"\toprule",
        _row(tuple(map(latex_escape, table.columns))),
        r"\midrule",
        *(_row((latex_escape(name), *map(_cell, cells))) for name, *cells in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{adjustbox}",
        rf"\par\smallskip\begin{{minipage}}{{\linewidth}}\raggedright\footnotesize {notes}\end{{minipage}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A hyphen before a number is a minus sign."""
    return _NEGATIVE.sub("$-$", latex_escape(text))


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
