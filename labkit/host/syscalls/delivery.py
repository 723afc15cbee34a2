"""Injects a fault into a held system call. labkit carries the call out instead of the kernel, wholly, in part or not at
all, and tells the kernel what the call returns; or labkit sends a signal while the call is held.

labkit writes through a duplicate of the process's descriptor (`pidfd_getfd`, Linux 5.6), which shares the position in
the file and the connection, as if the process wrote. A lost answer needs proof that the server got the request: labkit
sends it, waits for the first byte of the answer while the process is held, and only then cuts the connection. Sources:
seccomp_unotify(2), pidfd_getfd(2), and the ERRORS sections of the calls' manual pages.
"""

import contextlib
import ctypes
import errno
import os
import select
import signal
import socket
import stat
import time
from collections.abc import Iterator, Sequence

from labkit.host.syscalls.calls import Call, CallKind
from labkit.host.syscalls.contents import MESSAGE
from labkit.host.syscalls.faults import Delivery, Fault
from labkit.host.syscalls.filters import Listener, Notification
from labkit.host.syscalls.tracee import Tracee, Unreadable, WillFail, signed

ANSWER_SECONDS = 5.0
"""The seconds in which a server must answer a request; with a slower answer, the fault is not injected."""
NO_ANSWER = f"the server did not answer within {ANSWER_SECONDS:.0f} s, so this message alone was not a request"
"""The reason why no answer was lost if none arrived."""

_GET_DESCRIPTOR = 438
"""The number of pidfd_getfd, the same on every architecture."""
_QUIET = 0.02

_ERRORS = {Fault.EIO: errno.EIO, Fault.ENOSPC: errno.ENOSPC, Fault.EINTR: errno.EINTR, Fault.FSYNC: errno.EIO}
_FAILING = {
    Fault.EIO: {CallKind.WRITE, CallKind.SYNC, CallKind.RENAME, CallKind.LINK, CallKind.UNLINK, CallKind.TRUNCATE},
    Fault.ENOSPC: {CallKind.WRITE, CallKind.SYNC, CallKind.RENAME, CallKind.LINK, CallKind.MKDIR, CallKind.CREATE},
    Fault.EINTR: {CallKind.WRITE, CallKind.SYNC, CallKind.SEND, CallKind.CREATE, CallKind.TRUNCATE},
    Fault.FSYNC: {CallKind.SYNC},
}
"""The kinds of calls that may return each error."""
_NO_EFFECT = {CallKind.EXIT, CallKind.LINE}
_DEATH_SECONDS = 5.0
_TERMINATED_SECONDS = 0.2
"""The seconds to wait for a process to die of SIGTERM; a process with a handler lives on, and its held call happens."""
_NEVER_FAILS = "sync"
"""The call sync(2), which returns no error."""
_ALL_OR_NOTHING = "ioctl"
"""The call that makes a file share another file's blocks, so that it never writes only a part."""
_WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
_SENDS = ("write", "writev", "sendto", "sendmsg")
"""The calls that labkit can carry out. Other calls that could suffer the fault count as not tried."""


def fits(fault: Fault, call: Call) -> bool:
    """Return whether a fault can be injected into a system call; only a write, for example, can be a short write."""
    match fault:
        case Fault.LOST_ANSWER:
            return call.kind is CallKind.SEND
        case Fault.SHORT_WRITE:
            return call.kind is CallKind.WRITE and call.name != _ALL_OR_NOTHING and call.size > 1
        case Fault.ONE_PROCESS:
            # A sync changes no file, so a kill before it leaves the same files as a kill before the next call.
            return call.kind not in _NO_EFFECT | {CallKind.SYNC}
        case Fault.SIGTERM | Fault.DELAY:
            return call.kind not in _NO_EFFECT
    return call.kind in _FAILING[fault] and call.name != _NEVER_FAILS


def deliver(fault: Fault, listener: Listener, held: Notification, call: Call) -> Delivery:
    """Inject a fault, such as EIO, into an intercepted system call, and return the evidence.

    If the fault cannot be injected, the call happens as usual, and the evidence says why.
    """
    returned, failure = -_ERRORS.get(fault, 0), "" if fits(fault, call) else f"{call.name} cannot suffer {fault}"
    if not failure and fault not in _ERRORS:
        try:
            carry_out = _send_and_cut if fault is Fault.LOST_ANSWER else _write_half
            returned, failure = carry_out(held, call)
        except (OSError, Unreadable, WillFail) as error:
            # Nothing was sent or written, so the call may still happen.
            failure = f"labkit could not carry out the call in its place ({str(error) or type(error).__name__})"
    if failure and not returned:
        listener.let_go(held)
    elif not listener.reply(held, returned):
        failure = failure or "the call was interrupted before it returned"
    return Delivery(fault, call.number, returned, failure)


def kill_one(listener: Listener, held: Notification, call: Call) -> Delivery:
    """Kill the process that makes the intercepted call, so that the call never happens; return the evidence."""
    os.kill(call.process, signal.SIGKILL)
    gone = _is_gone(listener, held, _DEATH_SECONDS)
    failure = "" if gone else f"process {call.process} did not die within {_DEATH_SECONDS:.0f} s"
    return Delivery(Fault.ONE_PROCESS, call.number, 0, failure)


def terminate(listener: Listener, held: Notification, call: Call, group: int) -> Delivery:
    """Send SIGTERM to the command's process group `group`; then let the call happen unless its process has ended."""
    failure = ""
    try:
        os.killpg(group, signal.SIGTERM)
    except OSError as error:
        failure = f"SIGTERM could not be sent ({error.strerror})"
    if failure or not _is_gone(listener, held, _TERMINATED_SECONDS):
        listener.let_go(held)
    return Delivery(Fault.SIGTERM, call.number, 0, failure)


def _is_gone(listener: Listener, held: Notification, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while listener.alive(held):
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def _write_half(held: Notification, call: Call) -> tuple[int, str]:
    if held.name not in _WRITES or (held.name == "pwritev2" and held.arguments[5]):
        return 0, f"labkit cannot carry out half of {held.name}"
    content = _content(held)[: call.size // 2]
    with _duplicate(held, call) as descriptor:
        if held.name.startswith("pwrite") and signed(held.arguments[3]) != -1:
            return os.pwrite(descriptor, content, call.offset), ""
        return os.write(descriptor, content), ""


def _send_and_cut(held: Notification, call: Call) -> tuple[int, str]:
    """Send the message of an intercepted call, and cut the connection when the server's answer arrives.

    Return two values: the number of bytes sent, or a negative errno, and a text. The text says why the answer was not
    lost; it is empty if the answer was lost.
    """
    if held.name not in _SENDS:
        return 0, f"labkit cannot carry out {held.name}"
    content, until = memoryview(_content(held)), time.monotonic() + ANSWER_SECONDS
    with _duplicate(held, call) as descriptor, socket.socket(fileno=os.dup(descriptor)) as connection:
        if connection.type != socket.SOCK_STREAM:
            return 0, "only a connection can be cut"
        if _is_ready(connection, select.POLLIN, 0.0):
            return 0, "an earlier answer had not been read yet, so nobody knows which answer would be lost"
        sent = 0
        while sent < len(content) and _is_ready(connection, select.POLLOUT, until - time.monotonic()):
            try:
                sent += connection.send(content[sent:], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except OSError as error:
                return sent or -(error.errno or errno.EPIPE), "the connection broke"
        if not _is_ready(connection, select.POLLIN, until - time.monotonic()) or not _drain(connection):
            return sent, NO_ANSWER
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        _drain(connection)
        return sent, ""


def _is_ready(connection: socket.socket, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(connection, event)
    return any(ready & event for _, ready in poll.poll(max(0.0, 1000 * seconds)))


def _drain(connection: socket.socket) -> bool:
    """Read and discard data until nothing arrives for `_QUIET` seconds; return whether any data arrived."""
    drained = False
    with contextlib.suppress(OSError):
        while _is_ready(connection, select.POLLIN, _QUIET) and connection.recv(65536, socket.MSG_DONTWAIT):
            drained = True
    return drained


@contextlib.contextmanager
def _duplicate(held: Notification, call: Call) -> Iterator[int]:
    """Yield a copy of the descriptor to which an intercepted call writes. The copy belongs to labkit's own process.

    Raises `OSError` if the descriptor cannot be copied.
    """
    number = signed(held.arguments[0])
    process = os.pidfd_open(call.process)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor: int = libc.syscall(_GET_DESCRIPTOR, process, number, 0)
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(process)
    try:
        copy, own = os.fstat(descriptor), Tracee(held.thread).opened(number)
        if (copy.st_ino, copy.st_dev, stat.S_IFMT(copy.st_mode)) != (own.inode, own.device, stat.S_IFMT(own.mode)):
            raise OSError(errno.EBADF, "the thread has other descriptors than its process")
        yield descriptor
    finally:
        os.close(descriptor)


def _content(held: Notification) -> bytes:
    """Return the bytes that an intercepted call would write or send. Raises an error if they cannot be read."""
    tracee, of = Tracee(held.thread), held.arguments
    pieces: Sequence[tuple[int, int]] = [(of[1], of[2])]
    if held.name in ("writev", "pwritev", "pwritev2"):
        pieces = tracee.vectors(of[1], of[2])
    elif held.name == "sendmsg":
        *_, vectors, count, control, length, _ = MESSAGE.unpack(tracee.exactly(of[1], MESSAGE.size))
        if control and length:
            raise OSError(errno.EOPNOTSUPP, "a message with control data")
        pieces = tracee.vectors(vectors, count)
    content = tracee.gather(list(pieces))
    if content is None:
        raise WillFail("its bytes cannot be read")
    return content
