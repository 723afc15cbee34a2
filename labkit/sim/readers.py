"""Explain the verdict on a simulated run, and measure for how many steps an outside reader saw wrong values.

A model has no clock, so the unit of time is a step of the run. A row becomes visible at the step after which the
model's history contains it, and is written at the step after which a transaction hides it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from labkit.core.explanation import Explanation, explain
from labkit.core.exposure import Exposure, Sight, Span, exposure, verdict_notes
from labkit.core.records import History, Observation, Record, Visibility
from labkit.sim.blueprint import Blueprint
from labkit.sim.walk import Replay

STEPS = "steps"


class ReaderAccount(NamedTuple):
    """Details of a simulated run's verdict: its explanation, and for how many steps readers saw wrong values."""

    explanation: Explanation
    exposure: Exposure

    def lines(self) -> list[tuple[str, str]]:
        """Return the run's explanation and its exposure for a text page, as pairs of a heading and a sentence.

        The exposure says for how many steps readers saw wrong values.
        """
        return verdict_notes(self.explanation, self.exposure)

    def to_json(self) -> dict[str, object]:
        """Return the explanation and the exposure (how long readers saw wrong values) as a dictionary for JSON."""
        return {"explanation": self.explanation.to_json(), "exposure": self.exposure.to_json()}


def reader_account(blueprint: Blueprint[Any, Any], walk: Replay) -> ReaderAccount | None:
    """Explain the verdict on a simulated run, and count the steps for which readers saw wrong values.

    Returns None if the simulator has no reader who observes the output from outside.
    """
    if blueprint.history is None or blueprint.expected is None:
        return None
    expected = blueprint.expected(walk)
    steps = _Steps()
    for length in range(len(walk.states)):
        steps.look(blueprint.history(walk.beginning(length)), length)
    last = blueprint.history(walk)
    events = list(last.events)
    explanation = explain(expected, replace(last, events=events))
    if explanation.row is not None:
        nth = [_bare(each) for each in events[: explanation.events]].count(_bare(explanation.row))
        explanation = replace(explanation, at=f"at step {steps.appeared[_bare(explanation.row)][nth - 1]}")
    rows = [each for each in events if isinstance(each, Observation)]
    is_timed = blueprint.tells_when_written(walk)
    return ReaderAccount(explanation, steps.exposure(expected, rows, last, is_timed=is_timed))


def _bare(event: object) -> object:
    # Without the visibility, which changes when the row's transaction ends.
    return event[:5] if isinstance(event, Observation) else event


class _Steps:
    """Collects for each row the steps after which it appeared, was first hidden in a transaction, or was aborted."""

    def __init__(self) -> None:
        self.appeared: defaultdict[object, list[int]] = defaultdict(list)
        self.gone: defaultdict[object, list[int]] = defaultdict(list)
        self.written: dict[int, Span] = {}
        self.step = 0

    def look(self, history: History, step: int) -> None:
        """Record which rows are new after step number `step`. Call this after each step of the run, first to last."""
        self.step = step
        rows = [each for each in history.events if isinstance(each, Observation)]
        aborted = [each for each in rows if each.visibility == Visibility.ABORTED]
        for steps, seen in ((self.appeared, rows), (self.gone, aborted)):
            for row, count in Counter(map(_bare, seen)).items():
                steps[row] += [step] * (count - len(steps[row]))
        for hidden in history.hidden:
            self.written.setdefault(hidden.offset, Span.exactly(step))

    def exposure(
        self, expected: Sequence[Record], rows: Sequence[Observation], last: History, *, is_timed: bool
    ) -> Exposure:
        """Return for how many steps readers of each key saw wrong values, and how long correct rows were hidden.

        `expected` has the correct records, `last` is the history at the end of the run, and `rows` are the rows in
        `last`. `is_timed` says that rows were hidden only in transactions of the store. If it is False, rows may also
        have been hidden elsewhere, such as in a write-ahead log; then the result says that it is unknown for how long.
        """
        sights = sorted(self._sights(rows), key=lambda each: (each[0], each[1].goes))
        return exposure(
            expected,
            [each if is_timed else each._replace(ready=None) for _, each in sights],
            Span.exactly(self.step),
            keyed=last.keyed,
            ready=self.written,
            held=last.hidden,
            unit=STEPS,
        )

    def _sights(self, rows: Sequence[Observation]) -> Iterator[tuple[int, Sight]]:
        nth: Counter[object] = Counter()
        for row in rows:
            bare = _bare(row)
            step = self.appeared[bare][nth[bare]]
            at = Span.exactly(step)
            yield step, Sight(row, at, at)
            if row.visibility == Visibility.ABORTED:
                gone = self.gone[bare][nth[bare]]
                yield gone, Sight(row, Span.exactly(gone), goes=True)
            nth[bare] += 1
