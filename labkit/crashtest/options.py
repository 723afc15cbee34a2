"""The options that the tests of sinks and of pipelines share, and the options by which a user demands a result.

Each option is a field (`labkit.core.options`). The command line, `[tool.labkit.crashtest]` in pyproject.toml, pytest's
options, JSON, the printed command and every error message for an option are derived from the field. Fields of
`Settings` belong to sinks only, fields of `PipelineSettings` to pipelines only.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from labkit.core.kinds import Amount, Key, Kind, Many, Name, Switch, Text, Word
from labkit.core.options import Options, option
from labkit.crashtest.claim import Goal
from labkit.crashtest.subject import Subject
from labkit.crashtest.verdict import AXES
from labkit.host.changed_lines import ChangedLines, changed_since
from labkit.host.path_kinds import Folder
from labkit.host.syscalls.faults import Fault

USUAL_LIMIT = 30.0


class Named(Kind[Subject]):
    """An option whose value is a name in a Python file: `FILE:NAME`, or `package.module:NAME`."""

    metavar = "FILE:NAME"

    def read(self, word: object) -> Subject:
        """Parse the option's value. Raises `Unfit` if it is malformed, or if it names a file that does not exist."""
        return Subject.read(word if isinstance(word, str) else "")

    def word(self, value: Subject) -> Word:
        return f"{value.file}:{value.name}"


@dataclass(frozen=True)
class SharedOptions(Options):
    """The options that the crash tests of sinks and of pipelines have in common."""

    VERB = "labkit crashtest"
    KIND: ClassVar[str] = ""
    """The kind of test for messages: a sink or a pipeline, and how the user names it."""

    reader: Subject | None = option(
        Named(),
        None,
        "A function without arguments that returns the rows, or [] if there are none. Default for a sink: the function "
        "read in its file.",
        usual=lambda test: test.usual_reader,
        instead_of=["read_command"],
    )
    watched: tuple[Path, ...] = option(
        Many(Folder("DIR")),
        (),
        "A folder in which the sink or pipeline writes; may be repeated. Default: the working folder.",
        keyword="watch",
        usual=lambda test: test.usual_watched,
    )
    ignored: tuple[str, ...] = option(
        Many(Text(metavar="GLOB")),
        (),
        "Files, or servers as HOST:PORT, that do not belong to the sink or pipeline, such as *.csv.tmp. May be "
        "repeated.",
        flag_name="ignore",
        json="ignore",
    )
    only: tuple[str, ...] = option(
        Many(Text(metavar="ID")),
        (),
        "Make only the run with this id, as an earlier report names it; may be repeated. Such a test can refute a "
        "guarantee, but not prove one.",
        in_project=False,
    )
    since: str = option(
        Text(metavar="REV"),
        "",
        "Kill only at crash points whose line of Python has changed since this git revision, and at the few points "
        "that matter most, so the test is a sample. --only overrules --since.",
        in_project=False,
    )
    quick: bool = option(
        Switch(),
        default=False,
        help="Kill only at the points that matter most. For a sink the test takes one to two minutes, for a "
        "pipeline as long as its starts need.",
        in_project=False,
    )
    faults: tuple[Fault, ...] = option(
        Many(Name(Fault, metavar="KIND"), separator=","),
        (),
        "Also inject faults of this kind into single calls or processes, and report separately which guarantee holds "
        f"then. One of {', '.join(Fault)}. May be repeated.",
        keyword="fault",
    )
    grace: float = option(
        Amount(0, above=True, complaint="must be more than 0 seconds."),
        10.0,
        "Seconds in which the command must stop after SIGTERM (--fault sigterm) before it is killed.",
    )
    delay: float = option(
        Amount(0, above=True, complaint="must be more than 0 seconds."),
        35.0,
        "Seconds for which a call is delayed (--fault delay); choose more than the pipeline's timeouts.",
    )
    limit: float = option(
        Amount(0, above=True, complaint="must be more than 0 seconds."),
        USUAL_LIMIT,
        "Seconds without progress after which labkit stops the sink or pipeline.",
    )
    seconds: float = option(
        Amount(0, complaint="must be 0 seconds or more."),
        0.0,
        "Seconds for all runs; labkit leaves out the runs for which no time is left. 0: as many seconds as the planned "
        "runs need, but at least 60 for a quick test of a sink, 170 for a quick test of a pipeline, and 900 for any "
        "other test.",
    )

    @property
    def subject(self) -> object:
        """The sink or pipeline under test; `str(subject)` is its name in messages."""
        raise NotImplementedError

    @property
    def usual_reader(self) -> Subject | None:
        """The reader that a test uses if the user does not give `--reader`; None if there is no default."""
        return None

    @property
    def usual_watched(self) -> tuple[Path, ...]:
        """The folders that a test watches if the user does not give `--watch`."""
        return ()

    @property
    def is_selection(self) -> bool:
        """Whether the user restricted the test to some runs with `--only` or `--since`."""
        return bool(self.only or self.since)

    def changed(self) -> ChangedLines | None:
        """Return the lines changed since `--since`; None without it, or with `--only`.

        Raises `InvalidInput` if git fails.
        """
        return changed_since(self.since, Path.cwd()) if self.since and not self.only else None

    def command(self, only: str = "") -> str:
        """Return the command line that repeats the test, or, if `only` is given, just the run with this id."""
        return super().command() if not only else replace(self, only=(only,), since="", quick=False).command()


@dataclass(frozen=True)
class Demand(Options):
    """The options `--expect` and `--also`, by which a user states the result that a crash test must have."""

    expect: Goal | None = option(
        Name(Goal, metavar="GUARANTEE"),
        None,
        "The guarantee that the test must show, with every crash point tried; exit 1 if the guarantee is weaker, 2 if "
        "some points were not tried. not-refuted: no run was weaker than exactly-once; a quick test can show that.",
    )
    also: tuple[str, ...] = option(
        Many(Key(AXES, "AXIS")),
        (),
        "A property that must hold as well, named after its violation, such as fractured_read.",
    )
