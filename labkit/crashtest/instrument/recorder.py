"""Records the calls and effects of the sink in one process, and stops the process at its crash point.

The recorder writes every effect to the run's log after the effect has happened. A process that reaches its crash point
writes its evidence and stops with all its threads (SIGSTOP), as a crash would stop it; then
`labkit.host.processes.supervisor` kills it. An effect counts only if code of the user's project is on the call stack,
so PySpark's and Python's own writes do not count. In the run without a crash the process also waits before and after
every effect until the user's reader has answered. Drivers and Python workers use this module; it does not import the
user's file.
"""

import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from labkit.crashtest.instrument.asking import Asker
from labkit.crashtest.instrument.calls import TIMES, Call
from labkit.crashtest.instrument.effects import LISTENER, Effect, Kind, Side
from labkit.crashtest.instrument.lines import LineTracer
from labkit.crashtest.instrument.ticket import Ticket

PROPERTY = "labkit.crashtest"
"""The local property of Spark that carries the run's ticket to its tasks (TaskContext.getLocalProperty)."""

_open, _write, _close, _fsync, _rename = (os.open, os.write, os.close, os.fsync, os.rename)
"""The original functions of `os`, before `labkit.crashtest.instrument.install` wraps them."""


_inside: ContextVar[bool] = ContextVar("inside", default=False)
"""Whether an effect is in progress in this thread, or in this asyncio task."""


class Recorder:
    """Records the calls and effects of the sink in this process. Each process has only one recorder, `recorder`."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._ended: Call | None = None
        self._asker = Asker()
        self._of_task: tuple[object, Call] | None = None
        self.on_reach: Callable[[Ticket], None] = lambda _ticket: None
        """Called at the crash point before this process stops, because a driver's main loop cannot report it
        afterwards.
        """

    @contextmanager
    def call(self, ticket: Ticket, batch: int, where: str) -> Iterator[None]:
        """Record a call of the sink, which lasts as long as the `with` block.

        `where` is the part of the sink that is called, such as `call` or `task 0`.
        """
        begun = self.begin(ticket, batch, where)
        try:
            yield
        except BaseException:
            self.end(begun, failed=True)
            raise
        self.end(begun)

    def begin(self, ticket: Ticket, batch: int, where: str) -> Call:
        """Record the beginning of a call of the sink, and return the call, to which later effects belong."""
        await_kill(ticket, batch)
        begun = Call(ticket, batch, where)
        # Until it has begun, what other threads do belongs to the call before.
        self._bound(begun, Kind.BEGIN)
        self._calls.append(begun)
        if ticket.lines:
            passed = functools.partial(self._line, begun)
            begun.tracer = LineTracer(ticket.project, passed)
            begun.tracer.start()
        return begun

    def end(self, call: Call, *, failed: bool = False) -> None:
        """Record the end of a call of the sink; `failed` says whether the call raised an error."""
        if call.tracer is not None:
            call.tracer.stop()
        # Which execution of a line was its last one is known only now.
        for effect in call.last.values():
            self._log(call.ticket, effect)
        # In this order, so that no effect of another thread finds neither.
        self._ended = call
        self._calls.remove(call)
        self._bound(call, Kind.RETURN, failed=failed)

    def _bound(self, call: Call, kind: Kind, *, failed: bool = False) -> None:
        number = 0 if kind is Kind.BEGIN else call.count + 1
        effect = Effect(call.batch, call.where, number, kind, "", 0, 1, call.ticket.driver, failed)
        self._log(call.ticket, effect)
        self._asker.ask(call.ticket, effect, Side.AFTER)
        if not failed:
            self._reach(call.ticket, effect, Side.AFTER)

    def _line(self, call: Call, frame: FrameType) -> None:
        """Record a source line that is about to be executed.

        Lines that run within an effect are part of that effect and are not recorded.
        """
        if _inside.get():
            return
        place = call.ticket.project.line(frame)
        effect = call.line(place)
        armed = call.ticket.armed
        here = armed is not None and armed.is_here(effect, Side.BEFORE)
        if effect.nth > TIMES and not here:
            call.last[place] = effect
            return
        self._log(call.ticket, effect)
        self._asker.ask(call.ticket, effect, Side.BEFORE)
        self._reach(call.ticket, effect, Side.BEFORE)

    @contextmanager
    def effect(
        self,
        kind: Kind,
        target: object,
        decide: Callable[[], Kind] | None = None,
        torn: Callable[[], str] | None = None,
    ) -> Iterator[None]:
        """Record one effect, which happens within the `with` block.

        At the end of the block, `decide` returns the kind of the effect, and `torn` the reason why a commit was several
        writes. Effects within an effect are part of it: a commit that executes a statement is one effect.
        """
        frame = sys._getframe(2)  # noqa: SLF001  # the one way to it
        upcoming = None if _inside.get() else self._next(kind, str(target), frame)
        if upcoming is None:
            yield
            return
        ticket, effect = upcoming
        if not effect.late:
            self._asker.ask(ticket, effect, Side.BEFORE)
            self._reach(ticket, effect, Side.BEFORE)
        within, failed = _inside.set(True), True
        # From here on no thread asks for a reading: in the middle of an effect it would
        # belong to no place.
        self._asker.enter()
        try:
            yield
            failed = False
        finally:
            _inside.reset(within)
            kind = decide() if decide and not failed else kind
            why = torn() if torn and not failed and kind is Kind.COMMIT else ""
            effect = replace(effect, kind=kind, target=str(target)[:200], failed=failed, torn=why)
            # In the log before anybody may ask again, since a question says how far the
            # log has come.
            self._log(ticket, effect)
            self._asker.leave()
        if not effect.late:
            self._asker.ask(ticket, effect, Side.AFTER)
            self._reach(ticket, effect, Side.AFTER)

    def _next(self, kind: Kind, target: str, frame: FrameType) -> tuple[Ticket, Effect] | None:
        """Return the effect that is about to happen, and the ticket of its run.

        Return None if the user's project does not cause the effect, or if the user ignores its target. If no call of
        the sink is in progress, the effect is late: its thread outlived the call.
        """
        call = self._current()
        owner = call or self._ended
        if owner is None:
            return None
        project = owner.ticket.project
        place = project.line(frame)
        if not place[1] or project.ignores(target):
            return None
        effect = owner.next(kind, place, late=call is None)
        if effect.late and called_by_engine(frame):
            effect = replace(effect, where=LISTENER)
        return owner.ticket, effect

    def _current(self) -> Call | None:
        # One look: another thread may end the call between two.
        newest = self._calls[-1:]
        return newest[0] if newest else self._task()

    def _task(self) -> Call | None:
        """Return the call of a task that runs the user's code without an adapter, as in `foreachPartition`.

        Return None if this process runs no such task.
        """
        module = sys.modules.get("pyspark.taskcontext")
        context = module and module.TaskContext.get()
        text = context and context.getLocalProperty(PROPERTY)
        if not context or not text:
            return None
        key = (text, context.getLocalProperty("streaming.sql.batchId"), context.partitionId(), context.attemptNumber())
        # A worker runs one task after the other, and counts the effects of each anew.
        if self._of_task is None or self._of_task[0] != key:
            ticket = Ticket.from_json(json.loads(text))
            self._of_task = key, Call(ticket, int(key[1] or 0), f"task {key[2]}")
        return self._of_task[1]

    def _log(self, ticket: Ticket, effect: Effect) -> None:
        append(ticket.log, {**effect.to_json(), "pid": os.getpid(), "at": time.time()})

    def _reach(self, ticket: Ticket, effect: Effect, side: Side) -> None:
        if ticket.armed is not None and ticket.armed.is_here(effect, side) and record_hit(ticket, effect.kind):
            self.on_reach(ticket)
            stop(ticket)


recorder = Recorder()


def called_by_engine(frame: FrameType | None) -> bool:
    """Return whether the JVM called the running code, as it calls a query listener, but not a thread of the sink."""
    while frame is not None:
        if "/py4j/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def append(path: str, content: dict[str, Any]) -> None:
    """Append one line to a log in a single write, because several processes write to the log."""
    descriptor = _open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        _write(descriptor, json.dumps(content).encode() + b"\n")
    finally:
        _close(descriptor)


def record_hit(ticket: Ticket, kind: Kind) -> bool:
    """Write the evidence that the ticket's crash point was reached. Return False if there is evidence already."""
    assert ticket.armed is not None
    if Path(ticket.evidence).exists():
        return False
    evidence = {"point": ticket.armed.id, "kind": kind.value, "pid": os.getpid(), "session": os.getsid(0)}
    # Under its name only when it is whole: whoever kills looks at this file, and half
    # of it would prove nothing.
    draft = f"{ticket.evidence}.{os.getpid()}"
    append(draft, {**evidence, "at": time.time()})
    # The sync is for a loss of power; a SIGKILL takes nothing that the kernel has, so
    # an error of it does not matter.
    with suppress(OSError):
        descriptor = _open(draft, os.O_RDONLY)
        _fsync(descriptor)
        _close(descriptor)
    _rename(draft, ticket.evidence)
    return True


def stop(ticket: Ticket) -> None:
    """Stop this process at its crash point, as `Ticket.then` says.

    With `crash` it waits for the kill, with `task` it kills itself, and with `stop` it continues once the file `go_on`
    exists. A thread may run on for an instant while its process is being stopped, so a continued process must also wait
    for the file.
    """
    if ticket.then == "task":
        os.kill(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGSTOP)
    while ticket.then == "crash" or not Path(go_on(ticket.evidence)).exists():
        time.sleep(0.01)


def go_on(evidence: str) -> str:
    """Return the path of the file whose existence lets a stopped process continue; `evidence` is its evidence file."""
    return f"{evidence}.go"


def await_kill(ticket: Ticket, batch: int) -> None:
    """Wait for the kill if the crash point is the end of an earlier batch, instead of beginning this batch.

    Such a crash point lies after Spark has written `commits/N`, and the driver may begin the next batch before it is
    killed.
    """
    armed = ticket.armed
    while armed is not None and armed.kind is Kind.COMMITS and batch > armed.batch and ticket.then == "crash":
        time.sleep(0.01)
