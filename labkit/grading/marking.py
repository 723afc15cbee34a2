"""Gives points: asks an answer by its public and its hidden variants, and says why it is right or wrong.

All or nothing, for an exercise and for each axis of one that has axes: a recovery that is right in two schedules of
three is not right. The judges run here, in the grader's process; from the learner's code come only answers to their
questions.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from labkit.core.errors import GradingError, MissingSolution
from labkit.grading.asking import Unanswered
from labkit.grading.records import ItemRecord, VariantRecord
from labkit.teach.exercises.contract import Answer, AnswerFailed, Exercise, Finding, Plain, Variant

JudgeOf = Callable[[Exercise, Answer, Variant], Finding]
"""Judges an answer by one variant, in this process or elsewhere."""


_HIDDEN = "A hidden variant of the question was not passed."


class Repeatable(Answer, Protocol):
    """An answer that can be asked its questions once more."""

    calls: int
    """The number of questions so far."""

    def repeat(self) -> None:
        """Asks questions once more. Raises `AnswerFailed` if one of the answers differs now."""
        ...


class KnownAnswer:
    """A constant that is known already."""

    calls = 1

    def __init__(self, known: Plain) -> None:
        self._known = known

    def value(self) -> Plain:
        """The constant."""
        return self._known

    def call(self, *arguments: Plain) -> Plain:
        """Raises `Unanswered`: a constant is no function."""
        raise Unanswered("it is a constant, and not a function", "gave no function")

    def step(self, kind: str, known: Plain, arguments: Plain) -> Plain:
        """Raises `Unanswered`: a constant is no sink."""
        return self.call(kind, known, arguments)

    def repeat(self) -> None:
        """Does nothing, since a known constant cannot change."""


def judge_here(exercise: Exercise, answer: Answer, variant: Variant) -> Finding:
    """Judges an answer in this process."""
    return exercise.judge(answer, variant)


def mark(exercise: Exercise, answer: Repeatable, hidden: Sequence[Variant], judge: JudgeOf = judge_here) -> ItemRecord:
    """The item of one exercise, with its points and the reason. Raises `GradingError` when the judge fails."""
    begun = time.monotonic()
    item = ItemRecord(exercise.name, exercise.points)
    try:
        if exercise.by_hand:
            _keep_text(item, answer)
        else:
            _judge_all(item, exercise, answer, hidden, judge)
    except MissingSolution:
        not_attempted(item, "nothing is written in its cell")
    except AnswerFailed as error:
        failed(item, f"{exercise.answer}: {error}", getattr(error, "kind", "failed"))
    item.seconds = round(time.monotonic() - begun, 3)
    item.questions = answer.calls
    return item


def _keep_text(item: ItemRecord, answer: Answer) -> None:
    written = answer.value()
    item.written = written if isinstance(written, str) else str(written)
    item.points, item.status = None, "by hand"
    item.reason = item.shown = "for the instructor to read"


def _judge_all(
    item: ItemRecord, exercise: Exercise, answer: Repeatable, hidden: Sequence[Variant], judge: JudgeOf
) -> None:
    """Judges every public variant, then every hidden one; the first variant that is not passed decides.

    Where an exercise has axes, it decides on its axis, and the others are judged.
    """
    item.public, item.hidden = (0, len(exercise.public)), (0, len(hidden))
    failed_axes: dict[str, str] = {}
    for variants, is_hidden in ((exercise.public, False), (hidden, True)):
        for variant in variants:
            axis = str(variant["axis"]) if exercise.axes else ""
            if axis in failed_axes:
                continue
            finding = _judged(exercise, answer, variant, judge)
            item.variants.append(_kept(variant, finding, hidden=is_hidden))
            if not finding.passed:
                shown = (finding.general or _HIDDEN) if is_hidden else _in_words(finding)
                failed_axes[axis] = shown
                item.reason = item.reason or finding.message
                if not exercise.axes:
                    item.status, item.shown = "wrong", shown
                    return
                continue
            passed, count = item.hidden if is_hidden else item.public
            if is_hidden:
                item.hidden = (passed + 1, count)
            else:
                item.public = (passed + 1, count)
    answer.repeat()
    if failed_axes:
        _by_axis(item, exercise, failed_axes)
        return
    item.status, item.points, item.reason, item.shown = "right", exercise.points, "", ""


def _by_axis(item: ItemRecord, exercise: Exercise, failed_axes: Mapping[str, str]) -> None:
    """The points of the axes that hold, and a sentence for each that does not."""
    item.status = "wrong"
    item.points = sum(points for axis, points in exercise.axes if axis not in failed_axes)
    item.shown = " ".join(
        f"{axis}: {points} of {points} points."
        if axis not in failed_axes
        else f"{axis}: 0 of {points} points. {failed_axes[axis]}"
        for axis, points in exercise.axes
    )


def _judged(exercise: Exercise, answer: Answer, variant: Variant, judge: JudgeOf) -> Finding:
    try:
        finding = judge(exercise, answer, variant)
    except (MissingSolution, AnswerFailed, GradingError):
        raise
    except Exception as error:
        raise GradingError(f"The judge of {exercise.name} failed ({type(error).__name__}: {error}).") from error
    if type(finding) is not Finding or finding.passed not in {True, False}:
        raise GradingError(f"The judge of {exercise.name} gave no finding.")
    return finding


def _kept(variant: Variant, finding: Finding, *, hidden: bool) -> VariantRecord:
    parameters = {name: repr(value)[:500] for name, value in variant.parameters}
    sentences = (finding.message[:2000], finding.observed[:2000], finding.expected[:2000])
    return VariantRecord(variant.name, hidden, finding.passed, *sentences, finding.trace, finding.at, parameters)


def _in_words(finding: Finding) -> str:
    """The words of a finding, observed against expected."""
    comparison = " ".join(
        f"{word}: {words}" for word, words in (("Observed", finding.observed), ("Expected", finding.expected)) if words
    )
    return f"{finding.message} {comparison}".strip()[:2000]


def not_attempted(item: ItemRecord, why: str) -> None:
    """Marks an item as not attempted: no points, and no reproach."""
    item.points, item.status, item.reason, item.shown = 0, "not attempted", why, why


def failed(item: ItemRecord, reason: str, kind: str) -> None:
    """Marks an item as failed: no points. `kind` holds nothing of the learner's, so no hidden value either."""
    item.points, item.status, item.reason, item.shown = (0, "failed", reason, f"The answer {kind}.")


def not_graded(item: ItemRecord, why: str) -> None:
    """Marks an item as not graded, since grading itself failed: neither points nor zero."""
    item.points, item.status, item.reason = None, "not graded", why
    item.shown = "It could not be graded; your instructor knows."
