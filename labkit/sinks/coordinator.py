"""The two commit orders: which record decides that a batch counts, and how a restarted driver proceeds.

Engine order is Spark's: the sink commits, then the engine writes `commits/N`. Decision order is Flink's
(CheckpointCoordinator, CommitterOperator): the coordinator stores the handles of a batch, `commits/N` is the decision,
and then every batch up to N commits on a notification that may be late or lost. The coordinator works with any store
and strategy, and kills nothing.
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
    """Files with the votes of each batch, each replaced atomically and kept until its batch has committed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, batch: int, votes: Sequence[Vote]) -> None:
        """Store the votes durably, replacing those of an earlier attempt of the batch."""
        self._folder.mkdir(parents=True, exist_ok=True)
        durable.replace(self._path(batch), json.dumps([vote.to_json() for vote in votes]))

    def batches(self) -> list[int]:
        """Return the batches that have stored votes, in order."""
        if not self._folder.is_dir():
            return []
        return sorted(int(path.stem) for path in self._folder.glob("*.json") if path.stem.isdigit())

    def read(self, batch: int) -> list[Vote]:
        """Return the stored votes. Raises `JobFailed` if the file is damaged, since a guess could lose or double
        rows.
        """
        path = self._path(batch)
        try:
            return [Vote.from_json(data) for data in json.loads(path.read_text(encoding="utf-8"))]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise JobFailed(
                f"{path}: the file with the handles of batch {batch} is damaged ({error}), so recovery cannot "
                "commit them; restore it from a backup."
            ) from error

    def forget(self, batch: int) -> None:
        """Drop the votes of a batch that is finished, or that was never decided."""
        self._path(batch).unlink(missing_ok=True)

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch}.json"


class Coordinator(ABC):
    """Commits the batches of one query through one sink, in one of the two commit orders."""

    def __init__(self, sink: Sink[Any]) -> None:
        self.sink = sink
        self.reach: Reach = sink.reach

    def commit(self, batch: int, votes: Sequence[Vote]) -> None:
        """Receive the votes of a batch once every task has voted yes. After a crash the same batch arrives again."""
        with self.sink.gathered(batch, votes):
            self.reach(FailPoint.AFTER_PRE_COMMIT, batch)
        self._voted(batch, votes)

    def recover(self, decided: int | None) -> Iterator[str]:
        """Finish or abort all undecided transactions before the query starts, and yield a sentence after each step.

        `decided` is the last batch with a `commits/N`, or None. If the store can fence, earlier drivers are fenced
        first, so that only their existing transactions need resolving. Run the iterator to its end before anything is
        replayed.
        """
        if isinstance(self.sink.store, Fencing):
            # Before the list of what is in doubt is made: a driver that is only thought
            # dead could begin something behind it otherwise.
            self.sink.store.fence(self.sink.query, self.sink.incarnation)
        self.reach(FailPoint.BEFORE_RESOLVE, 0)
        steps = self._resolutions(decided)
        for done, step in enumerate(steps, start=1):
            yield step.carry_out() or step.sentence
            # One step cannot be half done, so a recovery of one step has no middle.
            if done == 1 and len(steps) > 1:
                self.reach(FailPoint.MID_RESOLVE, 0)
        self._resolved()
        self.reach(FailPoint.AFTER_RESOLVE, 0)

    @abstractmethod
    def commit_log_durable(self, batch: int) -> None:
        """Receive the notification that `commits/N` is durable up to this batch. It may be late or repeated."""

    @abstractmethod
    def _voted(self, batch: int, votes: Sequence[Vote]) -> None: ...

    @abstractmethod
    def _resolutions(self, decided: int | None) -> list[Resolution]: ...

    def _resolved(self) -> None:
        """Delete the stored votes after a complete recovery; only the decision order stores any."""

    def _finish(self, batch: int, votes: Sequence[Vote]) -> None:
        self.sink.commit(batch, votes)
        self.reach(FailPoint.AFTER_COMMIT, batch)


class EngineOrder(Coordinator):
    """Spark's commit order: the sink commits in the engine's call, so a crash before `commits/N` repeats the batch."""

    def commit_log_durable(self, batch: int) -> None:
        """Pass the failpoint and do nothing else: in this order no commit waits for the notification."""
        pass_commit_log(self.reach, batch)

    def _voted(self, batch: int, votes: Sequence[Vote]) -> None:
        self._finish(batch, votes)

    def _resolutions(self, decided: int | None) -> list[Resolution]:
        return self.sink.resolutions([])


class DecisionOrder(Coordinator):
    """Flink's commit order: the engine's call stores the votes, and the batch commits once `commits/N` is durable."""

    def __init__(self, sink: Sink[Any]) -> None:
        super().__init__(sink)
        self._handles = HandleLog(sink.log / "handles")

    def commit_log_durable(self, batch: int) -> None:
        """Commit every batch up to this one that has stored votes, in order.

        A lock lets one process at a time do this, because a flush must not run twice.
        """
        durable.make_folder(self.sink.log)
        with durable.locked(self.sink.log):
            # A notification may have been lost, so it stands for every batch before it
            # as well.
            for stored in self._stored_through(batch):
                pass_commit_log(self.reach, stored)
                self._finish(stored, self._handles.read(stored))
                # The votes go last: a crash before this repeats the commit, which every
                # sink must bear.
                self._handles.forget(stored)

    def _voted(self, batch: int, votes: Sequence[Vote]) -> None:
        # The engine plans batch N + 1 only when `commits/N` is durable, so its call
        # repeats whatever notification was lost.
        self.commit_log_durable(batch - 1)
        self._handles.write(batch, votes)
        self.reach(FailPoint.AFTER_HANDLES, batch)

    def _resolutions(self, decided: int | None) -> list[Resolution]:
        # Votes of a later batch are no decision: that batch runs again, and what they
        # name is aborted.
        batches = [] if decided is None else self._stored_through(decided)
        return self.sink.resolutions([(batch, self._handles.read(batch)) for batch in batches])

    def _resolved(self) -> None:
        for batch in self._handles.batches():
            self._handles.forget(batch)

    def _stored_through(self, batch: int) -> list[int]:
        return [stored for stored in self._handles.batches() if stored <= batch]


def pass_offset_log(reach: Reach, batch: int) -> None:
    """Pass the failpoint at which `offsets/N` is durable and nothing is written. Adapters call this first."""
    reach(FailPoint.AFTER_OFFSET_LOG, batch)


def pass_commit_log(reach: Reach, batch: int) -> None:
    """Pass the failpoint after `commits/N` is durable: at the next batch's plan or at the engine's notification."""
    reach(FailPoint.AFTER_COMMIT_LOG, batch)
