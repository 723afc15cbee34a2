"""A learner's predictions: stored in the progress file beside the notebooks, or in memory if no file can be written.

A prediction can be changed until its answer is shown. Learners own the file and may put anything into it, so
all its content is validated. Nothing is stored for a learner who made no prediction.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from labkit.core.errors import InvalidInput
from labkit.core.words import columns
from labkit.teach.exercises import progress
from labkit.teach.questions.question import Answers, Question

UNATTENDED = "LABKIT_UNATTENDED"
"""The environment variable that declares that nobody predicts, so that stored predictions do not count. Empty or
0: no.
"""
NOTED, RIGHT, OTHER, SKIPPED = "noted", "right", "other", "skipped"
"""The states of a prediction; it is `noted` until its answer is shown."""
LONGEST_WHY = 300


@dataclass(frozen=True)
class Prediction:
    """A prediction. `said` is None if the learner asked for the answer without one; `came` is empty until the
    answer is shown.
    """

    said: Answers | None
    why: str = ""
    came: Answers = ()

    @property
    def state(self) -> str:
        """Return how the prediction compares with the result."""
        if self.said is None:
            return SKIPPED
        if not self.came:
            return NOTED
        return RIGHT if self.said == self.came else OTHER


def of(question: Question) -> Prediction | None:
    """Return the stored prediction for a question; None if there is none that still matches its options."""
    if os.environ.get(UNATTENDED, "") not in {"", "0"}:
        return None
    known = progress.of(question.name)
    why = str(known.get("why", ""))[:LONGEST_WHY]
    came = _texts(known.get("came"))
    if known.get("state") == SKIPPED:
        return Prediction(None, why, came)
    try:
        return Prediction(question.said(list(_texts(known.get("predicted")))), why, came)
    except InvalidInput:
        return None


def keep(question: Question, words: Answers | None, why: str) -> None:
    """Store a prediction; None means that the learner wants to see the answer without one."""
    progress.note(
        question.name,
        question=question.text,
        state=SKIPPED if words is None else NOTED,
        predicted=list(words or ()),
        why=" ".join(why.split())[:LONGEST_WHY],
    )


def came(question: Question, prediction: Prediction, words: Answers) -> None:
    """Store the result of a prediction when its answer is shown for the first time."""
    if not prediction.came:
        shown = replace(prediction, came=words)
        progress.note(question.name, state=shown.state, came=list(words))


def forget(question: Question) -> None:
    """Delete a prediction, so that the question can be answered again."""
    progress.forget(question.name)


def listed(questions: Iterable[Question]) -> str:
    """Return a line for each question with a prediction, and how many were right; empty if there is none."""
    rows = [("prediction", "you said", "it was", "")]
    states = []
    for question in questions:
        if (prediction := of(question)) is None:
            continue
        states.append(prediction.state)
        words = "-" if prediction.said is None else ", ".join(prediction.said)
        rows.append((question.name, words, ", ".join(prediction.came) or "-", states[-1]))
    if not states:
        return ""
    counts = (f"{states.count(each)} {each}" for each in (RIGHT, OTHER, SKIPPED))
    return columns([*rows, ("total", "", "", ", ".join(counts))])


def _texts(value: object) -> Answers:
    """Return a list of texts from the file, or nothing if it contains something else."""
    return tuple(map(str, value)) if isinstance(value, list) else ()
