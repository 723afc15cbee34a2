"""The user's options for the test of a pipeline, checked before anything starts."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.crashtest.subject import Subject

CHECKPOINT = "copied_checkpoint"
"""The run in which an older copy of the checkpoint is restored; its name is that of the same run of a sink."""

NAMED = ("healthy", CHECKPOINT)
"""Runs with a name of their own instead of a point's."""


@dataclass(frozen=True)
class PipelineSettings:
    """The settings of one test: a pipeline, its reader, the rows that are due, and how much is tried."""

    pipeline: str
    """The command, as a shell takes it."""
    folder: Path
    """The folder in which every command runs."""
    reader: Subject | None = None
    """A function that returns the rows; None: `read_command` prints them."""
    read_command: str = ""
    expected: str = ""
    """The source of the rows that are due, `FILE.jsonl` or `FILE:NAME`; empty: the run without a crash."""
    feed: str = ""
    reset: str = ""
    watched: tuple[Path, ...] = ()
    checkpoint: Path | None = None
    power_cut: bool = False
    """Whether the power fails, too: what was not synced may then be missing."""
    ignored: tuple[str, ...] = ()
    quick: bool = False
    only: tuple[str, ...] = ()
    limit: float = 30.0
    """Seconds within which the pipeline must do something."""
    seconds: float = 0.0
    """Seconds for all runs; 0: as long as the runs that are planned take."""
    parallel: int = 0
    """How many runs are made side by side; 0: as many as is safe."""

    @property
    def subject(self) -> str:
        """The name of the thing under test: its command."""
        return self.pipeline

    def command(self, only: str = "") -> str:
        """The command line that repeats the test, or one run of it."""
        options = [("--command", self.pipeline), *self._rows_said()]
        options += [("--feed", self.feed), ("--reset", self.reset)]
        if self.watched != (self.folder,):
            options += [("--watch", str(each)) for each in self.watched]
        options.append(("--checkpoint", str(self.checkpoint or "")))
        options += [("--ignore", each) for each in self.ignored]
        options.append(("--only", only))
        parts = [f"{name} {shlex.quote(value)}" for name, value in options if value]
        power = ["--power-cut"] if self.power_cut else []
        quick = ["--quick"] if self.quick and not only else []
        return " ".join(["labkit crashtest", *parts, *power, *quick])

    def _rows_said(self) -> list[tuple[str, str]]:
        reader = f"{self.reader.file}:{self.reader.name}" if self.reader else ""
        return [("--reader", reader), ("--read-command", self.read_command), ("--expected", self.expected)]


def pipeline_settings(
    command: str,
    *,
    reader: str | None = None,
    read_command: str = "",
    expected: str = "",
    feed: str = "",
    reset: str = "",
    watch: Sequence[str] = (),
    checkpoint: str = "",
    power_cut: bool = False,
    ignored: Sequence[str] = (),
    quick: bool = False,
    only: Sequence[str] = (),
    limit: float = 30.0,
    seconds: float = 0.0,
    parallel: int = 0,
) -> PipelineSettings:
    """Settings from the options that the user typed. Raises `InvalidInput` in one sentence."""
    folder = Path.cwd()
    if not command.strip():
        raise InvalidInput("--command: it is empty; write how the pipeline is started.")
    if bool(reader) == bool(read_command):
        raise InvalidInput(
            "--command needs one way to read what came out: --reader FILE:NAME, a function that returns the rows, or "
            "--read-command 'CMD', which prints them as JSON Lines."
        )
    if limit <= 0 or seconds < 0:
        raise InvalidInput("--limit and --seconds must be more than 0.")
    watched = tuple(_folder(each, "--watch") for each in watch) or (folder,)
    if power_cut:
        _check_rebuilt(watched, folder)
    return PipelineSettings(
        pipeline=command,
        folder=folder,
        reader=Subject.parse(reader, "--reader") if reader else None,
        read_command=read_command,
        expected=_source(expected),
        feed=feed,
        reset=reset,
        watched=watched,
        checkpoint=Path(checkpoint).resolve() if checkpoint else None,
        power_cut=power_cut,
        ignored=tuple(ignored),
        quick=quick,
        only=tuple(only),
        limit=limit,
        seconds=seconds,
        parallel=parallel,
    )


def _check_rebuilt(watched: Sequence[Path], folder: Path) -> None:
    """Raises `InvalidInput` where a folder that would be emptied and built anew holds the user's own work."""
    for each in watched:
        if folder.is_relative_to(each):
            raise InvalidInput(
                f"--power-cut empties the watched folders and builds them anew, and {each} holds "
                "this folder; name with "
                "--watch DIR those of store, checkpoint and input only."
            )


def _folder(text: str, option: str) -> Path:
    """A folder of the pipeline, which need not exist yet. Raises `InvalidInput` for a file."""
    path = Path(text).resolve()
    if path.exists() and not path.is_dir():
        raise InvalidInput(f"{option} {text}: this is a file; name the folder it is in.")
    return path


def _source(text: str) -> str:
    """The source of the expected rows, checked if there is one. Raises `InvalidInput` for any other form."""
    if text and not Path(text).is_file():
        Subject.parse(text, "--expected")
    return text
