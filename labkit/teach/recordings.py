"""Play recorded outputs of real runs in a browser, which can start neither Spark nor a server.

The build of the site runs every notebook and records its outputs. In the browser, a cell that needs real processes, or
that uses the result of such a cell, shows its recorded outputs, with the date and the versions. If the learner has
changed a cell on which it depends, the recording no longer fits, and the cell prints a sentence instead.
"""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, NoReturn

from labkit.core.errors import NeedsInstallation
from labkit.host.browser import INSTALL, needs_installation
from labkit.teach.executed import shell_here
from labkit.teach.exercises.cells import bound, normal, used
from labkit.teach.questions.asking import answer
from labkit.teach.questions.card import Answer
from labkit.teach.questions.question import find

FILE = "recordings.json"
"""The file beside this module with the recordings; the site's build adds it to the package."""


class Recording(NamedTuple):
    """The recorded output of one notebook cell, shown where the cell cannot run, as in a browser."""

    made: str
    """The date of the recording and the versions of the programs, as text; empty if the cell was not recorded."""
    outputs: Sequence[Mapping[str, Any]]
    """The outputs in the format of a notebook's file."""
    questions: Sequence[str]
    """The names of the questions that the cell answers."""


class OnlyRecorded:
    """A placeholder for a variable of a cell that was not run; any use but displaying it raises an error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return str(self._refusal())

    def _refusal(self) -> NeedsInstallation:
        return needs_installation(
            f"`{self._name}` is the result of a real run, which this page only shows as a recording. Any other use"
        )

    def _refuse(self, *_: object) -> NoReturn:
        raise self._refusal()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        self._refuse()

    __call__ = __getitem__ = __iter__ = __len__ = _refuse


@cache
def recordings() -> Mapping[str, Recording]:
    """Return a dict from a cell's source to its recording, for every cell that needs real processes."""
    file = files("labkit.teach").joinpath(FILE)
    if not file.is_file():
        return {}
    return {source: Recording(*fields) for source, fields in json.loads(file.read_text(encoding="utf-8")).items()}


@cache
def released() -> frozenset[str]:
    """Return the sources of all code cells in the original notebooks, without blanks at the ends of cells and lines."""
    from labkit.teach.shipped import notebooks, of_course, released_cells

    return frozenset(normal(cell.source) for path in of_course(notebooks()) for cell in released_cells(path.stem) or ())


def changed(source: str, executed: Sequence[str]) -> str:
    """Return the name of a variable that a cell uses and that the learner has redefined; empty if there is none.

    `source` is the text of the cell, and `executed` are the texts of the cells that ran before it.
    """
    waiting, seen = [source], set[str]()
    while waiting:
        for name in sorted(used(waiting.pop()) - seen - {"lab"}):
            seen.add(name)
            giving = [each for each in executed if name in bound(each)]
            if giving and normal(giving[-1]) not in released():
                return name
            waiting += giving[-1:]
    return ""


def install() -> None:
    """Make this kernel show the recording of a cell, if there is one, instead of running the cell."""

    def replaced(lines: list[str]) -> list[str]:
        source = normal("".join(lines))
        if source not in recordings():
            return lines
        return [f"__import__('labkit.teach.recordings').teach.recordings.play({source!r})\n"]

    shell_here().input_transformers_cleanup.append(replaced)


def play(source: str) -> None:
    """Show the recorded output of a cell, or a sentence on why the recording cannot be shown.

    Shows nothing if the cell only defines names.
    """
    shell = shell_here()
    executed = list(map(str, shell.history_manager.input_hist_raw))[:-1]
    shell.user_ns.update({name: OnlyRecorded(name) for name in bound(source) if name != "lab"})
    if "from labkit import lab" in source:
        shell.ex("from labkit import lab")
    recording = recordings()[source]
    if only_defines(source):
        return
    if name := changed(source, executed):
        print(
            f"You changed `{name}`, so the recording of this cell no longer fits. To run the cell, which needs real "
            f"processes, {INSTALL}."
        )
    elif not recording.made:
        print(f"This cell needs real processes, which a browser does not have: {INSTALL}.")
    else:
        print(f"Recorded, not run here: {recording.made}. To run it yourself, or to change it, {INSTALL}.")
        for output in _shown(recording):
            _display(output)


def only_defines(source: str) -> bool:
    """Return whether a cell has only imports, functions, classes and named constants, and therefore shows nothing."""
    return all(
        isinstance(each, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
        or (isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant))
        for each in ast.parse(source).body
    )


def _shown(recording: Recording) -> Iterator[Mapping[str, Any] | Answer]:
    """Yield the recorded outputs, but replace the card that answers a question by one with the learner's prediction."""
    questions = map(find, recording.questions)
    answers = {str(Answer(question, question.right)): question.name for question in questions}
    for output in recording.outputs:
        plain = "".join(output.get("data", {}).get("text/plain", ""))
        yield answer(answers[plain]) if plain in answers else output


def _display(output: Mapping[str, Any] | Answer) -> None:
    from IPython.display import display

    if isinstance(output, Answer):
        display(output)
    elif output["output_type"] == "stream":
        print("".join(output["text"]), end="")
    else:
        display(output["data"], raw=True)
