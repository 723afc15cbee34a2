"""Questions, exercises and a learner's own sink, as a notebook calls them.

The copy of the lab in which submissions run has neither exercises nor questions. There every call says so, or does
nothing, so that a submitted notebook runs on.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from labkit.core.asked import takes

if TYPE_CHECKING:
    from labkit.teach import own
    from labkit.teach.questions.card import Answer


@takes('lab.ask("00-rows")')
def ask(name: str) -> None:
    """Asks what you expect before a run, as `lab.ask("00-rows")`; the run goes ahead without an answer, too.

    Raises `InvalidInput` for an unknown question.
    """
    if questions := _part("labkit.teach.questions.asking"):
        questions.ask(name)


@takes('lab.answer("00-rows", outcome.verdict.rows)')
def answer(name: str, found: object = None) -> "Answer | None":
    """Your prediction beside what came, as `lab.answer("00-rows", outcome.verdict.rows)`, and why it came so.

    `found` is what the run measured: a number, a text, or a list of texts. Raises `InvalidInput` for an unknown
    question.
    """
    questions = _part("labkit.teach.questions.asking")
    return questions.answer(name, found) if questions else None


@takes('lab.check("05-recovery")')
def check(name: str, *, strict: bool | None = None) -> None:
    """Checks your answer to an exercise, as `lab.check("05-recovery")`, and opens a counterexample if there is one.

    What is checked is what is graded: your cell alone, with the parameters and what else you wrote. With `strict=True`
    or LABKIT_STRICT=1 it raises `NotPassed` where the answer is wrong or missing, so that a notebook that is run by a
    program fails. Raises `InvalidInput` for an unknown exercise.
    """
    if exercises := _exercises():
        exercises.check(name, strict=strict)


@takes('lab.hint("05-recovery")')
def hint(name: str) -> None:
    """Prints the next hint for an exercise, and how long a solution is. Raises `InvalidInput` for an unknown one."""
    if exercises := _exercises():
        exercises.hint(name)


@takes('lab.progress("05")')
def progress(notebook: str | None = None) -> None:
    """Prints how far you have come in all exercises and predictions, or in those of one notebook
    (`lab.progress("05")`).
    """
    if exercises := _exercises():
        exercises.progress(notebook)
    questions = _part("labkit.teach.questions.asking")
    if questions and (predictions := questions.listed(notebook)):
        print(f"\n{predictions}")


@takes('lab.reset("00-rows", confirm=True)')
def reset(name: str | None = None, *, confirm: bool = False) -> None:
    """Takes an exercise, or all, back to the stub, or drops a prediction; only with `confirm=True`.

    Raises `InvalidInput` for an unknown name.
    """
    questions = _part("labkit.teach.questions.asking")
    if questions and name is not None and questions.reset(name, confirm=confirm):
        return
    if exercises := _exercises():
        exercises.reset(name, confirm=confirm)


@takes("lab.try_sink(write_batch)")
def try_sink(sink: Callable[..., Any], kind: str = "table") -> "own.Tried | None":
    """Kills your sink at every statement of its batches, and says on which axis something is wrong; takes seconds.

    The store and the kill are real, the engine is simulated. `kind` is `"table"`, `"folder"`, or `"writers"`: a table
    with two writers, one of which is stopped, replaced, and continued. What survives is tried with twelve batches,
    items such as `O'Brien`, and two queries with names that are nearly alike. Numbers of rows never come again in
    another batch. Raises `InvalidInput`.
    """
    found = _own()
    return found.try_sink(sink, kind) if found else None


@takes('lab.save_sink(write_batch, "my_sink.py")')
def save_sink(sink: Callable[..., Any], file: str = "my_sink.py", kind: str = "table") -> str:
    """Writes your sink into a file, with what Spark needs around it; gives what `lab.crash_test` takes.

    `kind` is `"table"` or `"folder"`. The function must need nothing but its arguments. Raises `InvalidInput` where its
    source is not known.
    """
    if not _exercises():
        return ""
    return str(import_module("labkit.teach.own_file").save_sink(sink, file, kind))


@takes('lab.crash_test("my_sink.py:write_batch")')
def crash_test(subject: str, **options: Any) -> "own.Tested | own.Untested | None":
    """Kills a real Spark job at every durable effect of your sink, as `labkit crashtest FILE:NAME --quick` does it.

    Takes two to three minutes. `options` are those of the command line. With `only=["b0.call.returns"]` the job is
    killed at that place alone: 15 to 20 seconds, which can show that something breaks and give no guarantee. Without
    Java, and for a sink that is not written yet, a card says that nothing was tested. Raises `InvalidInput` for what
    cannot be tested.
    """
    found = _own()
    return found.crash_test(subject, options=options) if found else None


def _exercises() -> ModuleType | None:
    """The exercises, where they are."""
    found = _part("labkit.teach.exercises.check")
    if found is None:
        print("Exercises are not checked here.")
    return found


def _own() -> ModuleType | None:
    """What tries a learner's own sink, where the exercises are."""
    return import_module("labkit.teach.own") if _exercises() else None


def _part(name: str) -> ModuleType | None:
    """A part of the lab that the copy in which submissions run has not."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
