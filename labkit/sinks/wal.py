"""Write-ahead log: a task logs its rows in a file; the commit copies them to the store and then confirms this flush.

The design follows Flink's GenericWriteAheadSink and CheckpointCommitter. It works with any store that can append, which
is also its limit: an interrupted flush is repeated from its start, so the sink is only at-least-once. A log stays until
its confirmation is durable, because a failed flush would otherwise lose its rows.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from labkit.core.errors import JobFailed
from labkit.core.failpoints import FailPoint
from labkit.core.records import Observation
from labkit.host import durable
from labkit.sinks.contract import CHUNK, DeferredSink, Resolution, SinkClass, Vote
from labkit.stores.contract import Appendable, Handle, Transaction


class LogSegment:
    """The log file with the rows of one task in one batch. Recovery ignores the file until `prepare` has renamed it."""

    def __init__(self, open_path: Path, sealed_path: Path) -> None:
        self._open_path, self._sealed_path = open_path, sealed_path
        self._file: TextIO = open_path.open("w", encoding="utf-8")

    def write(self, row: Observation) -> None:
        self._file.write(json.dumps(row) + "\n")

    def prepare(self) -> None:
        """Sync the log file to the disk, and rename it to a name that is the same in each attempt at the batch."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        # The new name contains no attempt, so the log of a repeated batch replaces the first one.
        self._open_path.replace(self._sealed_path)
        durable.sync_folder(self._sealed_path.parent)


class WriteAheadLogSink(DeferredSink[Appendable]):
    """The sink with a write-ahead log: one log file per batch and partition, and one confirmation file per batch."""

    @property
    def folder(self) -> Path:
        """Return the directory of the sink's log files and confirmation files."""
        return self.log / "wal"

    def begin(self, handle: Handle) -> Transaction:
        self.folder.mkdir(parents=True, exist_ok=True)
        return LogSegment(self.folder / f"{handle}.open", self._sealed(handle))

    def commit(self, batch: int, votes: Sequence[Vote]) -> None:
        """Append the logged rows of a batch to the store, then confirm the batch. Do nothing for a confirmed batch."""
        if self._confirmation(batch).exists():
            return
        rows = [row for vote in votes for row in self._logged(vote.handle)]
        # After a crash in between, the first half is written again: the store does not record how far a flush has come.
        for half in self.in_halves(rows, batch):
            self._append(half)
        self.reach(FailPoint.BEFORE_CONFIRM, batch)
        self._confirm(batch)

    def resolutions(self, decided: Sequence[tuple[int, Sequence[Vote]]]) -> list[Resolution]:
        """Return the steps of recovery: append the logged rows of each decided but unconfirmed batch, and confirm it.

        The logs of undecided batches need no step, because Spark repeats these batches and thereby replaces the logs.
        """
        return [
            step
            for batch, votes in decided
            if not self._confirmation(batch).exists()
            for step in [*map(self._flushing, votes), self._confirming(batch)]
        ]

    def _flushing(self, vote: Vote) -> Resolution:
        sentence = f"flushed the log {vote.handle}, whose batch was decided"
        return Resolution(sentence, lambda: self._append(self._logged(vote.handle)))

    def _confirming(self, batch: int) -> Resolution:
        return Resolution(f"confirmed the flush of batch {batch}", lambda: self._confirm(batch))

    def _append(self, rows: Sequence[Observation]) -> None:
        for begin in range(0, len(rows), CHUNK):
            self.store.append(*rows[begin : begin + CHUNK])

    def _confirm(self, batch: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)  # a batch without rows has logged nothing
        # The confirmation is durable before any log is deleted, because a missing log counts as lost rows without it.
        durable.replace(self._confirmation(batch), "")
        for path in self.folder.iterdir():  # delete the files of earlier batches
            number = path.name.partition(".")[0].partition("-")[0]
            if number.isdigit() and int(number) < batch:
                path.unlink(missing_ok=True)

    def _sealed(self, handle: Handle) -> Path:
        return self.folder / f"{handle.batch}-{handle.partition}.log"

    def _confirmation(self, batch: int) -> Path:
        return self.folder / f"{batch}.confirmed"

    def _logged(self, handle: Handle) -> list[Observation]:
        path = self._sealed(handle)
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            raise JobFailed(
                f"{path}: this write-ahead log is missing, although its batch must be committed, so its rows are lost; "
                "restore the file from a backup."
            ) from None
        return [self._row(line) for line in lines]

    def _row(self, line: str) -> Observation:
        offset, key, value, batch, *_ = json.loads(line)
        return Observation(offset, key, value, batch, self.incarnation)


SINK: SinkClass = WriteAheadLogSink
