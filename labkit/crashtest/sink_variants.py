"""Runs of a sink in a plain job whose fault concerns the identity of a query or a batch, not a crash alone.

Each function performs one run with the harness of the test; the store was emptied before it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from msgspec.structs import replace as changed

from labkit.core.errors import JobFailed
from labkit.crashtest.batch_expectation import BatchExpectation
from labkit.crashtest.blackbox.campaign import Perform
from labkit.crashtest.blackbox.points import Point
from labkit.crashtest.blackbox.runs import Harness, PipelineRun
from labkit.crashtest.harness.plain_job import PlainJob, Query
from labkit.crashtest.jobs import Job
from labkit.crashtest.rows import Rows, generate
from labkit.crashtest.verdict import DEMANDED, VARIANTS, Group
from labkit.host.processes import wire

COMMIT = "rename checkpoint/commits/<n> #"
"""The beginning of the name of the effect by which Spark decides that a batch is over."""


@dataclass(frozen=True)
class SinkVariants:
    """The variants of one sink, with everything that their plain jobs need."""

    job: PlainJob
    rows: Rows
    words: Callable[[str, Path], str]
    """Returns the command of a plain job, from a verb and the file that describes the job."""

    def all(self) -> Mapping[Job, Perform]:
        """Return the function that performs each variant, by its job."""
        runs: dict[str, Perform] = {
            "fresh_checkpoint": partial(self._two_queries, together=False),
            "two_queries": partial(self._two_queries, together=True),
            "other_rows": self._other_rows,
        }
        return {
            Job(name, VARIANTS[name], Group.IDENTITY if name in DEMANDED else Group.CONDITION): perform
            for name, perform in runs.items()
        }

    def _two_queries(self, harness: Harness, run: PipelineRun, *, together: bool) -> None:
        """Run two queries with rows and checkpoints of their own, one after the other or at the same time."""
        both = self._both()
        queries = []
        for number, batches in enumerate(
            (both.batches[: len(self.rows.batches)], both.batches[len(self.rows.batches) :])
        ):
            folder = Path(self.job.folder, f"input-{number + 1}")
            Rows([batch.rows for batch in batches], generated=both.generated).write(folder)
            # Below the usual checkpoint, which is watched and emptied.
            checkpoint = self.job.checkpoint / f"query-{number + 1}"
            queries.append(Query(str(folder), str(checkpoint)))
        with _expecting(harness, run, both):
            for several in [queries] if together else [[query] for query in queries]:
                with self._running(harness, changed(self.job, queries=several)):
                    start = harness.start(run)
                if harness.failed(start):
                    run.stuck = harness.ending_of(start)
                    break
            harness.settle()
            harness.look(run, "end")

    def _other_rows(self, harness: Harness, run: PipelineRun) -> None:
        """Crash when a batch is written but not recorded, then let its id come again with more rows: those with which
        the next batch would begin.
        """
        batch = min(1, len(self.rows.batches) - 1)
        try:
            harness.crash(run, Point(f"{COMMIT}{batch + 1}", 0))
            _moved(self.rows, batch).write(Path(self.job.input))
            harness.recover(run)
        finally:
            self.rows.write(Path(self.job.input))

    def _both(self) -> Rows:
        """Return the rows of two queries that write into one store, those of the second one with other ids and keys."""
        count = len(self.rows.batches)
        second = generate(count, first=count) if self.rows.generated else self.rows.moved(count)
        batches = [batch.rows for batch in (*self.rows.batches, *second.batches)]
        return Rows(batches, generated=self.rows.generated)

    @contextmanager
    def _running(self, harness: Harness, job: PlainJob) -> Iterator[None]:
        """Let the harness start another plain job within a `with` block."""
        usual = harness.settings
        path = Path(self.job.folder, "variant.json")
        path.write_bytes(wire.encode(job))
        harness.settings = replace(usual, pipeline=self.words("run", path))
        try:
            yield
        finally:
            harness.settings = usual


def _moved(rows: Rows, batch: int) -> Rows:
    """Return the rows with half of the next batch's rows in this batch; of the last one, half in the batch before."""
    parts = [list(each.rows) for each in rows.batches]
    if batch + 1 < len(parts):
        half = len(parts[batch + 1]) // 2
        parts[batch], parts[batch + 1] = parts[batch] + parts[batch + 1][:half], parts[batch + 1][half:]
    elif batch:
        half = len(parts[batch]) // 2
        parts[batch - 1], parts[batch] = parts[batch - 1] + parts[batch][:half], parts[batch][half:]
    else:
        raise JobFailed("a job of one batch has no other rows for it; --batches 2 has")
    return Rows(parts, generated=rows.generated)


@contextmanager
def _expecting(harness: Harness, run: PipelineRun, rows: Rows) -> Iterator[None]:
    """Let the harness expect other rows within a `with` block; the run keeps the expectation for the judge."""
    usual = harness.expectation
    assert isinstance(usual, BatchExpectation)
    values = tuple(row for batch in rows.batches for row in batch.rows)
    run.expectation = harness.expectation = BatchExpectation(values, usual.shape, rows)
    try:
        yield
    finally:
        harness.expectation = usual
