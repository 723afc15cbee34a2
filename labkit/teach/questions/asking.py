"""`ask` shows a question and notes what is said; `answer` sets it beside what a run has measured.

Where nobody can answer (no notebook, papermill, nbval) the question is only shown, and the run goes ahead. This module
must not measure anything.
"""

from collections.abc import Mapping
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.teach.questions import notes
from labkit.teach.questions.card import Answer
from labkit.teach.questions.question import CHOOSE, WRITE, Question, find, questions
from labkit.view.front_end import is_kernel

WORDS = {
    "why": "Why? (one line, for yourself)",
    "note": "That is my prediction",
    "change": "Change my prediction",
    "skip": "show me without one",
    "choose": CHOOSE,
    "number": WRITE,
    "waiting": "Not noted yet: the kernel is busy, or it was restarted. If this stays, run this "
    "cell again, then predict.",
    "again": "Ask me again",
    "said": "Noted. The answer is below.",
    "skipped": "Shown without a prediction. The answer is below.",
    "covered": "Covered until you have predicted, or chosen: show me without one.",
}
"""What the form says by itself."""

_asked: dict[str, "Asked"] = {}
"""The questions that are open in this kernel, by name."""


class Asked:
    """A question under way: what the form shows, and what comes back from it."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.prediction = notes.of(question)
        self.answered = bool(self.prediction and self.prediction.came)
        self.notice = self._standing()
        self._beat = 0
        from labkit.view.question import QuestionForm

        self.form = QuestionForm(self._shown(), self.hear)

    def hear(self, message: Mapping[str, Any]) -> None:
        """What the browser asks for; whatever cannot be is answered with its sentence."""
        try:
            self._obey(message)
        except InvalidInput as error:
            self.notice = str(error)
        self.show()

    def _obey(self, message: Mapping[str, Any]) -> None:
        if "said" not in message and "skip" not in message:
            return
        if self.answered:
            raise InvalidInput(
                "The answer has been shown already, so nothing is changed."
                if self.prediction
                else "The answer was shown before your prediction arrived. To predict nevertheless, "
                "run this cell again."
            )
        why = str(message.get("why", ""))
        said = None if "skip" in message else self.question.said(message["said"])
        notes.keep(self.question, said, why)
        self.prediction = notes.Prediction(said, why)
        self.notice = self._standing()

    def _standing(self) -> str:
        prediction = self.prediction
        if prediction is None:
            return ""
        told = "No prediction: the run shows it."
        if prediction.said is not None:
            told = f"Noted: {', '.join(prediction.said)}."
        if self.answered:
            return f"{told} The answer has been shown, so this stays."
        return f"{told} You can change it until you see the answer. Go on to the next cell."

    def close(self) -> None:
        """The answer was shown: from now on nothing is changed."""
        self.answered = True
        self.notice = self._standing()
        self.show()

    def show(self) -> None:
        """Tells every open view."""
        self._beat += 1
        self.form.shown = self._shown()

    def _shown(self) -> dict[str, object]:
        question, prediction = self.question, self.prediction
        return {
            "name": question.name,
            "kind": question.kind.value,
            "text": question.text,
            "options": list(question.options),
            "unit": question.unit,
            "said": None if prediction is None or prediction.said is None else list(prediction.said),
            "skipped": prediction is not None and prediction.said is None,
            "why": prediction.why if prediction else "",
            "closed": self.answered and prediction is not None,
            "notice": self.notice,
            "words": WORDS,
            "beat": self._beat,
        }


def ask(name: str) -> None:
    """Shows a question, as `lab.ask("00-rows")`, and notes what is predicted; without a notebook nothing happens.

    Raises `InvalidInput` for an unknown question.
    """
    question = find(name)
    if not is_kernel():
        return
    from IPython.display import display

    if name in _asked:
        _asked[name].form.close()
    _asked[name] = Asked(question)
    display(_asked[name].form)


def answer(name: str, found: object = None) -> Answer:
    """What came, beside what was predicted; `found` is what the run measured.

    Raises `InvalidInput` for an unknown question.
    """
    question = find(name)
    came, prediction = question.measured(found), notes.of(question)
    if prediction is not None:
        notes.came(question, prediction, came)
    if name in _asked:
        _asked[name].close()
    return Answer(question, came, prediction.said if prediction else None)


def listed(notebook: str | None = None) -> str:
    """The predictions of all notebooks or of one (`"05"`, `"09b_timeouts"`), beside what came; empty without any."""
    number = notebook.partition("_")[0] if notebook else None
    return notes.listed(question for question in questions().values() if number in {None, question.notebook})


def reset(name: str, *, confirm: bool) -> bool:
    """Drops a prediction, only with `confirm=True`; False where no question has that name."""
    if name not in questions():
        return False
    if confirm:
        notes.forget(find(name))
        _asked.pop(name, None)
        print(f'{name}: asked anew. Run the cell with lab.ask("{name}").')
    else:
        print(f'This drops your prediction for {name}. To do so, run lab.reset("{name}", confirm=True).')
    return True
