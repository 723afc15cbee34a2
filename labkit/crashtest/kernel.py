"""Tests a sink as a pipeline: a plain Spark job writes into it, and labkit kills the job at its system calls.

    labkit crashtest sink.py:write_batch

This module only writes the description of the job; `labkit.crashtest.blackbox` finds the crash points, runs the job and
reports.
"""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.core.options import options_of
from labkit.crashtest.batch_expectation import BatchExpectation, expect_batches
from labkit.crashtest.blackbox.campaign import Campaign, pipeline_campaign
from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.points import LOOP, QUICK_SINK, WHOLE_SINK, Extent
from labkit.crashtest.blackbox.seeing import NOT_LINES
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.harness.leftovers import own_folder
from labkit.crashtest.harness.plain_job import PlainJob, read
from labkit.crashtest.harness.reader import Reader
from labkit.crashtest.harness.warm_jobs import WarmJobs, at_once
from labkit.crashtest.ledger import Tell, silent
from labkit.crashtest.options import USUAL_LIMIT, SharedOptions
from labkit.crashtest.rows import LARGE, SCHEMA, Rows, generate, read_rows
from labkit.crashtest.settings import Settings
from labkit.crashtest.sink_variants import COMMIT, SinkVariants
from labkit.crashtest.subject import IN_JVM, Adapter
from labkit.crashtest.verdict import Group, Result
from labkit.host.class_data import SECONDS, find_archive
from labkit.host.fast_start import fast_start
from labkit.host.java import Java, java_for_spark
from labkit.host.processes import wire
from labkit.host.processes.own_python import own_python
from labkit.host.syscalls.calls import CallKind
from labkit.host.syscalls.support import supported
from labkit.host.turns import turn
from labkit.spark.fast.archive import make_archive

IGNORED = (".*.crc", "*.pyc", "*.pyc.*", "__pycache__")
"""Patterns of files whose changes are ignored: Hadoop's checksums, which only repeat files, and Python's caches."""

WARM = "warm"

UNTESTED = (
    "Not tested: loss of power (what was written and not synced survives a SIGKILL), markers and leases that expire, "
    "several hosts, clocks that jump, the death of a server that the sink writes to, batches of more than {rows} rows, "
    "effects that only batches after the first {batches} have, timers that need a longer job, a restart on another "
    "day, {store}more than one plain start after a recovery, more than {loops} crashes at one place, and most crashes "
    "that leave the files as other crashes do."
)

_DRAFT = re.compile(r"\.(\d+|metadata)\.[0-9a-f-]{36}\.tmp")

_SILENT = frozenset({CallKind.SYNC, CallKind.SEND, CallKind.LINE})
"""The kinds of effects that do not show whether they change the sink's data."""

START_SECONDS = 120.0
"""The minimum seconds that a job may take without progress, because Spark starts slowly on a busy machine."""


@dataclass(frozen=True)
class SinkPipeline(PipelineSettings):
    """The settings for the crash test of a Spark sink: its pipeline is a plain Spark job that writes into the sink."""

    LOGS_BY_MEANING = True  # a run takes seconds, and a journal has many points
    WHY_UNJUDGED = "neither messages to a server nor lines of code show when a batch is over"

    sink: Settings | None = None
    rows: Rows = field(default_factory=lambda: Rows([]))
    interface: Adapter = Adapter.BATCH

    @property
    def subject(self) -> str:
        """The name of the sink under test, for messages and reports."""
        return str(self.sink.subject) if self.sink else self.pipeline

    def untested(self, results: Sequence[Result]) -> str:
        was_large = any(each.group is Group.LARGE and each.verdict is not None for each in results)
        largest = LARGE if was_large else max(len(batch.rows) for batch in self.rows.batches)
        store = "" if self.faults else "errors of the store (--fault), SIGTERM, "
        return UNTESTED.format(rows=largest, batches=len(self.rows.batches), loops=LOOP, store=store)

    @property
    def extent(self) -> Extent:
        return QUICK_SINK if self.quick and not self.only else WHOLE_SINK

    @property
    def patience(self) -> float:
        """0 seconds: labkit never repeats a start that did nothing, because one start of Spark processes all rows."""
        return 0.0

    @property
    def unseen(self) -> str:
        jvm = f"the sink may write in the JVM, and the reader is too slow to show when: {NOT_LINES}"
        return jvm if self.interface in IN_JVM and self.unwatchable else ""

    def remove_state(self) -> None:
        """Remove the checkpoint, and the temporary files of killed Spark sessions, before the next run."""
        assert self.checkpoint is not None
        for folder in (self.checkpoint, *self.checkpoint.parent.glob("scratch-*")):
            shutil.rmtree(folder, ignore_errors=True)

    def unjudged(self, effects: Sequence[Effect]) -> Sequence[str]:
        sends = any(each.kind is CallKind.SEND for each in effects)
        return ("precommitted_read",) if sends or self.unwatchable else ()

    def decides(self, name: str) -> bool:
        return name.startswith(COMMIT)

    def minor(self, effects: Sequence[Effect]) -> frozenset[str]:
        """Return the masked paths, such as `offsets/<n>`, of Spark's own files that neither begin nor end a batch."""
        own = [each for each in effects if self._is_of_engine(each)]
        return frozenset(each.where for each in own if not self._begins_or_ends_batch(each))

    def immaterial(self, effects: Sequence[Effect]) -> frozenset[str]:
        """Return the masked paths of folders and drafts in the checkpoint, which make no difference to a later start.

        Spark makes a folder only if the folder is missing. A draft is a file that Spark renames once it is written;
        Spark never reads it. Source: `HDFSMetadataLog`, and `CheckpointFileManager.generateTempFilename`.
        """
        own = [each for each in effects if self._is_of_engine(each) and not each.call.target]
        drafts = (each for each in own if each.kind is CallKind.MKDIR or _DRAFT.fullmatch(Path(each.call.path).name))
        return frozenset(each.where for each in drafts)

    def command(self, only: str = "") -> str:
        return self.sink.command(only) if self.sink else ""

    def due(self) -> list[Any]:
        return list(self.rows.all)

    def expectation(self, values: Sequence[Any], read: Sequence[Any]) -> BatchExpectation:
        return expect_batches(self.rows, read)

    def unfinished(self, effects: Sequence[Effect], crashed_at: str) -> tuple[int, ...]:
        """Return, in a tuple, the number of the batch that a crash before the effect `crashed_at` interrupts, or ().

        The crash interrupts a batch if this effect, or a later one of the same batch, changes a file of the sink.
        Messages to servers and lines of code do not count, because labkit cannot tell whether they change anything.
        """
        names = [each.name for each in effects]
        if crashed_at not in names:
            return ()
        place = names.index(crashed_at)
        batch = sum(self._is_commit(each) for each in effects[:place])
        if batch >= len(self.rows.batches):  # after the last batch, the sink may still tidy up
            return ()
        for each in effects[place:]:
            if self._is_commit(each):
                return ()
            if each.call.path and not self._is_of_engine(each) and each.kind not in _SILENT:
                return (batch,)
        return ()

    def batch_end(self, effects: Iterable[Effect]) -> str:
        return next((each.name for each in effects if self._is_commit(each)), "")

    def _begins_or_ends_batch(self, effect: Effect) -> bool:
        assert self.checkpoint is not None
        target = Path(effect.call.target or "/")
        begins = target.is_relative_to(self.checkpoint / "sources")
        return effect.kind is CallKind.RENAME and (begins or self._is_commit(effect))

    def _is_commit(self, effect: Effect) -> bool:
        target = Path(effect.call.target or "/")
        return effect.kind is CallKind.RENAME and target.parent.name == "commits" and self._is_of_engine(effect)

    def _is_of_engine(self, effect: Effect) -> bool:
        assert self.checkpoint is not None
        return Path(effect.call.path).is_relative_to(self.checkpoint)


def as_pipeline(wanted: Settings, adapter: Adapter, jars: tuple[str, ...], place: Path) -> SinkPipeline:
    """Turn `wanted`, the settings of a sink's test, into settings for the test of a plain Spark job with this sink.

    `adapter` is the interface through which Spark calls the sink, and `jars` are additional jars for Spark. The
    description of the job and its input are written to the folder `place`.
    """
    rows = generate(wanted.batches) if wanted.rows is None else read_rows(wanted.rows, wanted.batches)
    rows.write(place / "input")
    job = PlainJob(
        file=wanted.subject.file,
        name=wanted.subject.name,
        adapter=adapter,
        folder=str(place),
        schema=SCHEMA if rows.generated else None,
        options=wanted.options,
        conf=wanted.spark.conf,
        jars=list(jars),
    )
    path = place / "job.json"
    path.write_bytes(wire.encode(job))
    shared: dict[str, Any] = {each.attribute: each.value_in(wanted) for each in options_of(SharedOptions)}
    return replace(
        SinkPipeline(**shared),
        watched=(Path.cwd(), *wanted.watched, job.checkpoint),
        # Spark's temporary files belong to one start of the job and not to the sink.
        ignored=(*wanted.ignored, *IGNORED, f"{place / WARM}/*"),
        limit=START_SECONDS if wanted.limit == USUAL_LIMIT else wanted.limit,  # another limit is the user's choice
        rows=rows,
        interface=adapter,
        pipeline=_words(path),
        checkpoint=job.checkpoint,
        parallel=1,  # all runs share the user's one store
        sink=wanted,
        named=str(wanted.subject),
        adapter=adapter,
        reset_remedy=f"write a function reset() next to {wanted.reader} that empties it.",
        run_alone="the sink in a plain job",
        unnamed=Path.cwd(),
    )


def _words(job: Path) -> str:
    return f"exec {shlex.join(own_python('-B', '-m', 'labkit.crashtest.harness.plain_job', 'run', str(job)))}"


def _waiting(tell: Tell) -> Callable[[int], None]:
    reported = 0

    def waits(ahead: int) -> None:
        nonlocal reported
        if ahead != reported:
            reported = ahead
            tell("run", f"waiting for a turn on this machine: {ahead} run(s) come first")

    return waits


def _make_archive(java: Java, tell: Tell) -> None:
    if fast_start().archive and find_archive(java) is None:
        tell("run", f"making a class-data archive, once, so that Spark starts faster: {SECONDS} s on a quiet machine")
        with suppress(ServiceUnavailable):  # without an archive Spark only starts more slowly
            make_archive()


@contextmanager
def kernel_campaign(
    wanted: Settings, folder: Path | None = None, tell: Tell = silent, *, only_lists: bool = False
) -> Iterator[Campaign]:
    """Provide the crash test of a Spark sink, in a `with` block.

    If system calls cannot be intercepted, the test kills the job between lines of Python code. With `only_lists`, the
    caller needs only the list of crash points, so no Spark session starts in advance. If the environment variable
    LABKIT_TURNS limits how many tests run on this machine at a time, this test first waits for its turn.
    """
    with ExitStack() as stack:
        stack.enter_context(turn(_waiting(tell)))
        # Not in `folder`: it may lie in the working folder, where every write counts as one of the sink.
        place = stack.enter_context(own_folder()).resolve()
        for watched in (Path.cwd(), *wanted.watched):
            if place.is_relative_to(watched.resolve()):
                raise InvalidInput(
                    f"{watched}: the test watches this folder, but also writes its own temporary files there, in "
                    f"{place.parent}; start the test in another folder, or set TMPDIR to a folder outside of {watched}."
                )
        java = java_for_spark()
        if not only_lists and not wanted.only:
            _make_archive(java, tell)
        adapter = wanted.adapter or Reader(wanted.subject, Path(os.devnull)).examine()
        jars = wanted.spark.resolved(java).jars
        pipeline = as_pipeline(wanted, adapter, jars, place)
        if why := supported():
            pipeline = replace(pipeline, unwatchable=why, limit=max(pipeline.limit, START_SECONDS))
        running = stack.enter_context(pipeline_campaign(pipeline, folder, tell))
        job, by_lines = read(str(place / "job.json")), bool(pipeline.unwatchable)
        running.further = further = SinkVariants(job, pipeline.rows, pipeline.extent, _words, by_lines)
        if not pipeline.unwatchable:
            warm = WarmJobs(place / "job.json", place / WARM, 0 if only_lists else at_once())
            stack.callback(warm.close)
            warm.start_one(pipeline.folder)
            running.harness.starter, further.before_last = warm.starter, warm.no_more
        yield running
