"""What a learner calls: `check` an answer, get the next `hint`, see the `progress`, `reset` to the stub.

The visible check judges by the public variants, in the notebook. It gives no points that count: those are given by the
grader, which uses others. This module must not know any exercise.
"""

import inspect
import json
from collections.abc import Mapping
from importlib.resources import files

from labkit.core.errors import MissingSolution
from labkit.core.words import columns
from labkit.teach.exercises import progress as notes
from labkit.teach.exercises.contract import AnswerFailed, Exercise, Finding, Kind
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import EXERCISES, find

NOT_ATTEMPTED, TRIED, DONE = "not attempted", "not yet", "done"


def check(name: str) -> None:
    """Judges your answer by the public variants and says what was observed and what was expected.

    Where there is a counterexample it opens in the stepper, at the step in which it fails. Raises `InvalidInput` for
    an unknown exercise.
    """
    exercise = find(name)
    namespace = _namespace()
    answer = InNotebook(exercise.answer, namespace)
    if exercise.needs_spark and answer.is_attempted():
        print("This runs real Spark and takes about twenty seconds.", flush=True)
    found = judged(exercise, namespace)
    if found is None:
        what = (
            "write it, and the run unlocks"
            if exercise.kind is Kind.PREDICT
            else f'lab.hint("{name}") helps'
        )
        print(
            f"{name}: not attempted ({exercise.points} point{'s' * (exercise.points > 1)}); {what}."
        )
        return
    for line in _told(exercise, found):
        print(line)
    failed = next((each for each in found if not each.passed), found[-1])
    state = TRIED if not failed.passed else DONE
    notes.note(
        name,
        state=state,
        points=exercise.points if state == DONE and not exercise.by_hand else 0,
    )
    if exercise.kind is Kind.PREDICT and failed.passed:
        _keep_first(name, failed)
    if failed.trace:
        _show(failed)


def _keep_first(name: str, finding: Finding) -> None:
    """Notes the first prediction beside the outcome, and says so when it has been changed since."""
    first = notes.of(name).get("predicted")
    if first is None:
        notes.note(name, predicted=finding.expected, came=finding.observed)
    elif first != finding.expected:
        print(f"Your first prediction was {first}; it is kept.")


def judged(exercise: Exercise, namespace: Mapping[str, object]) -> list[Finding] | None:
    """The findings by the public variants, up to the first that fails; None: not attempted."""
    answer, found = InNotebook(exercise.answer, namespace), []
    for variant in exercise.public:
        try:
            finding = exercise.judge(answer, variant)
        except MissingSolution:
            return None
        except AnswerFailed as error:
            finding = Finding(False, str(error))
        found.append(finding)
        if not finding.passed:
            break
    return found


def _told(exercise: Exercise, found: list[Finding]) -> list[str]:
    last, count = found[-1], len(exercise.public)
    head = f"{exercise.name}, {exercise.title}: "
    if last.passed and exercise.by_hand:
        return [f"{head}kept for your instructor.", last.message]
    if last.passed:
        hidden = exercise.kind not in (Kind.PREDICT, Kind.EXPLAIN)
        more = " When it is graded, other variants are used." if hidden else ""
        return [f"{head}{count} of {count} public checks passed.{more}", last.message]
    lines = [
        f"{head}check {len(found)} of {count} failed ({exercise.public[len(found) - 1].name}).",
        last.message,
    ]
    if last.observed and last.observed.rstrip(".").lower() not in last.message.lower():
        lines.append(f"Observed: {last.observed}")
    if last.expected:
        lines.append(f"Expected: {last.expected}")
    return lines


def _show(finding: Finding) -> None:
    """Opens a counterexample where things can be shown."""
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    from labkit.sim.trace import parse
    from labkit.view.stepper import Player

    if get_ipython() is not None and finding.trace:
        display(Player(parse(finding.trace), finding.observed, finding.at))


def hint(name: str) -> None:
    """Prints the next hint, and all before it again. Raises `InvalidInput` for an unknown exercise."""
    exercise = find(name)
    level = min(int(notes.of(name).get("hints", 0)) + 1, len(exercise.hints))
    notes.note(name, hints=level)
    for number, said in enumerate(exercise.hints[:level], start=1):
        print(f"Hint {number} of {len(exercise.hints)}: {said}")
    lines = f"about {exercise.lines} lines" if exercise.lines > 1 else "one line"
    print(f"A solution has {lines}.")


def progress(notebook: str | None = None) -> None:
    """Prints every exercise, or those of one notebook (`"05"`), with kind, level, state and points."""
    rows = [("exercise", "kind", "level", "state", "points")]
    got = most = 0
    for exercise in EXERCISES.values():
        if notebook is not None and not exercise.notebook.startswith(notebook):
            continue
        known = notes.of(exercise.name)
        points = int(known.get("points", 0))
        got, most = got + points, most + exercise.points
        state = str(known.get("state", NOT_ATTEMPTED))
        rows.append(
            (
                exercise.name,
                exercise.kind,
                exercise.level,
                state,
                f"{points} of {exercise.points}",
            )
        )
    print(columns([*rows, ("total", "", "", "", f"{got} of {most}")]))


def reset(name: str | None = None, *, confirm: bool = False) -> None:
    """Drops your answer and its progress, of one exercise or of all, and gives the stub back; only with `confirm=True`.

    In a notebook the stub comes as a new cell below; your own cell stays until you delete it.
    """
    exercises = [find(name)] if name is not None else list(EXERCISES.values())
    call = (
        f'lab.reset("{name}", confirm=True)'
        if name is not None
        else "lab.reset(confirm=True)"
    )
    what = name or f"all {len(exercises)} exercises"
    if not confirm:
        print(
            f"This drops your answer and the progress of {what}. To do so, run {call}."
        )
        return
    namespace = _namespace()
    for exercise in exercises:
        namespace.pop(exercise.answer, None)
        notes.forget(exercise.name)
    print(f"{what}: back to the beginning.")
    if name is not None:
        _give_back(stubs().get(name, ""))


def _give_back(stub: str) -> None:
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        print(stub)
    else:
        shell.set_next_input(stub)


def stubs() -> dict[str, str]:
    """The stub of every exercise, as the notebooks have it; derived from their sources."""
    found: dict[str, str] = json.loads(
        files("labkit.teach.exercises")
        .joinpath("stubs.json")
        .read_text(encoding="utf-8")
    )
    return found


def _namespace() -> dict[str, object]:
    """The names of the cell that called: the frame below this module's own."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(
        "labkit."
    ):
        frame = frame.f_back
    return frame.f_globals if frame is not None else {}
