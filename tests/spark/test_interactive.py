"""A session for a person at a keyboard: it counts, leaves the environment alone, and nothing of it outlives its
process.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

from labkit.host.processes.sessions import session_members

pytestmark = pytest.mark.spark

BEGIN = """
import os, sys
from labkit.spark import interactive

before = dict(os.environ)
spark = interactive.interactive_session()
assert dict(os.environ) == before, "a crash run would find this JVM"
process, scratch = interactive._engine()
print(scratch, process.pid, spark.range(3).count(), flush=True)
"""
AGAIN = """
spark.stop()
print(interactive.interactive_session().sparkContext.pythonExec == sys.executable, flush=True)
"""
FOR_EVER = "import time; time.sleep(600)"


def begun(more: str) -> tuple["subprocess.Popen[str]", Path, int]:
    """A process with a session, the session's folder, and the JVM's process id."""
    process = subprocess.Popen([sys.executable, "-c", BEGIN + more], stdout=subprocess.PIPE, text=True)
    scratch, jvm, counted = process.stdout.readline().split()
    assert counted == "3"
    return process, Path(scratch), int(jvm)


@pytest.mark.slow
def test_it_stops_begins_again_and_leaves_nothing_at_the_end() -> None:
    process, scratch, jvm = begun(AGAIN)
    said, _ = process.communicate(timeout=600)
    assert (process.returncode, said) == (0, "True\n")
    assert not scratch.exists()
    assert session_members(jvm) == []


@pytest.mark.slow
def test_a_killed_process_leaves_neither_jvm_nor_folder() -> None:
    process, scratch, jvm = begun(FOR_EVER)
    assert scratch.exists()
    assert session_members(jvm)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    until(lambda: not scratch.exists() and not session_members(jvm), "the session and its folder are gone", 60)
