"""A learner's answer where it was written: in the notebook's own process, found by its name.

What is called here can do whatever a notebook can do; nothing that it says is a grade. The grader has an `Answer` of
its own, in another process. This module must not judge.
"""

import math
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from types import FrameType
from typing import Any

from labkit.core.errors import MissingSolution
from labkit.teach.exercises.asking import shown
from labkit.teach.exercises.contract import AnswerFailed, Plain

SECONDS = 5.0
"""How long one call of a learner's function may take."""
LARGEST = 2**63
"""A whole number in an answer is smaller, and larger than its negative."""
DEEPEST = 20
"""Levels of lists and dicts in an answer."""


class InNotebook:
    """The answer with this name in a namespace."""

    def __init__(self, name: str, namespace: Mapping[str, Any]) -> None:
        self._name, self._namespace = name, namespace

    def value(self) -> Plain:
        """The constant. Raises `MissingSolution`, `AnswerFailed`."""
        found = self._namespace.get(self._name, ...)
        if is_open(found):
            raise MissingSolution(f"{self._name} is still '...'.")
        return plain(self._name, found)

    def call(self, *arguments: Plain) -> Plain:
        """What the function answers. Raises `MissingSolution`, `AnswerFailed`."""
        function = self._namespace.get(self._name, ...)
        if function is ...:
            raise MissingSolution(f"{self._name} is not defined.")
        if not callable(function):
            raise AnswerFailed(
                f"{self._name} must be a function, and is {shown(function)}."
            )
        asked = f"{self._name}({', '.join(map(shown, arguments))})"
        given = [deepcopy(each) for each in arguments]
        try:
            with time_limit():
                answer = function(*given)
        except NotImplementedError:
            raise MissingSolution(f"{self._name} raises NotImplementedError.") from None
        except _TooLong:
            raise AnswerFailed(
                f"{asked} took longer than {SECONDS:.0f} seconds."
            ) from None
        except (
            Exception
        ) as error:  # whatever the learner's code raises is what is to be told
            raise AnswerFailed(
                f"{asked} raised {type(error).__name__}: {str(error)[:200]}."
            ) from None
        if answer is ...:
            raise MissingSolution(f"{self._name} returns '...'.")
        return plain(asked, answer)


def is_open(value: object) -> bool:
    """Whether nothing has been filled in: `...`, or a dict or list of nothing else."""
    if isinstance(value, dict):
        return bool(value) and all(map(is_open, value.values()))
    return value is ... or (
        isinstance(value, list) and bool(value) and all(map(is_open, value))
    )


def plain(what: str, value: Any, depth: int = 0) -> Plain:
    """The value, if JSON can carry it: exact types only. Raises `AnswerFailed` that names what is not."""
    if type(value) is int and not -LARGEST < value < LARGEST:
        raise AnswerFailed(f"{what} gives a whole number of more than 64 bits.")
    if value is None or type(value) in {bool, int, str}:
        carried: Plain = value
        return carried
    if type(value) is float:
        if not math.isfinite(value):
            raise AnswerFailed(
                f"{what} gives {value}, which is no number that JSON can carry."
            )
        return value
    if depth < DEEPEST and type(value) is list:
        return [plain(what, each, depth + 1) for each in value]
    if (
        depth < DEEPEST
        and type(value) is dict
        and all(type(key) is str for key in value)
    ):
        return {key: plain(what, each, depth + 1) for key, each in value.items()}
    if value is ...:
        raise AnswerFailed(f"{what} has a '...' that is not filled in.")
    raise AnswerFailed(
        f"{what} gives {shown(value)}, a {type(value).__name__}; an answer is made of numbers, text, True, False, "
        "None, lists, and dicts with text as keys."
    )


class _TooLong(BaseException):
    """The time is up: no `except Exception` of a learner stops it."""


@contextmanager
def time_limit() -> Iterator[None]:
    """Ends what takes too long, where that can be done: in the main thread of a process with signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _raise)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise _TooLong
