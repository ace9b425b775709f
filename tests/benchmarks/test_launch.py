from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.launch import LOG, Job, launch, printable, share_cores
from benchmarks.progress import Lines, Reporter, Status, duration, read_status

ROOT = Path(__file__).resolve().parents[2]


def job(folder: Path, name: str, code: str) -> Job:
    return Job(name, folder / name, (sys.executable, "-c", code))


def lines() -> tuple[Lines, io.StringIO]:
    out = io.StringIO()
    return Lines(Console(file=out, width=200)), out


def test_a_failing_job_is_named_with_the_end_of_its_log_and_the_others_finish(tmp_path):
    shown, out = lines()
    jobs = [
        job(tmp_path, "bad", "import sys; print('cause \\x1b[31m'); sys.exit('the last word')"),
        job(tmp_path, "good", "import time; time.sleep(0.5); print('fine')"),
        job(tmp_path, "later", "print('fine')"),
    ]
    (failure,) = launch(jobs, parallel=2, threads=1, display=shown)
    assert (failure.name, failure.exit_code, failure.log) == ("bad", 1, tmp_path / "bad" / LOG)
    assert failure.tail == ("cause \\x1b[31m", "the last word")
    assert all((tmp_path / name / LOG).read_text() == "fine\n" for name in ("good", "later"))
    assert "bad: FAILED with exit code 1" in out.getvalue()


def test_no_more_than_the_given_number_run_at_a_time(tmp_path):
    code = "import time; print(time.time()); time.sleep(0.3); print(time.time())"
    launch([job(tmp_path, str(n), code) for n in range(3)], parallel=1, threads=1, display=lines()[0])
    spans = [tuple(map(float, (tmp_path / str(n) / LOG).read_text().split())) for n in range(3)]
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_children_are_told_their_threads_before_they_start(tmp_path):
    code = "import os; print(os.environ['OMP_NUM_THREADS'], os.environ['HF_HUB_OFFLINE'])"
    launch([job(tmp_path, "a", code)], parallel=1, threads=3, display=lines()[0])
    assert (tmp_path / "a" / LOG).read_text() == "3 1\n"


@pytest.mark.parametrize(
    ("jobs", "runs", "available", "expected"),
    [
        (None, 6, 2, (2, 1)),
        (None, 2, 8, (2, 4)),
        (1, 6, 8, (1, 8)),
        (3, 6, 8, (3, 2)),
        (16, 6, 2, (6, 1)),
        (None, 0, 2, (1, 2)),
    ],
)
def test_cores_are_shared_without_promising_one_twice(jobs, runs, available, expected):
    assert share_cores(jobs, runs, available) == expected


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
def test_a_run_ends_when_its_launcher_is_killed(tmp_path):
    child = "from benchmarks.launch import tie_to_launcher; tie_to_launcher(); import time; time.sleep(60)"
    launcher = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", launcher], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert alive(pid)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)


def alive(pid: int) -> bool:
    """Whether a process exists and is not merely waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_tied_process_ends_normally_when_its_work_is_done():
    code = "from benchmarks.launch import tie_to_launcher; tie_to_launcher(); print('done')"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read() == b"done\n"
    assert process.stderr.read() == b""
    assert process.wait() == 0


def test_logs_cannot_steer_the_terminal():
    assert printable("\x1b[2Jfine\x07 é\t漢") == "\\x1b[2Jfine\\x07 é\t漢"


def test_plain_lines_appear_for_stages_and_tenths_and_estimate_the_rest():
    now = [0.0]
    out = io.StringIO()
    shown = Lines(Console(file=out, width=200), clock=lambda: now[0], interval=5.0)
    for second in range(101):
        now[0] = float(second)
        shown.update("a", Status(f"iteration {second}", float(second), 200.0, "success 0.500"))
    shown.update("a", Status("evaluating 1", 100.0, 200.0))
    printed = out.getvalue().splitlines()
    assert printed[0] == "a:    0%  iteration 0  success 0.500"
    assert printed[1] == "a:   10%  iteration 20  success 0.500  about 3 min 00 s left"
    assert len(printed) == 7
    assert "evaluating 1" in printed[-1]


def test_markup_in_what_a_run_says_is_shown_as_it_is():
    shown, out = lines()
    shown.say("click[red] [/red]")
    assert out.getvalue() == "click[red] [/red]\n"


def test_a_status_comes_back_as_it_was_written_and_is_not_written_too_often(tmp_path):
    report = Reporter(tmp_path, interval=1000)
    assert read_status(tmp_path) is None
    report(Status("one", 1.0, 3.0))
    report(Status("two", 2.0, 3.0))
    assert read_status(tmp_path) == Status("one", 1.0, 3.0)
    report(Status("three", 3.0, 3.0, "note"), now=True)
    assert read_status(tmp_path) == Status("three", 3.0, 3.0, "note")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599, "59 min 59 s"), (3660, "1 h 01 min")],
)
def test_durations_are_said_for_people(seconds, said):
    assert duration(seconds) == said


def test_the_launcher_leaves_no_child_behind_when_it_fails(tmp_path):
    class Broken(Lines):
        def update(self, run: str, status: Status) -> None:
            raise RuntimeError("broken display")

    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    work = job(tmp_path, "a", code)
    work.folder.mkdir()
    Reporter(work.folder)(Status("begun", 0.0, 1.0))
    with pytest.raises(RuntimeError, match="broken display"):
        launch([work], parallel=1, threads=1, display=Broken(Console(file=io.StringIO())))
    if (tmp_path / "pid").exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)
