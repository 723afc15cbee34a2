"""Gives points: tests an answer with public and hidden variants of a question, and records why it is right or wrong.

Points are all or nothing, for an exercise or for each of its axes (properties with points of their own), because a
recovery that is right in two of three schedules is not right. The judges, which are the check functions of exercises,
run in the grader's process; the learner's code only answers their questions.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from labkit.core.errors import GradingError, MissingSolution
from labkit.grading.asking import RemoteAnswer, Unanswered
from labkit.grading.records import ItemRecord, VariantRecord
from labkit.teach.exercises.contract import Answer, AnswerFailed, Exercise, Finding, Plain, Variant

JudgeOf = Callable[[Exercise, Answer, Variant], Finding]
"""A function that judges an answer by one variant of the question, in this process or in another one."""


_HIDDEN = "The answer is wrong for a hidden variant of the question."


class KnownAnswer:
    """A learner's answer that is a constant, which the sandbox has already returned."""

    calls = 1

    def __init__(self, constant: Plain) -> None:
        self._constant = constant

    def value(self) -> Plain:
        """Return the constant that is the learner's answer."""
        return self._constant

    def call(self, *arguments: Plain) -> Plain:
        """Raise `Unanswered`, because the answer is a constant and not a function."""
        raise Unanswered("the answer is a constant, not a function", "is no function")

    def expect(self, calls: Iterable[Sequence[Plain]]) -> None:
        """Do nothing, because a constant cannot be called."""

    def step(self, kind: str, exchanges: Plain, arguments: Plain) -> Plain:
        """Raise `Unanswered`, because the answer is a constant and not a sink."""
        return self.call(kind, exchanges, arguments)

    def repeat(self) -> None:
        """Do nothing: the answer is a constant, so a repeated question would get the same reply."""


Repeatable = RemoteAnswer | KnownAnswer
"""A learner's answer to which the judge can repeat earlier questions, to check that the replies stay the same."""


def judge_here(exercise: Exercise, answer: Answer, variant: Variant) -> Finding:
    """Test an answer with one variant, by running the exercise's check function (judge) in this process."""
    return exercise.judge(answer, variant)


def mark(exercise: Exercise, answer: Repeatable, hidden: Sequence[Variant], judge: JudgeOf = judge_here) -> ItemRecord:
    """Test an answer with all public and hidden variants. Raises `GradingError` if the judge itself fails."""
    begun = time.monotonic()
    item = ItemRecord(exercise.name, exercise.points)
    try:
        if exercise.by_hand:
            _keep_text(item, answer)
        else:
            _judge_all(item, exercise, answer, hidden, judge)
    except MissingSolution:
        not_attempted(item, "its cell is still empty")
    except AnswerFailed as error:
        failed(item, f"{exercise.answer}: {error}", getattr(error, "kind", "failed"))
    item.seconds = round(time.monotonic() - begun, 3)
    item.questions = answer.calls
    return item


def _keep_text(item: ItemRecord, answer: Answer) -> None:
    written = answer.value()
    item.written = written if isinstance(written, str) else str(written)
    item.points, item.status = None, "by hand"
    item.reason = item.shown = "your instructor reads and grades this text"


def hand_over(item: ItemRecord, exercise: Exercise, cell: str) -> None:
    """Let a person grade a free-text exercise if the learner's code has assigned no text to the exercise's variable.

    The learner may have written the text elsewhere in the cell, for example in a comment. So the person gets `cell`,
    the cell's source, to read.
    """
    if item.status not in {"by hand", "failed", "not attempted"} or (item.written or "").strip():
        return
    trouble = f" ({item.reason})" if item.status == "failed" else ""
    item.written = f"The variable {exercise.answer} has no text{trouble}. The cell is:\n{cell}"
    item.points, item.status = None, "by hand"
    item.reason = item.shown = f"the variable {exercise.answer} has no text; your instructor reads your cell"


def _judge_all(
    item: ItemRecord, exercise: Exercise, answer: Repeatable, hidden: Sequence[Variant], judge: JudgeOf
) -> None:
    """Test an answer with every public and then every hidden variant until one fails; write the result into `item`.

    If the exercise has axes (properties with points of their own), a failure ends only the tests of its axis.
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
    """Give the points of each axis (a property with points of its own) that has not failed.

    `failed_axes` maps each failed axis to the reason.
    """
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
        raise GradingError(
            f"The check function of {exercise.name} failed ({type(error).__name__}: {error}); correct it."
        ) from error
    if type(finding) is not Finding or finding.passed not in {True, False}:
        raise GradingError(f"The check function of {exercise.name} did not return a `Finding`; correct it.")
    return finding


def _kept(variant: Variant, finding: Finding, *, hidden: bool) -> VariantRecord:
    parameters = {name: repr(value)[:500] for name, value in variant.parameters}
    sentences = (finding.message[:2000], finding.observed[:2000], finding.expected[:2000])
    return VariantRecord(variant.name, hidden, finding.passed, *sentences, finding.trace, finding.at, parameters)


def _in_words(finding: Finding) -> str:
    """Return a judge's finding as text: its message, and the observed and the expected result.

    A result that the message already contains is not repeated.
    """
    comparison = " ".join(
        f"{word}: {words}"
        for word, words in (("Observed", finding.observed), ("Expected", finding.expected))
        if words and not _is_said(words, finding.message)
    )
    return f"{finding.message} {comparison}".strip()[:2000]


def _is_said(words: str, message: str) -> bool:
    whole, part = (each.casefold().rstrip(".") for each in (message, words))
    return " " in part and (whole.startswith(part) or whole.endswith(part))


def not_attempted(item: ItemRecord, why: str) -> None:
    """Mark an exercise as not attempted, for the reason `why`: 0 points, but no error."""
    item.points, item.status, item.reason, item.shown = 0, "not attempted", why, why


def failed(item: ItemRecord, reason: str, kind: str) -> None:
    """Mark an exercise as failed, which gives 0 points.

    The instructor reads `reason`. The learner reads `kind`, so it must not contain a hidden value, nor any text of the
    learner's code, which could contain one.
    """
    item.points, item.status, item.reason, item.shown = (0, "failed", reason, f"The answer {kind}.")


def not_graded(item: ItemRecord, why: str) -> None:
    """Mark an exercise as not graded, because grading itself failed. Its points are then unknown and not zero."""
    item.points, item.status, item.reason = None, "not graded", why
    item.shown = "Grading itself failed, so the points are unknown; your instructor knows."
