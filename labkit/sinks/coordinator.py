"""The coordinator of a sink on the driver, for each of the two commit orders, and its recovery after a crash.

Engine order is Spark's: the sink commits, then the engine writes `commits/N`. Decision order is Flink's
(CheckpointCoordinator, CommitterOperator): the coordinator stores the votes of a batch, `commits/N` is the decision,
and on a notification, which may be late or lost, the coordinator commits every batch up to N. The coordinator works
with any store and strategy.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from labkit.core.errors import JobFailed
from labkit.core.failpoints import FailPoint, Reach
from labkit.host import durable
from labkit.sinks.contract import Resolution, Sink, Vote
from labkit.stores.contract import Fencing


class HandleLog:
    """A directory with one file per batch, which stores the votes (see `Vote`) of its tasks until the batch commits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, batch: int, votes: Sequence[Vote]) -> None:
        """Store the votes of a batch durably. They replace the votes of an earlier attempt of the batch."""
        self._folder.mkdir(parents=True, exist_ok=True)
        durable.replace(self._path(batch), json.dumps([vote.to_json() for vote in votes]))

    def batches(self) -> list[int]:
        """Return the numbers of the batches that have stored votes, in ascending order."""
        if not self._folder.is_dir():
            return []
        return sorted(int(path.stem) for path in self._folder.glob("*.json") if path.stem.isdigit())

    def read(self, batch: int) -> list[Vote]:
        """Return the stored votes of a batch. Raises `JobFailed` if the file with the votes is damaged."""
        path = self._path(batch)
        try:
            return [Vote.from_json(data) for data in json.loads(path.read_text(encoding="utf-8"))]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise JobFailed(
                f"{path}: this file with the transactions of batch {batch} is damaged ({error}), so recovery cannot "
                "commit them; restore it from a backup."
            ) from error

    def forget(self, batch: int) -> None:
        """Delete the stored votes of a batch. Do nothing if no votes are stored."""
        self._path(batch).unlink(missing_ok=True)

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch}.json"


class Coordinator(ABC):
    """Commits the batches of a query through a sink.

    Spark writes the file `commits/N` when batch N is finished. `EngineOrder` commits the batch before Spark writes this
    file, and `DecisionOrder` afterwards.
    """

    def __init__(self, sink: Sink[Any]) -> None:
        self.sink = sink
        self.reach: Reach = sink.reach

    def commit(self, batch: int, votes: Sequence[Vote]) -> None:
        """Commit a batch, or store its votes for a later commit. All tasks of the batch must have voted yes.

        After a crash the engine may call this method again for the same batch.
        """
        with self.sink.gathered(batch, votes):
            self.reach(FailPoint.AFTER_PRE_COMMIT, batch)
        self._voted(batch, votes)

    def recover(self, decided: int | None) -> Iterator[str]:
        """Commit or abort all transactions that earlier drivers left unfinished, and yield a sentence after each step.

        `decided` is the last batch with a file `commits/N`, or None. If the store supports fencing, earlier
        drivers are fenced before the first step, so that they cannot begin new transactions. The steps run while the
        caller iterates, so exhaust the iterator before the query starts.
        """
        if isinstance(self.sink.store, Fencing):
            # Before the unfinished transactions are listed: otherwise an earlier driver that is still alive could begin
            # another one afterwards.
            self.sink.store.fence(self.sink.query, self.sink.incarnation)
        self.reach(FailPoint.BEFORE_RESOLVE, 0)
        steps = self._resolutions(decided)
        for done, step in enumerate(steps, start=1):
            yield step.carry_out() or step.sentence
            # A recovery with a single step has no middle, so it has no such failpoint.
            if done == 1 and len(steps) > 1:
                self.reach(FailPoint.MID_RESOLVE, 0)
        self._resolved()
        self.reach(FailPoint.AFTER_RESOLVE, 0)

    @abstractmethod
    def commit_log_durable(self, batch: int) -> None:
        """React to the notification that `commits/N` is durable for all batches up to `batch`.

        The notification may be late or repeated.
        """

    @abstractmethod
    def _voted(self, batch: int, votes: Sequence[Vote]) -> None: ...

    @abstractmethod
    def _resolutions(self, decided: int | None) -> list[Resolution]: ...

    def _resolved(self) -> None:
        pass

    def _finish(self, batch: int, votes: Sequence[Vote]) -> None:
        self.sink.commit(batch, votes)
        self.reach(FailPoint.AFTER_COMMIT, batch)


class EngineOrder(Coordinator):
    """Spark's commit order: the sink commits, then Spark writes `commits/N`; a crash in between repeats the batch."""

    def commit_log_durable(self, batch: int) -> None:
        """Call `reach` for the failpoint `AFTER_COMMIT_LOG`. Nothing else is left to do after the commit."""
        pass_commit_log(self.reach, batch)

    def _voted(self, batch: int, votes: Sequence[Vote]) -> None:
        self._finish(batch, votes)

    def _resolutions(self, decided: int | None) -> list[Resolution]:
        return self.sink.resolutions([])


class DecisionOrder(Coordinator):
    """Flink's commit order: the sink commits a batch when `commits/N` is durable.

    Before that, the method `commit` only stores the batch's votes.
    """

    def __init__(self, sink: Sink[Any]) -> None:
        super().__init__(sink)
        self._handles = HandleLog(sink.log / "handles")

    def commit_log_durable(self, batch: int) -> None:
        """Commit all batches with stored votes, up to and including `batch`, in ascending order.

        A lock makes other processes wait meanwhile; two processes at the same time would flush a write-ahead log twice.
        """
        durable.make_folder(self.sink.log)
        with durable.locked(self.sink.log):
            # Earlier batches as well, because their notifications may have been lost.
            for stored in self._stored_through(batch):
                pass_commit_log(self.reach, stored)
                self._finish(stored, self._handles.read(stored))
                # Last: a crash before this line repeats the commit, which every sink must tolerate.
                self._handles.forget(stored)

    def _voted(self, batch: int, votes: Sequence[Vote]) -> None:
        # The engine has started this batch, so `commits/N` of the previous one is durable, even if its notification was
        # lost.
        self.commit_log_durable(batch - 1)
        self._handles.write(batch, votes)
        self.reach(FailPoint.AFTER_HANDLES, batch)

    def _resolutions(self, decided: int | None) -> list[Resolution]:
        # Votes of a later batch are no decision: that batch runs again, so their transactions are aborted.
        batches = [] if decided is None else self._stored_through(decided)
        return self.sink.resolutions([(batch, self._handles.read(batch)) for batch in batches])

    def _resolved(self) -> None:
        for batch in self._handles.batches():
            self._handles.forget(batch)

    def _stored_through(self, batch: int) -> list[int]:
        return [stored for stored in self._handles.batches() if stored <= batch]


def pass_offset_log(reach: Reach, batch: int) -> None:
    """Call `reach` for the failpoint at the start of a batch: `offsets/N` is durable, and no row is written yet."""
    reach(FailPoint.AFTER_OFFSET_LOG, batch)


def pass_commit_log(reach: Reach, batch: int) -> None:
    """Call `reach` for the failpoint at which `commits/N` is durable; this file records that batch N is done."""
    reach(FailPoint.AFTER_COMMIT_LOG, batch)
