"""The one judge: it compares the records that should have come out with what an outside reader could have seen.

Simulated traces and real runs both end here, and no other code counts lost, duplicate, early or regressed effects. An
*observation* is a row that a reader could have seen. An expected record *explains* it if offset, key and value agree.
An observation is an *effect* unless its transaction was aborted. Each property forbids one anomaly:

- **lost**: if rows are appended, a record without an effect. With upserts, a later value of a key contains the earlier
  ones, so a record is lost if it is later than the record that explains its key's last effect, or if no record does.
- **duplicate**: a record with two or more effects. Repeating an upsert is not a duplicate.
- **regression**: an explained observation whose offset is smaller than the largest one seen before for its key.
- **aborted_read**, **precommitted_read**: an observation whose transaction was aborted, or was not yet decided.
- **fractured_read**: a record whose effect a reading shows, while another record of its batch has no effect there.
- **unexpected**: an effect that no record explains.

A record is *unseen* rather than lost if a hidden row explains it, because that row's transaction is still open.
Each list contains an offset once, with its first case as witness, sorted by offset; regressions keep the order
in which they happened. Long histories go to `labkit.core.judge_large`, which returns the same verdict. Neither judge
depends on hash order.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise

from labkit.core.expected import check_planned, out_of_order, refusing_large_numbers
from labkit.core.judge_large import judge_large
from labkit.core.records import History, Observation, PlannedBatch, Reading, Record, Visibility
from labkit.core.verdict import ANOMALY, LISTS, TEN, Findings, Guarantee, Outcome, Verdict, Witness, conclude, satisfies

__all__ = ["ANOMALY", "Guarantee", "Outcome", "Verdict", "Witness", "judge", "satisfies"]

LARGE = 100_000
"""From this number of expected records or events on, `judge_large` takes over; it needs a tenth of the memory."""
_INTEGERS = struct.Struct("=qq")
"""Packs two integers, and raises an error for numbers beyond 64 bits, which `judge_large` cannot hold."""


def judge(expected: Iterable[Record], history: History, *, large: int = LARGE) -> Verdict:
    """Compare the expected records with the rows that a reader saw; return a verdict with all anomalies.

    If there are `large` or more expected records or events, `judge_large` computes the same verdict in less memory.
    Raises `InvalidInput` if expected records or planned batches are not sorted, or if a number does not fit into 64
    bits.
    """
    with refusing_large_numbers():
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
    """The judge's state while it processes a history: the rows of each record so far, and the anomalies so far."""

    def __init__(self, expected: Sequence[Record], history: History) -> None:
        for number, (before, after) in enumerate(pairwise(expected), start=2):
            if after.offset <= before.offset:
                raise out_of_order(number, after.offset, before.offset)
        for record in expected:
            # Packed only as a check: the judge for large histories keeps 64-bit numbers, and both judges must refuse
            # the same input.
            _INTEGERS.pack(record.offset, record.value)
        check_planned(history.planned_batches)
        self.keyed = history.keyed
        self.record = {record.offset: record for record in expected}
        self.effect: dict[int, Observation] = {}
        """For each record, the row that counts: the first one, or with upserts the last. Aborted rows do not count."""
        self.effects = 0
        self.last: dict[str, Observation] = {}
        """For each key, the last observed row that is not aborted."""
        self.furthest: dict[str, Record] = {}
        """For each key, the record with the largest offset observed so far, even if its transaction was aborted."""
        self.plan: dict[int, PlannedBatch] = {}
        """The planned batch of each planned record."""
        self.absent: dict[PlannedBatch, int] = {}
        """For each planned batch, the number of its records that readers had not seen at the last reading."""
        self.fresh: list[int] = []
        """The offsets of the records that appeared after the last reading."""
        self.cases: dict[str, dict[int, Witness]] = {name: {} for name in LISTS}
        """For each anomaly, the witness of each offset."""
        offsets = [record.offset for record in expected]
        for plan in history.planned_batches:
            start = bisect_left(offsets, plan.start)
            planned = offsets[start : bisect_left(offsets, plan.end)]
            self.plan |= dict.fromkeys(planned, plan)
            self.absent[plan] = len(planned)

    def observe(self, row: Observation) -> None:
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
        # An aborted row never counts as an effect, so the following checks skip it; the read of it is recorded above.
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
            # For rows the first effect counts, because a second one is a duplicate. For upserts the last one counts,
            # because it remains.
            self.effect[row.offset] = row

    def read(self, moment: str) -> None:
        """Process a reading of the whole store, and note each planned batch that is only partly visible.

        `moment` names this reading, such as `crash 1`. Batches without new rows are not checked again.
        """
        planned = [offset for offset in self.fresh if offset in self.plan]
        self.fresh.clear()
        for offset in planned:
            self.absent[self.plan[offset]] -= 1
        for offset in planned:
            if self.absent[self.plan[offset]]:
                part = _case(self.effect[offset])._replace(moment=moment)
                self._note("fractured_read", part)

    def hide(self, row: Observation) -> None:
        """Note the record of a hidden row as unseen: the transaction of `row` is still open at the end.

        If another row of the record took effect, the record is unseen only if an older or unexplained value replaced
        that row. Call this after all events.
        """
        record = self._explanation(row)
        if not record or row.visibility == Visibility.ABORTED:
            return
        if self._is_missing(record) or record.offset not in self.effect:
            self._note("unseen", _case(row))

    def lose(self) -> None:
        """Note the lost records. Call this last, after all events and hidden rows."""
        for record in self.record.values():
            # A record with a hidden row is not lost, because its transaction is not decided yet.
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
        """Return all anomalies, and the last value of each key.

        `looked` says whether the history has a row or a reading. If not, nothing is known about the run.
        """
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
