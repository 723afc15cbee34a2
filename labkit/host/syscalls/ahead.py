"""Start a command before its system calls are of interest, so that a slow start is over when the watching begins.

    ahead = Ahead(["python", "job.py"], folder=folder, environment=environment, output=log)
    ...  # the job starts, says in some way that it is ready, and waits
    run = ahead.watch(decide)

The command has its seccomp filter from the beginning, because no other process can add one later. Until `watch`, a
thread allows every call, and only notes which sockets belong to the command. A command that stays alive after its work
may be watched again.
"""

import os
import select
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread

from labkit.host.syscalls.calls import Answer, Call, CallKind, Decision, WatchedRun
from labkit.host.syscalls.contents import Contents
from labkit.host.syscalls.guarding import guarded
from labkit.host.syscalls.reading import interpret
from labkit.host.syscalls.tracee import Tracee, Unreadable, WillFail
from labkit.host.syscalls.watching import EVERY_KIND, LINGER_SECONDS, Watch, go_on

_SOCKETS = ("connect", "listen")
"""The system calls that show which sockets lead to external servers or stay within the command; see `sockets`."""


class Ahead:
    """A command that is started in advance, so that a later call of `watch` need not wait for the command's start."""

    def __init__(self, command: Sequence[str], *, folder: Path, environment: Mapping[str, str], output: Path) -> None:
        """Start the command in its own Unix session, and return at once. Raises the errors of `guarded`."""
        self._stack = ExitStack()
        # Calls of `mprotect` are not held, because a JVM makes thousands at its start, which would cost half a second.
        # Instead, a file that is mapped from a descriptor open for writing counts as written.
        guard = guarded(
            command, folder=folder, environment=environment, output=output, kinds=EVERY_KIND, protecting=False
        )
        self._guard = self._stack.enter_context(guard)
        self._contents = Contents(output, wanted=False, protecting=False)
        self._begin_thread()

    @property
    def is_alive(self) -> bool:
        """Whether `watch` may be called: false after `close`, and after a `watch` during which the command died."""
        return self._thread.is_alive()

    @property
    def has_ended(self) -> bool:
        """Whether the command has already ended, although it should have waited for the call of `watch`."""
        return bool(select.select([self._guard.channel], [], [], 0)[0])

    def watch(
        self,
        decide: Callable[[Call], Decision],
        tick: Callable[[], Answer] = go_on,
        *,
        begin: Callable[[], None] = lambda: None,
        is_done: Callable[[], bool] = lambda: False,
        kinds: frozenset[CallKind] = EVERY_KIND,
        contents: bool = False,
        linger: float = LINGER_SECONDS,
    ) -> WatchedRun:
        """Call `decide` before each further system call of the command, as `labkit.host.syscalls.watching.watch` does.

        Once this method can watch the calls, it calls `begin`, which must tell the waiting command to continue. When
        `is_done` returns True, the method returns, and the command runs on without decisions until the next call of
        `watch`. If the method ends for any other reason, such as the answer KILL, it kills the command. The other
        arguments are as in `labkit.host.syscalls.watching.watch`.
        """
        goes_on = False
        try:
            self._end_thread()
            self._contents.wanted = contents
            watch = Watch(self._guard, self._contents, decide, tick, kinds)
            begin()
            run = watch.run(linger, is_done)
            goes_on = watch.goes_on
        finally:
            if not goes_on:
                self.close()
        if goes_on:
            self._begin_thread()
        return run

    def close(self) -> None:
        """Kill every remaining process of the command."""
        self._end_thread()
        self._stack.close()

    def _begin_thread(self) -> None:
        self._stop_asked, self._stop = os.pipe()
        self._thread = Thread(target=self._let_happen, name="calls of a command that is started ahead", daemon=True)
        self._thread.start()

    def _end_thread(self) -> None:
        if self._thread.is_alive():
            os.write(self._stop, b"\0")
            self._thread.join()
        for descriptor in (self._stop_asked, self._stop):
            with suppress(OSError):
                os.close(descriptor)
        self._stop_asked = self._stop = -1

    def _let_happen(self) -> None:
        listener = self._guard.listener
        poll = select.poll()
        poll.register(listener.descriptor, select.POLLIN)
        poll.register(self._stop_asked, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if self._stop_asked in ready or not ready[listener.descriptor] & select.POLLIN:
                return  # `watch` was called, or no thread has the filter any more
            notification = listener.receive()
            if notification is None:
                continue
            if notification.name in _SOCKETS:
                with suppress(Unreadable, WillFail, OSError):
                    interpret(self._contents, Tracee(notification.thread), *notification[2:])
            listener.let_go(notification)
