"""Builds and installs the seccomp filter that makes the kernel hold system calls, and lets held calls continue.

A filter applies to the calling *thread* and to everything that it will ever start, and it cannot be removed. So only a
thread that is about to become the watched command may install it. Source: seccomp(2), seccomp_unotify(2).
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from labkit.host.syscalls.table import ANY_BIT, NEW_LISTENER, SET_MODE_FILTER, Architecture, Question

RET_ALLOW, RET_USER_NOTIF = 0x7FFF0000, 0x7FC00000
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_GET_ACTION_AVAILABLE, _WAIT_KILLABLE = 2, 1 << 5
_NO_NEW_PRIVILEGES = 38

_RECEIVE, _SEND, _STILL_VALID = 0xC0502100, 0xC0182101, 0x40082102
_SET_FLAGS, _WAKE_AT_ONCE = 0x40082104, 1
_NOTIFICATION = struct.Struct("<QIIiIQ6Q")
_RESPONSE = struct.Struct("<QqiI")
_CONTINUE = 1

FOREIGN = "a 32-bit system call"
"""The name for any call that is not in the processor's own table of system calls."""


class Instruction(NamedTuple):
    """An instruction of classic BPF.

    If it tests a condition, a true condition skips the next `holds` instructions, and a false one the next `fails`.
    """

    code: int
    holds: int
    fails: int
    value: int


class Program(ctypes.Structure):
    """The C structure `struct sock_fprog`, which passes a seccomp filter to the kernel."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


class Notification(NamedTuple):
    """A system call that the kernel has intercepted, as it reports the call (`struct seccomp_notif`)."""

    cookie: int
    thread: int
    name: str
    arguments: tuple[int, ...]


def program(machine: Architecture, questions: Iterable[Question], action: int = RET_USER_NOTIF) -> list[Instruction]:
    """Return a seccomp filter that applies `action` to the calls that `questions` describe and to every 32-bit call."""
    instructions = [
        Instruction(_LOAD, 0, 0, _ARCHITECTURE_AT),
        Instruction(_IF_EQUAL, 1, 0, machine.audit),
        Instruction(_RETURN, 0, 0, action),
        Instruction(_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine.foreign:
        instructions += [Instruction(_IF_AT_LEAST, 0, 1, machine.foreign), Instruction(_RETURN, 0, 0, action)]
    for question in questions:
        block = list(_block(question, action))
        number = machine.numbers[question.name]
        instructions += [Instruction(_IF_EQUAL, 0, len(block), number), *block]
    return [*instructions, Instruction(_RETURN, 0, 0, RET_ALLOW)]


def _block(question: Question, action: int) -> Iterator[Instruction]:
    """Yield the instructions for one system call: apply `action` if its conditions are true, otherwise go on."""
    left = 2 * len(question.conditions)
    for condition in question.conditions:
        left -= 2
        jump = _IF_ANY_BIT if condition.relation == ANY_BIT else _IF_EQUAL
        yield Instruction(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * condition.argument)
        # If the condition is false, skip the rest of the block: the later conditions, the action, and the last load.
        yield Instruction(jump, 0, left + 1, condition.value)
    yield Instruction(_RETURN, 0, 0, action)
    if question.conditions:
        yield Instruction(_LOAD, 0, 0, _NUMBER_AT)


def install(machine: Architecture, instructions: list[Instruction], *, listen: bool = True) -> int:
    """Install a seccomp filter on this thread; return the descriptor on which the kernel reports intercepted calls.

    Without `listen`, the kernel reports no calls, and the result is 0. Raises `OSError` if the kernel or the container
    refuses the filter.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(struct.pack("<HBBI", *each) for each in instructions)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_program = Program(len(instructions), ctypes.addressof(buffer))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    # With this flag (Linux 5.19), only SIGKILL interrupts a call that labkit has received. Without it, other signals do
    # so as well, and the kernel reports the call a second time.
    flags = (NEW_LISTENER | _WAIT_KILLABLE, NEW_LISTENER) if listen else (0,)
    number = machine.numbers["seccomp"]
    for flag in flags:
        descriptor: int = libc.syscall(number, SET_MODE_FILTER, flag, ctypes.byref(filter_program))
        if descriptor >= 0:
            return descriptor
        if ctypes.get_errno() != errno.EINVAL:
            break
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def offered(machine: Architecture) -> int:
    """Return 0 if the kernel can intercept system calls (SECCOMP_RET_USER_NOTIF), otherwise an errno."""
    libc = ctypes.CDLL(None, use_errno=True)
    action = ctypes.c_uint32(RET_USER_NOTIF)
    number = machine.numbers["seccomp"]
    answer = libc.syscall(number, _GET_ACTION_AVAILABLE, 0, ctypes.byref(action))
    return 0 if answer == 0 else ctypes.get_errno()


class Listener:
    """Receives the system calls that a seccomp filter intercepts. It lets a call happen, or makes it return a value."""

    def __init__(self, descriptor: int, machine: Architecture) -> None:
        self.descriptor = descriptor
        with contextlib.suppress(OSError):  # only Linux 6.6 or newer can wake the waiting process on this processor
            fcntl.ioctl(descriptor, _SET_FLAGS, _WAKE_AT_ONCE)
        self._audit, self._foreign = machine.audit, machine.foreign
        self._names = {number: name for name, number in machine.numbers.items()}

    def receive(self) -> Notification | None:
        """Wait for the next intercepted system call, and return it; None if the thread of the call has died."""
        buffer = bytearray(_NOTIFICATION.size)
        if not self._ask(_RECEIVE, buffer):
            return None
        cookie, thread, _, number, audit, _, *arguments = _NOTIFICATION.unpack(buffer)
        is_native = audit == self._audit and not (self._foreign and number >= self._foreign)
        name = self._names.get(number, FOREIGN) if is_native else FOREIGN
        return Notification(cookie, thread, name, tuple(arguments))

    def alive(self, notification: Notification) -> bool:
        """Return whether the kernel still holds the call.

        If not, the call's thread may have died, and a new thread may have its id. In this case labkit may have read the
        memory of the wrong thread.
        """
        return self._ask(_STILL_VALID, struct.pack("<Q", notification.cookie))

    def let_go(self, notification: Notification) -> bool:
        """Let the call happen. Return False if a signal interrupted it, so that the kernel may report it again."""
        return self._ask(_SEND, _RESPONSE.pack(notification.cookie, 0, 0, _CONTINUE))

    def reply(self, notification: Notification, returned: int) -> bool:
        """Make a call return `returned` (if negative, an errno). Return False if a signal interrupted the call."""
        error = min(returned, 0)
        return self._ask(_SEND, _RESPONSE.pack(notification.cookie, returned - error, error, 0))

    def _ask(self, request: int, content: bytes | bytearray) -> bool:
        try:
            fcntl.ioctl(self.descriptor, request, content)
        except OSError:
            return False
        return True
