"""The nine moments of a batch: the failpoints from its plan to `commits/N`, each with a short name and plain words.

The course uses these names. They have no numbers, because the order of the moments depends on the sink: in Flink's
order a batch is *noted* before it is *committed*. The facts of a strategy (`labkit.core.strategies`) say which moments
its batches have, and in which order.
"""

from collections.abc import Sequence
from typing import NamedTuple

from labkit.core.failpoints import FailPoint, Order
from labkit.core.strategies import NOTED, PLAN, VOTES, Step, Strategy


class Moment(NamedTuple):
    """One of the nine failpoints (crash points) of a micro-batch, with a short name and the work done before it."""

    name: str
    point: FailPoint
    words: str
    is_on_disk: bool = False
    """Whether a batch that reaches this failpoint leaves something on disk there, in the checkpoint or the store."""
    is_passed: bool = True
    """Whether a micro-batch of the sink ever reaches this failpoint."""


NAMES = {
    FailPoint.AFTER_OFFSET_LOG: "plan",
    FailPoint.MID_WRITE: "write",
    FailPoint.BEFORE_PRE_COMMIT: "task done",
    FailPoint.AFTER_PRE_COMMIT: "ready",
    FailPoint.AFTER_HANDLES: "votes",
    FailPoint.MID_COMMIT: "half",
    FailPoint.BEFORE_CONFIRM: "flushed",
    FailPoint.AFTER_COMMIT: "committed",
    FailPoint.AFTER_COMMIT_LOG: "noted",
}
"""The short names of a batch's nine failpoints, in Spark's order: the sink commits before Spark writes `commits/N`."""


def spoken(name: str) -> str:
    """Return a failpoint's short name and, in brackets, its full name, such as `ready (sink.after_pre_commit)`.

    A text that is not the name of a failpoint is returned unchanged.
    """
    return next((f"{word} ({name})" for point, word in NAMES.items() if name == point), name)


_OF_ANY = (
    PLAN,
    Step(FailPoint.MID_WRITE, "the first row is written"),
    Step(FailPoint.BEFORE_PRE_COMMIT, "one task has written all its rows"),
    Step(FailPoint.AFTER_PRE_COMMIT, "all tasks are ready, nothing is final"),
    VOTES,
    Step(FailPoint.MID_COMMIT, "some participants have committed"),
    Step(FailPoint.BEFORE_CONFIRM, "the log is copied, not confirmed"),
    Step(FailPoint.AFTER_COMMIT, "all participants have committed"),
    NOTED,
)
_ANY = {step.point: step for step in _OF_ANY}
"""For each of the nine failpoints, the work done before it, in words that are true of every sink."""


def moments(strategy: Strategy | None = None, order: Order | None = None) -> Sequence[Moment]:
    """Return the nine failpoints (crash points) of a micro-batch in the order in which a sink passes them.

    Without a strategy, the order is that of `NAMES`. Some sinks do not pass every failpoint; the result contains the
    others as well, each after all failpoints that precede it in `NAMES`.
    """
    if strategy is None:
        return [_moment(_ANY[point]) for point in NAMES]
    facts = strategy.facts
    steps = {step.point: step for step in facts.steps(facts.orders[0] if order is None else order)}
    passed = list(steps)
    return [
        _moment(steps.get(point, _ANY[point]), is_passed=point in steps)
        for point in sorted(NAMES, key=lambda point: _place(point, passed))
    ]


def _moment(step: Step, *, is_passed: bool = True) -> Moment:
    return Moment(NAMES[step.point], step.point, step.words, step.is_on_disk and is_passed, is_passed)


def _place(point: FailPoint, passed: Sequence[FailPoint]) -> tuple[int, int]:
    """Return a sort key for `point`. Failpoints in `passed`, which the sink passes, keep their order.

    A failpoint that the sink does not pass comes after all failpoints in `passed` that precede it in `NAMES`.
    """
    names = list(NAMES)
    number = names.index(point)
    if point in passed:
        return passed.index(point), 0
    before = [passed.index(each) for each in names[:number] if each in passed]
    return max(before, default=-1), number + 1
