"""Add to a pipeline's effects the line of Python that makes each of them.

labkit reads a line from outside while the kernel holds the effect's call, which takes up to a tenth of a second. So it
reads the lines of first starts, which are alike, only once in a test. In a start that follows a crash, effects of the
same name may come from other lines, so labkit reads them again, except in a series of writes: if the same writes
followed the same line before, it reuses their lines. Effects of programs in other languages have no line.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.python_line import Line, can_read, command_line, is_python, line_of
from labkit.host.syscalls.calls import CallKind

MISSING = "the lines of Python at which these effects happen are not shown: pip install 'labkit[lines]'"

ALIKE = 50
"""After so many effects of one family with the same line, a run with a large batch no longer reads each line of it."""

_IN_SERIES = (CallKind.WRITE, CallKind.SYNC)
"""The kinds of effects whose line labkit may know from the effects before them."""

_Shape = tuple[CallKind, str]
"""An effect's kind and file, without its running number; effects of a series are compared by these."""


@dataclass
class _Series:
    line: Line | None = None
    further: dict[_Shape, "_Series"] = field(default_factory=dict)


class Lines:
    """Finds the line of Python that makes each system call of a pipeline, and remembers the lines for later runs."""

    def __init__(self, read: Callable[[int, int], Line | None] = line_of, *, is_large: bool = False) -> None:
        """`read` takes the ids of a thread and its process, and returns the line that the thread executes, or None.

        With `is_large`, lines are read less often, because there may be thousands of effects. A family of effects has
        names that differ only in numbers. Once `ALIKE` effects in a row of one family had the same line, only every
        `ALIKE`-th effect of the family gets a line.
        """
        self._read = read
        self._is_large = is_large
        self._in_a_row: Counter[tuple[int, str]] = Counter()
        """The number of effects of a thread and family since their line last changed, as far as lines were read."""
        self._last: dict[tuple[int, str], Line | None] = {}
        """The line that was last read for an effect of a thread and family."""
        self._known: dict[str, Line | None] = {}
        """The lines of first starts, by the name of the effect."""
        self._begun: dict[tuple[_Shape, Line | None], _Series] = {}
        self._at: dict[int, _Series] = {}
        """The place of each thread in its series of writes, by the thread's id."""
        self._can_read = can_read()
        self._missed = False

    def of_another_start(self) -> "Lines":
        """Return a new `Lines` for a restart, because other lines of Python may make the same system calls there."""
        other = Lines(self._read, is_large=self._is_large)
        other._begun = self._begun
        return other

    def added(self, effect: Effect, folder: Path) -> Effect:
        """Return the system call `effect` with two additions: its line of Python, and the command line of its process.

        If the process does not run Python, both are empty. Call this only while the kernel holds the system call.
        The line's path is relative to `folder`, so that it is the same in every copy of the folder in which the command
        runs.
        """
        process = effect.call.process
        words = command_line(process) if is_python(process) else ()
        return replace(effect, call=replace(effect.call, line=self._line(effect, folder), words=words))

    def _line(self, effect: Effect, folder: Path) -> Line | None:
        call = effect.call
        if call.line is not None:
            return _relative(call.line, folder)
        if effect.kind is CallKind.EXIT or not is_python(call.process):
            return None
        if not self._can_read:
            self._missed = True
            return None
        shape, before = (effect.kind, effect.where), self._at.get(call.pid)
        following = before.further.get(shape) if before and effect.kind in _IN_SERIES else None
        if effect.name in self._known:
            line = self._known[effect.name]
        elif following is not None and following.line is not None and following.line.own:
            line = following.line
        else:
            line = self._read_some(effect, folder)
        self._known[effect.name] = line
        if self._is_large and (line is None or (before is None and effect.kind in _IN_SERIES)):
            self._at.pop(call.pid, None)  # a series without a beginning would be taken for any other one
        elif before is None or effect.kind not in _IN_SERIES:
            self._at[call.pid] = self._begun.setdefault((shape, line), _Series(line))
        else:
            self._at[call.pid] = before.further.setdefault(shape, _Series(line))
        return line

    def _read_some(self, effect: Effect, folder: Path) -> Line | None:
        key = effect.call.pid, effect.family
        times = self._in_a_row[key]
        self._in_a_row[key] += 1
        if self._is_large and times > ALIKE and times % ALIKE:
            return None
        line = self._read(effect.call.pid, effect.call.process)
        line = line and _relative(line, folder)
        if line != self._last.get(key, line):
            self._in_a_row[key] = 1
        self._last[key] = line
        return line

    def notes(self) -> list[str]:
        """Return a note, in a list, if a missing package was the reason why lines were not read; otherwise []."""
        return [MISSING] if self._missed else []


def _relative(line: Line, folder: Path) -> Line:
    callers = tuple((_relative_path(file, folder), number) for file, number in line.callers)
    return line._replace(file=_relative_path(line.file, folder), callers=callers)


def _relative_path(file: str, folder: Path) -> str:
    path = Path(file)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file
