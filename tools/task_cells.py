"""Build the Markdown cell with an exercise's task, from the text in `labkit/teach/exercises/texts`."""

import html
import re

from labkit.teach.exercises.contract import Assignment

SHOWN = 2
"""The number of hints in the notebook; `lab.hint` gives the others."""


def task_cell(asked: Assignment) -> str:
    """Return the Markdown above a learner's cell: title, task, statements to choose from, points, and folded hints."""
    statements = [f"- **{letter}** {statement}" for letter, (statement, _) in asked.statements.items()]
    parts = [f"## Exercise: {asked.title} (`{asked.name}`)", asked.task, "\n".join(statements), f"*{_counts(asked)}*"]
    return "\n\n".join([*filter(None, parts), "\n".join(_hints(asked))])


def _counts(asked: Assignment) -> str:
    """Return a sentence with kind, level, points and length of an exercise."""
    points = f"{asked.points} point{'s' * (asked.points > 1)}" if asked.is_graded else "not graded"
    if asked.statements:
        points += "; the check gives a reason for each"
    elif asked.by_hand:
        points += " from your instructor, by hand"
    lines = f"about {asked.lines} lines" if asked.lines > 1 else "one line"
    return f"{asked.kind}, {asked.level}, {points}; {lines}."


def _hints(asked: Assignment) -> list[str]:
    """Return the HTML of the first hints, folded; the last one names `lab.hint` if there are more."""
    shown = [_inline(hint) for hint in asked.hints[:SHOWN]]
    if len(asked.hints) > SHOWN:
        shown[-1] += f' More: <code>lab.hint("{asked.name}")</code>.'
    return [f"<details><summary>Hint {number}</summary>{hint}</details>" for number, hint in enumerate(shown, start=1)]


def _inline(hint: str) -> str:
    """Return a hint as HTML, since viewers do not render Markdown inside of `<details>`."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(hint, quote=False))
