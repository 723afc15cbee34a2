"""What a learner has predicted: kept in the progress file beside the notebooks, and in memory where none can be
written.

A prediction may be changed until its answer was shown. The file is the learner's own and may hold anything, so all that
comes from it is checked. Nothing is noted for a learner who said nothing.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from labkit.core.errors import InvalidInput
from labkit.core.words import columns
from labkit.teach.exercises import progress
from labkit.teach.questions.question import Question, Said

UNATTENDED = "LABKIT_UNATTENDED"
"""The variable that says that nobody predicts: what was noted earlier does not count. Empty or 0: somebody may."""
NOTED, RIGHT, OTHER, SKIPPED = "noted", "right", "other", "skipped"
"""The states of a prediction; the first one until its answer is shown."""
LONGEST_WHY = 300


@dataclass(frozen=True)
class Prediction:
    """What was said of a question; `said` is None for who asked to see it without. `came` is empty until it
    was shown.
    """

    said: Said | None
    why: str = ""
    came: Said = ()

    @property
    def state(self) -> str:
        """How the prediction compares with what came."""
        if self.said is None:
            return SKIPPED
        if not self.came:
            return NOTED
        return RIGHT if self.said == self.came else OTHER


def of(question: Question) -> Prediction | None:
    """What is noted of a question; None where nothing is that still fits its options."""
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


def keep(question: Question, said: Said | None, why: str) -> None:
    """Notes a prediction; None: to be shown without one."""
    progress.note(
        question.name,
        question=question.text,
        state=SKIPPED if said is None else NOTED,
        predicted=list(said or ()),
        why=" ".join(why.split())[:LONGEST_WHY],
    )


def came(question: Question, prediction: Prediction, found: Said) -> None:
    """Notes what came of a prediction, when it is shown for the first time."""
    if not prediction.came:
        shown = replace(prediction, came=found)
        progress.note(question.name, state=shown.state, came=list(found))


def forget(question: Question) -> None:
    """Drops what was said, so that the question can be answered anew."""
    progress.forget(question.name)


def listed(asked: Iterable[Question]) -> str:
    """A line for each of these questions of which something is noted, and how many predictions were right; else
    nothing.
    """
    rows = [("prediction", "you said", "it was", "")]
    states = []
    for question in asked:
        if (prediction := of(question)) is None:
            continue
        states.append(prediction.state)
        said = "-" if prediction.said is None else ", ".join(prediction.said)
        rows.append((question.name, said, ", ".join(prediction.came) or "-", states[-1]))
    if not states:
        return ""
    counts = (f"{states.count(each)} {each}" for each in (RIGHT, OTHER, SKIPPED))
    return columns([*rows, ("total", "", "", ", ".join(counts))])


def _texts(value: object) -> Said:
    """A list of texts out of the file; nothing where there is something else."""
    return tuple(map(str, value)) if isinstance(value, list) else ()
