"""Runners as processes of their own, with a mark that everything they start inherits."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

PATIENCE = 600.0
"""Seconds for a whole run beside other tests: it takes ten alone, and a minute and a half on a busy machine."""
MARK = "LABKIT_STOPPED_RUNNER"


@contextmanager
def running(folder: Path, *more: str) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """A runner in a session of its own, with a mark that everything it starts inherits."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "labkit", "run", "--sink", "two_phase", "--crash", "sink.after_pre_commit@0"]
    process = subprocess.Popen(
        [*command, *more, "--out", str(folder), "--json"],
        env=dict(os.environ, **{MARK: mark}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process, mark
    finally:
        process.kill()
        process.communicate()


def marked(mark: str) -> list[str]:
    """Every process that inherited the mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:100]}")
        except psutil.Error:
            continue
    return found
