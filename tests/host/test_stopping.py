"""A process that stops itself at a point is continued only behind its stop: continued before it, it would
stay stopped.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from labkit.host.processes.sessions import await_stopped

STOPS = """
import os, signal, sys, time
sys.stdin.readline()
time.sleep(0.3)  # what lies between the evidence of a point and the stop
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that stops itself a moment after a line was written to it."""
    command = [sys.executable, "-c", STOPS]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_process_that_is_continued_behind_its_stop_ends(child: "subprocess.Popen[bytes]") -> None:
    assert child.stdin is not None
    child.stdin.write(b"\n")
    child.stdin.flush()
    assert await_stopped(child.pid, 30)
    child.send_signal(signal.SIGCONT)
    assert child.wait(30) == 0


def test_a_process_that_does_not_stop_or_is_gone_is_said_not_to_have_stopped(child: "subprocess.Popen[bytes]") -> None:
    assert not await_stopped(child.pid, 0.1)
    child.kill()
    child.wait()
    assert not await_stopped(child.pid, 30)
