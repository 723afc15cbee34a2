"""What an exercise is, for the notebook that checks it at once and for the grader that trusts nothing.

A learner's answer is a constant or a function of plain values (what JSON can carry), and whoever judges it only asks:
the judge explores, the answer replies. So the same judge runs beside the learner's code in a notebook, and in another
process than that code when points are given. This module must not judge, and must not know where an answer lives.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from labkit.core.errors import LabError

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""A value that JSON can carry. The exact type counts: a subclass of `int` is not an `int`, `True` is not 1."""


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


class Answer(Protocol):
    """The learner's side, as a judge meets it."""

    def value(self) -> Plain:
        """The constant that was answered. Raises `MissingSolution` when it was not attempted, `AnswerFailed`."""
        ...

    def call(self, *arguments: Plain) -> Plain:
        """What the learner's function answers. Same arguments, same answer: a judge may ask a question twice.

        Raises `MissingSolution` when the function was not attempted (it raises `NotImplementedError` or gives `...`),
        `AnswerFailed` when it fails.
        """
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


@dataclass(frozen=True)
class Exercise:
    """One graded item. Adding one is a module with its `EXERCISES` and a line in the registry."""

    name: str
    """`NN-word`, where NN is the notebook's number; unique, and what `check` takes."""
    notebook: str
    """The stem of its notebook, such as `05_two_phase_commit`."""
    title: str
    kind: Kind
    level: Level
    points: int
    answer: str
    """The Python name that the learner assigns or defines."""
    task: str
    """What is asked, in a few sentences; the notebook says more."""
    hints: Sequence[str]
    """At least two, each giving away more than the one before."""
    lines: int
    """About how many lines a solution has."""
    public: Sequence[Variant]
    """What the visible check judges by."""
    judge: Callable[[Answer, Variant], Finding]
    """Judges an answer by one variant. Must not raise for anything that an answer does, except what `Answer` raises."""
    withheld: Sequence[str] = ()
    """Modules that would answer the exercise: a learner's code does not get them while it is graded."""
    needs_spark: bool = False
    by_hand: bool = False
    """A text that a person reads: the judge only says whether something was written, and no points come of it."""
