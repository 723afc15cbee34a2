"""Read a learner's answer by its name in the notebook's own process.

The learner's code can do whatever a notebook can do, so its results are never grades. The grader has its own
implementation of `Answer`, in another process. Both convert values by the function `plain`.
"""

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

from labkit.core.errors import MissingSolution
from labkit.host.browser import IN_BROWSER
from labkit.teach.exercises.asking import shown
from labkit.teach.exercises.contract import AnswerFailed, NotPlain, Plain, error_text, listed, plain
from labkit.teach.exercises.steps import step

SECONDS = 5.0
"""The number of seconds that one call of a learner's function may take."""
ROOM = 1024**3
"""The number of bytes by which the process may grow in one call of a learner's function with large numbers."""
_LARGE = re.compile(r"\d{8}")
_OWN_LIMIT = "; because the arguments have large numbers, labkit's own limit is 1 GB of additional memory for this call"


class InNotebook:
    """An `Answer` that is given in a notebook: the variable or function `name` in `namespace`."""

    def __init__(self, name: str, namespace: Mapping[str, Any]) -> None:
        self.name, self.namespace = name, namespace
        self.replies: dict[str, tuple[list[Plain], Plain]] = {}
        """The calls of the function so far, each with its reply; a call is a list: `call` or `step`, then arguments."""

    def value(self) -> Plain:
        return _read(self.name, self.namespace.get(self.name, ...))

    def is_attempted(self) -> bool:
        """Return whether the learner has written anything in place of the prepared gap."""
        try:
            self.value()
        except MissingSolution:
            return False
        except AnswerFailed:
            return True
        return True

    def call(self, *arguments: Plain) -> Plain:
        question = f"{self.name}({', '.join(map(shown, arguments))})"
        text = json.dumps(arguments)
        copies, is_large = json.loads(text), _LARGE.search(text) is not None
        reply = self._called(question, lambda function: function(*copies), is_large=is_large)
        return self._kept(["call", *arguments], reply)

    def expect(self, calls: Iterable[Sequence[Plain]]) -> None:
        """Do nothing, because announcing calls only helps for a function in another process."""

    def step(self, kind: str, exchanges: Plain, arguments: Plain) -> Plain:
        assert isinstance(exchanges, list)
        assert isinstance(arguments, list)
        # Equal numbers and texts become different objects, as they are in the grader's process.
        so_far, copies = json.loads(json.dumps([exchanges, arguments]))
        reply = self._called(self.name, lambda function: step(function, kind, so_far, copies))
        return self._kept(["step", kind, exchanges, arguments], reply)

    def _kept(self, question: list[Plain], reply: Plain) -> Plain:
        self.replies.setdefault(json.dumps(question), (question, reply))
        return reply

    def _called(self, call_text: str, use: Callable[[Callable[..., Any]], Any], *, is_large: bool = False) -> Plain:
        function = self.namespace.get(self.name, ...)
        if function is ...:
            raise MissingSolution(f"{self.name} is not defined.")
        if not callable(function):
            raise AnswerFailed(f"{self.name} must be a function, but it is {shown(function)}.")
        process = os.getpid()
        try:
            # The time limit ends first, so that its alarm cannot interrupt the code that lifts the memory limit.
            with memory_limit() if is_large else nullcontext(), time_limit():
                answer = listed(use(function))
        except (NotImplementedError, MissingSolution):
            raise MissingSolution(f"{self.name} is not written yet.") from None
        except TooLong:
            raise AnswerFailed(f"{call_text} took longer than {SECONDS:.0f} seconds.") from None
        except (Exception, SystemExit) as error:
            # Every error of the learner's code is reported, but Ctrl-C still interrupts. The message mentions labkit's
            # own limit of memory if that may be the cause.
            limit = _OWN_LIMIT if is_large and isinstance(error, MemoryError) and can_limit_memory() else ""
            raise AnswerFailed(f"{call_text} raised {error_text(error)}{limit}.") from None
        finally:
            if os.getpid() != process:  # this is a child that the learner's function has forked
                os._exit(0)
        return _read(call_text, answer)


def _read(source_name: str, value: object) -> Plain:
    """Return the learner's value as plain data.

    Raises `AnswerFailed`, with a message that begins with `source_name`, if the value cannot be converted.
    """
    try:
        return plain(value)
    except NotPlain as error:
        raise AnswerFailed(f"{source_name} {error}.") from None
    except MissingSolution:
        raise
    except Exception as error:  # a method of the learner's own type failed
        raise AnswerFailed(f"{source_name} raised {error_text(error)}.") from None


class TooLong(BaseException):
    """A cell or a call exceeded its time limit; a `BaseException`, so that `except Exception` does not catch it."""


def can_limit_memory() -> bool:
    """Return whether `memory_limit` has an effect here, which it has only on Linux and in the main thread."""
    return sys.platform == "linux" and threading.current_thread() is threading.main_thread()


@contextmanager
def memory_limit() -> Iterator[None]:
    """Make the block raise `MemoryError` before this process needs `ROOM` bytes more memory than it has now.

    Without this limit, a function that lists all numbers below a large one fills the machine's memory. No time limit
    can end such a function, because Python handles no signal in the meantime. Works only on Linux and in the main
    thread (see `can_limit_memory`). A process that the block starts inherits the limit and keeps it for life, also
    after the block; so do not start a server in the block.
    """
    if not can_limit_memory():
        yield
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [pages * resource.getpagesize() + ROOM, *(each for each in (before, hard) if each >= 0)]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


@contextmanager
def time_limit(seconds: float | None = None) -> Iterator[None]:
    """Raise `TooLong` inside the block after a number of seconds, `SECONDS` by default.

    Works only in the main thread, which receives signals; in other threads there is no limit. A browser has no
    signals, so there the limit is checked before each line of Python.
    """
    if IN_BROWSER:
        with _line_limit(seconds or SECONDS):
            yield
        return
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _raise)
    signal.setitimer(signal.ITIMER_REAL, seconds or SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _line_limit(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds

    def look(_frame: FrameType, _event: str, _argument: object) -> Any:
        if time.monotonic() > end:
            raise TooLong
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise TooLong
