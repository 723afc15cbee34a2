"""Draw the learner's prediction of a wait as a line, before any measurement."""

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.view.card import Card, Html, OnCard, para
from labkit.view.prices import wait_chart

LONGEST = 2.0
"""The longest interval, in seconds, on the axis of the empty chart."""
NOTHING = "There is no prediction yet, so the chart has no line."


def noted(question: str) -> float | None:
    """Return the number that a learner predicted for a question; None without a prediction.

    Raises `InvalidInput` for an unknown question, or one that does not ask for a number.
    """
    try:
        from labkit.teach.questions import notes
        from labkit.teach.questions.question import Kind, find
    except ImportError:  # where answers are graded there are no questions
        return None
    wanted = find(question)
    if wanted.kind is not Kind.NUMBER:
        raise InvalidInput(
            f"the question {question!r} does not ask for a number; lab.expected_wait() needs one that does, such as "
            "13-slope."
        )
    prediction = notes.of(wanted)
    if prediction is None or prediction.words is None:
        return None
    return float(prediction.words[0])


class Expected(OnCard):
    """A chart of waits against commit intervals before any measurement, with the line that a learner predicted."""

    def __init__(self, slope: float | None) -> None:
        self.slope = slope

    def card(self) -> Card:
        nothing, chart = self.slope is None, Html(wait_chart([], LONGEST, self.slope))
        line = NOTHING if nothing else f"your line: {self.slope:g} s more wait for each second of the interval"
        title = "Your prediction, before the run"
        return Card("", chart, para(NOTHING) if nothing else "", title=title, plain=[line])


@takes('lab.expected_wait("13-slope")')
def expected_wait(question: str) -> Expected:
    """Return a chart of waits against commit intervals that shows only the line which you predicted.

    `question` is the question for which you predicted the slope, such as `"13-slope"`. Raises `InvalidInput` for an
    unknown question, or one that does not ask for a number.
    """
    return Expected(noted(question))
