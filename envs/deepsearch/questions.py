"""Questions with their accepted answers, read from the forms in which they are published.

| data set | file | question | accepted answers |
| --- | --- | --- | --- |
| any, as FlashRAG and Search-R1 give it | JSON lines | `question` | `golden_answers`, a list |
| HotpotQA, 2WikiMultiHopQA | a JSON list | `question` | `answer` |
| MuSiQue | JSON lines | `question` | `answer`, `answer_aliases`; those that are not `answerable` are left out |
| NQ (open) | JSON lines | `question` | `answer`, a list |
| TriviaQA | JSON lines, or `Data` of a JSON object | `question`, `Question` | `answer`: value and aliases |
| PopQA | tab-separated | `question` | `possible_answers`, a JSON list |
| Bamboogle | comma-separated | `Question` | `Answer` |
| WebWalkerQA | JSON list or lines | `question` | `answer` |

The form is told from the keys of each row. Identity: the row's own id, else the data set and the row's number.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from envs.base import EnvError

Domain = Literal["id", "ood"]
Row = Mapping[str, Any]

_IDS = ("id", "_id", "question_id", "QuestionId")
_QUESTIONS = ("question", "Question")
_ANSWERS = ("golden_answers", "possible_answers", "answer", "Answer")
_FORMS = "golden_answers, possible_answers, answer or Answer"


class QuestionError(EnvError):
    """A file of questions is missing, empty or malformed."""


@dataclass(frozen=True)
class Question:
    """What is asked, and what counts as its answer."""

    id: str
    text: str
    golds: tuple[str, ...]
    """Accepted answers, at least one."""
    dataset: str
    """Name of the data set, or the form of a generated question."""
    domain: Domain
    supporting_titles: tuple[str, ...] = ()
    """Pages that hold what is needed to answer; empty where that is not published."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_questions(path: Path, dataset: str, domain: Domain) -> tuple[Question, ...]:
    """All questions of a file in its order.

    Raises `QuestionError` with file and row for a file that cannot be read, a form that is not in the table above, an
    empty question, no accepted answer, or two questions of one id.
    """
    found: dict[str, Question] = {}
    for number, row in enumerate(_rows(path), start=1):
        where = f"{path}: row {number}"
        if not isinstance(row, Mapping):
            raise QuestionError(
                f"{where} is {type(row).__name__}, expected an object with question and answer"
            )
        if row.get("answerable") is False:
            continue
        question = _question(row, where, f"{dataset}-{number - 1}", dataset, domain)
        if question.id in found:
            raise QuestionError(f"{where}: the id {question.id!r} is there twice, expected each once")
        found[question.id] = question
    if not found:
        raise QuestionError(f"{path}: no questions, expected at least one")
    return tuple(found.values())


def _rows(path: Path) -> Iterator[Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise QuestionError(f"{path}: cannot be read: {error}") from None
    if path.suffix in (".csv", ".tsv"):
        yield from csv.DictReader(io.StringIO(text), delimiter="\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".json":
        whole = _json(text, str(path))
        yield from whole.get("Data", [whole]) if isinstance(whole, Mapping) else whole
    else:
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                yield _json(line, f"{path}: line {number}")


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise QuestionError(f"{where}: not JSON: {error}") from None


def _question(row: Row, where: str, numbered: str, dataset: str, domain: Domain) -> Question:
    asked = next((row[key] for key in _QUESTIONS if key in row), None)
    if not isinstance(asked, str) or not asked.strip():
        raise QuestionError(f"{where}: question is {asked!r} (keys {sorted(map(str, row))}), expected a text")
    key = next((key for key in _ANSWERS if key in row), None)
    if key is None:
        raise QuestionError(f"{where}: keys {sorted(map(str, row))}, expected one of {_FORMS}")
    golds = tuple(dict.fromkeys(_golds(row[key], where) + _golds(row.get("answer_aliases", []), where)))
    if not golds:
        raise QuestionError(f"{where}: {key} is {row[key]!r}, expected at least one accepted answer")
    metadata = row.get("metadata")
    own = next((str(row[name]) for name in _IDS if row.get(name) not in (None, "")), numbered)
    return Question(
        id=own,
        text=asked.strip(),
        golds=golds,
        dataset=dataset,
        domain=domain,
        supporting_titles=_supporting(row),
        metadata=metadata if isinstance(metadata, Mapping) else {},
    )


def _golds(value: Any, where: str) -> tuple[str, ...]:
    """Accepted answers: a text, a list of texts, a list as JSON text, or TriviaQA's value with aliases."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            value = [value]
    if isinstance(value, Mapping):
        lower = {str(key).lower(): one for key, one in value.items()}
        value = [lower.get("value"), *lower.get("aliases", ())]
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, Sequence):
        raise QuestionError(f"{where}: the answer is {value!r}, expected a text or a list of texts")
    return tuple(str(one).strip() for one in value if one is not None and str(one).strip())


def _supporting(row: Row) -> tuple[str, ...]:
    """Titles of the pages that the answer needs, as HotpotQA, MuSiQue or our own metadata give them."""
    metadata = row.get("metadata")
    if isinstance(metadata, Mapping) and isinstance(metadata.get("supporting_titles"), Sequence):
        titles = metadata["supporting_titles"]
    elif isinstance(row.get("supporting_facts"), Sequence):
        titles = [fact[0] for fact in row["supporting_facts"]]
    else:
        paragraphs = row.get("paragraphs")
        chosen = paragraphs if isinstance(paragraphs, Sequence) else ()
        titles = [one["title"] for one in chosen if isinstance(one, Mapping) and one.get("is_supporting")]
    return tuple(dict.fromkeys(map(str, titles)))
