"""Two-phase commit: write into a transaction at once, pre-commit it in the task, commit it by handle when told.

What it demands of the store is the `Transactional` protocol: a transaction that stays pending without its writer,
that any process can finish, and whose commit is idempotent. It must not decide anything: the coordinator does.
"""

from collections.abc import Sequence
from typing import ClassVar

from labkit.core.strategies import Strategy
from labkit.sinks.contract import DeferredSink, Resolution, Vote
from labkit.stores.contract import Handle, LostTransaction, Transaction, Transactional


class TwoPhaseSink(DeferredSink[Transactional]):
    """One transaction for every task that has rows."""

    strategy: ClassVar[Strategy] = Strategy.TWO_PHASE
    capability: ClassVar[str] = "Transactional"
    bears_speculation: ClassVar[bool] = True  # every attempt has its own transaction, and one of them is committed

    def begin(self, handle: Handle) -> Transaction:
        """A transaction under a name that no other attempt uses."""
        return self.store.begin(handle)

    def commit(self, batch: int, votes: Sequence[Vote]) -> None:
        """Commits every participant, one after the other: not atomic together, only all in the end."""
        for half in self.in_halves(votes, batch):
            for vote in half:
                self.store.commit(vote.handle)

    def drop_earlier(self, handle: Handle) -> None:
        """Aborts the transactions of the same task in this driver that were begun before."""
        for other in self.store.prepared(handle.query):
            if other[:4] == handle[:4] and other.attempt < handle.attempt:
                self.store.abort(other)

    def drop_losers(self, batch: int, votes: Sequence[Vote]) -> None:
        """Aborts every transaction of the query up to this batch that has no vote: everything else has committed."""
        kept = [vote.handle for vote in votes]
        for other in self.store.prepared(self.query):
            if other.batch <= batch and other not in kept:
                self.store.abort(other)

    def resolutions(self, decided: Sequence[tuple[int, Sequence[Vote]]]) -> list[Resolution]:
        """recoverAndCommit for every decided handle; recoverAndAbort for every other one of this query.

        The others include attempts that no handle file names: they would hold locks or hide rows for ever.
        """
        kept = [vote.handle for _, votes in decided for vote in votes]
        strays = [handle for handle in self.store.prepared(self.query) if handle not in kept]
        return [self._finishing(handle) for handle in kept] + [self._dropping(handle) for handle in strays]

    def _finishing(self, handle: Handle) -> Resolution:
        return Resolution(f"committed {handle}, whose batch was decided", lambda: self._commit_or_report(handle))

    def _commit_or_report(self, handle: Handle) -> str | None:
        """A decided transaction that the store has dropped stays lost however often this fails: report it and go on.

        That is what Flink's connector does (KafkaCommitter: signalFailedWithKnownReason), where it is only a line of
        the log. Before a restart the same raises, since a query that goes on would hide it.
        """
        try:
            self.store.commit(handle)
        except LostTransaction as lost:
            return f"LOST, although its batch was decided: {lost}"
        return None

    def _dropping(self, handle: Handle) -> Resolution:
        return Resolution(f"aborted {handle}, whose batch was never decided", lambda: self.store.abort(handle))
