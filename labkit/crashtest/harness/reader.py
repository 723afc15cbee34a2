"""Imports the user's file in a separate process, and calls its reader for the rows of the store, with a time limit.

When run as a program, this module imports the user's file and answers each request with one line of JSON. Output of
the user's functions goes to the log.
"""

import contextlib
import math
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from datetime import date
from datetime import time as time_of_day
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Self
from uuid import UUID

from msgspec import Struct

from labkit.core.errors import InvalidInput, LabError
from labkit.crashtest.subject import LOAD_SECONDS, Adapter, Subject, adapter_of, error_text, load
from labkit.host.processes import wire
from labkit.host.processes.own_python import own_python
from labkit.host.processes.sessions import empty_session
from labkit.host.processes.tether import end_with_parent

READ_SECONDS = 10.0
"""The number of seconds that a reader may take for one answer."""

RESET_SECONDS = 120.0

_LOOK_SECONDS = 0.05
"""The seconds between two looks at whether a reader sleeps."""

MOST_ROWS = 1_000_000
"""The most rows that a reader may return at once, far more than the rows that a test generates."""


class ReaderFailed(LabError):
    """Raised if a call of the user's reader returned no usable rows, but a later call may succeed."""

    exit_code = 64


class ReaderWaits(ReaderFailed):
    """Raised if the user's reader was stopped while it waited for a lock."""


Verb = Literal["adapter", "describe", "values", "reset"]
"""A request, one to a line, to the process that has imported the user's file."""


class Answer(Struct, frozen=True):
    """The reply to one request, from the process that has imported the user's file."""

    adapter: Adapter | None = None
    """The Spark interface for which the user's object is written; None unless the request was `adapter`."""
    resets: bool = False
    values: list[Any] = []
    because: str = ""
    """The reason why there is no answer; empty if there is one."""
    fatal: bool = False
    """Whether later requests would get no answer either."""
    waits: bool = False
    """Whether the user's function was stopped because it waited for a lock."""


class Reader:
    """Calls the user's reader function in a separate process. Use the object in a `with` block."""

    def __init__(self, subject: Subject, log: Path, folder: Path | None = None) -> None:
        """Prepare to call the user's function `subject` (a file and a name in it); its output goes to the file `log`.

        The function is called in `folder`, by default the working folder.
        """
        self._subject, self._log, self._folder = subject, log, folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.resets = False

    def __enter__(self) -> Self:
        try:
            self.resets = self._ask("describe").resets
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._end()

    def examine(self) -> Adapter:
        """Import the user's file and return the Spark interface of the sink in it, for example `foreachBatch`.

        The sink is the object that `subject` named when this `Reader` was created. Raises `InvalidInput` if
        that object is missing or is no sink, or if the import fails.
        """
        try:
            self._start()
            answer = self._answer("adapter", LOAD_SECONDS)
        finally:
            self._end()
        if answer.adapter is None:
            raise InvalidInput(answer.because)
        return answer.adapter

    def values(self, seconds: float = READ_SECONDS, *, asleep: float = math.inf) -> list[Any]:
        """Return the rows that the user's function reads now, as plain data (lists, dicts, text, numbers).

        labkit stops a call that takes more than `seconds`. It also stops a call that sleeps for `asleep` seconds in a
        row, because a call that waits for a lock sleeps like this. Raises `ReaderWaits` if the call waited for a lock,
        `ReaderFailed` if it failed for another reason, and `InvalidInput` if every later call would fail as well.
        """
        return self._ask("values", seconds, asleep).values

    def reset(self) -> None:
        """Call the user's function `reset`, which empties the store. Raises the same errors as `values`."""
        self._ask("reset", RESET_SECONDS)

    def _ask(self, verb: Verb, seconds: float = READ_SECONDS, asleep: float = math.inf) -> Answer:
        with self._lock:
            answer = Answer()
            if self._process is None or self._process.poll() is not None:
                self._start()
                answer = self._answer("describe", LOAD_SECONDS)
            if verb != "describe" and not answer.because:
                answer = self._answer(verb, seconds, asleep)
        if answer.because:
            failure = InvalidInput if answer.fatal else ReaderWaits if answer.waits else ReaderFailed
            raise failure(answer.because)
        return answer

    def _start(self) -> None:
        command = own_python("-m", "labkit.crashtest.harness.reader", self._subject.file, self._subject.name)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
            )

    def _answer(self, verb: Verb, seconds: float, asleep: float = math.inf) -> Answer:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{verb}\n".encode())
            process.stdin.flush()
        content, end, slept = b"", time.monotonic() + seconds, 0.0
        while not content.endswith(b"\n"):
            left = max(end - time.monotonic(), 0)
            if not select.select([process.stdout], [], [], min(left, _LOOK_SECONDS))[0]:
                slept = slept + _LOOK_SECONDS if _sleeps(process.pid) else 0.0
                if left and slept < asleep:
                    continue
                self._end()
                if verb == "adapter":
                    late = f"importing this file took more than {seconds:.0f} s; move slow code into functions."
                    return Answer(because=f"{self._subject}: {late}")
                how = "waited for a lock" if left else f"took more than {seconds:.3g} s"
                return Answer(because=f"{self._subject}: {_WORDS[verb]} {how} and was stopped.", waits=bool(left))
            piece = os.read(process.stdout.fileno(), 1 << 20)
            if not piece:
                self._end()
                if verb == "adapter":
                    ended = (
                        f"Python ended with exit code {process.returncode} while it imported this file. Code at the "
                        "top level of the file exits; remove that call."
                    )
                else:
                    ended = f"{_WORDS[verb]} ended the reader's process; look for a call that exits."
                return Answer(because=f"{self._subject}: {ended}", fatal=True)
            content += piece
        return wire.decode(content, Answer)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            empty_session(process.pid, 5.0)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def _sleeps(pid: int) -> bool:
    # SQLite waits for a timer between two attempts to get a lock, so a process that does so for long probably waits for
    # a lock.
    try:
        return Path(f"/proc/{pid}/wchan").read_text() == "hrtimer_nanosleep"
    except OSError:
        return False


_WORDS = {"values": "the reader", "describe": "importing the file", "reset": "the function reset"}
"""What the process was doing, for messages about a request that it did not answer."""


def _as_mapping(row: Any) -> Any:
    if hasattr(row, "asDict"):
        return row.asDict()
    if hasattr(row, "_asdict"):
        return row._asdict()
    if not isinstance(row, Mapping) and hasattr(row, "keys"):
        return {name: row[name] for name in row.keys()}  # noqa: SIM118  # a row of sqlite3 iterates over values
    return row


def value(row: Any) -> Any:
    """Return `row`, one row of the user's reader, as dicts, lists, texts, numbers, booleans and None; 1.0 becomes 1.

    A date, a time, a UUID or a `Decimal` with a fraction becomes a text. Raises `TypeError` for any other type.
    """
    row = _as_mapping(row)
    if isinstance(row, Mapping):
        return {str(name): value(part) for name, part in row.items()}
    if isinstance(row, tuple | list):
        return [value(part) for part in row]
    if row is None or isinstance(row, bool | str):
        return row
    if isinstance(row, Integral) or (isinstance(row, Decimal) and row.is_finite() and row == row.to_integral_value()):
        return int(row)
    if isinstance(row, Real):  # NumPy's as well
        number = float(row)
        return int(number) if number.is_integer() else number
    if isinstance(row, Decimal | date | time_of_day | UUID):
        return str(row)
    raise TypeError(f"a value of type {type(row).__name__} is neither text nor a number; convert it")


def answer(module: Any, name: str, verb: Verb) -> Answer:
    """Answer one request, `verb`, by a call of the user's function `name`; if it raises an error, the reply says so."""
    where = f"{Path(module.__file__).name}:{'reset' if verb == 'reset' else name}"
    try:
        return _answer_of(module, name, verb, where)
    except _Refused as refused:
        return Answer(because=str(refused), fatal=True)
    except BaseException as error:  # whatever the user's code raises is its answer
        return Answer(because=f"{where} raised {error_text(error)}")


def _answer_of(module: Any, name: str, verb: Verb, where: str) -> Answer:
    if verb == "adapter":
        if not hasattr(module, name):
            raise _Refused(f"{module.__file__}: this file does not define {name}; name something that it defines.")
        try:
            return Answer(adapter=adapter_of(getattr(module, name), where))
        except InvalidInput as error:
            raise _Refused(str(error)) from None
    if verb == "describe":
        if not callable(getattr(module, name, None)):
            raise _Refused(f"{where}: there is no such function; write {name}() that returns the rows.")
        return Answer(resets=callable(getattr(module, "reset", None)))
    if verb == "reset":
        module.reset()
        return Answer()
    return Answer(values=_rows(getattr(module, name)(), where))


class _Refused(Exception):
    """Raised if the user must correct the file, because every further call would fail in the same way.

    For example, the file does not define the sink or the reader, or the reader returned None instead of rows.
    """


def _rows(returned: Any, where: str) -> list[Any]:
    remedy = "return an iterable of rows: mappings with id, or tuples (id, key, amount)"
    if returned is None or isinstance(returned, str | bytes | Mapping) or not hasattr(returned, "__iter__"):
        what = "None" if returned is None else f"an object of type {type(returned).__name__}"
        raise _Refused(f"{where} returned {what} instead of rows; {remedy}.")
    rows: list[Any] = []
    for row in returned:
        try:
            rows.append(value(row))
        except (TypeError, ValueError) as error:
            raise _Refused(f"{where} returned a value that is not a row ({error}); {remedy}.") from None
        if len(rows) > MOST_ROWS:
            less = "return only rows that this test wrote, or give it less input"
            raise _Refused(f"{where} returned more than {MOST_ROWS} rows; {less}.")
    return rows


def main(file: str, name: str) -> None:
    """Import the user's file, then answer each request on standard input until the input ends."""
    channel = os.dup(1)
    os.dup2(2, 1)
    end_with_parent()
    try:
        module: Any = load(file)
        failed = ""
    except InvalidInput as error:
        module, failed = None, str(error)
    for line in sys.stdin.buffer:
        verb: Any = line.decode().strip()
        reply = Answer(because=failed, fatal=True) if failed else answer(module, name, verb)
        wire.write(channel, wire.encode(reply))


if __name__ == "__main__":
    main(*sys.argv[1:])
