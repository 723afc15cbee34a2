"""Connects a driver process to its supervisor: reports events, receives orders, and dies together with the supervisor.

Both kinds of driver, for word-count runs and for the crash test, begin with `serve`. This module kills nothing outside
of the driver's own session.
"""

import math
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Never

from labkit.core.errors import JobFailed, LabError
from labkit.host.processes import wire
from labkit.host.processes.events import AnyEvent, DriverFailed
from labkit.host.processes.parking import park
from labkit.host.processes.protocol import Launch, RunQueries
from labkit.host.processes.sessions import empty_session
from labkit.host.processes.tether import until_parent_ends

orders: "queue.SimpleQueue[RunQueries]" = queue.SimpleQueue()
"""The orders from the runner, read from standard input, that this driver has not carried out yet."""

_channel = [1]
"""The file descriptor for events, in a list because `serve` replaces it by one to which no other code prints."""

_writing = threading.Lock()


def report(*events: AnyEvent) -> None:
    """Send events of this Spark driver to its supervisor, the process that started it. Any thread may call this."""
    content = b"".join(map(wire.encode, events))
    # Queries report from their own threads, and two events must not mix in the pipe.
    with _writing:
        wire.write(_channel[0], content)


def serve(run: Callable[[Launch], None]) -> Never:
    """Run this process as a Spark driver: call `run` with the message in the file argv[1], then wait to be killed."""
    # Libraries and the JVM print at any time, and a stray line would look like an event out of order.
    _channel[0] = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    threading.Thread(target=_die_with_supervisor, daemon=True).start()
    try:
        run(wire.decode(Path(sys.argv[1]).read_bytes(), Launch))
    except LabError as error:
        report(DriverFailed(str(error), error.exit_code))
    park()


def _die_with_supervisor() -> None:
    # Standard input closes when the supervisor is dead.
    until_parent_ends(_take)
    own = os.getpid()
    # This process last, because a dead process kills no other. Without a time limit, because nobody would try again.
    empty_session(os.getsid(0), math.inf, spare=own)
    os.kill(own, signal.SIGKILL)


def _take(line: bytes) -> None:
    try:
        orders.put(wire.decode(line, RunQueries))
    except wire.Unreadable as error:
        because = f"the driver got an order that it cannot decode ({error}); repeat the run."
        report(DriverFailed(because, JobFailed.exit_code))
