"""The sink that a learner writes in the first notebook and improves through the course: its file, tests and history.

    python -m labkit.teach.own_history NAME

runs the file in a separate process and tests the function NAME in it, because a file that ends its process must not end
the learner's notebook. The process prints one line of JSON.

`save_sink` writes the file, and the learner then edits it by hand. The progress file stores the result of each test
under the number of the notebook after which the sink was tested (its edition).
"""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from labkit.core.errors import InvalidInput, MissingSolution
from labkit.core.words import columns, nearest, sentence
from labkit.host.browser import IN_BROWSER
from labkit.host.processes.own_python import own_python
from labkit.host.processes.tether import end_with_parent
from labkit.teach import own
from labkit.teach.exercises import progress
from labkit.teach.exercises.namespace import TooLong, time_limit
from labkit.teach.exercises.own_sink.axes import AXES, RESTORED
from labkit.teach.own_file import first_function, save_sink, sink_file
from labkit.view.card import BAD, DIM, GOOD, Card, OnCard, para, table

FILE = Path("my_sink.py")
FILE_SECONDS = 10.0
"""The number of seconds that the file may run until its functions are defined."""
MOST_PRINTED = 10_000
"""The largest number of characters shown of what the file prints."""
_CALLED = "lab.my_sink()"
EDITIONS = ("00", "02", "06", "11", "12", "14")
"""The numbers of the notebooks after which the sink is tested."""
TESTED = (*AXES["table"], RESTORED)
_HEADS = ("crash", "reader", "second crash", "older checkpoint", "second query", "restored")
"""A short heading for each tested axis."""
_START = """def my_sink(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
"""
"""The source of the first notebook's sink, for learners whose folder lacks the file."""


@dataclass(frozen=True)
class SinkHistory(OnCard):
    """The test results of a learner's sink after each notebook so far, displayed as a card."""

    tried: own.Tried
    editions: Sequence[tuple[str, Sequence[str]]]
    """The number of each notebook after which the sink was tested, with the axes on which it was wrong."""
    kept: Path | None = None
    """The copy of the learner's file as it was before a function was written into it; None if nothing was replaced."""

    @property
    def wrong(self) -> list[str]:
        """The axes (separately tested properties) on which the present sink has a fault."""
        return [each.axis for each in self.tried.axes if each.wrong]

    def card(self) -> Card:
        """Return a card with the results after each notebook, and the fault that the present sink still has."""
        rows = [
            (f"after {number}", *("wrong" if axis in wrong else "holds" for axis in TESTED))
            for number, wrong in self.editions
        ]
        still = next((each for each in self.tried.axes if each.wrong), None)
        kept = len(TESTED) - len(self.wrong)
        replaced = f"{FILE} contained another sink, which is now in {self.kept}. " if self.kept else ""
        under = replaced + (
            f"What still breaks: {still.axis}. {sentence(still.wrong)}" if still else "No test here found a fault."
        )
        head = f"{kept} of {len(TESTED)} properties hold"
        return Card(
            head,
            para(under),
            table(("edition", *_HEADS), rows),
            title=f"Your sink, {FILE}",
            under="Real kills, a real store, a simulated engine. Notebook 14 tests the same file on real Spark.",
            tone=DIM if 0 < kept < len(TESTED) else GOOD if kept else BAD,
            plain=[f"{FILE}: {head}", *columns([("edition", *_HEADS), *rows]).splitlines(), under],
        )


def my_sink(sink: Callable[..., Any] | None, after: str) -> SinkHistory:
    """Test the learner's sink, as `lab.my_sink` does; a given `sink` first replaces the one in `my_sink.py`."""
    if after not in EDITIONS:
        raise InvalidInput(
            f'lab.my_sink(): after="{after[:40]}" is not accepted; {nearest(after[:40], list(EDITIONS))}'
        )
    kept = None
    if sink is not None:
        kept = _replace(sink)
    elif not FILE.exists():
        _begin()
    tried = _tried()
    wrong = [each.axis for each in tried.axes if each.wrong]
    progress.note(f"sink-{after}", state="tested", came=wrong)
    return SinkHistory(tried, [(each, came) for each in EDITIONS if (came := _came(each)) is not None], kept)


def _replace(sink: Callable[..., Any]) -> Path | None:
    """Write a sink into `my_sink.py`; return the path of a copy of the old file, or None if nothing was replaced."""
    before = FILE.read_bytes() if FILE.exists() else b""
    number = 1
    while (copy := FILE.with_stem(f"{FILE.stem}_{number}")).exists():
        number += 1
    if before:
        copy.write_bytes(before)
    try:
        save_sink(sink, str(FILE), "table", _CALLED)
    finally:
        if before and FILE.read_bytes() == before:
            copy.unlink()
    return copy if copy.exists() else None


def _came(number: str) -> list[str] | None:
    """Return the tested properties (axes) that the learner's sink violated when it was tested after notebook `number`.

    Returns None if it was not tested then.
    """
    note = progress.of(f"sink-{number}")
    came = note.get("came")
    return [str(each) for each in came] if note.get("state") == "tested" and isinstance(came, list) else None


def _begin() -> None:
    # Atomically, because several notebooks may write the file at once.
    part = FILE.with_suffix(f".{os.getpid()}.part")
    part.write_text(sink_file(_START, "my_sink", FILE, "table"), encoding="utf-8")
    part.replace(FILE)


class _Outcome(msgspec.Struct):
    """The output of the process that tests the sink: the results, or the reason why it could not be tested."""

    tried: own.Tried | None = None
    refused: str = ""
    is_missing: bool = False
    """Whether the sink is still a stub."""


def _tried() -> own.Tried:
    """Test the sink in `my_sink.py` in another process, and return the results."""
    name = first_function(FILE)
    if not name:
        raise InvalidInput(
            f"{FILE} defines no function: write the sink at the beginning of the file, with def, or delete the file."
        )
    if IN_BROWSER:  # there is no other process
        return own.try_sink(_in_file(name), "table", also=(RESTORED,), called=_CALLED)
    # A process that ends early leaves files in its temporary folder, which are removed with this one.
    with TemporaryDirectory(prefix="labkit-my-sink-") as folder:
        ended = subprocess.run(
            own_python("-m", "labkit.teach.own_history", name), stdin=subprocess.DEVNULL, capture_output=True,
            env=os.environ | {"TMPDIR": folder}, check=False,
        )  # fmt: skip
    sys.stdout.write(ended.stderr.decode(errors="replace")[:MOST_PRINTED])
    try:
        outcome = msgspec.json.decode(ended.stdout, type=_Outcome)
    except msgspec.DecodeError:
        raise InvalidInput(
            f"{FILE} ended its process with exit code {ended.returncode} during its test; remove the call that ends "
            "the process, such as os._exit()."
        ) from None
    if outcome.tried is None:
        raise (MissingSolution if outcome.is_missing else InvalidInput)(outcome.refused)
    return outcome.tried


def _in_file(name: str) -> Callable[..., Any]:
    """Run `my_sink.py`, and return the function `name` that the file defines."""
    # The file may import modules in its folder, as a notebook may.
    sys.path.insert(0, str(Path.cwd()))
    try:
        with time_limit(FILE_SECONDS):
            sink: Callable[..., Any] = runpy.run_path(str(FILE))[name]
    except TooLong:
        raise InvalidInput(
            f"{FILE} ran longer than {FILE_SECONDS:.0f} seconds before it defined {name}; remove the slow code."
        ) from None
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"Running {FILE} raised {type(error).__name__}: {error}; correct the file and try again."
        ) from None
    if not callable(sink):
        raise InvalidInput(
            f"{FILE} assigns another value to {name}, which is then no longer a function; remove this assignment."
        )
    return sink


def main(name: str) -> None:
    """Run the learner's file, test its function `name`, and print the results as JSON.

    The output of the file itself goes to stderr.
    """
    end_with_parent()
    channel = os.dup(1)
    os.dup2(2, 1)
    try:
        outcome = _Outcome(own.try_sink(_in_file(name), "table", also=(RESTORED,), called=_CALLED))
    except (InvalidInput, MissingSolution) as error:
        outcome = _Outcome(refused=str(error), is_missing=isinstance(error, MissingSolution))
    os.write(channel, msgspec.json.encode(outcome))


if __name__ == "__main__":
    main(sys.argv[1])
