"""What a reader saw of a state, the judge's verdict on it, and what is claimed of every state.

Lost, duplicate and early effects are counted by `labkit.core.judge` alone, as for real runs: a state becomes a
History here.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from labkit.core.records import History, Observation, PlannedBatch, Reading, Record, Visibility
from labkit.sim.model import Mood, Property
from labkit.sim.models.pipeline.parts import Place, Query, State, Status, Transaction, VisibleRow
from labkit.sim.models.pipeline.settings import Settings
from labkit.sim.verdicts import StateJudge


def expected(words: Sequence[str]) -> list[Record]:
    """What should come out: every word with its running count."""
    counts: Counter[str] = Counter()
    records = []
    for offset, word in enumerate(words):
        counts[word] += 1
        records.append(Record(offset, word, counts[word]))
    return records


_VISIBILITY = {
    Status.OPEN: Visibility.PRECOMMITTED,
    Status.PREPARED: Visibility.PRECOMMITTED,
    Status.COMMITTED: Visibility.PRECOMMITTED,
    Status.ABORTED: Visibility.ABORTED,
}
"""How a row was read that was readable before its transaction ended."""


def is_over(state: State) -> bool:
    """Whether the query has ended and nobody will wake up."""
    return state.query.driver.place is Place.ENDED and not state.zombie.todo


def _view(state: State) -> Hashable:
    return state.seen, state.transactions, state.query.ends


class Judge(StateJudge[State]):
    """Judges what readers of the store saw."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(expected(settings.words), _view)
        self._settings = settings

    def history(self, state: State) -> History:
        """What an outside reader could have seen, with a look at the end."""
        unfinished = [each for each in state.transactions if each.status in (Status.OPEN, Status.PREPARED)]
        hidden = [self._row(VisibleRow(offset, *_writer(each)), ()) for each in unfinished for offset in each.rows]
        return History(self._events(state), self._settings.keyed, _planned_batches(state.query), hidden)

    def _events(self, state: State) -> Iterator[Observation | Reading]:
        crashes = 0
        for row in state.seen:
            crashes += row.offset < 0
            yield (Reading(f"crash {crashes}") if row.offset < 0 else self._row(row, state.transactions))
        yield Reading("end")

    def _row(self, row: VisibleRow, transactions: Sequence[Transaction]) -> Observation:
        record = self.expected[row.offset]
        early = row.transaction >= 0
        visibility = _VISIBILITY[transactions[row.transaction].status] if early else Visibility.COMMITTED
        return Observation(*record, row.batch, row.incarnation, visibility)


def _writer(transaction: Transaction) -> tuple[int, int]:
    return transaction.handle.batch, transaction.handle.incarnation


def _planned_batches(query: Query) -> list[PlannedBatch]:
    return [PlannedBatch(batch, query.start_of(batch), end) for batch, end in enumerate(query.ends)]


SAID = {
    "no_loss": "In the end no record is lost.",
    "no_duplicate": "In the end no record has come out twice.",
    "no_regression": "No key was seen to go back.",
    "no_aborted_read": "Nobody read a row of a transaction that was dropped.",
    "no_precommitted_read": "Nobody read a row before its transaction was decided.",
    "no_fractured_read": "While everything was dead, nobody saw a part of a batch.",
}
"""What is claimed of the judge's properties; not `no_unexpected`: values come from the input, so it cannot fail."""


def claims(settings: Settings, text: Callable[[State], str]) -> Sequence[Property[State]]:
    """What the judge says of every end; rules of the protocol; that the query can end and always does."""
    judged = Judge(settings)
    properties = [judged.claim(name, sentence, is_over) for name, sentence in SAID.items()]
    properties.append(_no_orphan())
    if settings.defers and not settings.faults.rollbacks and not settings.faults.deletions:
        properties.append(_decided_first())
    if settings.faults.crashes:
        properties.append(
            Property("recovers", Mood.SOMETIMES, "A query ends after a crash.", _has_recovered, text, is_over)
        )
    return (
        *properties,
        judged.all_out("A query ends and all came out.", text, is_over),
        Property("ends", Mood.EVENTUALLY, "The query ends, without an endless error.", is_over, _stuck),
    )


def _has_recovered(state: State) -> bool:
    return any(row.offset < 0 for row in state.seen)


def _no_orphan() -> Property[State]:
    def orphan(state: State) -> Transaction | None:
        unfinished = (each for each in state.transactions if each.status in (Status.OPEN, Status.PREPARED))
        return next(unfinished, None)

    def because(state: State) -> str:
        left = orphan(state)
        assert left is not None
        return f"the transaction {left.handle} is {left.status} and nobody will end it: it hides offsets {left.rows}."

    def holds(state: State) -> bool:
        return orphan(state) is None

    return Property("no_orphan", Mood.ALWAYS, "In the end no transaction is left unfinished.", holds, because, is_over)


def _decided_first() -> Property[State]:
    def early(state: State) -> Transaction | None:
        decided = state.query.decided
        for each in state.transactions:
            if each.status is Status.COMMITTED and each.handle.batch > decided:
                return each
        return None

    def because(state: State) -> str:
        transaction = early(state)
        assert transaction is not None
        return f"the transaction {transaction.handle} was committed before commits/N, the decision."

    return Property(
        "decided_first",
        Mood.ALWAYS,
        "A transaction is committed only after its batch was decided.",
        lambda state: early(state) is None,
        because,
    )


def _stuck(state: State) -> str:
    return f"drivers have ended with an error {state.failures} times, and each new one meets it again."
