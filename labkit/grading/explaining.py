"""Adds the error messages of a learner's code to failed exercises, if they cannot contain hidden values.

Code that was asked hidden questions could put them into its error messages. So the messages come from the text of the
cell, or from a separate run that asks only the public questions of each exercise.
"""

import ast
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence

from labkit.grading.asking import NO_VALUE, RAISED, RemoteAnswer
from labkit.grading.order import Patience
from labkit.grading.preparing import PreparedNotebook
from labkit.grading.records import ItemRecord
from labkit.grading.sandbox.inside.jobs import Level
from labkit.grading.sandbox.sandbox import Sandbox
from labkit.teach.exercises.cells import bound
from labkit.teach.exercises.contract import AnswerFailed, Exercise

_SECONDS = 30.0
_PATIENCE = Patience(call_seconds=2.0, item_seconds=5.0, search_seconds=5.0)
_MOST = 300
_SILENT = (RAISED, NO_VALUE, "is no function")
"""A reason with one of these phrases tells the learner nothing about the error that the learner's code raised."""


def explain(
    items: Mapping[str, ItemRecord], prepared: PreparedNotebook, without: Iterable[int], sandbox: Sandbox
) -> None:
    """Add the learner's own error message to each failed exercise, if no hidden value can be in the message.

    `items` has the results by exercise name. `without` has the indices of the cells in `prepared` that must not be run,
    because they ended an earlier run.
    """
    failing = [
        exercise
        for exercise in prepared.attempted
        if (item := items.get(exercise.name)) is not None
        and item.status == "failed"
        and any(word in item.shown for word in _SILENT)
    ]
    for exercise in failing:
        items[exercise.name].error = _in_text(exercise, items[exercise.name].code)
    left = [one for one in failing if not items[one.name].error]
    # At the level `plain` a run could read files in which an earlier run has written hidden questions.
    if left and sandbox.level is not Level.PLAIN:
        for name, error in _first_errors(left, prepared, without, sandbox).items():
            items[name].error = error


def _in_text(exercise: Exercise, source: str) -> str:
    """Return the error, such as bad syntax, that a cell's source shows without being run; otherwise an empty text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            names = bound(source)
    except SyntaxError as error:
        if any(line.lstrip().startswith(("%", "!", "?")) for line in source.splitlines()):
            return ""  # Jupyter's own syntax, which Python does not know
        line = f"Line {error.lineno} of the cell: " if error.lineno else ""
        return f"{line}{error.msg}."[:_MOST]
    except (ValueError, RecursionError, MemoryError):
        return ""
    if source and exercise.answer not in names:
        return f"The cell does not define {exercise.answer}."
    return ""


def _first_errors(
    failing: Sequence[Exercise], prepared: PreparedNotebook, without: Iterable[int], sandbox: Sandbox
) -> dict[str, str]:
    """Return, by exercise name, the first error that the learner's code raises for the public variants.

    The notebook runs in the sandbox without the cells whose indices are in `without`. If a cell ends this run, the
    result is empty.
    """
    left_out = set(without)
    errors: dict[str, str] = {}
    deadline = time.monotonic() + _SECONDS
    names = [exercise.answer for exercise in failing]
    with sandbox.run(prepared.notebook(left_out), names, deadline) as run:
        if run.until_cell(len(prepared.cells) - len(left_out)) is not None:
            return {}
        for exercise, connection in zip(failing, run.answers, strict=True):
            answer = RemoteAnswer(connection, deadline, _PATIENCE)
            if not answer.greet():
                break
            errors[exercise.name] = _first_error(exercise, answer)
            connection.close()
            if run.ended() is not None:
                break
    return {name: error for name, error in errors.items() if error}


def _first_error(exercise: Exercise, answer: RemoteAnswer) -> str:
    try:
        if exercise.needs_spark or exercise.by_hand or not exercise.public:
            answer.value()
        else:
            # The first error or wrong answer ends the tests.
            all(exercise.judge(answer, variant).passed for variant in exercise.public)
    except AnswerFailed as error:
        return str(error)[:_MOST]
    except Exception:  # noqa: BLE001 - an error of the judge is not the learner's
        return ""
    return ""
