"""Add to a pipeline's effects the line of Python that makes each of them.

A line is read from outside while the kernel holds the effect's call, in about ten milliseconds. So the lines of
first starts, which are alike, are read only once in a test. Other languages have no lines here; for them the path of
the file says most.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.python_line import Line, can_read, is_python, line_of
from labkit.host.syscalls.calls import CallKind

MISSING = "the lines of Python at which these effects happen are not shown: pip install 'labkit[lines]'"
"""The note for a pipeline in Python if the package that reads lines is not installed."""


class Lines:
    """The lines of Python that make a pipeline's effects, by the name of the effect."""

    def __init__(self, read: Callable[[int, int], Line | None] = line_of) -> None:
        """Prepare to read lines; `read` gets the ids of a thread and its process."""
        self._read = read
        self._known: dict[str, Line | None] = {}
        self._can_read = can_read()
        self._missed = False

    def of_another_start(self) -> "Lines":
        """Return those of a start that follows a crash, in which effects of the same name come from other lines."""
        return Lines(self._read)

    def added(self, effect: Effect, folder: Path) -> Effect:
        """Return an effect with its line. Its call must be held by the kernel at the moment.

        The path of a file in `folder`, in which the command runs, is relative to it, as copies of the folder need it.
        """
        return replace(effect, call=replace(effect.call, line=self._line(effect, folder)))

    def _line(self, effect: Effect, folder: Path) -> Line | None:
        call = effect.call
        if call.line is not None:
            return _relative(call.line, folder)
        if effect.kind is CallKind.EXIT or not is_python(call.process):
            return None
        if not self._can_read:
            self._missed = True
            return None
        if effect.name not in self._known:
            line = self._read(call.pid, call.process)
            self._known[effect.name] = line and _relative(line, folder)
        return self._known[effect.name]

    def notes(self) -> list[str]:
        """Return a sentence if lines were not read for want of a package, in a list that is empty otherwise."""
        return [MISSING] if self._missed else []


def _relative(line: Line, folder: Path) -> Line:
    path = Path(line.file)
    return line._replace(file=str(path.relative_to(folder))) if path.is_relative_to(folder) else line
