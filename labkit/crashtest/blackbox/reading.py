"""The reader of a pipeline's rows, and the user's commands that read rows, feed the input and empty everything.

Each command runs in its own session and is killed when the test ends, even if the test itself is killed.
"""

import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from labkit.core.errors import InvalidInput, LabError
from labkit.core.words import telling_line
from labkit.crashtest.blackbox.expectation import lines
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.harness.reader import Reader, ReaderFailed
from labkit.crashtest.subject import RAISED, Subject
from labkit.host.syscalls.calls import Answer

COMMAND_SECONDS = 120.0
"""The maximum seconds for a command that feeds, empties or reads, which may have to start a JVM."""

FEWEST_SECONDS, LIMITS = 10.0, 4.0
"""A reader may take `LIMITS` times the pipeline's `--limit`, and always `FEWEST_SECONDS`, as it may start a JVM."""

LAST_WORDS = 200
"""The number of characters of a log line that a message quotes."""


def last_words(log: Path) -> str:
    """Return a clause for an error message: the first error in a log, or, if it has none, the log's last line."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if raised := next((line for line in text.splitlines() if line.startswith(RAISED)), ""):
        return raised
    line = telling_line(text)
    return f'it said "{line[:LAST_WORDS]}"' if line else "it said nothing"


class HelperCommand:
    """A shell command that the user gave as an option such as `--reset`. It runs in the user's folder."""

    def __init__(
        self, option: str, command: str, settings: PipelineSettings, scratch: Path, mark: Mapping[str, str]
    ) -> None:
        """Prepare the command; its log goes to the folder `scratch`.

        `mark` is added to its environment, so that the test recognises processes that outlive the command.
        """
        self.option, self.command = option, command
        self._settings, self._mark = settings, mark
        self.log = scratch / f"{option.lstrip('-')}.log"

    def run(self, seconds: float = COMMAND_SECONDS) -> str:
        """Return the command's output. Raises `ReaderFailed` if it fails or takes more than `seconds`."""
        self.log.unlink(missing_ok=True)
        end = time.monotonic() + seconds
        late = False

        def tick() -> Answer:
            nonlocal late
            late = time.monotonic() > end
            return Answer.KILL if late else Answer.GO_ON

        errors = self.log.with_suffix(".errors")
        errors.unlink(missing_ok=True)
        run = self._settings.watch(
            ["/bin/sh", "-c", f'exec 2>>"$0"\n{self.command}', str(errors)],
            folder=self._settings.folder,
            environment={**os.environ, **self._mark},
            output=self.log,
            decide=lambda _call: Answer.GO_ON,
            tick=tick,
            kinds=frozenset(),
        )
        if late:
            raise ReaderFailed(
                f"{self.option}: this command took more than {seconds:.3g} s, so labkit stopped it; make it faster."
            )
        if run.status != 0:
            said = last_words(errors if errors.stat().st_size else self.log)
            raise ReaderFailed(f"{self.option}: {ending(run.status)}; {said}; make this command work by hand first.")
        return self.log.read_text(encoding="utf-8", errors="replace")

    def values(self, seconds: float = COMMAND_SECONDS, *, asleep: float = math.inf) -> list[Any]:
        """Return the rows that the command prints as JSON Lines; `asleep` is ignored, as only `Reader.values` needs it.

        Raises `ReaderFailed` if the command fails or takes more than `seconds`, and `InvalidInput` if it prints
        anything but JSON Lines.
        """
        return lines(self.run(seconds), self.option)


def ending(status: int | None) -> str:
    """Return a clause on how a command ended.

    `status` is its exit code, or a negative signal number; None means that the test killed the command.
    """
    if status is None:
        return "it was killed"
    if status < 0:
        return f"it died of signal {-status}"
    words = {126: ", so the shell may not run it", 127: ", so there is no such command"}
    return f"it ended with exit code {status}{words.get(status, '')}"


class HelperCommands:
    """The user's functions and commands that read rows, add input and empty the store.

    Use the object in a `with` block.
    """

    def __init__(self, settings: PipelineSettings, scratch: Path, mark: Mapping[str, str]) -> None:
        self._settings, self._scratch, self._mark = settings, scratch, mark
        self._reset: Callable[[], object] | None = None
        self.reader: Reader | HelperCommand

    def __enter__(self) -> Self:
        settings = self._settings
        with ExitStack() as stack:
            if settings.reader is not None:
                reader = stack.enter_context(Reader(settings.reader, self._scratch / "reader.log", settings.folder))
                self.reader = reader
                self._reset = reader.reset if reader.resets else None
            else:
                self.reader = self._command("--read-command", settings.read_command)
            if settings.reset:
                self._reset = self._command("--reset", settings.reset).run
            if self._reset is None:
                remedy = settings.reset_remedy
                raise InvalidInput(f"{settings.named}: every run must begin with an empty store; {remedy}")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _command(self, option: str, command: str) -> HelperCommand:
        return HelperCommand(option, command, self._settings, self._scratch, self._mark)

    def begin(self) -> None:
        """Empty store, checkpoint and input, then run `--feed`. Raises `InvalidInput` if a command fails."""
        try:
            self.reset()
            if self._settings.feed:
                self._command("--feed", self._settings.feed).run()
        except ReaderFailed as error:
            raise InvalidInput(str(error)) from None

    def add_input(self) -> None:
        """Run the user's command `--more`, which adds new input. Raises `ReaderFailed` if it fails."""
        self._command("--more", self._settings.more).run()

    def reset(self) -> None:
        """Empty the store, the checkpoint and the input, with `--reset` or the function `reset` in the reader's file.

        Raises `ReaderFailed` if the user's command or function fails.
        """
        assert self._reset is not None
        self._reset()
        self._settings.remove_state()

    def read(self) -> list[Any]:
        """Return the rows that are in the store now.

        Raises `ReaderFailed` if the user's reader fails. Raises `InvalidInput` if every later call would fail as well,
        for example because a command prints text that is not JSON Lines.
        """
        return self.reader.values(max(FEWEST_SECONDS, LIMITS * self._settings.limit))

    def expected(self) -> list[Any] | None:
        """Return the rows that the pipeline should produce; None if neither `--expected` nor the settings give them.

        Raises `InvalidInput` if the user's rows cannot be read.
        """
        source = self._settings.expected
        if not source:
            return self._settings.due()
        rows = self._expected_in(source)
        if not rows:
            raise InvalidInput(
                f"--expected {source}: this file contains no row, and labkit cannot test a pipeline without "
                "rows; add the rows that should come out."
            )
        return rows

    def _expected_in(self, source: str) -> list[Any]:
        if Path(source).is_file():
            try:
                return lines(Path(source).read_text(encoding="utf-8"), f"--expected {source}")
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidInput(
                    f"--expected {source}: labkit cannot read this file ({error}); name another one."
                ) from None
        subject = Subject.parse(source, "--expected")
        try:
            with Reader(subject, self._scratch / "expected.log") as reader:
                return reader.values()
        except LabError as error:
            raise InvalidInput(f"--expected: {error}") from None
