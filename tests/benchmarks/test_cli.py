from __future__ import annotations

import sys

import pytest

from benchmarks import cli


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["empg-bench", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
    said = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, said.out, said.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "webshot"), "error: no suite 'webshot', expected one of:"),
        (
            ("run", "--scale", "huge"),
            "error: webshop: no scale 'huge', expected one of: default, paper, smoke",
        ),
        (("run", "--seeds", "0"), "error: Invalid value for '--seeds'"),
        (("run", "--jobs", "many"), "error: Invalid value for '--jobs'"),
        (("run", "--scales", "smoke"), "error: No such option"),
        (
            ("run-one", "webshop", "webshop-ppo-s0"),
            "error: no run 'webshop-ppo-s0' in webshop, expected one of:",
        ),
        (("dance",), "error: No such command 'dance'"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_code_2(capsys, tmp_path, arguments, said):
    code, _, errors = call(capsys, *arguments)
    assert code == 2
    assert errors.startswith(said)
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("replaced", "replacement", "said"),
    [
        ("zeta = 0.05", "zetta = 0.05", "error: tiny.empg.zetta: unknown key, expected one of: "),
        ("test = 3", "test = 3000", "error: a panel of 3000 "),
        ('model = "', 'model = "/nowhere', "error: policy.model: no model in /nowhere"),
    ],
)
def test_a_suite_that_cannot_run_is_refused_before_any_run_starts(
    capsys, tiny_suite, tmp_path, replaced, replacement, said
):
    tiny_suite.write_text(tiny_suite.read_text().replace(replaced, replacement))
    code, _, errors = call(capsys, "run", tiny_suite, "--results", tmp_path / "results")
    assert code == 2
    assert errors.startswith(said)
    assert errors.count("\n") == 1
    assert not list(tmp_path.glob("results/runs/*/*/run.json"))


def test_missing_data_and_an_unwritable_results_folder_are_refused(capsys, tiny_suite, tmp_path):
    code, _, errors = call(
        capsys, "run", tiny_suite, "--data", tmp_path / "no", "--results", tmp_path / "results"
    )
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith("error: data: no folder")
    (tmp_path / "file").touch()
    code, _, errors = call(capsys, "run", tiny_suite, "--results", tmp_path / "file")
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith("error: results: cannot write in")


def test_a_report_of_nothing_is_refused_in_one_line(capsys, tiny_suite, tmp_path):
    code, _, errors = call(capsys, "report", tiny_suite, "--results", tmp_path)
    assert (code, errors.count("\n")) == (2, 1)


def test_the_plan_lists_every_run_and_how_far_it_is(capsys, tiny_suite, tmp_path):
    code, out, _ = call(capsys, "plan", tiny_suite, "--seeds", 2, "--results", tmp_path)
    assert code == 0
    for name in ("webshop-zero-shot", "webshop-expert", "webshop-grpo-empg-s0", "webshop-dapo-s1"):
        assert name in out
    assert out.count("not begun") == 6


def test_the_demonstrator_can_be_evaluated_without_leaving_a_record(capsys, tiny_suite, tmp_path):
    results = tmp_path / "results"
    code, out, _ = call(capsys, "evaluate", tiny_suite, "expert", "--tasks", 2, "--results", results)
    assert code == 0
    assert "greedy: success" in out
    assert "n=2" in out
    assert not results.exists()


def test_errors_cannot_steer_the_terminal(capsys):
    code, _, errors = call(capsys, "run", "a\x1b[2Jb\nc")
    assert code == 2
    assert "\x1b" not in errors
    assert errors.count("\n") == 1


def test_ctrl_c_says_how_to_go_on_and_ends_with_the_code_of_an_interrupted_command(capsys, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "open_collection", interrupt)
    code, _, errors = call(capsys, "plan")
    assert code == 130
    assert errors == "interrupted; the same command goes on where this one stopped\n"


def test_without_a_command_the_help_is_shown(capsys):
    code, out, errors = call(capsys)
    assert code == 2
    assert "run-one" in out + errors
