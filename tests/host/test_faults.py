"""A held call suffers a fault: what the program gets, what its files and the server have, and what the evidence is."""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from watched_programs import output_of, python, shell

from labkit.host.syscalls.calls import Answer, Call, CallKind, Decision, WatchedRun
from labkit.host.syscalls.delivery import NO_ANSWER
from labkit.host.syscalls.faults import Fault, TimedFault

pytestmark = pytest.mark.usefixtures("watched_calls")


def run(folder: Path, fault: Fault, kind: CallKind, text: str, *, number: int = 1) -> tuple[WatchedRun, str]:
    """The run of a Python program, whose call with this running number among those of a kind suffers a fault, and what
    the program printed."""
    met: list[Call] = []

    def decide(call: Call) -> Decision:
        if call.kind is kind:
            met.append(call)
            return fault if len(met) == number else Answer.GO_ON
        return Answer.GO_ON

    ended, _ = python(folder, text, decide)
    return ended, output_of(folder).read_text().strip()


CAUGHT = """
    import errno, os
    file = os.open("a", os.O_WRONLY | os.O_CREAT)
    try:
        {call}
        print("fine", os.path.getsize("a"))
    except OSError as error:
        print(errno.errorcode[error.errno], os.path.getsize("a"), sorted(os.listdir()))
"""
ERRORS = [
    (Fault.EIO, CallKind.WRITE, 'os.write(file, b"12345678")', "EIO 0 ['a']"),
    (Fault.ENOSPC, CallKind.WRITE, 'os.pwrite(file, b"12345678", 0)', "ENOSPC 0 ['a']"),
    (Fault.FSYNC, CallKind.SYNC, "os.fsync(file)", "EIO 0 ['a']"),
    (Fault.EIO, CallKind.RENAME, 'os.rename("a", "b")', "EIO 0 ['a']"),
    (Fault.ENOSPC, CallKind.MKDIR, 'os.mkdir("b")', "ENOSPC 0 ['a']"),
]


@pytest.mark.parametrize(("fault", "kind", "call", "printed"), ERRORS)
def test_a_call_that_fails_returns_the_error_and_does_not_happen(
    tmp_path: Path, fault: Fault, kind: CallKind, call: str, printed: str
) -> None:
    ended, said = run(tmp_path, fault, kind, CAUGHT.format(call=call))
    assert said == printed
    [delivered] = ended.faults
    assert (delivered.fault, delivered.failure) == (fault, "")
    assert delivered.returned < 0
    assert ended.status == 0


def test_an_interrupted_write_says_so_and_may_be_repeated(tmp_path: Path) -> None:
    """By the C library, since Python itself repeats an interrupted call."""
    text = """
        import ctypes, os
        file, libc = os.open("a", os.O_WRONLY | os.O_CREAT), ctypes.CDLL(None, use_errno=True)
        print(libc.write(file, b"1234", 4), ctypes.get_errno(), libc.write(file, b"1234", 4))
    """
    ended, said = run(tmp_path, Fault.EINTR, CallKind.WRITE, text)
    assert said == "-1 4 4"
    assert [each.failure for each in ended.faults] == [""]


WRITES = {
    'os.write(file, b"12345678")': b"abc1234",
    'os.pwrite(file, b"12345678", 1)': b"a1234",
    'os.writev(file, [b"123", b"45678"])': b"abc1234",
    'os.pwritev(file, [b"123", b"45678"], 1)': b"a1234",
}


@pytest.mark.parametrize("call", WRITES)
def test_a_short_write_writes_half_where_the_program_would_have_written(tmp_path: Path, call: str) -> None:
    """The next write follows the half, since both share the position in the file."""
    text = f"""
        import os
        file = os.open("a", os.O_WRONLY | os.O_CREAT)
        os.write(file, b"abc")
        print({call}, os.lseek(file, 0, os.SEEK_CUR))
    """
    ended, said = run(tmp_path, Fault.SHORT_WRITE, CallKind.WRITE, text, number=2)
    assert (tmp_path / "a").read_bytes() == WRITES[call]
    assert said == f"4 {3 if 'pwrite' in call else 7}"
    assert [(each.returned, each.failure) for each in ended.faults] == [(4, "")]


@pytest.mark.parametrize("call", ["copy_file_range(source, file, 8)", "sendfile(file, source, 0, 8)"])
def test_a_copy_within_the_kernel_could_be_short_and_is_not_shortened(tmp_path: Path, call: str) -> None:
    """So it counts as a call that was not tried, and not as one that cannot suffer the fault."""
    (tmp_path / "b").write_bytes(b"12345678")
    text = f"""
        import os
        source, file = os.open("b", os.O_RDONLY), os.open("a", os.O_WRONLY | os.O_CREAT)
        print(os.{call})
    """
    ended, said = run(tmp_path, Fault.SHORT_WRITE, CallKind.WRITE, text)
    assert said == "8"
    [delivered] = ended.faults
    assert delivered.failure == f"labkit cannot carry out half of {call.partition('(')[0]}"


def test_a_copy_within_the_kernel_that_cannot_append_is_no_write(tmp_path: Path) -> None:
    """`cat a >> b` tries it first."""
    (tmp_path / "b").write_bytes(b"12345678")
    text = """
        import os
        source, file = os.open("b", os.O_RDONLY), os.open("a", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.copy_file_range(source, file, 8)
        except OSError as error:
            print(error.strerror)
    """
    ended, said = run(tmp_path, Fault.EINTR, CallKind.WRITE, text)
    assert (said, ended.faults) == ("Bad file descriptor", ())


def test_a_fault_that_a_call_cannot_suffer_is_not_delivered_and_the_call_happens(tmp_path: Path) -> None:
    ended, said = run(tmp_path, Fault.SHORT_WRITE, CallKind.RENAME, CAUGHT.format(call='os.rename("a", "b")'))
    assert "FileNotFoundError" in said
    assert (tmp_path / "b").exists()
    assert "cannot suffer" in ended.faults[0].failure


@contextmanager
def server(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A server for one connection that answers each message like this (not at all if empty): its port, and the
    messages that it got."""
    got: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            while piece := connection.recv(1000):
                got.append(piece)
                if answer:
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], got
        thread.join(10)
    assert not thread.is_alive()


ASKS = """
    import socket
    server = socket.create_connection(("127.0.0.1", {port}))
    {send}
    try:
        print(server.recv(100))
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.mark.parametrize("send", ['server.sendall(b"request")', 'server.sendmsg([b"req", b"uest"])'])
def test_a_lost_answer_was_given_by_the_server_and_never_arrives(tmp_path: Path, send: str) -> None:
    with server(b"answer") as (port, got):
        ended, said = run(tmp_path, Fault.LOST_ANSWER, CallKind.SEND, ASKS.format(port=port, send=send))
    assert got == [b"request"]
    assert said in ("b''", "ConnectionResetError")
    assert [(each.returned, each.failure) for each in ended.faults] == [(7, "")]


def test_an_answer_that_never_came_was_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request arrives as usual, and the fault does not count as delivered."""
    monkeypatch.setattr("labkit.host.syscalls.delivery.ANSWER_SECONDS", 0.3)
    text = ASKS.format(port="{port}", send='server.settimeout(0.2); server.sendall(b"request")')
    with server(b"") as (port, got):
        ended, said = run(tmp_path, Fault.LOST_ANSWER, CallKind.SEND, text.format(port=port))
    assert got == [b"request"]
    assert said == "TimeoutError"
    assert [each.failure for each in ended.faults] == [NO_ANSWER]


def struck(folder: Path, decision: Decision, text: str, *, command: str = "") -> tuple[WatchedRun, list[str]]:
    """The run of a program whose creation of the file `here` suffers a fault, and the lines that were printed."""

    def decide(call: Call) -> Decision:
        return decision if call.kind is CallKind.CREATE and call.path.endswith("/here") else Answer.GO_ON

    program = folder.with_name(f"{folder.name}.py")
    program.write_text(text)
    start = f"{sys.executable} -S -u {program}"
    ended, _ = shell(folder, command.format(python=start) or f"exec {start}", decide)
    return ended, output_of(folder).read_text().split()


CREATES = "open('here', 'w').close(); print('created')"


def test_one_process_is_killed_before_its_call_and_the_others_go_on(tmp_path: Path) -> None:
    ended, said = struck(tmp_path, Fault.ONE_PROCESS, CREATES, command="{python}; echo $?")
    assert said[-1] == "137"
    assert not (tmp_path / "here").exists()
    [delivered] = ended.faults
    assert (delivered.fault, delivered.failure, ended.status, ended.emptied) == (Fault.ONE_PROCESS, "", 0, None)


@pytest.mark.parametrize(
    ("handler", "status", "is_created"),
    [("SIG_DFL", -15, False), ("lambda *_: (print('stops'), sys.exit(3))", 3, True)],
    ids=["no handler", "handler"],
)
def test_a_command_stops_at_sigterm_in_time(tmp_path: Path, handler: str, status: int, is_created: bool) -> None:
    head = f"import signal, sys, time\nfrom signal import SIG_DFL\nsignal.signal(15, {handler})"
    text = f"{head}\n{CREATES}\ntime.sleep(60)\n"
    ended, said = struck(tmp_path, TimedFault(Fault.SIGTERM, 30.0), text)
    [delivered] = ended.faults
    assert (delivered.failure, delivered.overdue, ended.status) == ("", False, status)
    assert ("stops" in said) == (status == 3)
    assert (tmp_path / "here").exists() == is_created


def test_a_command_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    text = f"import signal, time\nsignal.signal(15, signal.SIG_IGN)\n{CREATES}\ntime.sleep(60)\n"
    began = time.monotonic()
    ended, said = struck(tmp_path, TimedFault(Fault.SIGTERM, 1.0), text)
    assert time.monotonic() - began < 40
    [delivered] = ended.faults
    assert (delivered.overdue, ended.status, said) == (True, None, ["created"])
    assert not ended.emptied.left


def test_sigterm_reaches_the_whole_process_group_and_a_process_that_stays_is_overdue(tmp_path: Path) -> None:
    ended, _ = struck(
        tmp_path, TimedFault(Fault.SIGTERM, 1.0), CREATES, command="trap '' TERM; sleep 60 & trap - TERM; {python}"
    )
    assert ended.faults[0].overdue
    assert ended.emptied is not None


def test_a_delayed_call_happens_late_and_other_processes_go_on(tmp_path: Path) -> None:
    text = f"import time\nbegan = time.monotonic()\n{CREATES}\nprint(time.monotonic() - began >= 1.5)\n"
    ended, said = struck(tmp_path, TimedFault(Fault.DELAY, 1.5), text, command="{python} & echo first; wait")
    assert sorted(said) == ["True", "created", "first"]
    assert (tmp_path / "here").exists()
    assert [(each.fault, each.failure) for each in ended.faults] == [(Fault.DELAY, "")]


def test_what_outlives_the_command_makes_its_delayed_call(tmp_path: Path) -> None:
    ended, _ = struck(tmp_path, TimedFault(Fault.DELAY, 7.0), CREATES, command="{python} & true")
    assert (tmp_path / "here").exists()
    assert ended.status == 0
