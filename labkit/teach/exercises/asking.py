"""Ask a learner's function: each different question once, and some of them again at the end.

A search meets the same question in very many states, and in grading each question crosses to another process.
If an answer changes, the function keeps state between its calls, and a crash in the simulator could not erase
that state.
"""

import json
from collections.abc import Sequence

from labkit.teach.exercises.contract import Answer, Plain

AGAIN = 40
"""The number of questions that are asked a second time."""
SHOWN = 200
"""The largest number of characters of a value that a message shows."""


class Unusable(Exception):  # what was answered, not whose fault it is
    """The answer has the wrong form; the message says what was expected."""


class Asker:
    """A learner's function with a memory of its answers, so that each question is asked only once."""

    def __init__(self, answer: Answer, name: str) -> None:
        self.name = name
        self._answer = answer
        self._answers: dict[str, tuple[Sequence[Plain], Plain]] = {}

    def __call__(self, *arguments: Plain) -> Plain:
        """Return the answer to a question. Raises `Unusable` for a value that is too large, and the errors of
        `Answer.call`.
        """
        key = json.dumps(arguments)
        if key not in self._answers:
            answer = self._answer.call(*arguments)
            if _text(answer) is None:
                raise Unusable(f"{self.call(*arguments)} returned a value that is too large.")
            self._answers[key] = arguments, answer
        return self._answers[key][1]

    @property
    def questions(self) -> "list[tuple[Sequence[Plain], Plain]]":
        """All different questions with their answers, in the order in which they were asked."""
        return list(self._answers.values())

    def with_answer(self, *arguments: Plain) -> str:
        """Return a question with its answer, as text for a message."""
        return f"{self.call(*arguments)} answered {shown(self(*arguments))}"

    def call(self, *arguments: Plain) -> str:
        """Return a question as the call that a learner would write."""
        return f"{self.name}({', '.join(map(shown, arguments))})"

    def changed(self) -> str:
        """Ask some questions again; return a sentence about the first changed answer, or an empty text."""
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
    """Return a value as JSON, or None if it is too large."""
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
    """Return the value if it is a list. Otherwise raise `Unusable`; `of` names the elements expected."""
    if type(value) is not list:
        raise Unusable(f"{asker.name} must return a list of {of}; it returned {shown(value)}.")
    return value
