"""What an exercise is, for the notebook that checks it at once and for the grader that trusts nothing.

A learner's answer is a constant or a function of plain values (what JSON can carry), and whoever judges it only asks:
the judge explores, the answer replies. So the same judge runs beside the learner's code in a notebook, and in another
process than that code when points are given. Both sides read an answer by `plain`, so that they agree on what is an
answer, what is none, and what was not attempted.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

from labkit.core.errors import LabError, MissingSolution

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""A value that JSON can carry. The exact type counts: a subclass of `int` is not an `int`, `True` is not 1."""
LARGEST = 2**63
"""A whole number in an answer is smaller, and larger than its negative: what 64 bits hold."""
DEEPEST = 20
"""Levels of lists and dicts in an answer."""
MOST_CHARACTERS = 60_000
"""Characters of an answer that is written as JSON: such a reply still fits into a frame of the grader's connection."""
_SURELY_SMALL = 2_000
"""So many values and characters of text never take more than `MOST_CHARACTERS`: none of them takes more than 28."""
_TOO_LARGE = f"gives a value that is too large: as JSON it has more than {MOST_CHARACTERS:,} characters"


class NotPlain(Exception):
    """What was found is no answer. The message is a sentence without its subject, such as `recover([])`."""


def plain(value: object) -> Plain:
    """A copy of what a learner's name stands for or a learner's function returned: the only reader of answers.

    `None` is an answer and is judged. What holds nothing but `...`, as a stub does, was not attempted:
    `MissingSolution`. Refused are: a value that has a `...` and something else, what JSON cannot carry, more levels
    than `DEEPEST`, a whole number from `LARGEST` on, and more than `MOST_CHARACTERS`: `NotPlain`.
    """
    reader = _Reader()
    copy = reader.read(value, 0)
    if reader.open and reader.open == reader.leaves:
        raise MissingSolution("There is nothing but '...' yet.")
    if reader.open:
        raise NotPlain("has a '...' that is not filled in")
    if reader.size > _SURELY_SMALL and len(json.dumps(copy)) > MOST_CHARACTERS:
        raise NotPlain(_TOO_LARGE)
    return copy


class _Reader:
    """Reads one value, and counts while it reads, so that it never goes through one of endless size."""

    def __init__(self) -> None:
        self.size = 0
        """Values and characters of text that were read so far."""
        self.leaves = 0
        """Values that hold no other value."""
        self.open = 0
        """Leaves that are `...`."""

    def read(self, value: object, depth: int) -> Plain:
        self._count(1)
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
        raise NotPlain(
            f"gives a value of type {type(value).__name__[:60]}; an answer is made of numbers, text, True, False, "
            "None, lists, and dicts with text as keys"
        )

    def _key(self, key: object) -> str:
        self._count(1)
        if type(key) is not str:
            kind = type(key).__name__[:60]
            raise NotPlain(f"gives a dict with a key of type {kind}; keys are text")
        return self._text(key)

    def _text(self, text: str) -> str:
        self._count(len(text))
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotPlain("gives text with half a character (a surrogate)") from None
        return text

    def _count(self, more: int) -> None:
        self.size += more
        if self.size > MOST_CHARACTERS:
            raise NotPlain(_TOO_LARGE)


def _deeper(depth: int) -> int:
    """The depth of what lies in a list or dict at this depth."""
    if depth == DEEPEST:
        raise NotPlain(f"gives lists or dicts more than {DEEPEST} levels deep")
    return depth + 1


def _number(value: float) -> int | float:
    if type(value) is int and not -LARGEST < value < LARGEST:
        raise NotPlain("gives a whole number of more than 64 bits")
    if type(value) is float and not math.isfinite(value):
        raise NotPlain(f"gives {value}, which is no number that JSON can carry")
    return value


class Kind(StrEnum):
    """What a learner is asked to do."""

    PREDICT = "predict"
    """Commit to an outcome before it is seen."""
    CONFIGURE = "configure"
    """Choose settings so that a guarantee holds under a stated failure; judged by running them."""
    COMPLETE = "complete"
    """Write a missing part of a simulator or sink; judged by exploring all schedules of a configuration."""
    INVARIANT = "invariant"
    """Write a property that every good system keeps and every seeded bad one breaks."""
    EXPLAIN = "explain"
    """Choose among worked statements."""


class Level(StrEnum):
    """How hard an exercise is."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


class AnswerFailed(LabError):
    """The learner's code raised, gave no plain value, took too long or is gone; the message is the reason to show."""

    exit_code = 1


class NotPassed(LabError):
    """A check that was asked to be strict was not passed; the message says which exercise and why."""

    exit_code = 1


class Answer(Protocol):
    """The learner's side, as a judge meets it."""

    def value(self) -> Plain:
        """The constant that was answered. Raises `MissingSolution` when it was not attempted, `AnswerFailed`."""
        ...

    def call(self, *arguments: Plain) -> Plain:
        """What the learner's function answers. Same arguments, same answer: a judge may ask a question twice.

        Raises `MissingSolution` when the function was not attempted (it raises `NotImplementedError` or
        `MissingSolution`, or gives nothing but `...`), `AnswerFailed` when it fails.
        """
        ...

    def step(self, kind: str, known: Plain, arguments: Plain) -> Plain:
        """What the learner's sink asks of its store next (`teach.exercises.steps.step`). Raises as `call`."""
        ...


@dataclass(frozen=True)
class Finding:
    """What one check found. `observed`, `expected` and `message` are sentences that a learner reads."""

    passed: bool
    message: str
    observed: str = ""
    expected: str = ""
    trace: str | None = None
    """A counterexample as the text of a trace, which the stepper opens; `None` where there is none to step."""
    at: int = 0
    """The step of the trace at which it fails."""
    general: str = ""
    """The message without anything of the variant: what a learner reads when the variant is a hidden one."""


@dataclass(frozen=True)
class Variant:
    """One configuration that an answer is judged by: parameters that only the exercise's own judge understands."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    def __getitem__(self, name: str) -> Any:
        """The parameter of that name."""
        return dict(self.parameters)[name]


def variant(name: str, **parameters: Any) -> Variant:
    """A variant with these parameters."""
    return Variant(name, tuple(parameters.items()))


@dataclass(frozen=True)
class Assignment:
    """What an exercise asks of a learner, and how it counts; the lab's own are read from `texts/NN.toml`."""

    name: str
    """`NN-word`, where NN is the notebook's number, as 05 or 09b; unique, and what `check` takes."""
    notebook: str
    """The stem of its notebook, such as `05_two_phase_commit`."""
    title: str
    kind: Kind
    level: Level
    points: int
    answer: str
    """The Python name that the learner assigns or defines."""
    task: str
    """What is asked, in Markdown, as the notebook has it above the learner's cell."""
    hints: Sequence[str] = field(hash=False)
    """At least two in Markdown, each giving away more than the one before."""
    lines: int
    """About how many lines a solution has."""
    _: KW_ONLY
    withheld: Sequence[str] = field(default=(), hash=False)
    """Modules that would answer the exercise: a learner's code does not get them while it is graded."""
    needs_spark: bool = False
    by_hand: bool = False
    """A text that a person reads: the judge only checks that something was written, and gives no points."""
    axes: Sequence[tuple[str, int]] = field(default=(), hash=False)
    """Parts of the exercise with their points, which are given apart: a variant's parameter `axis` names its part."""
    statements: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    """Statements to choose from by their letters, each with the reason why it is right or wrong."""
    right: str = ""
    """The letter of the right statement."""


Judge: TypeAlias = Callable[[Answer, Variant], Finding]
"""Judges an answer by one variant. Must not raise for anything that an answer does, except what `Answer` raises."""
JudgeTogether: TypeAlias = Callable[[Answer, Sequence[Variant]], list[Finding]]
"""Judges by several variants at once, where that is faster. If it raises, treat none of the variants as judged."""


class Judging(NamedTuple):
    """How the answers to an exercise are judged."""

    judge: Judge
    public: Sequence[Variant]
    """The variants of the visible check."""
    judge_together: JudgeTogether | None = None


def by(judge: Judge, *public: Variant, together: JudgeTogether | None = None) -> Judging:
    """Judged by this function, publicly by these variants."""
    return Judging(judge, public, together)


@dataclass(frozen=True)
class Exercise(Assignment):
    """An assignment with its judge."""

    public: Sequence[Variant] = field(hash=False)
    """The variants of the visible check."""
    judge: Judge
    judge_together: JudgeTogether | None = None
