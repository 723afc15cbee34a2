"""The functions with which a learner can `check` an answer, get a `hint`, see the `progress`, and `reset` an exercise.

`check` runs in the notebook and tests an answer with the public variants (configurations) of its exercise. Its points
do not count, because the grader uses other variants.
"""

import inspect
import json
import os
import zlib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from importlib.resources import files

from labkit.core.errors import MissingSolution, ServiceUnavailable
from labkit.core.words import columns
from labkit.host.browser import IN_BROWSER, INSTALL
from labkit.teach.executed import executed, shell_here
from labkit.teach.exercises import progress as notes
from labkit.teach.exercises import restarted
from labkit.teach.exercises.alone import Alone, alone
from labkit.teach.exercises.contract import AnswerFailed, Assignment, Exercise, Finding, Kind, NotPassed
from labkit.teach.exercises.moved import sentence_on
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import assignments, find
from labkit.teach.shipped import released_cells
from labkit.view.card import BAD, DIM, GOOD, Card, code, fold, para, table
from labkit.view.front_end import present

NOT_ATTEMPTED, TRIED, DONE = "not attempted", "not yet", "done"
STRICT = "LABKIT_STRICT"
"""The environment variable that makes every failed check raise an error, unless it is empty or 0."""

_under_way: list[str] = []
"""The exercise whose cells run in a fresh namespace now. If one of these cells calls `check`, the call does nothing."""
_forgotten: dict[str, int] = {}
"""For each exercise that was reset, how many cells had run before: answers in these cells do not count any more."""


def check(name: str, *, strict: bool | None = None) -> None:
    """Check an answer for `lab.check`, print the result, and show the schedule that refutes it, if there is one."""
    try:
        _check(name, strict=strict)
    except (ImportError, OSError, ServiceUnavailable):
        if not IN_BROWSER:
            raise
        print(f"{name} is judged with real processes, which a browser does not have: {INSTALL}.")


def _check(name: str, *, strict: bool | None) -> None:
    exercise = find(name)
    if _under_way:
        return
    _say_where(name)
    namespace = _namespace()
    graded = _alone(exercise)
    judged_names = namespace if graded is None else graded.namespace
    answer = InNotebook(exercise.answer, judged_names)
    if exercise.needs_spark and answer.is_attempted():
        print("This runs real Spark and takes about twenty seconds.", flush=True)
    findings = judged(exercise, judged_names, None if graded is None else graded.sources)
    if graded is not None and graded.is_broken:
        findings = [Finding(False, graded.trouble)]
    elif graded is not None and (findings is None or not findings[-1].passed):
        _differs(exercise, namespace, graded, findings)
    if graded is not None and graded.competition:
        print(graded.competition)
    if findings is None:
        _not_attempted(exercise)
    else:
        _show_and_note(exercise, findings)
    if is_strict(strict) and (findings is None or not findings[-1].passed):
        reason = "is not attempted." if findings is None else f"does not pass: {findings[-1].message}"
        raise NotPassed(f"{exercise.name} {reason}")


def is_strict(choice: bool | None) -> bool:  # noqa: FBT001  # the only argument
    """Return whether a failed check raises an error; if `choice` is None, the variable LABKIT_STRICT decides."""
    return os.environ.get(STRICT, "") not in {"", "0"} if choice is None else choice


def _not_attempted(exercise: Exercise) -> None:
    name = exercise.name
    what = "write it, and the run unlocks" if exercise.kind is Kind.PREDICT else f'lab.hint("{name}") gives a hint'
    message = f"{name}: not attempted ({worth(exercise)}); {what}."
    _say(Card("not attempted", title=name, under=message, plain=[message], tone=DIM))


def worth(exercise: Assignment) -> str:
    """Return the points of an exercise as text, such as `2 points`, or `not graded`."""
    points = exercise.points
    return f"{points} point{'s' * (points > 1)}" if exercise.is_graded else "not graded"


def _say(card: Card) -> None:
    if not present(card):
        print("\n".join(card.plain))


def _show_and_note(exercise: Exercise, findings: list[Finding]) -> None:
    lines, last = _report_lines(exercise, findings), findings[-1]
    _say(_card(exercise, last, lines))
    notes.note(
        exercise.name,
        state=DONE if last.passed else TRIED,
        points=exercise.points if last.passed and not exercise.by_hand else 0,
    )
    if exercise.kind is Kind.PREDICT and last.passed:
        _keep_first(exercise.name, last)
    if last.trace:
        _show(last)


def _card(exercise: Exercise, last: Finding, lines: list[str]) -> Card:
    word, tone = ("passed", GOOD) if last.passed else ("not yet", BAD)
    if last.passed and exercise.by_hand:
        word, tone = "kept", ""
    return Card(
        word,
        *(para(line) for line in lines[1:]),
        *(fold(title, code(text)) for title, text in (solutions(exercise.name) if last.passed else {}).items()),
        title=f"{exercise.name}, {exercise.title}",
        under=lines[0].partition(f"{exercise.title}: ")[2],
        tone=tone,
        plain=lines,
    )


def _alone(exercise: Exercise) -> Alone | None:
    """Run the answer in a fresh namespace, as in grading, and return this namespace and the cells that ran in it.

    If there is no answer, the namespace is empty and no cells ran. Returns None outside of a notebook.
    """
    sources = executed()
    released = released_cells(exercise.notebook)
    if sources is None or released is None:
        return None
    _under_way.append(exercise.name)
    try:
        return alone(exercise, sources[_forgotten.get(exercise.name, 0) :], released) or Alone({}, ())
    finally:
        _under_way.pop()


def _differs(
    exercise: Exercise, namespace: Mapping[str, object], graded: Alone, findings: list[Finding] | None
) -> None:
    """Print a warning if an answer passes in its notebook although it failed when it ran as in grading.

    `graded` is the run as in grading, and `findings` are its results, or None without an answer. Also print the reason
    why this run failed, if labkit knows one.
    """
    # A second run on Spark would take another twenty seconds.
    in_notebook = None if exercise.needs_spark else judged(exercise, namespace)
    if in_notebook is not None and in_notebook[-1].passed:
        print(
            f"{exercise.name}: your answer passes in this notebook, but not in grading, which runs only the "
            "parameters and the cells that you wrote; move what it needs into your own cells."
        )
    if graded.trouble and (findings is None or not findings[-1].passed):
        print(graded.trouble)


def _keep_first(name: str, finding: Finding) -> None:
    first = notes.of(name).get("predicted")
    if first is None:
        notes.note(name, predicted=finding.expected, came=finding.observed)
    elif first != finding.expected:
        print(f"Your first prediction stays on record: {first}.")


def judged(
    exercise: Exercise, namespace: Mapping[str, object], sources: Sequence[str] | None = None, place: int = -1
) -> list[Finding] | None:
    """Test an answer with the visible configurations, and return the results up to the first failure.

    Returns None if there is no answer yet. `sources` are the cells that have run; the cell at `place` defines the
    answer. If `sources` is given and the answer passes, the cells run again in a new process, in which the learner's
    function must return the same results.
    """
    answer, findings = InNotebook(exercise.answer, namespace), []
    for variant in exercise.public:
        try:
            finding = exercise.judge(answer, variant)
        except MissingSolution:
            return None
        except AnswerFailed as error:
            finding = Finding(False, str(error))
        findings.append(finding)
        if not finding.passed:
            break
    passed = bool(findings) and findings[-1].passed
    if passed and sources is not None and (sentence := restarted.changed(exercise, answer, sources, place)):
        findings[-1] = Finding(False, sentence)
    return findings


def _report_lines(exercise: Exercise, findings: list[Finding]) -> list[str]:
    last, count = findings[-1], len(exercise.public)
    head = f"{exercise.name}, {exercise.title}: "
    if last.passed and exercise.by_hand:
        return [f"{head}kept for your instructor.", last.message]
    if last.passed:
        hidden = exercise.kind not in (Kind.PREDICT, Kind.EXPLAIN)
        more = " Grading uses other variants." if hidden else ""
        if IN_BROWSER and exercise.kind in (Kind.COMPLETE, Kind.INVARIANT):
            more += " It also calls your function after a restart, which a browser cannot do."
        return [f"{head}{count} of {count} public checks passed.{more}", last.message]
    lines = [
        f"{head}check {len(findings)} of {count} failed ({exercise.public[len(findings) - 1].name}).",
        last.message,
    ]
    if last.observed and last.observed.rstrip(".").lower() not in last.message.lower():
        lines.append(f"Observed: {last.observed}")
    if last.expected:
        lines.append(f"Expected: {last.expected}")
    return lines


def _show(finding: Finding) -> None:
    from IPython.display import display

    from labkit.sim.trace import parse
    from labkit.view.stepper import Player

    if shell_here() is not None and finding.trace:
        display(Player(parse(finding.trace), finding.observed, finding.at))


def solutions(name: str) -> dict[str, str]:
    """Return the solutions of an exercise as a dict from title to source, the reference first; empty if none.

    labkit stores the solutions in a compressed file, only so that nobody reads one by accident.
    """
    packed = json.loads(files("labkit.teach.exercises").joinpath("solutions.json").read_text(encoding="utf-8"))
    return {title: zlib.decompress(b64decode(text)).decode() for title, text in packed.get(name, {}).items()}


def hint(name: str) -> None:
    """Print the hints for an exercise, as `lab.hint` does."""
    exercise = find(name)
    _say_where(name)
    name = exercise.name
    level = min(int(notes.of(name).get("hints", 0)) + 1, len(exercise.hints))
    notes.note(name, hints=level)
    for number, text in enumerate(exercise.hints[:level], start=1):
        print(f"Hint {number} of {len(exercise.hints)}: {text.replace('`', '')}")
    lines = f"about {exercise.lines} lines" if exercise.lines > 1 else "one line"
    print(f"A solution has {lines}.")


def progress(notebook: str | None = None) -> None:
    """Print kind, level, state and points of every exercise, or only those of one notebook (`"05"`, `"09b"`)."""
    rows = [("exercise", "kind", "level", "state", "points")]
    got = most = 0
    for exercise in assignments().values():
        if notebook is not None and not is_of(exercise, notebook):
            continue
        progress_note = notes.of(exercise.name)
        points = min(int(progress_note.get("points", 0)), exercise.points)  # an older version may have given more
        got, most = got + points, most + exercise.points
        state = str(progress_note.get("state", NOT_ATTEMPTED))
        shown = f"{points} of {exercise.points}" if exercise.is_graded else "-"
        rows.append((exercise.name, exercise.kind, exercise.level, state, shown))
    rows.append(("total", "", "", "", f"{got} of {most}"))
    _say(Card("", table(rows[0], rows[1:]), title="Exercises", plain=columns(rows).splitlines()))


def is_of(exercise: Assignment, notebook: str) -> bool:
    """Return whether an exercise belongs to the notebook with this number or file name; `"09"` is not `"09b"`."""
    number = exercise.notebook.partition("_")[0]
    return number == notebook or ("_" in notebook and exercise.notebook.startswith(notebook))


def _say_where(name: str) -> None:
    if sentence := sentence_on(name):
        print(sentence)


def reset(name: str | None = None, *, confirm: bool = False) -> None:
    """Delete the answer to the exercise `name` (None: to all exercises) and the progress, as `lab.reset` does.

    The answer is the function or variable in Python's memory. The notebook's cells stay as they are, and grading uses
    them. Without `confirm`, nothing is deleted, and a message tells how to confirm.
    """
    if name is not None:
        _say_where(name)
        name = find(name).name
    exercises = [find(name)] if name is not None else list(assignments().values())
    call = f'lab.reset("{name}", confirm=True)' if name is not None else "lab.reset(confirm=True)"
    what = name or f"all {len(exercises)} exercises"
    if not confirm:
        print(f"This deletes your answer and progress for {what}. To confirm, run {call}.")
        return
    namespace, sources = _namespace(), executed()
    for exercise in exercises:
        namespace.pop(exercise.answer, None)
        notes.forget(exercise.name)
        _forgotten[exercise.name] = len(sources or ())
    print(f"{what}: your answer and progress are deleted.")
    if name is not None:
        _give_back(stubs().get(name, ""))


def _give_back(stub: str) -> None:
    shell = shell_here()
    if shell is None:
        print(stub)
    else:
        shell.set_next_input(stub)


def stubs() -> dict[str, str]:
    """Return a dict from an exercise's name to the source of its prepared cell, whose gaps a learner fills in."""
    result: dict[str, str] = json.loads(
        files("labkit.teach.exercises").joinpath("stubs.json").read_text(encoding="utf-8")
    )
    return result


def _namespace() -> dict[str, object]:
    """Return the global variables of the notebook, found in the nearest calling frame outside of `labkit`."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("labkit."):
        frame = frame.f_back
    return frame.f_globals if frame is not None else {}
