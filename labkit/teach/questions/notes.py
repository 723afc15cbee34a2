"""Store a learner's predictions in the progress file next to the notebooks, or in memory if it cannot be written.

A prediction can be changed until its answer is shown. Learners own the file and may put anything into it, so all its
content is validated. Nothing is stored for a learner who neither predicts nor asks for the answer without a prediction.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from labkit.core.errors import InvalidInput
from labkit.core.words import columns
from labkit.teach.exercises import progress
from labkit.teach.questions.question import Answers, Question

UNATTENDED = "LABKIT_UNATTENDED"
"""The environment variable that makes labkit ignore stored predictions, unless it is empty or 0."""
NOTED, RIGHT, OTHER, SKIPPED = "noted", "right", "other", "skipped"
"""The states of a prediction; it is `noted` until its answer is shown, and `skipped` if the learner made none."""
LONGEST_WHY = 300


@dataclass(frozen=True)
class Prediction:
    """A learner's prediction for one question, with the learner's reason and the result.

    `words` are the chosen options or the number; None if the learner asked for the answer without a prediction.
    `outcome` is the result, and empty until the answer is shown.
    """

    words: Answers | None
    why: str = ""
    outcome: Answers = ()

    @property
    def state(self) -> str:
        """The prediction's state: `noted` (no result yet), `right`, `other` (wrong), or `skipped` (no prediction)."""
        if self.words is None:
            return SKIPPED
        if not self.outcome:
            return NOTED
        return RIGHT if self.words == self.outcome else OTHER


def of(question: Question) -> Prediction | None:
    """Return the stored prediction for a question; None if there is none, or if the question's options have changed."""
    if os.environ.get(UNATTENDED, "") not in {"", "0"}:
        return None
    progress_note = progress.of(question.name)
    why = str(progress_note.get("why", ""))[:LONGEST_WHY]
    outcome = _texts(progress_note.get("came"))
    if progress_note.get("state") == SKIPPED:
        return Prediction(None, why, outcome)
    try:
        return Prediction(question.parse(list(_texts(progress_note.get("predicted")))), why, outcome)
    except InvalidInput:
        return None


def keep(question: Question, words: Answers | None, why: str) -> None:
    """Store the learner's prediction (`words`) and the reason for it (`why`).

    `words` is None if the learner asked for the answer without a prediction.
    """
    progress.note(
        question.name,
        question=question.text,
        state=SKIPPED if words is None else NOTED,
        predicted=list(words or ()),
        why=" ".join(why.split())[:LONGEST_WHY],
    )


def note_outcome(question: Question, prediction: Prediction, words: Answers) -> None:
    """Store the result `words` next to a prediction, unless a result is stored already."""
    if not prediction.outcome:
        shown = replace(prediction, outcome=words)
        progress.note(question.name, state=shown.state, came=list(words))


def listed(questions: Iterable[Question]) -> str:
    """Return a table of the stored predictions for these questions; an empty text if there are none.

    The last line counts the predictions that are `right`, `other` (wrong) and `skipped`.
    """
    rows = [("prediction", "you said", "it was", "")]
    states = []
    for question in questions:
        if (prediction := of(question)) is None:
            continue
        states.append(prediction.state)
        words = "-" if prediction.words is None else ", ".join(prediction.words)
        rows.append((question.name, words, ", ".join(prediction.outcome) or "-", states[-1]))
    if not states:
        return ""
    counts = (f"{states.count(each)} {each}" for each in (RIGHT, OTHER, SKIPPED))
    return columns([*rows, ("total", "", "", ", ".join(counts))])


def _texts(value: object) -> Answers:
    return tuple(map(str, value)) if isinstance(value, list) else ()
