"""The one judge: compares what should have come out with what an outside reader could have seen.

A simulated trace and a real run both end here; lost, duplicate, early and jumped-back effects are counted nowhere else.
An observation is a row that a reader could have seen. It is *explained* by the expected record with the same offset if
key and value are equal too. It is an *effect* unless its transaction was aborted. The properties say that there is no

- **lost** record. Rows: a record is lost that has no effect. Upserts: a later value of a key contains the earlier ones,
  so a record is lost if it comes after the one that its key's last effect shows, or if that effect is unexplained.
- **duplicate**: a record with two effects or more. An upsert that is repeated is none.
- **regression**: an explained observation before the largest offset that was already seen explained for its key.
- **aborted_read**, **precommitted_read**: an observation of a transaction that was aborted, or not yet decided.
- **fractured_read**: a record whose effect was there at a reading while another record of its batch had none yet.
- **unexpected**: an effect that no record explains.

A record that a hidden row explains is *unseen*, and not lost, if it would be lost or has no effect: the row's
transaction is still open. An offset is listed once for each anomaly, with its first case as its witness; lists are in
the order of offsets, regressions in the order in which they happened. A long history goes to
`labkit.core.judge_large`, whose verdict is the same.

This module must not read files, clocks or chance, and must not depend on hash order.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise

from labkit.core.errors import InvalidInput
from labkit.core.expected import check_planned, out_of_order
from labkit.core.judge_large import judge_large
from labkit.core.records import History, Observation, PlannedBatch, Reading, Record, Visibility
from labkit.core.verdict import ANOMALY, LISTS, TEN, Findings, Guarantee, Outcome, Verdict, Witness, conclude, satisfies

__all__ = ["ANOMALY", "Guarantee", "Outcome", "Verdict", "Witness", "judge", "satisfies"]

LARGE = 100_000
"""So many expected records or events are judged by `judge_large`, which needs a tenth of the memory."""
TOO_LARGE = "A number of a record or row is not a whole one that fits into 64 bits; count from 0."
"""What both the judge and the explanation of a verdict say of such numbers."""
_INTEGERS = struct.Struct("=qq")
"""Two numbers that both judges can hold: whole ones of 64 bits."""


def judge(expected: Iterable[Record], history: History, *, large: int = LARGE) -> Verdict:
    """Judges a history.

    Raises `InvalidInput` for expected records or planned batches out of order, and for numbers beyond 64 bits.

    From `large` expected records or events on, `judge_large` judges; it gives the same verdict.
    """
    try:
        expected, events = iter(expected), iter(history.events)
        records = list(islice(expected, large))
        if len(records) >= large:
            rest = replace(history, events=events)
            return judge_large(chain(records, expected), rest)
        first = list(islice(events, large))
        if len(first) >= large:
            rest = replace(history, events=chain(first, events))
            return judge_large(records, rest)
        return _judge_small(records, replace(history, events=first))
    except (OverflowError, struct.error) as error:
        raise InvalidInput(TOO_LARGE) from error


def _judge_small(expected: Sequence[Record], history: History) -> Verdict:
    tally = _Tally(expected, history)
    looked = False
    for event in history.events:
        looked = True
        if isinstance(event, Reading):
            tally.read(event.moment)
        else:
            tally.observe(event)
    for row in history.hidden:
        tally.hide(row)
    if looked:
        tally.lose()
    return conclude(tally.findings(looked=looked))


class _Tally:
    """What is remembered of a history. A record is named by its offset."""

    def __init__(self, expected: Sequence[Record], history: History) -> None:
        for number, (before, after) in enumerate(pairwise(expected), start=2):
            if after.offset <= before.offset:
                raise out_of_order(number, after.offset, before.offset)
        for record in expected:
            # Packed only to be refused: the judge for large histories keeps numbers of
            # 64 bits, and both must refuse the same.
            _INTEGERS.pack(record.offset, record.value)
        check_planned(history.planned_batches)
        self.keyed = history.keyed
        self.record = {record.offset: record for record in expected}
        self.effect: dict[int, Observation] = {}
        """Of each record that has one: rows: the first, upserts: the last."""
        self.effects = 0
        self.last: dict[str, Observation] = {}
        """The last effect of each key."""
        self.furthest: dict[str, Record] = {}
        """Of each key, the record with the largest offset that was seen, whether that was an effect or not."""
        self.plan: dict[int, PlannedBatch] = {}
        """The batch of each record that was planned."""
        self.absent: dict[PlannedBatch, int] = {}
        """How many records of each batch had no effect at the last reading."""
        self.fresh: list[int] = []
        """The records that have had an effect since the last reading only."""
        self.cases: dict[str, dict[int, Witness]] = {name: {} for name in LISTS}
        """Of each anomaly, the witness of each offset."""
        offsets = [record.offset for record in expected]
        for plan in history.planned_batches:
            start = bisect_left(offsets, plan.start)
            planned = offsets[start : bisect_left(offsets, plan.end)]
            self.plan |= dict.fromkeys(planned, plan)
            self.absent[plan] = len(planned)

    def observe(self, row: Observation) -> None:
        """Takes in what a reader could have seen next."""
        record = self._explanation(row)
        if record:
            furthest = self.furthest.setdefault(record.key, record)
            if record.offset > furthest.offset:
                self.furthest[record.key] = record
            elif record.offset < furthest.offset:
                jump = _case(row)._replace(from_value=furthest.value, to_value=record.value)
                self._note("regression", jump)
        if row.visibility != Visibility.COMMITTED:
            self._note(f"{row.visibility}_read", _case(row))
        # An aborted row never counts as an effect, so what follows is not about it;
        # that somebody read it is noted above.
        if row.visibility == Visibility.ABORTED:
            return
        self.effects += 1
        self.last[row.key] = row
        if not record:
            self._note("unexpected", _case(row))
        elif row.offset in self.effect and not self.keyed:
            earlier = _case(self.effect[row.offset])
            self._note("duplicate", _case(row)._replace(earlier=earlier))
        else:
            _INTEGERS.pack(row.batch, row.incarnation)
            if row.offset not in self.effect:
                self.fresh.append(row.offset)
            # Of rows the first effect counts, since a second one is a duplicate; of
            # upserts the last, since it is what stays.
            self.effect[row.offset] = row

    def read(self, moment: str) -> None:
        """Looks for parts of planned batches. What an earlier reading saw was either complete or is listed already."""
        planned = [offset for offset in self.fresh if offset in self.plan]
        self.fresh.clear()
        for offset in planned:
            self.absent[self.plan[offset]] -= 1
        for offset in planned:
            if self.absent[self.plan[offset]]:
                part = _case(self.effect[offset])._replace(moment=moment)
                self._note("fractured_read", part)

    def hide(self, row: Observation) -> None:
        """Notes a row of an undecided transaction, after all events."""
        record = self._explanation(row)
        if not record or row.visibility == Visibility.ABORTED:
            return
        if self._is_missing(record) or record.offset not in self.effect:
            self._note("unseen", _case(row))

    def lose(self) -> None:
        """Lists what is lost, after all hidden rows."""
        for record in self.record.values():
            # A record whose row is still hidden is not lost: nobody knows yet what
            # becomes of its transaction.
            if record.offset in self.cases["unseen"] or not self._is_missing(record):
                continue
            effect = self.effect.get(record.offset)
            if effect and self._shown(record.key):
                overwriting = _case(self.last[record.key])
                lost = _case(effect)._replace(overwritten_by=overwriting)
            else:
                plan = self.plan.get(record.offset)
                lost = Witness(*record, plan.batch if plan else None, None)
            self._note("lost", lost)

    def findings(self, *, looked: bool) -> Findings:
        """All that was found, in the order in which a verdict lists it."""
        cases = {
            name: witnesses if name == "regression" else dict(sorted(witnesses.items()))
            for name, witnesses in self.cases.items()
        }
        return Findings(
            offsets={name: tuple(witnesses) for name, witnesses in cases.items()},
            witnesses={name: tuple(islice(witnesses.values(), TEN)) for name, witnesses in cases.items()},
            final={key: self.last[key].value for key in sorted(self.last)},
            effects=self.effects,
            records=len(self.record),
            keyed=self.keyed,
            looked=looked,
        )

    def _explanation(self, row: Observation) -> Record | None:
        record = self.record.get(row.offset)
        return record if record == row[:3] else None

    def _shown(self, key: str) -> Record | None:
        """The record that the last effect of a key shows, if it has one and that is explained."""
        return self._explanation(self.last[key]) if key in self.last else None

    def _is_missing(self, record: Record) -> bool:
        if not self.keyed:
            return record.offset not in self.effect
        shown = self._shown(record.key)
        return shown is None or shown.offset < record.offset

    def _note(self, anomaly: str, case: Witness) -> None:
        self.cases[anomaly].setdefault(case.offset, case)


def _case(row: Observation) -> Witness:
    return Witness(*row[:5])
