"""The functions of `lab` for questions, exercises and a learner's own sink.

The copy of the lab that grades submissions contains neither exercises nor questions. In it these functions
print that exercises are not checked, or do nothing, so that a submitted notebook still runs to its end.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.host.browser import IN_BROWSER, needs_installation

if TYPE_CHECKING:
    from labkit.teach import own, own_history
    from labkit.teach.questions.card import Answer


@takes('lab.ask("00-rows")')
def ask(name: str) -> None:
    """Display a question about the next run, as in `lab.ask("00-rows")`, and store your prediction.

    The next cells run even if you do not answer. Raises `InvalidInput` for an unknown question.
    """
    if questions := _part("labkit.teach.questions.asking"):
        try:
            questions.ask(name)
        except InvalidInput:
            exercises = _part("labkit.teach.exercises.registry")
            if exercises and name in exercises.assignments():
                raise InvalidInput(
                    f'{name} is an exercise, not a question: lab.check("{name}") checks your answer.'
                ) from None
            raise


@takes('lab.answer("00-rows", outcome.verdict.rows)')
def answer(name: str, found: object = None) -> "Answer | None":
    """Show your prediction for a question next to the result of the run, and explain the result.

    Example: `lab.answer("00-rows", outcome.verdict.rows)`. `found` is the value that the run measured: a number, a
    text, or a list of texts. Raises `InvalidInput` for an unknown question.
    """
    questions = _part("labkit.teach.questions.asking")
    return questions.answer(name, found) if questions else None


@takes('lab.check("05-recovery")')
def check(name: str, *, strict: bool | None = None) -> None:
    """Check your answer to an exercise, as in `lab.check("05-recovery")`, and show a counterexample if there is one.

    Like the grader, it runs the cell with your answer in a fresh namespace. Before that, it runs the cells that set the
    notebook's parameters, and those of your own cells that the answer needs. With `strict=True` or the environment
    variable LABKIT_STRICT=1, a wrong or missing answer raises `NotPassed`, so that a program which runs the notebook
    stops. Raises `InvalidInput` for an unknown exercise.
    """
    if exercises := _exercises():
        exercises.check(name, strict=strict)


@takes('lab.hint("05-recovery")')
def hint(name: str) -> None:
    """Print the hints for an exercise: one more hint at each call, and how many lines a solution has.

    Raises `InvalidInput` for an unknown exercise.
    """
    if exercises := _exercises():
        exercises.hint(name)


@takes('lab.progress("05")')
def progress(notebook: str | None = None) -> None:
    """Print your progress in all exercises and predictions, or in those of one notebook (`lab.progress("05")`)."""
    if exercises := _exercises():
        exercises.progress(notebook)
    questions = _part("labkit.teach.questions.asking")
    if questions and (predictions := questions.listed(notebook)):
        print(f"\n{predictions}")


@takes('lab.reset("00-rows", confirm=True)')
def reset(name: str | None = None, *, confirm: bool = False) -> None:
    """Delete your answer to the exercise `name` and its progress, or your prediction if `name` is a question.

    Without a name, deletes the answers and progress of all exercises. Without `confirm=True`, deletes nothing. If you
    reset a single exercise, its original cell with the gaps to fill in appears again. Raises `InvalidInput` if neither
    an exercise nor a question has that name.
    """
    questions = _part("labkit.teach.questions.asking")
    if questions and name is not None and questions.reset(name, confirm=confirm):
        return
    if exercises := _exercises():
        exercises.reset(name, confirm=confirm)


@takes("lab.try_sink(write_batch)")
def try_sink(sink: Callable[..., Any], kind: str = "table") -> "own.Tried | None":
    """Kill your sink before every statement of its batches, and report which guarantees break, within seconds.

    The store and the kills are real; the engine is simulated. The engine gives every row a unique id, across all
    batches. `kind` is the kind of store: `"table"`, `"folder"`, or `"writers"`. The last is a table with two writers:
    the older one is suspended while a newer one takes over. If no fault is found, the sink is also tested with twelve
    batches, with items such as `O'Brien`, and with two queries of similar names. Raises `InvalidInput` if `kind` is
    unknown or the function cannot be called as a sink.
    """
    module = _own("lab.try_sink", "own")
    return module.try_sink(sink, kind) if module else None


@takes('lab.my_sink(my_sink, after="00")')
def my_sink(sink: Callable[..., Any] | None = None, *, after: str) -> "own_history.SinkHistory | None":
    """Test the sink that you improve through the course, as in `lab.my_sink(after="02")`, and show its history.

    The sink is the first function in `my_sink.py`, which you edit. If you pass a function, labkit first writes it to
    this file; if the file contained a different sink, a copy is kept as `my_sink_1.py`. The sink is killed before every
    statement, as by `lab.try_sink`; the card also lists the results after earlier notebooks. `after` is the number of
    the notebook. Takes about ten seconds. Raises `InvalidInput` if the file or the number cannot be used.
    """
    module = _own("lab.my_sink", "own_history")
    return module.my_sink(sink, after) if module else None


@takes('lab.save_sink(write_batch, "my_sink.py")')
def save_sink(sink: Callable[..., Any], file: str = "saved_sink.py", kind: str = "table") -> str:
    """Write your sink to a file, with the code that Spark needs, and return the argument for `lab.crash_test`.

    `kind` is the kind of store, `"table"` or `"folder"`. The function may use only its arguments, Python's built-in
    names, and what it defines or imports itself. Raises `InvalidInput` if its source cannot be found, or if `file` or
    `kind` cannot be used.
    """
    module = _own("lab.save_sink", "own_file")
    return str(module.save_sink(sink, file, kind)) if module else ""


@takes('lab.crash_test("my_sink.py:write_batch")')
def crash_test(subject: str, **options: Any) -> "own.Tested | own.Untested | None":
    """Kill a real Spark job at a sample of its durable writes, as `labkit crashtest FILE:NAME --quick` does.

    `subject` is `FILE:NAME`, as `lab.save_sink` returns it, and `options` are those of the command line. The test
    takes one or two minutes. With `only=["rename checkpoint/commits/<n> #1"]` the job is killed only there, which
    takes half a minute and can reveal a defect but proves no guarantee. If Java is missing, or the sink is not
    written yet, a card says that nothing was tested. Raises `InvalidInput` if the subject or an option cannot be
    used.
    """
    module = _own("lab.crash_test", "own")
    return module.crash_test(subject, options=options) if module else None


def _exercises() -> ModuleType | None:
    module = _part("labkit.teach.exercises.check")
    if module is None:
        print("Exercises are not checked here, because the grader itself checks the answers.")
    return module


def _own(name: str, module: str) -> ModuleType | None:
    """Return `labkit.teach.<module>`, which tests a learner's sink, or print why it cannot run here and return None.

    `name` is the function that the learner called. The module cannot run in a browser, which cannot kill a sink. During
    grading it does not run either, because the grader itself checks the answers.
    """
    if IN_BROWSER:
        print(f"{needs_installation(name)} The text below describes the output that an installed lab shows here.")
        return None
    return import_module(f"labkit.teach.{module}") if _exercises() else None


def _part(name: str) -> ModuleType | None:
    # The copy of labkit that grades submissions lacks some modules.
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
