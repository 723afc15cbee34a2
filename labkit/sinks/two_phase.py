"""Two-phase commit: a task writes into a transaction and pre-commits it; the driver commits it by handle once decided.

Its demands on the store are the `Transactional` protocol: a transaction stays pending without its writer, any process
can finish it, and its commit is idempotent. The sink decides nothing; the coordinator does.
"""

from collections.abc import Sequence
from typing import ClassVar

from labkit.sinks.contract import DeferredSink, Resolution, SinkClass, Vote
from labkit.stores.contract import Handle, LostTransaction, Transaction, Transactional


class TwoPhaseSink(DeferredSink[Transactional]):
    """A sink that opens one transaction for every task with rows."""

    bears_speculation: ClassVar[bool] = True  # every attempt has its own transaction, and one of them is committed

    def begin(self, handle: Handle) -> Transaction:
        """Open a transaction under a name that no other attempt uses."""
        return self.store.begin(handle)

    def commit(self, batch: int, votes: Sequence[Vote]) -> None:
        """Commit the tasks' transactions one after the other.

        Readers may see some before others, but all commit in the end.
        """
        for half in self.in_halves(votes, batch):
            for vote in half:
                self.store.commit(vote.handle)

    def drop_earlier(self, handle: Handle) -> None:
        """Abort the transactions that earlier attempts of this task began in this driver."""
        for other in self.store.prepared(handle.query):
            if other[:4] == handle[:4] and other.attempt < handle.attempt:
                self.store.abort(other)

    def drop_losers(self, batch: int, votes: Sequence[Vote]) -> None:
        """Abort every transaction of the query up to this batch that has no vote; all others have committed."""
        kept = [vote.handle for vote in votes]
        for other in self.store.prepared(self.query):
            if other.batch <= batch and other not in kept:
                self.store.abort(other)

    def resolutions(self, decided: Sequence[tuple[int, Sequence[Vote]]]) -> list[Resolution]:
        """Return a commit for every decided handle, and an abort for every other unfinished transaction of this query.

        These are Flink's recoverAndCommit and recoverAndAbort. The aborts include attempts that no handle file names,
        which would hold locks or hide rows forever.
        """
        kept = [vote.handle for _, votes in decided for vote in votes]
        undecided = [handle for handle in self.store.prepared(self.query) if handle not in kept]
        return [self._finishing(handle) for handle in kept] + [self._dropping(handle) for handle in undecided]

    def _finishing(self, handle: Handle) -> Resolution:
        return Resolution(f"committed {handle}, whose batch was decided", lambda: self._commit_or_report(handle))

    def _commit_or_report(self, handle: Handle) -> str | None:
        """Commit a decided transaction and return None, or a sentence about the loss if the store has dropped it.

        Retrying would not bring it back. Flink's connector does the same (KafkaCommitter: signalFailedWithKnownReason)
        and only logs the loss. Outside of recovery the loss raises an error, because a query that continued would hide
        it.
        """
        try:
            self.store.commit(handle)
        except LostTransaction as lost:
            return f"LOST, although its batch was decided: {lost}"
        return None

    def _dropping(self, handle: Handle) -> Resolution:
        return Resolution(f"aborted {handle}, whose batch was never decided", lambda: self.store.abort(handle))


SINK: SinkClass = TwoPhaseSink
