"""What a reader saw of a state, the judge's verdict on it, and what is claimed of every state.

Lost, duplicate and early effects are counted by `labkit.core.judge` alone, as for real runs: a state becomes a
History here.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from labkit.core.judge import Outcome, Verdict, judge
from labkit.core.records import Epoch, History, Observation, Reading, Record, Visibility
from labkit.sim.model import Mood, Property
from labkit.sim.models.pipeline.parts import (
    Place,
    Query,
    Seen,
    State,
    Status,
    Transaction,
)
from labkit.sim.models.pipeline.settings import Settings


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


class Judge:
    """Judges states of one configuration; the same outside view is judged once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._expected = expected(settings.words)
        self._known: dict[tuple[object, ...], Verdict] = {}

    def verdict(self, state: State) -> Verdict:
        """What the judge says if nothing more happens."""
        key = (state.store.seen, state.store.transactions, state.query.ends)
        if key not in self._known:
            self._known[key] = judge(self._expected, self.history(state))
        return self._known[key]

    def history(self, state: State) -> History:
        """What an outside reader could have seen, with a look at the end."""
        query, _, store, _, _ = state
        unfinished = [
            each
            for each in store.transactions
            if each.status in (Status.OPEN, Status.PREPARED)
        ]
        hidden = [
            self._row(Seen(offset, *_writer(each)), ())
            for each in unfinished
            for offset in each.rows
        ]
        return History(
            self._events(state), self._settings.keyed, _epochs(query), hidden
        )

    def _events(self, state: State) -> Iterator[Observation | Reading]:
        crashes = 0
        for row in state.store.seen:
            crashes += row.offset < 0
            yield (
                Reading(f"crash {crashes}")
                if row.offset < 0
                else self._row(row, state.store.transactions)
            )
        yield Reading("end")

    def _row(self, row: Seen, transactions: Sequence[Transaction]) -> Observation:
        record = self._expected[row.offset]
        early = row.transaction >= 0
        visibility = (
            _VISIBILITY[transactions[row.transaction].status]
            if early
            else Visibility.COMMITTED
        )
        return Observation(*record, row.batch, row.attempt, visibility)


def _writer(transaction: Transaction) -> tuple[int, int]:
    return transaction.handle.batch, transaction.handle.incarnation


def _epochs(query: Query) -> list[Epoch]:
    return [
        Epoch(batch, query.start_of(batch), end) for batch, end in enumerate(query.ends)
    ]


SAID = {
    "no_loss": "In the end no record is lost.",
    "no_duplicate": "In the end no record has come out twice.",
    "no_regression": "No key was seen to go back.",
    "no_aborted_read": "Nobody read a row of a transaction that was dropped.",
    "no_precommitted_read": "Nobody read a row before its transaction was decided.",
    "no_fractured_read": "While everything was dead, nobody saw a part of a batch.",
}
"""What is claimed of the judge's properties; not `no_unexpected`: values come from the input, so it cannot fail."""


def claims(
    settings: Settings, text: Callable[[State], str]
) -> Sequence[Property[State]]:
    """What the judge says of every end; rules of the protocol; that the query can end and always does."""
    judged = Judge(settings)
    found = [_judged(judged, name) for name in SAID]
    found.append(_no_orphan())
    if (
        settings.defers
        and not settings.faults.rollbacks
        and not settings.faults.deletions
    ):
        found.append(_decided_first())
    if settings.faults.crashes:
        found.append(
            Property(
                "recovers",
                Mood.SOMETIMES,
                "A query ends after a crash.",
                _has_recovered,
                text,
                is_over,
            )
        )
    return (
        *found,
        Property(
            "all_out",
            Mood.SOMETIMES,
            "A query ends and all came out.",
            _all_out(judged),
            text,
            is_over,
        ),
        Property(
            "ends",
            Mood.EVENTUALLY,
            "The query ends, without an endless error.",
            is_over,
            _stuck,
        ),
    )


def _judged(judged: Judge, name: str) -> Property[State]:
    def holds(state: State) -> bool:
        return judged.verdict(state).properties[name] is not Outcome.VIOLATED

    def because(state: State) -> str:
        return judged.verdict(state).because + "."

    return Property(name, Mood.ALWAYS, SAID[name], holds, because, is_over)


def _all_out(judged: Judge) -> Callable[[State], bool]:
    def holds(state: State) -> bool:
        return judged.verdict(state).properties["no_loss"] is Outcome.HOLDS

    return holds


def _has_recovered(state: State) -> bool:
    return any(row.offset < 0 for row in state.store.seen)


def _no_orphan() -> Property[State]:
    def orphan(state: State) -> Transaction | None:
        unfinished = (
            each
            for each in state.store.transactions
            if each.status in (Status.OPEN, Status.PREPARED)
        )
        return next(unfinished, None)

    def because(state: State) -> str:
        left = orphan(state)
        assert left is not None
        return f"the transaction {left.handle} is {left.status} and nobody will end it: it hides offsets {left.rows}."

    def holds(state: State) -> bool:
        return orphan(state) is None

    return Property(
        "no_orphan",
        Mood.ALWAYS,
        "In the end no transaction is left unfinished.",
        holds,
        because,
        is_over,
    )


def _decided_first() -> Property[State]:
    def early(state: State) -> Transaction | None:
        decided = state.query.decided
        for each in state.store.transactions:
            if each.status is Status.COMMITTED and each.handle.batch > decided:
                return each
        return None

    def because(state: State) -> str:
        found = early(state)
        assert found is not None
        return f"the transaction {found.handle} was committed before commits/N, the decision."

    return Property(
        "decided_first",
        Mood.ALWAYS,
        "A transaction is committed only after its batch was decided.",
        lambda state: early(state) is None,
        because,
    )


def _stuck(state: State) -> str:
    return f"drivers have ended with an error {state.failures} times, and each new one meets it again."
