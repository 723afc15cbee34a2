"""Run a command, and decide before each of its system calls whether it continues or all its processes are killed.

Three processes take part: the watcher (the caller of `watch`) receives the held calls and decides; the guard
(`labkit.host.syscalls.guard`) starts the command and kills it; the command knows neither. If the watcher dies, its
socket closes and the guard kills the command. If the guard dies, the watcher kills the processes that it knows.
"""

import contextlib
import math
import select
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from labkit.core.errors import JobFailed
from labkit.host.processes import wire
from labkit.host.processes.sessions import is_alive, kill_all, session_members
from labkit.host.syscalls.calls import Answer, Call, CallEffect, CallKind, Decision, Unseen, WatchedRun
from labkit.host.syscalls.contents import Contents
from labkit.host.syscalls.delivery import deliver, kill_one, terminate
from labkit.host.syscalls.faults import Delivery, Fault, TimedFault
from labkit.host.syscalls.filters import Notification
from labkit.host.syscalls.guarding import GUARD_SECONDS, AllEnded, Guarded, Kill, Refused, RootEnded, guarded
from labkit.host.syscalls.reading import interpret
from labkit.host.syscalls.tracee import Tracee, Unreadable, WillFail

EVERY_KIND = frozenset(CallKind)
TICK_SECONDS = 0.05
LINGER_SECONDS = 5.0
"""The seconds for which processes may outlive the command, such as a JVM that a script started."""
_MOST_PATHS = 50
_UNREADABLE = "a process that forbids reading its memory"
_FORBIDDEN = "a file in a folder that the watcher may not read"


def go_on() -> Answer:
    """Return the answer GO_ON, which lets the command continue."""
    return Answer.GO_ON


def watch(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    output: Path,
    decide: Callable[[Call], Decision],
    tick: Callable[[], Answer] = go_on,
    kinds: frozenset[CallKind] = EVERY_KIND,
    contents: bool = False,
    linger: float = LINGER_SECONDS,
) -> WatchedRun:
    """Run a command, and call `decide` before each of its system calls whose kind is in `kinds`.

    The kernel holds the call until `decide` answers. The command runs in `folder`, in its own Unix session, with
    exactly this environment and without input. Its output is appended to the file `output`; writing the output does not
    count as a call. `tick` is called about every 50 ms. If `decide` or `tick` answers KILL, everything that the command
    ever started is killed, and the held call never happens. After the answer HOLD, this call stays held until
    everything is killed, while `decide` is asked about the calls of the other threads. If `decide` answers with a
    `Fault`, the call suffers this fault, and `WatchedRun.faults` has the evidence. With `contents`, the `Call` of a
    write includes the bytes to write. `linger` is how many seconds other processes may outlive the command.

    Exceptions of `decide` and `tick` are raised once everything is dead. Raises `ServiceUnavailable` if this machine
    cannot watch system calls, `InvalidInput` for a command or folder that cannot be used, and `JobFailed` if the guard,
    the process that starts and kills the command, died.
    """
    with guarded(command, folder=folder, environment=environment, output=output, kinds=kinds) as guard:
        return Watch(guard, Contents(output, wanted=contents, protecting=True), decide, tick, kinds).run(linger)


class Watch:
    """Watches the system calls of one command: lets each call happen, injects a fault, or kills the whole command."""

    def __init__(
        self,
        guard: Guarded,
        contents: Contents,
        decide: Callable[[Call], Decision],
        tick: Callable[[], Answer],
        kinds: frozenset[CallKind],
    ) -> None:
        self._guard, self._contents, self._decide, self._tick, self._kinds = guard, contents, decide, tick, kinds
        self._began, self._zero = time.time(), time.monotonic()
        self._created = _created(guard.root)
        self._number = self._notifications = 0
        self._unseen: Counter[str] = Counter()
        self._paths: dict[str, set[str]] = {}
        self._met: set[int] = {guard.root}
        self._faults: list[Delivery] = []
        self._delayed: tuple[float, Notification] | None = None
        """The time at which a delayed call may happen, and the call; None if no call is delayed."""
        self._grace_ends: float = math.inf
        """The time at which a command that got SIGTERM is killed."""
        self._held: Call | None = None
        """The call for which `decide` answered HOLD; None if there is none."""
        self._interrupted: tuple[object, ...] = ()
        """The allowed call (thread, name, arguments) that a signal interrupted; the thread will repeat this call."""
        self._status: int | None = None
        self._end_at = math.inf
        """The time at which processes that outlive the command are killed."""
        self._ended: AllEnded | None = None

    def run(self, linger: float, is_done: Callable[[], bool] = lambda: False) -> WatchedRun:
        """Decide for each system call of the command and of its child processes whether the call happens.

        Return how the command ended, as soon as all these processes have ended. `linger` is how many seconds child
        processes may outlive the command. If `is_done` returns True, stop watching and leave the command alive.
        """
        try:
            held = self._serve(linger, is_done)
        except BaseException:
            self._kill()
            raise
        emptied = None if self._ended is None else self._ended.emptied
        killed = emptied is not None and (emptied.killed or emptied.left or held is not None)
        return WatchedRun(
            status=0 if self.goes_on else self._status,
            held=held,
            emptied=emptied if killed else None,
            calls=self._notifications,
            unseen=dict(self._unseen),
            unseen_paths={name: tuple(sorted(paths)) for name, paths in self._paths.items() if paths},
            began=self._began,
            root=self._guard.root,
            faults=tuple(self._faults),
        )

    @property
    def goes_on(self) -> bool:
        """Whether `run` ended because `is_done` returned True, so that the command is still alive."""
        return self._ended is None

    def _serve(self, linger: float, is_done: Callable[[], bool]) -> Call | None:
        """Handle the command's system calls as `run` says, until no process is left or `is_done` returns True.

        Return the call that was held when all processes were killed; None if no call was held.
        """
        listener, channel = self._guard.listener.descriptor, self._guard.channel
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(channel, select.POLLIN)
        tick_at = time.monotonic() + TICK_SECONDS
        while self._ended is None:
            for descriptor, event in poll.poll(1000 * TICK_SECONDS):
                if descriptor != listener:
                    self._receive(linger)
                elif not event & select.POLLIN:  # no thread has the filter any more
                    poll.unregister(listener)
                elif (stop := self._answer()) is not None:
                    self._kill()
                    return stop
            now = time.monotonic()
            self._end_delays(now, linger)
            if now >= tick_at and self._ended is None:
                tick_at = now + TICK_SECONDS
                if self._status is None and is_done():
                    return None
                if self._tick() is Answer.KILL or now > self._end_at:
                    self._kill()
                    return self._held
        return None

    def _end_delays(self, now: float, linger: float) -> None:
        """Let a delayed call happen when its delay is over; kill the command when its time after SIGTERM is over."""
        if self._delayed is not None and now >= self._delayed[0]:
            self._guard.listener.let_go(self._delayed[1])
            self._delayed = None
            if self._status is not None:
                self._end_at = now + linger
        if now >= self._grace_ends and self._ended is None:
            self._faults[-1] = self._faults[-1]._replace(overdue=True)
            self._kill()

    def _answer(self) -> Call | None:
        """Receive one intercepted call and answer it; if `decide` says KILL, return the call without an answer."""
        notification = self._guard.listener.receive()
        if notification is None:
            return None
        self._notifications += 1
        call = self._read(notification)
        if call is None:
            self._guard.listener.let_go(notification)
            return None
        decision = self._decide(call)
        if decision is Answer.KILL:
            return self._held or call
        if decision is Answer.HOLD:
            self._held = call
            return None
        if isinstance(decision, Fault | TimedFault):
            self._faults.append(self._strike(decision, notification, call))
        elif not self._guard.listener.let_go(notification):
            self._interrupted = notification[1:]
        return None

    def _strike(self, decision: Fault | TimedFault, held: Notification, call: Call) -> Delivery:
        fault, seconds = decision if isinstance(decision, TimedFault) else (decision, 0.0)
        listener = self._guard.listener
        if fault is Fault.ONE_PROCESS:
            return kill_one(listener, held, call)
        if seconds:
            self._end_at = math.inf  # processes that outlive the command may also use this time
        if fault is Fault.SIGTERM:
            self._grace_ends = time.monotonic() + seconds
            return terminate(listener, held, call, self._guard.root)
        if fault is Fault.DELAY:
            self._delayed = time.monotonic() + seconds, held
            return Delivery(fault, call.number, 0)
        return deliver(fault, listener, held, call)

    def _read(self, notification: Notification) -> Call | None:
        """Return the intercepted call if its effect is of a watched kind, otherwise None.

        If labkit cannot follow what the call does, count the call.
        """
        tracee = Tracee(notification.thread)
        try:
            reading = interpret(self._contents, tracee, notification.name, notification.arguments)
        except Unreadable:
            reading = Unseen(_UNREADABLE)
        except PermissionError:
            reading = Unseen(_FORBIDDEN)
        except (WillFail, OSError):  # for example because a name is too long
            return None
        if reading is None or not self._guard.listener.alive(notification):
            return None
        if isinstance(reading, CallEffect):
            return self._call(notification, tracee, reading)
        self._unseen[reading.name] += 1
        paths = self._paths.setdefault(reading.name, set())
        if reading.path and len(paths) < _MOST_PATHS:
            paths.add(reading.path)
        return None

    def _call(self, notification: Notification, tracee: Tracee, effect: CallEffect) -> Call | None:
        again, self._interrupted = notification[1:] == self._interrupted, ()
        process = tracee.process
        self._met.add(process)
        others = effect.kind is CallKind.EXIT and process != self._guard.root
        if again or others or effect.kind not in self._kinds:
            return None
        self._number += 1
        effect = effect._replace(name=effect.name or notification.name)
        seconds = time.monotonic() - self._zero
        return Call(self._number, notification.thread, process, seconds=seconds, **effect._asdict())

    def _receive(self, linger: float) -> None:
        messages = self._guard.receive()
        if messages is None:
            raise JobFailed(
                "The guard process of the watched command was killed, so the command was killed as well; run it again."
            )
        for message in messages:
            if isinstance(message, RootEnded):
                self._status = message.status
                # Not yet during a grace period, or while a call is delayed.
                waits = self._delayed is not None or self._grace_ends < math.inf
                self._end_at = math.inf if waits else time.monotonic() + linger
            elif isinstance(message, AllEnded):
                self._ended = message
            elif isinstance(message, Refused):
                raise message.error()

    def _kill(self) -> None:
        channel = self._guard.channel
        try:
            channel.sendall(wire.encode(Kill()))
            while self._ended is None and (messages := self._guard.receive()) is not None:
                self._ended = next((each for each in messages if isinstance(each, AllEnded)), None)
        except OSError:  # the guard is dead, or does not answer
            pass
        if self._ended is None:
            self._kill_without_guard()

    def _kill_without_guard(self) -> None:
        root, began = self._guard.root, self._created

        def living() -> list[int]:
            met = [pid for pid in self._met if _is_alive_since(pid, began)]
            return sorted({*session_members(root), *met})

        self._ended = AllEnded(kill_all(living, GUARD_SECONDS))


def _created(pid: int) -> float:
    # While a second thread of the guard's child becomes the command (execve), the kernel may show no such process.
    for _ in range(10):
        with contextlib.suppress(psutil.Error, FileNotFoundError):
            return psutil.Process(pid).create_time()
        time.sleep(0.001)
    return 0.0


def _is_alive_since(pid: int, began: float) -> bool:
    # An older process with this id cannot belong to the command.
    with contextlib.suppress(psutil.Error):
        return is_alive(pid) and psutil.Process(pid).create_time() >= began
    return False
