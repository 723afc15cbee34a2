"""A learner's answer where it was written: in the notebook's own process, found by its name.

What is called here can do whatever a notebook can do; nothing that it says is a grade. The grader has an `Answer` of
its own, in another process, which reads what it meets by the same `plain`.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from types import FrameType
from typing import Any

from labkit.core.errors import MissingSolution
from labkit.teach.exercises.asking import shown
from labkit.teach.exercises.contract import AnswerFailed, NotPlain, Plain, plain
from labkit.teach.exercises.steps import step

SECONDS = 5.0
"""How long one call of a learner's function may take."""


class InNotebook:
    """The answer with this name in a namespace."""

    def __init__(self, name: str, namespace: Mapping[str, Any]) -> None:
        self._name, self._namespace = name, namespace

    def value(self) -> Plain:
        """The constant. Raises `MissingSolution`, `AnswerFailed`."""
        return _read(self._name, self._namespace.get(self._name, ...))

    def is_attempted(self) -> bool:
        """Whether the name stands for anything else than what a stub holds."""
        try:
            self.value()
        except MissingSolution:
            return False
        except AnswerFailed:
            return True
        return True

    def call(self, *arguments: Plain) -> Plain:
        """What the function answers. Raises `MissingSolution`, `AnswerFailed`."""
        asked = f"{self._name}({', '.join(map(shown, arguments))})"
        given = [deepcopy(each) for each in arguments]
        return self._called(asked, lambda function: function(*given))

    def step(self, kind: str, known: Plain, arguments: Plain) -> Plain:
        """What the sink asks for next. Raises `MissingSolution`, `AnswerFailed`."""
        assert isinstance(known, list)
        assert isinstance(arguments, list)
        so_far: list[Any] = deepcopy(known)
        given = deepcopy(arguments)
        return self._called(self._name, lambda function: step(function, kind, so_far, given))

    def _called(self, asked: str, use: Callable[[Callable[..., Any]], Any]) -> Plain:
        function = self._namespace.get(self._name, ...)
        if function is ...:
            raise MissingSolution(f"{self._name} is not defined.")
        if not callable(function):
            raise AnswerFailed(f"{self._name} must be a function, and is {shown(function)}.")
        here = os.getpid()
        try:
            with time_limit():
                answer = use(function)
        except (NotImplementedError, MissingSolution):
            raise MissingSolution(f"{self._name} says that it is not written.") from None
        except TooLong:
            raise AnswerFailed(f"{asked} took longer than {SECONDS:.0f} seconds.") from None
        except (Exception, SystemExit) as error:
            # Whatever the learner's code raises is what is to be told; Ctrl-C is the learner's own.
            raise AnswerFailed(f"{asked} raised {type(error).__name__}: {str(error)[:200]}.") from None
        finally:
            if os.getpid() != here:  # a copy of this notebook that the answer forked
                os._exit(0)
        return _read(asked, answer)


def _read(what: str, value: object) -> Plain:
    """The value, if it is an answer. Raises `MissingSolution`, and `AnswerFailed` that names where the value
    is from.
    """
    try:
        return plain(value)
    except NotPlain as error:
        raise AnswerFailed(f"{what} {error}.") from None


class TooLong(BaseException):
    """The time is up: no `except Exception` of a learner stops it."""


@contextmanager
def time_limit(seconds: float | None = None) -> Iterator[None]:
    """Ends with `TooLong` what takes too long, where that can be done: in the main thread of a process with signals."""
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


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise TooLong
