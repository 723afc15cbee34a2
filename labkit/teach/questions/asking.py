"""Show a question and store the learner's prediction (`ask`), and compare it with the result of a run (`answer`).

A notebook without a reader (in papermill or nbval) also runs to its end, because no cell waits for an answer.
"""

from collections.abc import Mapping
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.teach.exercises import progress
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
    "covered": 'Covered until you have predicted, or pressed "show me without one".',
}
"""The labels and fixed sentences of the form."""

_open_questions: dict[str, "OpenQuestion"] = {}
"""The questions whose forms are displayed in this kernel, by name."""


class OpenQuestion:
    """A question whose form is displayed in a notebook, with the learner's prediction."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.prediction = notes.of(question)
        self.answered = bool(self.prediction and self.prediction.outcome)
        self.notice = self._standing()
        self._beat = 0
        from labkit.view.question import QuestionForm

        self.form = QuestionForm(self._shown(), self.handle)

    def handle(self, message: Mapping[str, Any]) -> None:
        """Handle a message that the form sends, such as a prediction; if the message is invalid, the form shows why."""
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
                "The answer has been shown already, so your prediction can no longer change."
                if self.prediction
                else "The answer was shown before your prediction arrived. To predict anyway, run this cell again."
            )
        why = str(message.get("why", ""))
        text = None if "skip" in message else self.question.parse(message["said"])
        notes.keep(self.question, text, why)
        self.prediction = notes.Prediction(text, why)
        self.notice = self._standing()

    def _standing(self) -> str:
        prediction = self.prediction
        if prediction is None:
            return ""
        message = "No prediction. The run shows the answer."
        if prediction.words is not None:
            message = f"Noted: {', '.join(prediction.words)}."
        if self.answered:
            return f"{message} The answer has been shown, so your choice is final."
        return f"{message} You can change it until you see the answer. Go on to the next cell."

    def close(self) -> None:
        """Lock the prediction, because the answer has been shown."""
        self.answered = True
        self.notice = self._standing()
        self.show()

    def show(self) -> None:
        """Update the form wherever it is displayed."""
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
            "said": None if prediction is None or prediction.words is None else list(prediction.words),
            "skipped": prediction is not None and prediction.words is None,
            "why": prediction.why if prediction else "",
            "closed": self.answered and prediction is not None,
            "answered": self.answered,
            "notice": self.notice,
            "words": WORDS,
            "beat": self._beat,
        }


def ask(name: str) -> None:
    """Display a question for `lab.ask`; do nothing outside of a notebook."""
    question = find(name)
    if not is_kernel():
        return
    from IPython.display import display

    if name in _open_questions:
        _open_questions[name].form.close()
    _open_questions[name] = OpenQuestion(question)
    display(_open_questions[name].form)


def answer(name: str, found: object = None) -> Answer:
    """Return the card of `lab.answer`, and store the result next to the prediction.

    `found` is the value that the run measured; if it is None, the right answer counts as the result.
    """
    question = find(name)
    outcome, prediction = question.measured(found), notes.of(question)
    if prediction is not None:
        notes.note_outcome(question, prediction, outcome)
    if name in _open_questions:
        _open_questions[name].close()
    return Answer(question, outcome, prediction.words if prediction else None)


def listed(notebook: str | None = None) -> str:
    """Return a table of your predictions with their results, of one notebook (`"05"`, `"09b_timeouts"`) or all."""
    number = notebook.partition("_")[0] if notebook else None
    return notes.listed(question for question in questions().values() if number in {None, question.notebook})


def reset(name: str, *, confirm: bool) -> bool:
    """Delete the prediction for a question; without `confirm`, only print how to confirm.

    Returns False if there is no such question.
    """
    if name not in questions():
        return False
    if confirm:
        progress.forget(name)
        _open_questions.pop(name, None)
        print(f'{name}: your prediction is deleted. Run the cell with lab.ask("{name}") to see the question again.')
    else:
        print(f'This deletes your prediction for {name}. To confirm, run lab.reset("{name}", confirm=True).')
    return True
