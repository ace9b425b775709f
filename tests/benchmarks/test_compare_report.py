"""A comparison in words, tables and files, and the command that makes it."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks import records
from benchmarks.reporting.compare import Side
from benchmarks.reporting.compare_report import compared_name, write_comparison
from benchmarks.reporting.compare_sides import open_sides
from benchmarks.reporting.load import load_suite
from benchmarks.reporting.schema import RecordError
from tests.benchmarks.alfworld_runs import add_alfworld
from tests.benchmarks.report_runs import PANEL, add_run
from tests.benchmarks.test_cli import call

HOSTILE = "[bold red]x[/] | a\x1b[31mb\u202e <script>alert(1)</script>\n# *h* `c` $d$"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "results" / "runs" / "webshop"


def written(
    suite: Path,
    a: str = "grpo",
    b: str = "grpo+empg",
    out: Path | None = None,
    console: Console | None = None,
) -> Path:
    """Where A and B are compared, by default beside the runs."""
    folder = out or suite.parent / "compared"
    write_comparison(*open_sides(a, b, suite, suite.parent.parent), folder, console)
    return folder


def markdown(suite: Path, a: str = "grpo", b: str = "grpo+empg") -> str:
    return (written(suite, a, b) / "compare.md").read_text()


def lines_of(folder: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((folder / name).read_text())))


def two(suite: Path, a: dict[str, Any], b: dict[str, Any]) -> Path:
    add_run(suite, "grpo", **a)
    add_run(suite, "grpo+empg", **b)
    return suite


def test_a_clear_difference_is_said_in_one_sentence_with_its_interval(suite: Path) -> None:
    text = markdown(two(suite, {"solved": range(4)}, {"solved": range(16)}))
    said = re.findall(r"^- GRPO\+EMPG − GRPO, sampled: (B solves.*)$", text.replace("\\", ""), re.M)
    assert re.fullmatch(
        r"B solves 60\.0 points more of the 20 tasks than A \[\+\d\d\.\d, \+\d\d\.\d\]; significant at 5%.*",
        said[0],
    )
    assert "B alone solves 12 tasks, A alone 0; alike on 8." in text


def test_a_small_difference_is_not_significant_and_the_reason_is_said(suite: Path) -> None:
    text = markdown(two(suite, {"solved": range(8)}, {"solved": range(2, 9)})).replace("\\", "")
    assert "B solves 5.0 points fewer of the 20 tasks than A [" in text
    assert "not significant: the interval contains 0." in text


def test_an_interval_without_zero_is_not_enough_where_the_exact_test_allows_no_difference(
    suite: Path,
) -> None:
    # Five tasks won and none lost: the bootstrap interval begins above 0, while McNemar's p is 2 / 2^5.
    text = markdown(two(suite, {"solved": range(8)}, {"solved": range(13)})).replace("\\", "")
    said = r"B solves 25\.0 points more of the 20 tasks than A \[\+\d+\.\d, \+\d+\.\d\]; "
    assert re.search(said + r"not significant: exact McNemar p = 0\.062\.", text)


def test_a_difference_that_the_other_tests_make_doubtful_is_not_significant_and_says_so(suite: Path) -> None:
    # Sampled, six tasks won and none lost: p is 2 / 2^6, and twice that beside the test of the greedy mode.
    won = {"sampled": range(6), "greedy": range(0)}
    text = markdown(two(suite, {"solved": {"sampled": (), "greedy": ()}}, {"solved": won})).replace("\\", "")
    assert "not significant after Holm's correction for 2 tests: p = 0.062, alone 0.031." in text


def test_equal_sides_are_said_to_be_equal(suite: Path) -> None:
    text = markdown(two(suite, {"solved": range(8)}, {"solved": range(8)})).replace("\\", "")
    assert re.search(r"A and B solve equally many of the 20 tasks \[.*\]; not significant", text)


def test_several_seeds_are_named_in_the_sentence_and_so_are_those_that_only_one_side_has(suite: Path) -> None:
    for seed in (0, 1, 2):
        add_run(suite, "grpo", seed, solved=range(6 + seed))
    for seed in (0, 1):
        add_run(suite, "grpo+empg", seed, solved=range(8))
    text = markdown(suite).replace("\\", "")
    assert "points more of the 20 tasks than A over 2 seeds [" in text
    assert "A has seed 2, which B lacks; compared: seeds 0, 1." in text
    assert "A is webshop grpo: GRPO (seeds 0, 1)." in text


def test_variants_that_only_one_side_has_are_named(suite: Path) -> None:
    other = suite.parent / "other"
    for variant in ("grpo", "dapo", "expert"):
        add_run(suite, variant)
    for variant in ("grpo", "grpo+empg"):
        add_run(other, variant)
    text = markdown(suite, "webshop", "other").replace("\\", "")
    assert "Not compared, as only A has runs of it: DAPO." in text
    assert "Not compared, as only B has runs of it: GRPO+EMPG." in text


def test_runs_that_are_not_complete_are_named(suite: Path) -> None:
    add_run(suite, "grpo", 1, complete=False)
    text = markdown(two(suite, {}, {}))
    assert r"left out: A: webshop-grpo-s1 (started, not complete); B: none" in text.replace("\\", "")


def test_errored_episodes_are_counted_where_they_were_left_out(suite: Path) -> None:
    text = markdown(two(suite, {"errored": {0: "down", 1: "down"}}, {"errored": {1: "down"}}))
    said = "2 episodes of A and 1 of B failed in the environment; 2 tasks that some run never finished are left out"
    assert f"GRPO+EMPG − GRPO, greedy: {said}" in text.replace("\\", "")


def test_different_models_are_compared_and_said_to_be_different(suite: Path) -> None:
    other = suite.parent / "larger"
    add_run(suite, "grpo", policy={"parameters": 663_808})
    add_run(other, "grpo", policy={"parameters": 2_600_000})
    text = markdown(suite, "webshop", "larger").replace("\\", "")
    assert "The sides play with different models, so a difference is not that of the method alone: " in text
    assert "policy.parameters: A 663808, B 2600000." in text
    assert "model: A: parameters 663,808; B: parameters 2,600,000" in text
    same = markdown(two(suite.parent / "same", {}, {}), "grpo", "grpo+empg")
    assert "different models" not in same


def test_the_tasks_that_changed_hands_are_listed_by_id_and_type_both_ways(suite: Path) -> None:
    folder = written(two(suite, {"solved": {"sampled": (0, 1, 2)}}, {"solved": {"sampled": (2, 3)}}))
    text = (folder / "compare.md").read_text().replace("\\", "")
    table = text[text.index("tasks that changed hands") :]
    rows = [line for line in table.splitlines() if line.startswith("| synthetic")]
    assert rows == [
        "| synthetic-3 (garden) | 0.0 | 100.0 | +100.0 |",
        "| synthetic-0 (garden) | 100.0 | 0.0 | -100.0 |",
        "| synthetic-1 (garden) | 100.0 | 0.0 | -100.0 |",
    ]
    tasks = lines_of(folder, "tasks.csv")
    assert len(tasks) == 20
    changed = {row["task"]: float(row["change"]) for row in tasks if float(row["change"]) != 0}
    assert changed == {"synthetic-3": 1.0, "synthetic-0": -1.0, "synthetic-1": -1.0}


def test_what_a_long_list_of_flips_hides_is_counted_and_stands_in_the_file(suite: Path) -> None:
    folder = written(two(suite, {"solved": {"sampled": ()}}, {"solved": {"sampled": range(20)}}))
    text = (folder / "compare.md").read_text()
    assert text.count("| +100.0 |") == 15
    assert "5 further in tasks.csv" in text
    assert sum(row["change"] == "1.000000" for row in lines_of(folder, "tasks.csv")) == 20


def test_an_errored_task_is_in_the_file_as_not_compared_without_numbers(suite: Path) -> None:
    folder = written(two(suite, {"errored": {7: "down"}}, {"solved": range(20)}))
    gone = [row for row in lines_of(folder, "tasks.csv") if row["task"] == "synthetic-7"]
    assert [(row["compared"], row["b_success"], row["change"], row["a_errored"]) for row in gone] == [
        ("no", "", "", "1")
    ] * 2


def test_every_number_of_the_tables_is_in_the_file_with_unit_and_n(suite: Path) -> None:
    counts = {"pick": 6, "look": 4}
    add_alfworld(suite, "grpo", counts=counts, solved={"pick": 2})
    add_alfworld(suite, "grpo+empg", counts=counts, solved={"pick": 4, "look": 1})
    folder = written(suite)
    sampled = {row["measure"]: row for row in lines_of(folder, "compare.csv") if row["mode"] == "sampled"}
    assert {name: (row["a"], row["b"], row["tasks"]) for name, row in sampled.items()} == {
        "success": ("0.200000", "0.500000", "10"),
        "success:Pick": ("0.333333", "0.666667", "6"),
        "success:Look": ("0.000000", "0.250000", "4"),
    }
    assert {row["unit"] for row in sampled.values()} == {"tasks"}
    # Three tasks won, none lost: p is 2 / 2^3, and the interval contains 0.
    assert (sampled["success"]["p"], sampled["success"]["significance"]) == (
        "0.25",
        "not significant: the interval contains 0",
    )
    row = next(line for line in (folder / "compare.md").read_text().splitlines() if line.startswith("| Look"))
    assert row.startswith(r"| Look (n=4) | 0.0 | 25.0 | +25.0 [")


def test_domains_of_deep_search_are_compared_beside_their_kinds(suite: Path) -> None:
    kinds = {"bridge": "id", "bridge3": "ood"}
    for variant, solved in (("grpo", (0, 1)), ("grpo+empg", (0, 1, 2, 3, 6))):
        folder = add_run(
            suite,
            variant,
            tasks=8,
            solved=solved,
            config={"benchmark": "deepsearch"},
            world={"name": "deepsearch", "task_types": kinds},
            panels={"test": {"digest": PANEL, "size": 8}},
        )
        rows = (folder / "eval.jsonl").read_text().splitlines()
        typed = (
            line.replace("garden", "bridge" if re.search(r"synthetic-[0-3]\"", line) else "bridge3")
            for line in rows
        )
        (folder / "eval.jsonl").write_text("\n".join(typed) + "\n")
    found = lines_of(written(suite), "compare.csv")
    sampled = {row["measure"]: row["difference"] for row in found if row["mode"] == "sampled"}
    # Of four in-domain questions from 2 to 4, of four out-of-domain ones from 0 to 1.
    assert [sampled[f"success:{name}"] for name in ("ID", "OOD")] == ["0.500000", "0.250000"]


def test_foreign_text_steers_neither_the_terminal_nor_markdown_nor_a_path(suite: Path) -> None:
    add_run(suite, "grpo", solved=range(3), policy={"name": HOSTILE}, errored={9: HOSTILE})
    folder = add_run(suite, "dapo", solved=range(9))
    records.write_json(folder / "run.json", records.read_json(folder / "run.json") | {"variant": HOSTILE})
    for each in suite.iterdir():
        rows = (each / "eval.jsonl").read_text()
        (each / "eval.jsonl").write_text(rows.replace("synthetic-5", "<b>5</b>|[x]\\u001b[31m"))
    shown = io.StringIO()
    console = Console(file=shown, width=200, force_terminal=True, color_system=None)
    sides = open_sides("grpo", str(folder), suite, suite)
    assert re.fullmatch(r"[A-Za-z0-9._-]+", compared_name(*sides))
    out = written(suite, "grpo", str(folder), console=console)
    terminal = re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue())  # rich's own styles
    assert r"[bold red]x[/] | a\x1b[31mb\u202e <script>" in terminal
    assert r"<b>5</b>|[x]\x1b[31m (garden)" in terminal
    assert not re.search("\u202e|a\x1b|x\\]\x1b", shown.getvalue())
    text = (out / "compare.md").read_text()
    assert r"\<script\>" in text
    assert r"\<b\>5\</b\>\|\[x\]" in text
    assert not re.search(r"\u202e|\x1b|(?<!\\)<(script|b)>", text)
    assert [line for line in text.splitlines() if line.startswith("# ")] == [text.splitlines()[0]]
    for name in ("compare.csv", "tasks.csv"):
        assert "\x1b" not in (out / name).read_text()


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("webshop grpo+empg", "webshop-grpo-empg"),
        ("results/runs/*grpo-s[01]*", "results-runs-grpo-s-01"),
        ("../..", "side"),
        ("", "side"),
        ("x" * 500, "x" * 60),
    ],
)
def test_a_name_becomes_part_of_a_folders_name(suite: Path, name: str, safe: str) -> None:
    add_run(suite, "grpo")
    assert compared_name(*(Side(each, load_suite(suite)) for each in (name, "b"))) == f"{safe}-vs-b"


def test_the_terminal_keeps_every_cell_whole_at_eighty_columns(suite: Path) -> None:
    for seed in range(3):
        add_run(suite, "dapo", seed, solved=range(5 + seed))
        add_run(suite, "dapo+empg", seed, solved=range(9 + seed))
    shown = io.StringIO()
    written(suite, "dapo", "dapo+empg", console=Console(file=shown, width=80))
    text = shown.getvalue()
    table = text[text.index("The same tasks") : text.index("tasks that changed hands")]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table
    for whole in (" 30.0 ", " 50.0 ", "± 5.0", "+20.0", "20 × 3"):
        assert whole in table


def test_the_same_records_give_the_same_bytes(suite: Path, tmp_path: Path) -> None:
    for seed in range(2):
        add_run(suite, "grpo", seed, solved=range(5 + seed), iterations=range(6 - seed))
        add_run(suite, "grpo+empg", seed, solved=range(9 + seed))
    first, second = (written(suite, out=tmp_path / name) for name in ("first", "second"))
    contents = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in (first, second)]
    assert contents[0] == contents[1]
    assert {"compare.md", "compare.csv", "tasks.csv"} <= contents[0].keys()


def test_a_refused_comparison_writes_nothing(suite: Path) -> None:
    two(suite, {}, {})
    add_run(suite.parent / "other", "dapo", panels={"test": {"digest": "f" * 64, "size": 20}})
    with pytest.raises(RecordError, match="saw another test panel"):
        written(suite, "grpo", "other", out=suite.parent / "out")
    assert not (suite.parent / "out").exists()


def test_the_command_writes_below_published_and_says_where(
    capsys: pytest.CaptureFixture[str], suite: Path
) -> None:
    two(suite, {"solved": range(4)}, {"solved": range(16)})
    results = suite.parent.parent
    code, out, _ = call(capsys, "compare", "grpo", "grpo+empg", "--results", results)
    folder = results / "published" / "compare" / "webshop-grpo-vs-webshop-grpo-empg"
    assert (code, out.splitlines()[-1]) == (0, f"comparison: {folder}")
    assert (folder / "compare.md").exists()
    code, out, _ = call(
        capsys,
        "compare",
        "grpo",
        "grpo+empg",
        "--suite",
        suite,
        "--out",
        results / "here",
        "--results",
        results,
    )
    assert (code, out.splitlines()[-1]) == (0, f"comparison: {results / 'here'}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("grpo", "ppo"), "error: 'ppo' is no folder, no suite with runs and no variant in "),
        (("grpo", "grpo"), "is on both sides; a run is not compared with itself"),
        (("grpo",), "error: Missing argument 'B'"),
        (("grpo", "grpo+empg", "--suite", "webshot"), "error: no suite 'webshot', expected one of: "),
        (("grpo", "grpo+empg", "--out", "FILE"), "Not a directory: "),
    ],
)
def test_a_bad_comparison_is_one_line_on_stderr_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], suite: Path, arguments: tuple[str, ...], said: str
) -> None:
    two(suite, {}, {})
    (suite / "file").touch()
    given = (str(suite / "file" / "out") if each == "FILE" else each for each in arguments)
    code, _, errors = call(capsys, "compare", *given, "--results", suite.parent.parent)
    assert code == 2
    assert said in errors
    assert errors.count("\n") == 1
