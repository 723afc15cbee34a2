"""The options of a pipeline's crash test, which are checked before anything starts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from labkit.core.errors import InvalidInput
from labkit.core.kinds import Amount, Checked, Number, Switch, Text, Unfit
from labkit.core.options import option
from labkit.crashtest.blackbox.expectation import Expectation, expect
from labkit.crashtest.blackbox.points import EXHAUSTIVE, QUICK, WHOLE, Extent
from labkit.crashtest.options import SharedOptions
from labkit.crashtest.subject import Subject
from labkit.host.path_kinds import Folder
from labkit.host.syscalls.faults import Fault

if TYPE_CHECKING:
    from labkit.crashtest.blackbox.effects import Effect
    from labkit.crashtest.verdict import Result
    from labkit.host.syscalls.calls import Watcher

CHECKPOINT = "copied_checkpoint"
"""The id of the run that restores an older copy of the checkpoint; the crash test of a sink uses the same id."""

UNTESTED = (
    "Not tested: {power}, markers and leases that expire {pause}, timers that need a longer job, several hosts, "
    "clocks that jump, a restart on another day, {grown}the death of a server that the pipeline writes to, failing "
    "reads, closes and connections, a store that is locked{faults}, more than {later} plain starts after a "
    "recovery, more than {loops} crashes at one place{places}. Of crashes that leave the files as other crashes do, "
    "the test tries a sample."
)
BETWEEN_LINES = (
    "the test killed only before lines of your Python in the driver, so the guarantee is at best not refuted: it "
    "never killed within a line or a commit, in the JVM, in Spark's workers or while a module is imported, and omitted "
    "the runs with a large batch, other rows for a batch, new rows and a dying task ({why})"
)
GROWN_SENTENCES = {
    False: "input that grows between a crash and its restart (--more tries it), ",
    True: "two or more crashes before or after new input, input that comes at other times, ",
}
POWER_SENTENCES = {
    False: "loss of power (what was written and not synced survives a SIGKILL; --power-cut tries it)",
    True: "states between the extremes that a loss of power may leave, changes of times, modes, owners and extended "
    "attributes that it may lose",
}


def _source(text: str) -> str:
    if text and not Path(text).is_file():
        if ":" not in text:
            raise Unfit(
                "there is no such file; name one with a row in each line, or FILE:NAME, a function that returns rows."
            )
        Subject.read(text)
    return text


@dataclass(frozen=True)
class PipelineSettings(SharedOptions):
    """The options of the crash test of a pipeline, as `labkit crashtest --command` takes them."""

    KIND = "a pipeline, --command"
    WHY_UNJUDGED: ClassVar[str] = "labkit does not know which rows form a batch"
    LOGS_BY_MEANING: ClassVar[bool] = False
    """Whether logs of SQLite count as equal if SQLite would restore the same from them, whatever else they have."""

    pipeline: str = option(
        Text(metavar="CMD"),
        "",
        "The command that starts a whole pipeline, instead of a sink FILE:NAME. A shell runs it in the working folder.",
        keyword="command",
        names_subject=True,
        instead_of=["subject", "sink_format", "table"],
        check=lambda test: test.check_commands(),
    )
    read_command: str = option(
        Text(metavar="CMD"),
        "",
        "A command that prints the rows as JSON Lines, instead of --reader.",
        instead_of=["reader"],
    )
    expected: str = option(
        Checked(_source, "FILE"),
        "",
        "The rows that should come out: a file FILE.jsonl, or a function FILE:NAME that returns them. Default: the "
        "rows of a run without a crash.",
    )
    feed: str = option(Text(metavar="CMD"), "", "A command that puts the input in place before each run.")
    reset: str = option(
        Text(metavar="CMD"),
        "",
        "A command that empties the store, the checkpoint, and the input that --feed puts in place, all in the folder "
        "where this command runs. Default: the function reset in the reader's file.",
    )
    checkpoint: Path | None = option(
        Folder("DIR"),
        None,
        "The folder of the checkpoint. In one run, labkit restores an older copy of this folder.",
        check=lambda test: test.check_restored(),
    )
    power_cut: bool = option(
        Switch(),
        default=False,
        help="Also test power cuts, in which data that was not synced is lost.",
        check=lambda test: test.check_rebuilt(),
    )
    pause: float = option(
        Amount(0, complaint="must be 0 seconds or more."),
        0.0,
        "Seconds to wait: in one run, between the recovery and the next start without a crash; in up to eight runs, "
        "between crash and restart. Choose more than the lifetime of a marker or lease.",
    )
    more: str = option(
        Text(metavar="CMD"),
        "",
        "A command that adds new input. One run gets this input after the recovery from a crash, others between a "
        "crash and the restart. Default: no such run.",
    )
    pairs: int | None = option(
        Number(0, complaint="write how many random pairs of crashes to try, as in --pairs 100.", metavar="N"),
        None,
        "How many random pairs of crashes at two places to try, in addition to the pairs that a recovery suggests. To "
        "try all pairs, give the number that the report's coverage counts as possible. Default: 3 with --quick, else "
        "8.",
    )
    exhaustive: bool = option(
        Switch(),
        default=False,
        help="Restart from every state of the files that crashes leave, after any number of crashes; only --seconds "
        f"ends this sooner. Without this option, the test makes at most {WHOLE.states} runs for this.",
        in_project=False,
        check=lambda test: test.check_exhaustive(),
    )
    parallel: int | None = option(
        Number(
            1,
            complaint="write how many runs may go on at the same time, as in --parallel 4, or 1 for one after another.",
            metavar="N",
        ),
        None,
        "How many runs to make at the same time, each in a copy of the working folder. Default: as many as is safe.",
    )
    folder: Path = field(default_factory=Path.cwd)
    """The folder in which every command of the user runs."""
    unwatchable: str = ""
    """The reason why labkit cannot watch system calls, and so kills between lines of Python; usually empty."""
    named: str = "--command"
    """What error messages begin with: the option `--command`, or the name of the sink under test."""
    adapter: str = "a command"
    """The report's name for the interface under test: a command, or a Spark interface such as foreachBatch."""
    reset_remedy: str = (
        "give --reset 'CMD', or a function reset() beside the reader, which empties store, checkpoint and input."
    )
    run_alone: str = "the command by hand"
    """What the user should run without labkit, to find why it fails without a crash."""
    unnamed: Path | None = None
    """The watched folder whose name is left out of the names of system calls; None if none is left out."""

    @property
    def subject(self) -> str:
        """The name of the pipeline under test: its command."""
        return self.pipeline

    @property
    def extent(self) -> Extent:
        """How many runs of each kind the test plans."""
        return QUICK if self.quick else EXHAUSTIVE if self.exhaustive else WHOLE

    @property
    def unseen(self) -> str:
        """The reason why the test may miss writes if the reader is slow; empty if it misses none."""
        return ""

    @property
    def watch(self) -> "Watcher":
        """The function that runs a command and watches its system calls, or else its lines of Python."""
        from labkit.host.line_watch import watch_lines
        from labkit.host.syscalls.watching import watch

        return watch_lines if self.unwatchable else watch

    @property
    def usual_watched(self) -> tuple[Path, ...]:
        """The folders that the test watches if the user gives no `--watch`."""
        return (self.folder,)

    @property
    def patience(self) -> float:
        """For how many seconds to repeat a start that did nothing although rows are missing.

        For example, a start may do nothing until the lease of the killed process expires.
        """
        return self.limit

    @property
    def read_option(self) -> str:
        """The option by which the user chose how to read rows; messages begin with it."""
        return "--read-command" if self.read_command else "--reader"

    def remove_state(self) -> None:
        """Remove the files that the test itself made for the last run. The test of a pipeline makes none.

        The test calls this after it has emptied the user's store.
        """

    def untested(self, results: "Sequence[Result]") -> str:
        """Return the report's sentence on what this test did not try, such as faults that the user did not ask for."""
        from labkit.crashtest.blackbox.points import LOOP

        expiring = (
            f"after more than {self.pause:.3g} s" if self.pause else "(--pause tries starts after so many seconds)"
        )
        untried = ", ".join(each.value for each in Fault if each not in self.faults)
        return UNTESTED.format(
            power=POWER_SENTENCES[self.power_cut],
            pause=expiring,
            grown=GROWN_SENTENCES[bool(self.more)],
            faults=f", the faults {untried} (--fault tries them)" if untried else "",
            loops=LOOP,
            later=self.extent.later,
            places="" if self.extent.states else ", more than two at different places",
        )

    def unjudged(self, effects: "Sequence[Effect]") -> Sequence[str]:
        """Return the names of the properties that the test cannot judge.

        For a pipeline these are the properties of batches, because labkit does not know its batches. For a sink they
        depend on `effects`, the system calls of the run without a crash.
        """
        return ("precommitted_read", "fractured_read")

    def decides(self, name: str) -> bool:
        """Return whether the engine uses the system call `name` to record that a batch is finished."""
        return False

    def minor(self, effects: "Sequence[Effect]") -> frozenset[str]:
        """Return the masked paths, such as `offsets/<n>`, of unimportant files, for example an engine's own.

        The test crashes at calls on these files only after all other crash points.
        """
        return frozenset()

    def immaterial(self, effects: "Sequence[Effect]") -> frozenset[str]:
        """Return the masked paths of an engine's files and folders that make no difference to a later start."""
        return frozenset()

    def due(self) -> list[Any] | None:
        """Return the rows that the pipeline should produce, if the settings contain its input; otherwise None.

        The settings of a sink contain the input, those of a pipeline do not. With `--expected`, the test does not call
        this.
        """
        return None

    def expectation(self, values: Sequence[Any], read: Sequence[Any]) -> Expectation:
        """Return the expected rows `values` together with the form in which the reader returns rows, such as sums.

        labkit recognises this form from `read`, the rows that the reader returned after a run without a crash.
        """
        return expect(values, read)

    def unfinished(self, effects: "Sequence[Effect]", crashed_at: str) -> tuple[int, ...]:
        """Return the batches that a crash before the call `crashed_at` interrupts; () if unknown."""
        return ()

    def batch_end(self, effects: "Iterable[Effect]") -> str:
        """Return the name of the first of these calls that ends a batch; empty if labkit knows none."""
        return ""

    def check_commands(self) -> None:
        """Raise `InvalidInput` if the command is empty, or if there is not exactly one option for reading the rows."""
        if not self.pipeline.strip():
            raise InvalidInput("--command: the command is empty; write the command that starts the pipeline.")
        if bool(self.reader) == bool(self.read_command):
            raise InvalidInput(
                "--command: labkit cannot read the pipeline's rows; give --reader FILE:NAME, a function "
                "that returns the rows, or --read-command 'CMD', which prints them as JSON Lines."
            )

    def check_exhaustive(self) -> None:
        """Raise `InvalidInput` if `--exhaustive` contradicts an option that selects a few runs."""
        others = [f"--{name}" for name in ("quick", "only", "since") if getattr(self, name)]
        if self.exhaustive and others:
            raise InvalidInput(f"--exhaustive: {others[0]} makes only some of the runs; leave one of the two out.")

    def command(self, only: str = "") -> str:
        """Return the command line that repeats the test, or, if `only` is given, just the run with this id."""
        return SharedOptions.command(replace(self, exhaustive=False) if only else self, only)

    def check_restored(self) -> None:
        """Raise `InvalidInput` if `--checkpoint` would remove a folder that contains the user's own work."""
        if self.checkpoint is not None and self.folder.is_relative_to(self.checkpoint):
            raise InvalidInput(
                f"--checkpoint {self.checkpoint}: the test removes and restores this folder, but it contains the "
                "working folder; name the folder that holds nothing but the checkpoint."
            )

    def check_rebuilt(self) -> None:
        """Raise `InvalidInput` if `--power-cut` would empty and rebuild a folder that contains the user's own work."""
        for each in self.watched if self.power_cut else ():
            if self.folder.is_relative_to(each):
                raise InvalidInput(
                    f"--power-cut empties and rebuilds the watched folders, but {each} contains the working folder; "
                    "name only the folders of store, checkpoint and input with --watch DIR."
                )


def pipeline_settings(command: str, **words: Any) -> PipelineSettings:
    """Return the settings for the crash test of the pipeline that a shell command starts.

    `words` are further options, by keyword. Raises `InvalidInput` for a bad value, or for options that exclude each
    other.
    """
    return PipelineSettings.plan({"command": command, **words})
