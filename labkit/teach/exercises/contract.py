"""The data types of an exercise, shared by the notebook, which checks at once, and the grader, which trusts nothing.

A learner's answer is a constant, or a function of plain values, which are those that JSON can represent. The judge
explores the schedules itself and only calls the learner's function. So the same judge can run beside the learner's code
in a notebook, and in another process for grading. Notebook and grader both read an answer by `plain`, so that they
agree on what is an answer and what was not attempted.
"""

import json
import math
import sys
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, StrEnum
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from labkit.core.errors import LabError, MissingSolution

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""A value that JSON can represent, of exactly one of these types; `True` is not 1."""
LARGEST = 2**63
"""Whole numbers in an answer must be smaller than this limit, and larger than its negative, to fit into 64 bits."""
DEEPEST = 20
"""The largest depth to which lists and dicts may be nested in an answer."""
MOST_CHARACTERS = 60_000
"""The largest number of characters of an answer as JSON, so that it fits into one message to the grader."""
MOST_OF_ERROR = 300
"""The number of characters to which a message cuts an error of a learner's code."""
_SURELY_SMALL = 2_000
"""So many values and characters surely fit into `MOST_CHARACTERS`, because each takes at most 28 characters of JSON."""
_SMALL = 90
"""The largest number of characters or values of an answer that is copied without being counted."""
_TOO_LARGE = f"is too large: as JSON it has more than {MOST_CHARACTERS:,} characters"


class NotPlain(Exception):
    """A learner's answer contains a value that JSON cannot represent.

    The message lacks its subject, such as the name of the variable, which the caller puts in front.
    """


def plain(value: object) -> Plain:
    """Return a learner's answer as plain data, which consists only of values that JSON can represent.

    A tuple becomes a list, a member of an enum becomes its value, a value of NumPy becomes one of Python, and an
    instance of a built-in type's subclass becomes one of the built-in type. `None` is a valid answer. Raises
    `MissingSolution` for a value that contains nothing but `...`. Raises `NotPlain` for `...` among other values, for
    other types, and for values that are deeper, larger or longer than `DEEPEST`, `LARGEST` and `MOST_CHARACTERS` allow.
    Passes on any error that a method of the learner's own type raises.
    """
    if _is_small(value):
        return cast("Plain", value)
    if type(value) is list and len(value) <= _SMALL and all(map(_is_small, value)):
        return value.copy()
    reader = _Reader()
    copy = reader.read(value, 0)
    if reader.open and reader.open == reader.leaves:
        raise MissingSolution("The answer is still '...'.")
    if reader.open:
        raise NotPlain("still contains '...'; write your answer in its place")
    if reader.size > _SURELY_SMALL and len(json.dumps(copy)) > MOST_CHARACTERS:
        raise NotPlain(_TOO_LARGE)
    return copy


def _is_small(value: object) -> bool:
    # Saves time: nearly all answers are such values, and a judge asks for thousands of answers.
    if type(value) is str:
        return len(value) <= _SMALL and value.isascii()
    if type(value) is int:
        return -LARGEST < value < LARGEST
    return type(value) is bool or value is None


def listed(value: object) -> object:
    """Return an iterator, range or dict view as a list, and any other value unchanged.

    The list is cut soon after `MOST_CHARACTERS` elements, because a generator may never end.
    """
    if isinstance(value, Iterator | range | KeysView | ValuesView | ItemsView):
        return list(islice(value, MOST_CHARACTERS + 1))
    return value


def error_text(error: BaseException) -> str:
    """Return the type and the message of an error of a learner's code; only the type if its `__str__` fails."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  # whatever the learner's method raises
        message = ""
    return f"{type(error).__name__}: {message}".removesuffix(": ")[:MOST_OF_ERROR]


def truth(value: Plain) -> bool | None:
    """Return True for a learner's True or 1, False for False or 0, and None for any other value."""
    return bool(value) if type(value) in (bool, int) and value in (0, 1) else None


_BUILT_IN: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (int, int.__index__),
    (float, float.__float__),
    (str, str.__str__),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: list(tuple.__iter__(value))),
    (dict, lambda value: dict(dict.items(value))),
)
"""Built-in types, each with the function that copies a value of a subclass. None of them calls the subclass's code."""


def _built_in(value: object) -> object:
    kind = type(value)
    # The usual case. Types are compared by `is`, so that no code of a learner's metaclass runs.
    if kind is str or kind is int or kind is list or kind is dict or kind is float or kind is bool or value is None:
        return value
    for _ in range(DEEPEST):  # the value of an enum's member may be a member of another one
        if not issubclass(type(value), Enum):
            break
        value = cast("Enum", value).value
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(type(value), numpy.generic | numpy.ndarray):
        array: Any = value
        return array.tolist() if array.size <= MOST_CHARACTERS else value
    return next((copied(value) for kind, copied in _BUILT_IN if issubclass(type(value), kind)), value)


class _Reader:
    """Copies a learner's value as plain data, and counts the copied parts, to refuse an endless value in time."""

    def __init__(self) -> None:
        self.size = 0
        """The number of values and characters of text read so far."""
        self.leaves = 0
        """The number of values that contain no other value."""
        self.open = 0
        """The number of leaves that are `...`."""

    def read(self, value: object, depth: int) -> Plain:
        self._count(1)
        value = _built_in(value)
        if type(value) is list and value:
            return [self.read(each, _deeper(depth)) for each in value]
        if type(value) is dict and value:
            return {self._key(key): self.read(each, _deeper(depth)) for key, each in value.items()}
        self.leaves += 1
        if value is ...:
            self.open += 1
            return None
        return self._leaf(value)

    def _leaf(self, value: object) -> Plain:
        if value is None or type(value) is bool:
            return value
        if type(value) is int or type(value) is float:
            return _number(value)
        if type(value) is str:
            return self._text(value)
        if type(value) is list or type(value) is dict:
            return value.copy()
        if issubclass(type(value), set | frozenset):
            raise NotPlain("contains a set, which has no order; use a list, such as the result of sorted()")
        raise NotPlain(
            f"contains a value of type {type(value).__name__[:60]}; an answer may contain only numbers, text, True, "
            "False, None, lists, and dicts with text as keys"
        )

    def _key(self, key: object) -> str:
        self._count(1)
        key = _built_in(key)
        if type(key) is not str:
            kind = type(key).__name__[:60]
            raise NotPlain(f"contains a dict with a key of type {kind}; keys must be text")
        return self._text(key)

    def _text(self, text: str) -> str:
        self._count(len(text))
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotPlain(
                "contains text that is not valid Unicode (a lone surrogate); remove that character"
            ) from None
        return text

    def _count(self, more: int) -> None:
        self.size += more
        if self.size > MOST_CHARACTERS:
            raise NotPlain(_TOO_LARGE)


def _deeper(depth: int) -> int:
    if depth == DEEPEST:
        raise NotPlain(f"contains lists or dicts nested more than {DEEPEST} levels deep; use fewer levels")
    return depth + 1


def _number(value: float) -> int | float:
    if type(value) is int and not -LARGEST < value < LARGEST:
        raise NotPlain("contains a whole number of more than 64 bits; use a smaller one")
    if type(value) is float and not math.isfinite(value):
        raise NotPlain(f"contains {value}, which JSON cannot represent; use a finite number")
    return value


class Kind(StrEnum):
    """The kind of task in an exercise, such as to predict an outcome or to write a function."""

    PREDICT = "predict"
    """Predict an outcome before the run shows it."""
    CONFIGURE = "configure"
    """Choose settings that keep a guarantee under a stated failure; judged by running them."""
    COMPLETE = "complete"
    """Write a missing part of a simulator or sink; judged by exploring all schedules of a configuration."""
    INVARIANT = "invariant"
    """Write a property that every correct system keeps and every deliberately broken one violates."""
    EXPLAIN = "explain"
    """Choose among given statements."""


class Level(StrEnum):
    """The difficulty of an exercise."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


class AnswerFailed(LabError):
    """The learner's code raised an error, returned a value that is not plain, took too long, or ended its process."""

    exit_code = 1


class NotPassed(LabError):
    """Raised by `lab.check` with `strict=True` for a wrong or missing answer; the message names exercise and reason."""

    exit_code = 1


class Answer(Protocol):
    """A learner's answer to an exercise, a constant or a function; a judge accesses it only by these methods."""

    def value(self) -> Plain:
        """Return the learner's constant.

        Raises `MissingSolution` if the learner has not written one, and `AnswerFailed` if JSON cannot represent it.
        """

    def call(self, *arguments: Plain) -> Plain:
        """Call the learner's function, which must return the same result for the same arguments.

        Raises `MissingSolution` if the function is not written yet (it raises `NotImplementedError` or
        `MissingSolution`, or returns nothing but `...`), and `AnswerFailed` if it fails.
        """

    def expect(self, calls: Iterable[Sequence[Plain]]) -> None:
        """Say which calls of the learner's function will follow, so that a function in another process answers faster.

        The caller must then make these calls, but may stop after a wrong answer.
        """

    def step(self, kind: str, exchanges: Plain, arguments: Plain) -> Plain:
        """Run the learner's sink from its beginning until it makes a new request or ends, and return this event.

        `exchanges` are the earlier requests and their replies, which the sink gets again. `kind` is the kind of store.
        The sink's first argument is the store, and `arguments` are the others. `steps.step` lists the possible events.
        Raises the errors of `call`.
        """


@dataclass(frozen=True)
class Finding:
    """The result of testing an answer with one configuration of an exercise.

    `observed`, `expected` and `message` are texts for the learner.
    """

    passed: bool
    message: str
    observed: str = ""
    expected: str = ""
    trace: str | None = None
    """The counterexample as the text of a trace, which the notebook shows step by step; None if there is none."""
    at: int = 0
    """The number of the trace's step at which the answer fails."""
    general: str = ""
    """The message without details of the variant, for learners from whom the variant is hidden."""


@dataclass(frozen=True)
class Variant:
    """One configuration with which an answer is tested; the meaning of its parameters depends on the exercise."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    def __getitem__(self, name: str) -> Any:
        """Return the value of the configuration's parameter `name`."""
        return dict(self.parameters)[name]


def variant(name: str, **parameters: Any) -> Variant:
    """Return a `Variant`, one configuration of an exercise, with this name and these parameters."""
    return Variant(name, tuple(parameters.items()))


@dataclass(frozen=True)
class Assignment:
    """The text of an exercise: its task, hints and points, without the code that checks an answer."""

    name: str
    """The unique name, the argument of `check`: `NN-word`, where NN is the notebook's number, such as 05 or 09b."""
    notebook: str
    """The stem of its notebook, such as `05_two_phase_commit`."""
    title: str
    kind: Kind
    level: Level
    points: int
    """The points that a right answer gives; 0 for an exercise that is not graded, such as a prediction."""
    answer: str
    """The Python name that the learner assigns or defines."""
    task: str
    """The task in Markdown, as it appears in the notebook above the cell for the answer."""
    hints: Sequence[str] = field(hash=False)
    """At least two hints in Markdown, each revealing more than the one before."""
    lines: int
    """The approximate number of lines of a solution."""
    _: KW_ONLY
    withheld: Sequence[str] = field(default=(), hash=False)
    """Modules that contain the answer, which a learner's code therefore cannot import during grading."""
    needs_spark: bool = False
    by_hand: bool = False
    """Whether the answer is a text for a person: the judge only checks that it exists, and gives no points."""
    axes: Sequence[tuple[str, int]] = field(default=(), hash=False)
    """Separately graded parts of the exercise with their points; a variant's parameter `axis` names its part."""
    statements: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    """For a multiple-choice exercise, each statement and the reason why it is right or wrong, by letter."""
    right: str = ""
    """The letter of the right statement."""

    any_order: bool = False
    """Whether the judge ignores the order of a returned list; then it may also differ after a restart."""

    def same(self, one: Plain, other: Plain) -> bool:
        """Return whether two results are equal; with `any_order`, the order of a list's elements does not count."""
        if self.any_order and type(one) is list and type(other) is list:
            one, other = (sorted(each, key=_as_json) for each in (one, other))
        return _as_json(one) == _as_json(other)

    @property
    def is_graded(self) -> bool:
        """Whether the exercise gives points; predictions and multiple choice, which is easy to guess, give none."""
        return self.points > 0


def _as_json(value: Plain) -> str:
    return json.dumps(value, sort_keys=True)


Judge: TypeAlias = Callable[[Answer, Variant], Finding]
"""A function that tests an answer with one variant. It raises only the errors of `Answer`, whatever an answer does."""
JudgeTogether: TypeAlias = Callable[[Answer, Sequence[Variant]], list[Finding]]
"""A function that tests an answer with several variants at once, which is faster. If it raises, none has a result."""


class Judging(NamedTuple):
    """The functions that check the answers to an exercise: `judge` with one configuration, `judge_together` with many.

    `judge_together` is None if the exercise has no faster way to check several configurations at once.
    """

    judge: Judge
    public: Sequence[Variant]
    """The variants of the visible check, which learners may read; the grader adds hidden ones."""
    judge_together: JudgeTogether | None = None


def by(judge: Judge, *public: Variant, together: JudgeTogether | None = None) -> Judging:
    """Return a `Judging`, which says how the answers to an exercise are checked.

    `judge` checks an answer with one configuration, and the optional `together` checks it with several at once.
    `public` are the configurations of the check that learners can run and read.
    """
    return Judging(judge, public, together)


@dataclass(frozen=True)
class Exercise(Assignment):
    """An exercise: its text, the function that checks an answer, and the configurations that learners may see."""

    public: Sequence[Variant] = field(hash=False)
    """The variants of the visible check, which learners may read; the grader adds hidden ones."""
    judge: Judge
    judge_together: JudgeTogether | None = None
