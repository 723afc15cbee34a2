"""Programs that are watched and killed between their lines; a line at which they are killed never happens."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil
import pytest
from waiting import until

import labkit
from labkit.core.errors import InvalidInput
from labkit.crashtest.harness.leftovers import MARK, marked_processes
from labkit.host.line_watch import watch_lines
from labkit.host.syscalls.calls import Answer, Call, CallKind, WatchedRun

TRACED = """
from labkit.host.line_trace import connection
import code_of_user
channel = connection()
channel.trace(lambda file: file == code_of_user.__file__)
code_of_user.main()
"""
USER = """
import os, threading, time
class Defined:
    nothing = 1
def write(text):
    with open("out.txt", "a") as file:
        file.write(text)
def main():
    write("a")
    thread = threading.Thread(target=write, args=("b",))
    thread.start(); thread.join()
"""
LINES = ["9 main", "6 write", "7 write", "6 write", "10 main", "11 main"]
"""The lines before the thread's own; leaving a `with` counts as its line once more."""

Watch = Callable[..., WatchedRun]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "traced.py").write_text(TRACED)
    (tmp_path / "code_of_user.py").write_text(USER)
    return tmp_path


def watched(place: Path, decide: Callable[[Call], Answer], **more: object) -> WatchedRun:
    return watch_lines(
        ["/bin/sh", "-c", f"exec {sys.executable} -B traced.py"],
        folder=place,
        environment={**os.environ, "PYTHONPATH": str(Path(labkit.__file__).parents[1])},
        output=place / "log.txt",
        decide=decide,
        **more,
    )


def places(calls: Iterable[Call]) -> list[str]:
    return [f"{call.line.number} {call.line.function}" if call.line else "" for call in calls]


def test_each_line_is_asked_about_in_every_thread_and_then_the_exit(place: Path) -> None:
    calls: list[Call] = []
    run = watched(place, lambda call: calls.append(call) or Answer.GO_ON)
    print((place / "log.txt").read_text())
    assert (run.status, run.held, run.emptied, run.calls) == (0, None, None, len(calls))
    assert places(calls)[: len(LINES)] == LINES
    assert {call.path for call in calls[:-1]} == {str(place / "code_of_user.py")}
    assert [call.name for call in calls].count("return") == 2  # of `main`, and of the thread's function
    assert len({call.pid for call in calls}) == 2
    assert {call.process for call in calls} == {run.root}
    assert [call.kind for call in calls].index(CallKind.EXIT) == len(calls) - 1
    assert (place / "out.txt").read_text() == "ab"


@pytest.mark.parametrize("number", [2, 3, 4, 5, 99])
def test_a_line_at_which_everything_is_killed_never_happens(place: Path, number: int) -> None:
    def decide(call: Call) -> Answer:
        is_it = call.number == number or (number == 99 and call.kind is CallKind.EXIT)
        time.sleep(0.3 if is_it else 0)  # in which it would happen if it were not held
        return Answer.KILL if is_it else Answer.GO_ON

    run = watched(place, decide)
    assert run.status is None
    assert run.held is not None
    assert run.root in run.emptied.killed
    assert run.emptied.left == []
    out = place / "out.txt"
    written = out.read_text() if out.exists() else None
    assert written == {2: None, 3: "", 4: "", 5: "a", 99: "ab"}[number]


def test_nobody_is_asked_about_kinds_that_are_not_wanted(place: Path) -> None:
    calls: list[Call] = []
    run = watched(place, lambda call: calls.append(call) or Answer.GO_ON, kinds=frozenset())
    assert (run.status, calls) == (0, [])


def test_an_error_of_the_caller_is_raised_when_everything_is_dead(place: Path) -> None:
    roots: list[int] = []

    def decide(call: Call) -> Answer:
        roots.append(call.process)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        watched(place, decide)
    assert not psutil.pid_exists(roots[0])


def test_a_command_that_says_nothing_is_asked_about_by_the_clock_and_what_it_leaves_is_killed(tmp_path: Path) -> None:
    looks: list[float] = []

    def tick() -> Answer:
        looks.append(time.monotonic())
        return Answer.KILL if len(looks) > 3 else Answer.GO_ON

    more = {"folder": tmp_path, "environment": os.environ, "output": tmp_path / "log", "decide": lambda _: Answer.GO_ON}
    run = watch_lines(["/bin/sh", "-c", "sleep 60 & sleep 60"], tick=tick, **more)
    assert run.status is None
    assert len(run.emptied.killed) >= 2
    run = watch_lines(["/bin/sh", "-c", "echo said; sleep 60 & exit 3"], linger=0.2, **more)
    assert run.status == 3
    assert len(run.emptied.killed) == 1
    assert (tmp_path / "log").read_text() == "said\n"
    with pytest.raises(InvalidInput, match="could not be started"):
        watch_lines(["/nowhere/at-all"], **more)


RUNNER = """
import os, sys
from pathlib import Path
from labkit.host.line_watch import watch_lines
from labkit.host.syscalls.calls import Answer
watch_lines([sys.executable, "traced.py"], folder=Path.cwd(), environment=os.environ, output=Path("log.txt"),
            decide=lambda call: Answer.GO_ON)
"""


@pytest.mark.parametrize("busy", ["time.sleep(60)", "while True: len('x')"])
def test_a_command_whose_watcher_is_killed_kills_its_session(place: Path, busy: str) -> None:
    """Also in the middle of a line, and with the processes that it has started."""
    (place / "code_of_user.py").write_text(
        "import os, subprocess, time\n"
        "def main():\n"
        "    other = subprocess.Popen(['sleep', '60'], process_group=0)\n"
        "    open('pids.tmp', 'w').write(f'{os.getpid()} {other.pid}'); os.rename('pids.tmp', 'pids')\n"
        f"    {busy}\n"
    )
    environment = {**os.environ, MARK: str(place), "PYTHONPATH": str(Path(labkit.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", RUNNER], cwd=place, env=environment) as runner:
        until((place / "pids").exists, "the ids of the processes", 20)
        pids = [int(each) for each in (place / "pids").read_text().split()]
        assert all(map(psutil.pid_exists, pids))
        runner.send_signal(signal.SIGKILL)
    until(lambda: not set(pids) & set(marked_processes(str(place))), "the end of every process", 10)
