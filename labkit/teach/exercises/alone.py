"""Run a learner's answer as the grader does: in a fresh namespace, with the parameters and the learner's own cells.

A notebook in which many cells have run contains names that will not exist when the answer is graded.
"""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

from labkit.teach.exercises.cells import (
    SET_UP,
    Selection,
    bound,
    competition,
    demonstrated,
    is_python,
    marked,
    python,
    select,
    used,
)
from labkit.teach.exercises.contract import Exercise
from labkit.teach.exercises.namespace import TooLong, time_limit
from labkit.teach.exercises.registry import assignments
from labkit.teach.shipped import Cell

CELL_SECONDS = 10.0
"""The number of seconds that one cell may run, as in grading."""


class Alone(NamedTuple):
    """The namespace in which a learner's answer ran, separate from the notebook's, and the cells that ran in it."""

    namespace: dict[str, Any]
    sources: Sequence[str]
    """The cells that ran, in this order."""
    trouble: str = ""
    """Sentences on what prevents the answer from running in a fresh namespace; empty if nothing does."""
    is_broken: bool = False
    """Whether the cell with the answer is not valid Python, so that an earlier version of it must not count."""
    competition: str = ""
    """A sentence on another cell that defines the same name; empty if there is none."""


class NoInput(Exception):
    """Raised in a cell that calls input() during grading, because nobody can type an answer then."""


def alone(exercise: Exercise, executed: Sequence[str], released: Sequence[Cell]) -> Alone | None:
    """Run the learner's latest answer in a fresh namespace, as the grader does; return None if there is no answer.

    `executed` are the sources of all cells run so far, and `released` the notebook's original cells.
    """
    cells = [Cell(source) for source in _newest(exercise.name, executed)]
    # The names of all answers, because a cell with another answer may define a helper with this answer's name.
    answers = {each.name: each.answer for each in assignments().values() if each.notebook == exercise.notebook}
    chosen = select(cells, released, answers | {exercise.name: exercise.answer})
    if exercise.name not in chosen.counts:
        return None
    place = chosen.counts[exercise.name]
    own = [number for number, changed in enumerate(chosen.changed) if changed]
    needed = _needed(place, cells, own)
    parameters = [cell.source for cell in released if cell.tags & SET_UP]
    sources = [*parameters, *(cells[number].source for number in needed)]
    names = set().union(*map(bound, sources))
    report = demonstrated(cells[place].source, names, released)
    namespace = fresh()
    *others, last = [execute(source, namespace) for source in sources]
    trouble = [f"A cell that the answer needs {error}." for error in others if error]
    trouble += [f"The answer's cell {last}."] if last else []
    is_broken = not is_python(cells[place].source)
    competing = "" if is_broken else _competition(exercise, cells, chosen)
    return Alone(namespace, sources, " ".join(trouble[-1:] + report), is_broken, competing)


def _newest(name: str, executed: Sequence[str]) -> list[str]:
    """Return the executed cells without older answers to the exercise `name` that hide a broken newest answer.

    If the newest answer is not valid Python, the older ones become empty cells, because grading would use one of them.
    """
    places = [place for place, source in enumerate(executed) if marked(source) == name]
    if not places or is_python(executed[places[-1]]):
        return list(executed)
    return ["" if place in places[:-1] else source for place, source in enumerate(executed)]


def _competition(exercise: Exercise, cells: Sequence[Cell], chosen: Selection) -> str:
    place = chosen.counts[exercise.name]
    rivals = [each for each in chosen.rivals.get(exercise.name, ()) if chosen.names[each] != chosen.names[place]]
    chosen.rivals[exercise.name] = rivals
    return competition(cells, chosen, exercise.name, exercise.answer)


def _needed(place: int, cells: Sequence[Cell], own: Sequence[int]) -> list[int]:
    """Return the positions of the cells that the answer at the position `place` needs, and finally `place` itself.

    Only the learner's own cells are considered; `own` are their positions.
    """
    needed, waiting = {place}, [place]
    while waiting:
        for name in used(cells[waiting.pop()].source):
            giving = [each for each in own if name in bound(cells[each].source)]
            if giving and giving[-1] not in needed:
                needed.add(giving[-1])
                waiting.append(giving[-1])
    return [*sorted(needed - {place}), place]


def fresh() -> dict[str, Any]:
    """Return a namespace like that in which a notebook's first cell runs, with an input() that raises `NoInput`."""
    return {"__name__": "__main__", "input": _no_input}


def execute(source: str, namespace: dict[str, Any]) -> str:
    """Run a cell without showing its output; return what went wrong as a clause such as `raised ...`, or ''."""
    try:
        code = compile(python(source), "<cell>", "exec")
        unseen = io.StringIO()
        with redirect_stdout(unseen), redirect_stderr(unseen), time_limit(CELL_SECONDS):
            exec(code, namespace)  # noqa: S102  # the learner's own cell
    except NoInput:
        return "calls input(), which nobody can answer during grading"
    except TooLong:
        return f"ran longer than {CELL_SECONDS:.0f} seconds"
    except (Exception, SystemExit) as error:
        # Every error of the learner's code is reported, but Ctrl-C still interrupts.
        return f"raised {type(error).__name__}: {str(error)[:200]}"
    return ""


def _no_input(*_: object) -> str:
    raise NoInput
