"""Two-phase commit: a task writes and pre-commits a transaction; after the decision the driver commits it by handle.

The store must be `Transactional`: a transaction stays pending without its writer, any process can finish it, and its
commit is idempotent. The coordinator decides when to commit, not the sink.
"""

from collections.abc import Sequence
from typing import ClassVar

from labkit.sinks.contract import DeferredSink, Resolution, SinkClass, Vote
from labkit.stores.contract import Handle, LostTransaction, Transaction, Transactional


class TwoPhaseSink(DeferredSink[Transactional]):
    """A sink with two-phase commit: each task writes into its own transaction, and the driver commits them all."""

    bears_speculation: ClassVar[bool] = True  # every attempt has its own transaction, and one of them is committed

    def begin(self, handle: Handle) -> Transaction:
        """Open a transaction with the name `handle`, which no other task attempt uses."""
        return self.store.begin(handle)

    def commit(self, batch: int, votes: Sequence[Vote]) -> None:
        """Commit the transactions of a batch one by one; in between, readers see the rows of some tasks only."""
        for half in self.in_halves(votes, batch):
            for vote in half:
                self.store.commit(vote.handle)

    def drop_earlier(self, handle: Handle) -> None:
        """Abort the transactions that earlier attempts of this task have begun since the driver started."""
        for other in self.store.prepared(handle.query):
            if other[:4] == handle[:4] and other.attempt < handle.attempt:
                self.store.abort(other)

    def drop_losers(self, batch: int, votes: Sequence[Vote]) -> None:
        """Abort the query's unfinished transactions of this and of earlier batches, except those that `votes` names."""
        kept = [vote.handle for vote in votes]
        for other in self.store.prepared(self.query):
            if other.batch <= batch and other not in kept:
                self.store.abort(other)

    def resolutions(self, decided: Sequence[tuple[int, Sequence[Vote]]]) -> list[Resolution]:
        """Return steps that commit each transaction named in `decided`, and abort every other unfinished one.

        `decided` has a pair (batch number, votes) for each batch that must be committed; a vote names a transaction of
        the batch. Without the aborts, transactions would hold locks or hide rows forever. Flink calls the two kinds of
        steps recoverAndCommit and recoverAndAbort.
        """
        kept = [vote.handle for _, votes in decided for vote in votes]
        undecided = [handle for handle in self.store.prepared(self.query) if handle not in kept]
        return [self._finishing(handle) for handle in kept] + [self._dropping(handle) for handle in undecided]

    def _finishing(self, handle: Handle) -> Resolution:
        return Resolution(f"committed {handle}, whose batch was decided", lambda: self._commit_or_report(handle))

    def _commit_or_report(self, handle: Handle) -> str | None:
        """Commit a decided transaction and return None; if the store has dropped it, return a sentence about the loss.

        In recovery, Flink's connector also only logs such a loss (KafkaCommitter: signalFailedWithKnownReason). In a
        running query, `commit` raises `LostTransaction` instead, because a query that continued would hide the loss.
        """
        try:
            self.store.commit(handle)
        except LostTransaction as lost:
            return f"LOST, although its batch was decided: {lost}"
        return None

    def _dropping(self, handle: Handle) -> Resolution:
        return Resolution(f"aborted {handle}, whose batch was never decided", lambda: self.store.abort(handle))


SINK: SinkClass = TwoPhaseSink
