"""Draw the learner's prediction of a wait as a line, before any measurement."""

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.view.card import Card, Html, para
from labkit.view.prices import wait_chart

LONGEST = 2.0
"""The longest interval, in seconds, on the axis of the empty chart."""
NOTHING = "There is no prediction yet, so the chart has no line."


def noted(question: str) -> float | None:
    """Return a learner's predicted number, or None. Raises `InvalidInput` unless the question asks for a number."""
    try:
        from labkit.teach.questions import notes
        from labkit.teach.questions.question import Kind, find
    except ImportError:  # the copy of labkit that grades submissions has no questions
        return None
    wanted = find(question)
    if wanted.kind is not Kind.NUMBER:
        raise InvalidInput(
            f"the question {question!r} does not ask for a number; name a question that does, such as 13-slope."
        )
    prediction = notes.of(wanted)
    if prediction is None or prediction.words is None:
        return None
    return float(prediction.words[0])


@takes('lab.expected_wait("13-slope")')
def expected_wait(question: str) -> Card:
    """Return a chart of waits against commit intervals, in which only the line that you predicted is drawn.

    `question` is the question about the slope of this line, such as `"13-slope"`. Raises `InvalidInput` for an unknown
    question, or one that does not ask for a number.
    """
    slope = noted(question)
    line = NOTHING if slope is None else f"your line: a wait grows by {slope:g} s for each second of the interval"
    note = para(NOTHING) if slope is None else ""
    chart = Html(wait_chart([], LONGEST, slope))
    return Card("", chart, note, title="Your prediction, before the run", plain=[line])
