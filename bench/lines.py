"""Measure how often the crash test names the right line of Python for an effect, by library.

    python -m bench.lines                                  # the programs whose packages are installed here
    python -m bench.lines --python VENV/bin/python NAME... # programs in another environment

In `data/lines`, a comment `# effect: PATTERN...` after a line states the line's effects: paths below the working
folder, or `send` and the text of a message. An effect is right if the pattern of the named line matches it.
"""

import argparse
import fnmatch
import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.lanes import Lanes
from labkit.crashtest.blackbox.xray import xray
from labkit.host.syscalls.calls import CallKind

PROGRAMS = Path(__file__).parents[1] / "data" / "lines"
MARK = "# effect: "
_PATIENCE = 600.0
"""A program is killed after this many seconds without an effect; Spark may take half a minute to start."""


class Measured(NamedTuple):
    """The number of a program's effects with a known line, and those for which another line, or none, was named."""

    effects: int
    wrong: tuple[str, ...]


def truth(program: Path) -> list[tuple[str, int, tuple[str, ...]]]:
    """Return the file name, number and patterns of each line of a program that is marked with a comment."""
    lines = program.read_text(encoding="utf-8").splitlines()
    marked = [(number, line.partition(MARK)[2].split()) for number, line in enumerate(lines, 1) if MARK in line]
    return [(program.name, number, tuple(patterns)) for number, patterns in marked]


def measure(name: str, *arguments: str, python: str = sys.executable) -> Measured:
    """Run a program in an empty folder, and compare the line named for each effect with the program's comments."""
    marks = [mark for program in PROGRAMS.glob("*.py") for mark in truth(program)]
    own = [mark for mark in marks if mark[0] == f"{name}.py"]
    assert own, name
    with tempfile.TemporaryDirectory() as folder:
        words = [python, "-B", str(PROGRAMS / f"{name}.py"), *arguments]
        output = Path(folder).with_suffix(".log")
        output.touch()
        with chdir(folder):
            record = xray(shlex.join(words), [Path(folder)], output, lanes=Lanes(), limit=_PATIENCE)
        said = output.read_text(encoding="utf-8", errors="replace")
        output.unlink()
    assert record.watched.status == 0, said
    known = [each for each in record.effects if _fitting(each, marks)]
    wrong = [f"{each.name}: {each.line or 'no line'}" for each in known if not _is_right(each, marks)]
    return Measured(len(known), tuple(wrong))


def _fitting(effect: Effect, marks: Sequence[tuple[str, int, tuple[str, ...]]]) -> set[tuple[str, int]]:
    if effect.kind is CallKind.EXIT:
        return set()
    named = f"send {effect.where}" if effect.kind is CallKind.SEND else effect.file
    return {
        (file, number) for file, number, patterns in marks if any(fnmatch.fnmatchcase(named, each) for each in patterns)
    }


def _is_right(effect: Effect, marks: Sequence[tuple[str, int, tuple[str, ...]]]) -> bool:
    line = effect.line
    return line is not None and (Path(line.file).name, line.number) in _fitting(effect, marks)


def main() -> None:
    """Print the measure of each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="NAME, or NAME,ARGUMENT...")
    parser.add_argument("--python", default=sys.executable)
    chosen = parser.parse_args()
    for words in chosen.names or ["files", "sqlite", "threads", "arrow"]:
        name, *arguments = words.split(",")
        found = measure(name, *arguments, python=chosen.python)
        print(f"{name:<12} {found.effects - len(found.wrong)} of {found.effects}")
        for each in found.wrong:
            print(f"    {each}")


if __name__ == "__main__":
    main()
