"""Call a learner's function with the judge's questions: once with different arguments, and again with some at the end.

A question is the arguments of one call. A search asks the same question in many states, and in grading each call goes
to another process, so answers are cached. If a repeated call gives another answer, the function keeps state between its
calls, and a crash in the simulator could not erase that state.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from labkit.teach.exercises.contract import Answer, Plain

T = TypeVar("T")
AGAIN = 40
"""The approximate number of calls that are repeated at the end."""
TOGETHER = 256
"""The largest number of calls that are announced together; a wrong answer ends the judging within these."""
SHOWN = 200
"""The largest number of characters of a value that a message shows."""


class Unusable(Exception):  # what was answered, not whose fault it is
    """The answer has the wrong form; the message says what was expected."""


class Asker:
    """A learner's function with its earlier answers, so that it is called only once with the same arguments."""

    def __init__(self, answer: Answer, name: str) -> None:
        self.name = name
        self._answer = answer
        self._answers: dict[str, tuple[Sequence[Plain], Plain]] = {}

    def __call__(self, *arguments: Plain) -> Plain:
        """Return the answer of the learner's function to these arguments.

        Raises `Unusable` for a value that is too large, and the errors of `Answer.call`.
        """
        key = repr(arguments)  # several times faster than JSON
        if key not in self._answers:
            answer = self._answer.call(*arguments)
            if _text(answer) is None:
                raise Unusable(f"{self.call(*arguments)} returned a value that is too large.")
            self._answers[key] = arguments, answer
        return self._answers[key][1]

    def announced(self, cases: Iterable[T], arguments: Callable[[T], Sequence[Plain]]) -> Iterator[T]:
        """Yield the cases of a judge that calls the function once for each, with the `arguments` of that case.

        The calls are announced to the answer, some in advance, because that is faster than one by one.
        """
        left = iter(cases)
        while some := list(islice(left, TOGETHER)):
            self._answer.expect(arguments(case) for case in some)
            yield from some

    @property
    def questions(self) -> "list[tuple[Sequence[Plain], Plain]]":
        """All different arguments so far with the function's answers, in the order of the calls."""
        return list(self._answers.values())

    def with_answer(self, *arguments: Plain) -> str:
        """Return a call and its answer as text for a message, such as `recover([]) answered 'wait'`."""
        return f"{self.call(*arguments)} answered {shown(self(*arguments))}"

    def call(self, *arguments: Plain) -> str:
        """Return a call with these arguments as the learner would write it, such as `recover([])`."""
        return f"{self.name}({', '.join(map(shown, arguments))})"

    def changed(self) -> str:
        """Call the function again with some earlier arguments.

        Return a sentence about the first answer that changed, or an empty text.
        """
        answers = list(self._answers.values())
        for arguments, first in answers[:: max(1, len(answers) // AGAIN)]:
            again = self._answer.call(*arguments)
            if _text(again) != _text(first):
                return (
                    f"{self.call(*arguments)} answered {shown(first)} first and {shown(again)} when asked again: "
                    "the answer must depend on the arguments alone, because a crash erases everything else."
                )
        return ""


def _text(value: Plain) -> str | None:
    """Return a value as JSON, or None if it is too large or too deeply nested."""
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):
        return None


def shown(value: Plain) -> str:
    """Return a value as a learner would write it, cut if it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "a value that is too long to be shown"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def a_list(asker: Asker, value: Plain, of: str) -> list[Plain]:
    """Return the value if it is a list; otherwise raise `Unusable`.

    `of` names the expected elements in the message.
    """
    if type(value) is not list:
        raise Unusable(f"{asker.name} must return a list of {of}; it returned {shown(value)}.")
    return value
