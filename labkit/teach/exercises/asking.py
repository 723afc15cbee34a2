"""How a judge asks a learner's function: each question once, and in the end some of them again.

A search meets the same question in very many states, and in grading each question crosses to another process. A rule
whose answer changes keeps something between its calls, which no crash in the simulator would take. This module must
not judge, and must not know who answers.
"""

import json
from collections.abc import Sequence

from labkit.teach.exercises.contract import Answer, Plain

AGAIN = 40
"""Questions that are asked a second time."""
SHOWN = 200
"""Characters of a value that a sentence shows."""


class Unusable(Exception):  # what was answered, not whose fault it is
    """An answer that has the wrong form; the message says what was expected."""


class Asker:
    """A learner's function that is asked each question once."""

    def __init__(self, answer: Answer, name: str) -> None:
        self.name = name
        self._answer = answer
        self._known: dict[str, tuple[Sequence[Plain], Plain]] = {}

    def __call__(self, *arguments: Plain) -> Plain:
        """The answer. Raises what `Answer.call` raises, and `Unusable` for a value of no sensible size."""
        key = json.dumps(arguments)
        if key not in self._known:
            answer = self._answer.call(*arguments)
            if _text(answer) is None:
                raise Unusable(f"{self.call(*arguments)} returned a value that is too large.")
            self._known[key] = arguments, answer
        return self._known[key][1]

    @property
    def asked(self) -> "list[tuple[Sequence[Plain], Plain]]":
        """Every different question with its answer, in the order in which they were asked."""
        return list(self._known.values())

    def with_answer(self, *arguments: Plain) -> str:
        """A question with its answer, for a sentence."""
        return f"{self.call(*arguments)} answered {shown(self(*arguments))}"

    def call(self, *arguments: Plain) -> str:
        """A question as a learner would write it."""
        return f"{self.name}({', '.join(map(shown, arguments))})"

    def changed(self) -> str:
        """The first question that is answered differently when it is asked again; empty where none is."""
        known = list(self._known.values())
        for arguments, first in known[:: max(1, len(known) // AGAIN)]:
            again = self._answer.call(*arguments)
            if _text(again) != _text(first):
                return (
                    f"{self.call(*arguments)} answered {shown(first)} first and {shown(again)} when asked again: "
                    "the answer must come from the arguments alone, because a crash takes everything else."
                )
        return ""


def _text(value: Plain) -> str | None:
    """A value as JSON; None where it is too large for that."""
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):
        return None


def shown(value: Plain) -> str:
    """A value as a learner would write it, cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "a value that is too long to be shown"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def a_list(asker: Asker, value: Plain, of: str) -> list[Plain]:
    """The value, if it is a list. Raises `Unusable` that names what it should be a list of."""
    if type(value) is not list:
        raise Unusable(f"{asker.name} must return a list of {of}; it returned {shown(value)}.")
    return value
