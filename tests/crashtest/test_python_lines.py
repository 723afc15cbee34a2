"""The line of Python that makes an effect is named, whatever library and whatever thread makes its system call."""

import http.server
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest
from command import labkit

from bench.lines import MARK, PROGRAMS, measure
from labkit.crashtest.blackbox import lines
from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.lanes import Lanes
from labkit.crashtest.blackbox.xray import xray
from labkit.host import python_line
from labkit.host.python_line import Line, is_python, line_of
from labkit.host.syscalls.calls import Call, CallKind
from labkit.host.syscalls.support import supported

pytestmark = pytest.mark.skipif(bool(supported()), reason=supported())


class Answering(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[str]:
    """The port of a server that answers."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield str(server.server_port)
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("name", "least"), [("files", 13), ("sqlite", 90), ("threads", 21), ("arrow", 15)])
def test_every_effect_has_its_line(name: str, least: int) -> None:
    found = measure(name)
    assert found.wrong == ()
    assert found.effects >= least


def test_requests_have_their_line(web: str) -> None:
    found = measure("web", web)
    assert (found.effects >= 3, found.wrong) == (True, ())


def test_messages_to_a_database_have_their_line(postgres: str) -> None:
    found = measure("postgres", postgres)
    assert (found.effects >= 10, found.wrong) == (True, ())


@pytest.mark.slow
def test_messages_to_a_broker_have_their_line(kafka_address: str) -> None:
    found = measure("kafka_producer", kafka_address)
    assert (found.effects >= 4, found.wrong) == (True, ())


@pytest.mark.slow
@pytest.mark.spark
def test_the_python_of_a_spark_job_has_its_lines() -> None:
    """In foreachBatch, in the driver's callback thread, and in the forked processes of its workers."""
    found = measure("spark_job")
    assert (found.effects >= 8, found.wrong) == (True, ())


def test_a_line_that_is_off_by_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def off(thread: int, process: int) -> Line | None:
        line = line_of(thread, process)
        return line and line._replace(number=line.number + 1)

    monkeypatch.setattr(lines.Lines.__init__, "__defaults__", (off,))
    assert len(measure("files").wrong) > 5


def test_no_signal_is_lost_while_a_line_is_read() -> None:
    """A SIGTERM must end a crash test, and its handler runs in the thread that reads lines most of the time."""

    class Raised(BaseException):
        pass

    handled = 0

    def handle(_number: int, _frame: object) -> None:
        nonlocal handled
        handled += 1
        raise Raised

    wait = "import sys; print(flush=True); sys.stdin.read()"
    before = signal.signal(signal.SIGUSR1, handle)
    moments = random.Random(3)
    raised = 0
    try:
        with subprocess.Popen([sys.executable, "-c", wait], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout
            child.stdout.readline()
            assert line_of(child.pid, child.pid) is None  # `-c` has no file
            for number in range(30):
                timer = threading.Timer(moments.uniform(0.001, 0.02), os.kill, (os.getpid(), signal.SIGUSR1))
                try:
                    timer.start()
                    while handled == number:
                        line_of(child.pid, child.pid)
                except Raised:
                    raised += 1
                timer.join()
            child.communicate()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (raised, handled) == (30, 30)


@pytest.mark.slow
def test_a_report_says_the_lines(tmp_path: Path) -> None:
    job = ["with open('out', 'a') as out:", "    out.write('1\\n')", "open('done', 'w').close()"]
    (tmp_path / "job.py").write_text("\n".join(job))
    words = ["--command", f"{sys.executable} job.py", "--read-command", "cat out 2>/dev/null || true"]
    words += ["--reset", "rm -f out done", "--only", "create done #1"]
    code, out, _ = labkit("crashtest", *words, "--json", cwd=tmp_path)
    assert code == 0
    report = json.loads(out)
    assert "[write out #1 (job.py:1)]" in report["why"]  # the with block writes what is buffered at its end
    assert {each["name"]: each["line"] for each in report["effects"]}["create done #1"] == "job.py:3"


def test_other_programs_have_no_line(tmp_path: Path) -> None:
    _, out, _ = labkit("effects", "--command", "echo 1 > out", "--json", cwd=tmp_path)
    assert {each["line"] for each in json.loads(out)["effects"]} == {""}


def test_without_the_package_a_note_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_line, "is_installed", lambda _package: False)
    for command, has_note in ((f'{sys.executable} -c \'open("out", "w")\'', True), ("echo 1 > out", False)):
        code, out, _ = labkit("effects", "--command", command, cwd=tmp_path)
        assert (code, lines.MISSING in out) == (0, has_note)


def test_a_start_behind_a_crash_has_lines_of_its_own(tmp_path: Path) -> None:
    numbers = iter(range(1, 9))
    known = lines.Lines(lambda _thread, _process: Line("job.py", next(numbers), "put"))
    call = Call(1, os.getpid(), os.getpid(), CallKind.CREATE, "openat", "out", "", 0, 0.0)
    effect = Effect(call, "out", 1)
    starts = [known, known, known.of_another_start(), known]
    assert [str(each.added(effect, tmp_path).line) for each in starts] == [f"job.py:{n} in put" for n in (1, 1, 2, 1)]
    assert known.added(effect, tmp_path).call.words == tuple(sys.orig_argv)


def test_a_series_of_writes_is_read_once_per_beginning(tmp_path: Path) -> None:
    """A write has the line it had behind the same effects and the same first line; otherwise it is read."""
    stands, read = [0], []

    def where(_thread: int, _process: int) -> Line:
        read.append(stands[0])
        return Line("job.py", stands[0], "put")

    def start(known: lines.Lines, *series: tuple[CallKind, str, int]) -> list[int]:
        found, times = [], Counter()
        for kind, path, stands[0] in series:
            times[kind, path] += 1
            call = Call(1, os.getpid(), os.getpid(), kind, "", path, "", 0, 0.0)
            line = known.added(Effect(call, path, times[kind, path]), tmp_path).line
            found.append(line.number)
        return found

    create, write, sync = CallKind.CREATE, CallKind.WRITE, CallKind.SYNC
    insert = (create, "journal", 3), (write, "journal", 3), (write, "store", 4), (sync, "store", 4)
    update = (create, "journal", 7), (write, "journal", 7), (write, "store", 8)
    first = lines.Lines(where)
    assert start(first, *insert) == [3, 3, 4, 4]
    assert [read.pop(0) for _ in range(len(read))] == [3, 3, 4, 4]
    assert start(first.of_another_start(), *insert, *insert) == [3, 3, 4, 4] * 2
    assert [read.pop(0) for _ in range(len(read))] == [3, 3]
    assert start(first.of_another_start(), *update, *insert) == [7, 7, 8, 3, 3, 4, 4]
    assert [read.pop(0) for _ in range(len(read))] == [7, 7, 8, 3]
    assert start(first.of_another_start(), *insert[:2], (write, "log", 5), *insert[2:]) == [3, 3, 5, 4, 4]
    assert [read.pop(0) for _ in range(len(read))] == [3, 5, 4, 4]


def test_a_large_run_reads_only_some_lines_and_guesses_none(tmp_path: Path) -> None:
    """After `turn` of 300 effects, another line makes them; a write follows each one."""
    many = lines.ALIKE

    def start(turn: int, *, is_large: bool) -> tuple[list[int | None], int]:
        at, read = [0], []

        def where(_thread: int, _process: int) -> Line:
            read.append(at[0])
            return Line("job.py", 3 if at[0] < turn else 4, "put")

        known = lines.Lines(where, is_large=is_large)
        call, found = Call(1, os.getpid(), os.getpid(), CallKind.CREATE, "", "", "", 0, 0.0), []
        for at[0] in range(300):
            # The first one has a further write, whose line is no proof for the write after a later creation.
            for number, kind in enumerate([CallKind.CREATE, CallKind.WRITE, *[CallKind.WRITE] * (at[0] == 0)]):
                turn_of_name = 2 * at[0] + number
                line = known.added(Effect(replace(call, kind=kind), "rows-journal", turn_of_name), tmp_path).line
                found.append(line and line.number)
        return [*found[:2], *found[3:]], len(read)

    assert start(300, is_large=False) == ([3] * 600, 302)  # the line of a write is known from the creation before it
    for turn in (300, many, 60, 137):
        found, times = start(turn, is_large=True)
        assert times < 250
        for number, line in enumerate(found):
            assert line in (None, 3 if number // 2 < turn else 4)
        assert found[: 2 * many] == [3] * 2 * many
        assert found.count(None) > 150


def test_a_large_run_of_writes_alone_guesses_no_line(tmp_path: Path) -> None:
    """The first write that is read after a gap is not the first of its series, so it tells nothing of the next ones."""
    for turn in (101, 130, 199):
        at = [0]

        def where(_thread: int, _process: int, at: list[int] = at, turn: int = turn) -> Line:
            return Line("job.py", 3 if at[0] < turn else 4, "put")

        known, found = lines.Lines(where, is_large=True), []
        call = Call(1, os.getpid(), os.getpid(), CallKind.WRITE, "", "", "", 0, 0.0)
        for at[0] in range(300):
            found.append(known.added(Effect(call, "rows", at[0]), tmp_path).line)
        assert all(line is None or line.number == (3 if number < turn else 4) for number, line in enumerate(found))
        assert len(list(filter(None, found))) < 120


def test_a_line_knows_the_lines_that_called_its_function(tmp_path: Path) -> None:
    """At most a few, and none of a library: pathlib opens the file here."""
    job = ["from pathlib import Path", "def put(name):", "    Path(name).touch()", "def deep(n):"]
    job += ["    deep(n - 1) if n else put('b')", "put('a')", "deep(99)"]
    (tmp_path / "job.py").write_text("\n".join(job))
    (tmp_path / "out").touch()
    with chdir(tmp_path):
        record = xray(f"{sys.executable} -B job.py", [tmp_path], tmp_path / "out", lanes=Lanes(), limit=60.0)
    found = {effect.name: effect.line for effect in record.effects}
    assert found["create a #1"].stack == (("job.py", 3), ("job.py", 6))
    deep = found["create b #1"]
    assert deep.stack == (("job.py", 3), *[("job.py", 5)] * python_line.MOST_CALLERS)
    assert str(deep) == "job.py:3 in put"


def test_a_process_that_cannot_be_read_has_no_line() -> None:
    with subprocess.Popen([shutil.which("sleep") or "sleep", "60"]) as process:
        assert not is_python(process.pid)
        assert line_of(process.pid, process.pid) is None
        process.kill()
    assert not is_python(process.pid)


ENDING = """
import sys
class Slow:
    def __del__(self, write=sys.stdout.write, flush=sys.stdout.flush, read=sys.stdin.read):
        write("ending\\n")
        flush()
        read()
slow = Slow()
"""
LOOKING = """
import subprocess, sys
from labkit.host.python_line import line_of
with subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=-1, stdout=-1, text=True) as ending:
    assert ending.stdout.readline() == "ending\\n"
    line_of(ending.pid, ending.pid)
    ending.stdin.close()
"""


def test_an_interpreter_that_is_ending_prints_no_warning() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOKING, ENDING], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_program_says_what_it_does() -> None:
    for program in PROGRAMS.glob("*.py"):
        assert program.read_text().startswith('"""'), program
        assert MARK in program.read_text(), program
