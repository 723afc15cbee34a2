"""Requests readings of the store while the process waits at a crash point, so that each reading belongs to one.

The process writes a request, a file that names the crash point, and waits until the watcher removes the file
(`labkit.crashtest.harness.watching`). The wait is limited, because the sink may hold a lock that its reader needs.
Meanwhile no other thread of the process begins an effect.
"""

import json
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from labkit.crashtest.instrument.effects import Effect, Kind, Side
from labkit.crashtest.instrument.ticket import Ticket

_open, _write, _close, _rename, _unlink = (os.open, os.write, os.close, os.rename, os.unlink)
"""The original functions of `os`, before `labkit.crashtest.instrument.install` wraps them."""

SUFFIX = ".ask"
PATIENCE = 6.0
"""The seconds to wait for one reading. A reader that meets a lock of SQLite gives up after five."""

IN_VAIN = 15.0
"""After this many seconds of waits without a reading, a process waits only `BRIEF` for each further one."""

IN_ALL = 20.0
"""After this many seconds of all waits together, a process requests no more readings."""

BRIEF = 0.2
"""The shorter wait for one reading, in seconds, after the process has waited too long without getting any."""
_POLL = 0.002


class Asker:
    """Requests readings for this process, one at a time."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Set the initial state; also called in a forked process, where the thread that held the lock does
        not exist.
        """
        self._lock = threading.Lock()
        self._under_way = 0
        self._count = 0
        self._in_vain = self._in_all = 0.0

    def enter(self) -> None:
        """Count an effect that begins; if a reading is in progress, wait for its end first."""
        with self._lock:
            self._under_way += 1

    def leave(self) -> None:
        """Count an effect that is over and logged.

        A forked process may call this for an effect that its parent began.
        """
        with self._lock:
            self._under_way = max(self._under_way - 1, 0)

    def ask(self, ticket: Ticket, effect: Effect, side: Side) -> None:
        """Request a reading just before or after an effect, as `side` says, and wait for it within the limits above.

        This does nothing if no watcher is running.
        """
        again = effect.kind is Kind.SEND and effect.nth > 1
        if not ticket.asks or self._in_all > IN_ALL or again:
            return
        with self._lock:
            if self._under_way:
                return  # another thread is in the middle of an effect: a reading would belong to no place
            self._count += 1
            # The time comes first in the name: the watcher answers in the order of
            # names, whichever process asks.
            path = f"{ticket.asks}/{time.time_ns()}-{os.getpid()}-{self._count}"
            question = {"point": effect.point(side).to_json(), "position": _size(ticket.log)}
            descriptor = _open(path, os.O_WRONLY | os.O_CREAT, 0o666)
            try:
                _write(descriptor, json.dumps(question).encode())
            finally:
                _close(descriptor)
            # Under the name that the watcher looks for only when the question is whole.
            _rename(path, path + SUFFIX)
            self._await(path + SUFFIX)

    def _await(self, path: str) -> None:
        begun = time.monotonic()
        patience = BRIEF if self._in_vain > IN_VAIN else PATIENCE
        while Path(path).exists() and time.monotonic() < begun + patience:
            time.sleep(_POLL)
        waited = time.monotonic() - begun
        self._in_all += waited
        # The watcher removes what it has answered: then this fails, and the wait was
        # not in vain.
        with suppress(OSError):
            _unlink(path)  # withdrawn: a later answer would belong to no point
            self._in_vain += waited


def _size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).exists() else 0
