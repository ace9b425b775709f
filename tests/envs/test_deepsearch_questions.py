"""Question files: each published form, and what is said of files that are of none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envs.deepsearch import load_world
from envs.deepsearch.questions import QuestionError, read_questions

PUBLISHED: dict[str, tuple[str, str, str, tuple[str, ...], tuple[str, ...]]] = {
    "flashrag": (
        "x.jsonl",
        json.dumps({"id": "test_0", "question": "Who?", "golden_answers": ["Ann", "Ann B."], "metadata": {"k": 1}}),
        "test_0", ("Ann", "Ann B."), (),
    ),
    "hotpotqa": (
        "hotpot_dev_distractor_v1.json",
        json.dumps([{"_id": "5a7", "question": "Who?", "answer": "Ann", "type": "bridge", "level": "hard",
                     "supporting_facts": [["Page A", 0], ["Page B", 1], ["Page A", 2]],
                     "context": [["Page A", ["s"]]]}]),
        "5a7", ("Ann",), ("Page A", "Page B"),
    ),
    "musique": (
        "musique_ans_v1.0_dev.jsonl",
        json.dumps({"id": "2hop__1_2", "question": "Who?", "answer": "Ann", "answer_aliases": ["A."],
                    "answerable": True, "question_decomposition": [],
                    "paragraphs": [{"title": "P", "is_supporting": True}, {"title": "Q", "is_supporting": False}]}),
        "2hop__1_2", ("Ann", "A."), ("P",),
    ),
    "nq": ("NQ-open.dev.jsonl", json.dumps({"question": "Who?", "answer": ["Ann", "B"]}), "nq-0", ("Ann", "B"), ()),
    "triviaqa": (
        "dev.json",
        json.dumps({"Data": [{"QuestionId": "tc_1", "Question": "Who?",
                              "Answer": {"Value": "Ann", "Aliases": ["A.", "Ann"], "NormalizedAliases": ["a"]}}]}),
        "tc_1", ("Ann", "A."), (),
    ),
    "triviaqa-hf": (
        "dev.jsonl",
        json.dumps({"question_id": "tc_1", "question": "Who?", "answer": {"value": "Ann", "aliases": ["A."]}}),
        "tc_1", ("Ann", "A."), (),
    ),
    "popqa": (
        "test.tsv",
        'id\tsubj\tquestion\tpossible_answers\n42\tX\tWho?\t"[""Ann"", ""A.""]"\n',
        "42", ("Ann", "A."), (),
    ),
    "bamboogle": ("bamboogle.csv", 'Question,Answer\n"Who?","Ann, B."\n', "bamboogle-0", ("Ann, B.",), ()),
    "webwalkerqa": (
        "main.jsonl",
        json.dumps({"question": "谁?", "answer": "肖亮", "root_url": "https://x", "info": {"lang": "zh"}}),
        "webwalkerqa-0", ("肖亮",), (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", PUBLISHED)
def test_every_published_form_is_read(form: str, tmp_path: Path) -> None:
    name, content, expected_id, golds, titles = PUBLISHED[form]
    (tmp_path / name).write_text(content, encoding="utf-8")
    [question] = read_questions(tmp_path / name, form, "id")
    assert (question.id, question.golds, question.supporting_titles) == (expected_id, golds, titles)
    assert (question.dataset, question.domain) == (form, "id")


def test_questions_that_cannot_be_answered_are_left_out(tmp_path: Path) -> None:
    rows = [{"id": str(n), "question": "Who?", "answer": "Ann", "answerable": n == 1} for n in range(3)]
    path = tmp_path / "m.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert [question.id for question in read_questions(path, "musique", "ood")] == ["1"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no questions, expected at least one"),
        ("{", "line 1: not JSON"),
        ("[1]", r"row 1 is list, expected an object"),
        (json.dumps({"question": " ", "answer": "x"}), "row 1: question is ' '"),
        (json.dumps({"query": "Who?", "answer": "x"}), r"question is None \(keys \['answer', 'query'\]\)"),
        (json.dumps({"question": "Who?"}), r"keys \['question'\], expected one of golden_answers"),
        (json.dumps({"question": "Who?", "golden_answers": []}), "expected at least one accepted answer"),
        (
            json.dumps({"question": "Who?", "golden_answers": ["", None]}),
            "expected at least one accepted answer",
        ),
        (json.dumps({"question": "Who?", "answer": True}), "the answer is True, expected a text"),
        ('{"id": "1", "question": "a", "answer": "b"}\n' * 2, "row 2: the id '1' is there twice"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_with_its_place(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(QuestionError, match=said):
        read_questions(path, "hotpotqa", "id")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(QuestionError, match=r"q\.jsonl: cannot be read"):
        read_questions(tmp_path / "q.jsonl", "nq", "id")


@pytest.mark.shared
def test_the_real_question_sets_are_read_whole(shared: Path) -> None:
    folder = shared / "data" / "deepsearch"
    counts = {
        path.name: len(read_questions(path, "d", "id"))
        for path in folder.glob("*.jsonl")
        if path.name != "corpus.jsonl"
    }
    assert counts == {
        "2wikimultihopqa_covered.jsonl": 26,
        "hotpotqa_dev100.jsonl": 100,
        "questions_only_2wiki.jsonl": 200,
        "questions_only_bamboogle.jsonl": 125,
        "questions_only_hotpotqa.jsonl": 200,
        "questions_only_musique.jsonl": 200,
        "questions_only_webwalker.jsonl": 200,
    }


@pytest.mark.shared
def test_the_real_folder_is_a_world_with_half_of_hotpotqa_to_train_on(shared: Path, tmp_path: Path) -> None:
    world = load_world(shared / "data" / "deepsearch", cache=tmp_path)
    facts: dict[str, Any] = world.describe()
    assert facts["splits"] == {"train": 50, "dev": 10, "test": 66}
    assert facts["task_types"] == {"hotpotqa": "id", "2wikimultihopqa": "ood"}
    assert facts["corpus"]["passages"] == 7119
    ids = [{question.id for question in world.questions(split)} for split in ("train", "dev", "test")]
    assert not ids[0] & ids[1] | ids[0] & ids[2] | ids[1] & ids[2]
    env = world.make_env()
    env.reset(options={"task": "2wiki-0"})
    assert (
        "The Half-Way Girl: The Half-Way Girl is a 1925 American" in env.step("search[The Half-Way Girl]")[0]
    )
    again = load_world(shared / "data" / "deepsearch", cache=tmp_path)
    assert again.describe() == facts


def test_a_data_set_with_a_train_file_is_trained_on_it_alone(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"id": "1", "contents": "\\"T\\"\\ntext"}\n', encoding="utf-8")
    for name, ids in {"nq_train": "ab", "nq_dev": "cd", "popqa": "e"}.items():
        rows = [json.dumps({"id": one, "question": "Who?", "answer": "x"}) for one in ids]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    world = load_world(tmp_path, id_datasets=("nq",), ood_datasets=("popqa",))
    assert {split: [q.id for q in world.questions(split)] for split in ("train", "dev", "test")} == {
        "train": ["a", "b"], "dev": [], "test": ["c", "d", "e"],
    }  # fmt: skip
    with pytest.raises(QuestionError, match=r"no file musique\*.*; there is: corpus.jsonl, nq_dev.jsonl"):
        load_world(tmp_path, id_datasets=("musique",))
    with pytest.raises(ValueError, match="must differ"):
        load_world(tmp_path, id_datasets=("nq",), ood_datasets=("nq",))
    with pytest.raises(ValueError, match="retriever is 'lucene', expected bm25, dense:MODEL or the URL"):
        load_world(tmp_path, id_datasets=("nq",), ood_datasets=(), retriever="lucene")
