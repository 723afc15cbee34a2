"""Call a learner's function once for each set of arguments, and repeat some of the calls at the end.

A search needs the same call in many states, and in grading each call goes to another process, so answers are cached. If
a repeated call gives another answer, the function keeps state between its calls, which a simulated crash cannot erase.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar
from unicodedata import combining

from labkit.teach.exercises.contract import Answer, Plain, truth

T = TypeVar("T")
AGAIN = 40
"""The approximate number of calls that are repeated at the end."""
OFTEN = 150
"""The approximate total of repeated calls if there are only a few short ones, so that each is repeated many times.

A function that counts its calls may give another answer only after many of them.
"""
_LONG = 20_000
"""The largest number of characters of a call that is repeated, and of all calls together that are repeated often."""
TOGETHER = 256
"""The largest number of calls that are announced at once: after a wrong answer, nobody needs the others."""
SHOWN = 200
"""The largest number of characters of a value that a message shows."""


class Unusable(Exception):
    """A learner's answer has the wrong form, for example a text in place of a list; the message says what to change."""


class Asker:
    """Calls a learner's function and caches its answers, so that it is called only once with the same arguments."""

    def __init__(self, answer: Answer, name: str) -> None:
        self.name = name
        self._answer = answer
        self._answers: dict[str, tuple[Sequence[Plain], Plain]] = {}

    def __call__(self, *arguments: Plain) -> Plain:
        """Return the learner's answer to these arguments; a call with the same arguments as before is not repeated.

        Raises `MissingSolution` if the function is not written yet, and `AnswerFailed` if it fails.
        """
        key = repr(arguments)  # several times faster than JSON
        if (known := self._answers.get(key)) is not None:
            return known[1]
        answer = self._reply(*arguments)
        self._answers[key] = arguments, answer
        return answer

    def _reply(self, *arguments: Plain) -> Plain:
        return self._answer.call(*arguments)

    def announced(self, cases: Iterable[T], arguments: Callable[[T], Sequence[Plain]]) -> Iterator[T]:
        """Yield the cases, and announce the calls of the learner's function that the next few cases need.

        A function in another process then answers these calls together, which is faster. `arguments` returns the
        arguments of the call for a case.
        """
        left = iter(cases)
        while some := list(islice(left, TOGETHER)):
            self._answer.expect(arguments(case) for case in some)
            yield from some

    @property
    def questions(self) -> "list[tuple[Sequence[Plain], Plain]]":
        """The arguments and the answer of each different call of the learner's function so far, oldest call first."""
        return list(self._answers.values())

    def truth(self, *arguments: Plain) -> bool:
        """Return the learner's True or False for these arguments. Raises `Unusable` for any other answer."""
        if (answer := truth(self(*arguments))) is None:
            raise self.unusable("True or False", *arguments)
        return answer

    def unusable(self, wanted: str, *arguments: Plain) -> Unusable:
        """Return an error about the answer to these arguments; `wanted` says what the function should return."""
        return Unusable(f"{self.call(*arguments)} returned {shown(self(*arguments))}; return {wanted}.")

    def with_answer(self, *arguments: Plain) -> str:
        """Return a call of the learner's function with its answer as text, such as `recover([]) answered 'wait'`."""
        return f"{self.call(*arguments)} answered {shown(self(*arguments))}"

    def call(self, *arguments: Plain) -> str:
        """Return the source text of a call of the learner's function, such as `recover([])`."""
        return f"{self.name}({', '.join(map(shown, arguments))})"

    def changed(self, *, often: bool = False) -> str:
        """Repeat some earlier calls, and return a sentence on the first answer that differs; empty if there is none.

        With `often`, the calls are repeated many times if they are few and short.
        """
        for arguments, first in self._again(often=often):
            again = self._reply(*arguments)
            # As JSON, because in Python 1 == True == 1.0.
            if json.dumps(again) != json.dumps(first):
                return (
                    f"{self.call(*arguments)} answered {shown(first)} first and {shown(again)} when asked again: "
                    "the answer must depend on the arguments alone, because a crash erases everything else."
                )
        return ""

    def _again(self, *, often: bool) -> Iterator[tuple[Sequence[Plain], Plain]]:
        """Yield calls to be repeated, each with its first answer.

        With `often`, a few short calls are repeated in many rounds, and every second round is in reverse order.
        """
        keys = list(self._answers)
        keys = keys[:: max(1, len(keys) // AGAIN)]
        keys = [key for key in keys if len(key) <= _LONG] or sorted(keys, key=len)[:1]
        rounds = min(OFTEN // max(1, len(keys)), _LONG // max(1, sum(map(len, keys)))) if often else 1
        for number in range(max(1, rounds)):
            yield from (self._answers[key] for key in (keys[::-1] if number % 2 else keys))


def shown(value: Plain) -> str:
    """Return a value as Python source for a message, cut to `SHOWN` characters, with combining accents made visible."""
    try:
        text = distinct(repr(value)[: SHOWN + 1])
    except (ValueError, RecursionError):
        return "a value that is too long to be shown"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def distinct(text: str) -> str:
    """Return a text with each combining accent (a Unicode character that follows its letter) written as an escape."""
    if text.isascii() or not any(map(combining, text)):
        return text
    return "".join(f"\\u{ord(each):04x}" if combining(each) else each for each in text)


def a_list(asker: Asker, value: Plain, of: str) -> list[Plain]:
    """Return the learner's `value` if it is a list, and otherwise raise `Unusable`.

    `of` names the elements of the list in the error's message, such as `"steps"`.
    """
    if type(value) is not list:
        raise Unusable(f"{asker.name} must return a list of {of}; it returned {shown(value)}.")
    return value
