"""The commands of the person beside the pipeline: read what came out, feed, empty everything. And a reader in Python.

Each runs in a session of its own and ends with the test, whatever that dies of. This module must not look at a store
by itself, and deletes nothing: only the person's reset does.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, Self

from labkit.core.errors import InvalidInput, LabError
from labkit.crashtest.blackbox.expectation import lines
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.harness.reader import Reader, ReaderFailed
from labkit.crashtest.harness.subject import Subject
from labkit.host.syscalls.calls import Answer
from labkit.host.syscalls.watching import watch

COMMAND_SECONDS = 120.0
"""How long a command that feeds, empties or reads may take: one may start a JVM."""

FEWEST_SECONDS, LIMITS = 10.0, 4.0
"""A reader may take so many times the limit of the pipeline, and so many seconds at least: it may start a JVM, too."""

LAST_WORDS = 200
"""Signs of a log that a sentence quotes."""


class RowReader(Protocol):
    """What gives rows as plain values."""

    def values(self, seconds: float | None = None) -> list[Any]:
        """What there is to be read now. Raises `ReaderFailed`."""


def last_words(log: Path) -> str:
    """How a command's output ends, since the folder of a test is removed unless the person named one."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    found = [line.strip() for line in text.splitlines() if line.strip()]
    return f'it said "{found[-1][:LAST_WORDS]}"' if found else "it said nothing"


class Errand:
    """One command of the person, run by a shell in the person's folder."""

    def __init__(
        self,
        option: str,
        command: str,
        folder: Path,
        scratch: Path,
        mark: Mapping[str, str],
    ) -> None:
        """`mark` is added to its environment, so that what it leaves behind is known."""
        self.option, self.command = option, command
        self._folder, self._mark = folder, mark
        self.log = scratch / f"{option.lstrip('-')}.log"

    def run(self, seconds: float = COMMAND_SECONDS) -> str:
        """What it printed. Raises `ReaderFailed` if it takes too long or does not end with exit code 0."""
        self.log.unlink(missing_ok=True)
        end = time.monotonic() + seconds
        late = False

        def tick() -> Answer:
            nonlocal late
            late = time.monotonic() > end
            return Answer.KILL if late else Answer.GO_ON

        errors = self.log.with_suffix(".errors")
        errors.unlink(missing_ok=True)
        run = watch(
            ["/bin/sh", "-c", f'exec 2>>"$0"\n{self.command}', str(errors)],
            folder=self._folder,
            environment={**os.environ, **self._mark},
            output=self.log,
            decide=lambda _call: Answer.GO_ON,
            tick=tick,
            kinds=frozenset(),
        )
        if late:
            raise ReaderFailed(
                f"{self.option}: it took more than {seconds:.3g} s and was stopped."
            )
        if run.status != 0:
            raise ReaderFailed(
                f"{self.option}: {ending(run.status)}; {self._said(errors)}; run it by hand first."
            )
        return self.log.read_text(encoding="utf-8", errors="replace")

    def _said(self, errors: Path) -> str:
        return last_words(errors if errors.stat().st_size else self.log)


def ending(status: int | None) -> str:
    """How a command ended, in words."""
    if status is None:
        return "it was killed"
    if status < 0:
        return f"it died of signal {-status}"
    words = {126: ", so it may not be run", 127: ", so there is no such command"}
    return f"it ended with exit code {status}{words.get(status, '')}"


class CommandReader:
    """Rows that a command prints, as JSON Lines."""

    def __init__(self, errand: Errand) -> None:
        self._errand = errand

    def values(self, seconds: float | None = None) -> list[Any]:
        """What it prints now. Raises `ReaderFailed`, or `InvalidInput` for what is not JSON."""
        printed = self._errand.run(seconds or COMMAND_SECONDS)
        return lines(printed, self._errand.option)


class Aids:
    """What stands beside the pipeline, for a block: its reader, its feed, its reset."""

    def __init__(
        self, settings: PipelineSettings, scratch: Path, mark: Mapping[str, str]
    ) -> None:
        self._settings, self._scratch, self._mark = settings, scratch, mark
        self._stack = ExitStack()
        self._reset: Callable[[], object] | None = None
        self.reader: RowReader

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _open(self) -> None:
        settings = self._settings
        if settings.reader is not None:
            reader = Reader(settings.reader, self._scratch / "reader.log")
            self._stack.enter_context(reader)
            self.reader = reader
            self._reset = reader.reset if reader.resets else None
        else:
            self.reader = CommandReader(
                self._errand("--read-command", settings.read_command)
            )
        if settings.reset:
            self._reset = self._errand("--reset", settings.reset).run
        if self._reset is None:
            raise InvalidInput(
                "--command: every run begins from nothing; say with --reset 'CMD', or by a function reset() beside the "
                "reader, how store, checkpoint and input are emptied."
            )

    def _errand(self, option: str, command: str) -> Errand:
        return Errand(option, command, self._settings.folder, self._scratch, self._mark)

    def begin(self) -> None:
        """Empties everything, then feeds. Raises `InvalidInput` if one of the two fails."""
        try:
            self.reset()
            if self._settings.feed:
                self._errand("--feed", self._settings.feed).run()
        except ReaderFailed as error:
            raise InvalidInput(str(error)) from None

    def reset(self) -> None:
        """Empties everything. Raises `ReaderFailed`."""
        assert self._reset is not None
        self._reset()

    def read(self, seconds: float | None = None) -> list[Any]:
        """What there is to be read now. Raises `ReaderFailed`, or `InvalidInput` for rows that are none."""
        patience = max(FEWEST_SECONDS, LIMITS * self._settings.limit)
        return self.reader.values(seconds or patience)

    def expected(self) -> list[Any] | None:
        """The rows that are due; None if nothing was said of them. Raises `InvalidInput`."""
        said = self._settings.expected
        if not said:
            return None
        found = self._expected_in(said)
        if not found:
            raise InvalidInput(
                f"--expected {said}: there is no row in it; a pipeline without rows cannot be tested."
            )
        return found

    def _expected_in(self, said: str) -> list[Any]:
        if Path(said).is_file():
            try:
                return lines(
                    Path(said).read_text(encoding="utf-8"), f"--expected {said}"
                )
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidInput(
                    f"--expected {said}: cannot be read ({error})."
                ) from None
        subject = Subject.parse(said, "--expected")
        try:
            with Reader(subject, self._scratch / "expected.log") as reader:
                return reader.values()
        except LabError as error:
            raise InvalidInput(f"--expected: {error}") from None
