"""A command that is started ahead: nothing is asked before the watching begins, and everything after it."""

import os
import socket
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until

from labkit.core.errors import InvalidInput
from labkit.crashtest.harness.leftovers import MARK, marked_processes
from labkit.host.syscalls.ahead import Ahead
from labkit.host.syscalls.calls import Answer, Call, CallKind

pytestmark = pytest.mark.usefixtures("watched_calls")


@contextmanager
def started(folder: Path, program: str) -> Iterator[Ahead]:
    """The program, when it has made the file `ready`."""
    words = [sys.executable, "-c", textwrap.dedent(program)]
    environment = {**os.environ, MARK: str(folder)}
    ahead = Ahead(words, folder=folder, environment=environment, output=folder.with_suffix(".out"))
    try:
        until(lambda: (folder / "ready").exists() or ahead.has_ended, "the program to be ready")
        yield ahead
    finally:
        ahead.close()
    until(lambda: marked_processes(str(folder)) == [], "the end of its processes")


WAITS = """
import os, time
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
"""


def test_what_happens_before_is_not_asked_and_what_happens_after_is(tmp_path: Path) -> None:
    calls: list[Call] = []

    def decide(call: Call) -> Answer:
        calls.append(call)
        return Answer.GO_ON

    with started(tmp_path, WAITS + 'os.mkdir("after")') as ahead:
        run = ahead.watch(decide, begin=(tmp_path / "go").touch)
    assert run.status == 0
    assert [(call.kind, call.path) for call in calls if call.kind is not CallKind.EXIT] == [
        (CallKind.MKDIR, str(tmp_path / "after"))
    ]


def test_it_can_be_killed_at_a_call(tmp_path: Path) -> None:
    with started(tmp_path, WAITS + 'os.mkdir("one"); os.mkdir("two")') as ahead:
        run = ahead.watch(
            lambda call: Answer.KILL if call.path.endswith("two") else Answer.GO_ON, begin=(tmp_path / "go").touch
        )
    assert run.held.path == str(tmp_path / "two")
    assert (tmp_path / "one").exists()
    assert not (tmp_path / "two").exists()


SOCKETS = """
import os, socket, time
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
out = socket.create_connection(("127.0.0.1", int(os.environ["OTHER"])))
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
client.sendall(b"to itself")
out.sendall(b"to another")
"""


def test_a_connection_from_before_leads_where_it_led(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command sends to itself is no effect, even if it connected before anybody watched."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setenv("OTHER", str(port))
        sent: list[Call] = []

        def decide(call: Call) -> Answer:
            if call.kind is CallKind.SEND:
                sent.append(call)
            return Answer.GO_ON

        with started(tmp_path, SOCKETS) as ahead:
            assert ahead.watch(decide, begin=(tmp_path / "go").touch).status == 0
    assert [call.target for call in sent] == [f"127.0.0.1:{port}"]


def test_a_command_that_nobody_watches_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, WAITS):
        assert marked_processes(str(tmp_path))


def test_a_command_that_ends_too_early_says_so(tmp_path: Path) -> None:
    with started(tmp_path, "raise SystemExit(3)") as ahead:
        until(lambda: ahead.has_ended, "its end")
        assert ahead.watch(lambda _call: Answer.GO_ON).status == 3


def test_a_command_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere"):
        Ahead(["nowhere-at-all"], folder=tmp_path, environment={}, output=tmp_path / "out").watch(
            lambda _call: Answer.GO_ON
        )


def test_a_command_that_stays_alive_is_watched_again(tmp_path: Path) -> None:
    calls: list[str] = []

    def decide(call: Call) -> Answer:
        calls.append(Path(call.path).name)
        return Answer.GO_ON

    def is_done() -> bool:
        return (tmp_path / "done").exists()

    with started(tmp_path, AGAIN) as ahead:
        run = ahead.watch(decide, begin=(tmp_path / "go").touch, is_done=is_done)
        assert (run.status, run.held, run.emptied) == (0, None, None)
        assert calls == ["work-1", "done"]
        (tmp_path / "unseen").touch()
        until((tmp_path / "between").exists, "what happens between two watches")
        (tmp_path / "done").unlink()
        calls.clear()
        run = ahead.watch(decide, begin=(tmp_path / "go").touch, is_done=lambda: False)
        assert run.status == 3
    assert calls == ["go", "work-2", ""]


AGAIN = (
    WAITS
    + """
os.mkdir("work-1")
open("done", "w").close()
while not os.path.exists("unseen"):
    time.sleep(0.01)
os.unlink("go")
os.mkdir("between")
while not os.path.exists("go"):
    time.sleep(0.01)
os.unlink("go")
os.mkdir("work-2")
os._exit(3)
"""
)
