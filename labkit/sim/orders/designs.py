"""Enumerate every sensible design: which writes a step makes, in which order, which atomically, what recovery reads.

`RULES` and `labkit.sim.writes.nonsense` define a sensible design. They exclude only designs that make no sense, or that
no reader can distinguish from another design; tests show that for each rule.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations

from labkit.sim.writes import (
    READS,
    AtomicSet,
    Design,
    Leftover,
    Output,
    Recovery,
    Start,
    Write,
    atomic,
    contradiction,
    nonsense,
    unwritten,
    without,
    writes_of,
)

RULES = (
    "Every step makes its output visible.",
    "A step that stages its output does so before the output becomes visible.",
    "A step removes staged output only after it has copied the rows to where readers look.",
    "A step that commits a transaction removes nothing, because the commit leaves nothing staged.",
    "Rows that are written one by one are atomic with no other write; the rows of a transaction may be.",
    "A step has at most one set of several writes that are atomic together.",
    "A plan, if there is one, comes first and alone, because a plan that is written later has no use.",
    "Recovery reads a step's decision, state, marker and staged output, because unread they would change nothing.",
    "A design has no notice, because a notice that its receiver stores durably has the same effect as a decision.",
    "Recovery that undoes output starts from a record written after the output, from a plan, or from the beginning.",
    "Recovery that undoes output neither skips nor finishes output.",
)
"""The rules, in words, that every enumerated design follows."""

_CHOSEN = (Write.PLAN, Write.STATE, Write.STAGED, Write.MARKER, Write.DECISION, Write.CLEAN)
"""The writes that a step may make or leave out."""

RECOVERIES = tuple(
    Recovery(start, newest, skips, leftover, undoes)
    for undoes in (False, True)
    for start in Start
    for newest in (False, True)
    for skips in (False, True)
    for leftover in Leftover
)
"""Every combination of recovery rules, even if a design does not write the records that they read."""


def every(most: int = 7) -> Iterator[Design]:
    """Yield every sensible order of at most `most` durable writes, with each sensible recovery, in a fixed order.

    `why_not` says which designs are not sensible. Designs with few writes come first.
    """
    for size in range(most):
        for chosen in combinations(_CHOSEN, size):
            writes = (*chosen, Write.VISIBLE)
            for steps in _orders(writes):
                yield from _designs(steps)


def _orders(writes: tuple[Write, ...]) -> Iterator[tuple[AtomicSet, ...]]:
    ordered = [write for write in Write if write in writes]
    yield from _permutations(tuple((write,) for write in ordered))
    for size in range(2, len(ordered) + 1):
        for joined in combinations(ordered, size):
            rest = [(write,) for write in ordered if write not in joined]
            yield from _permutations((joined, *rest))


def _permutations(sets: tuple[AtomicSet, ...]) -> Iterator[tuple[AtomicSet, ...]]:
    """Yield every order of these sets of writes; a set that contains only a plan comes first."""
    if not sets:
        yield ()
        return
    for first in sets:
        rest = tuple(each for each in sets if each != first)
        if (Write.PLAN,) in rest:
            continue
        for order in _permutations(rest):
            yield (first, *order)


def _designs(steps: tuple[AtomicSet, ...]) -> Iterator[Design]:
    recoveries = _recoveries(writes_of(steps))
    for output in Output:
        if not _why_not_written(Design(steps, output, Recovery())):
            designs = (Design(steps, output, recovery) for recovery in recoveries)
            yield from (each for each in designs if not undone_in_vain(each))


@cache
def _recoveries(writes: frozenset[Write]) -> tuple[Recovery, ...]:
    return tuple(
        recovery
        for recovery in RECOVERIES
        if not (unwritten(writes, recovery) or unread(writes, recovery) or contradiction(recovery))
    )


def why_not(design: Design) -> str:
    """Return a clause that says why the function `every` leaves out this order of writes; empty if it is sensible."""
    reason = nonsense(design) or _why_not_written(design)
    return reason or unread(design.writes, design.recovery) or undone_in_vain(design)


def _why_not_written(design: Design) -> str:
    writes = design.writes
    if reason := nonsense(design._replace(recovery=Recovery())):
        return reason
    if Write.PLAN in writes and design.steps[0] != (Write.PLAN,):
        return "the plan does not come first and alone"
    if sum(len(each) > 1 for each in design.steps) > 1:
        return "two sets of writes are atomic"
    if Write.NOTICE in writes:
        return "a notice stands for a decision"
    if Write.CLEAN in writes and design.output is Output.TRANSACTION:
        return "a commit leaves nothing to remove"
    return ""


def undone_in_vain(design: Design) -> str:
    """Return a clause that says why recovery never finds output that it could undo.

    The clause is empty if recovery can find such output, or does not undo output at all.
    """
    start, record = design.recovery.start, READS.get(design.recovery.start)
    if not design.recovery.undoes or record is None or start is Start.PLAN:
        return ""
    if design.place(Write.VISIBLE) < design.place(record):
        return ""
    return f"there is never output to undo, because visible does not come before {record}"


def unread(writes: frozenset[Write], recovery: Recovery) -> str:
    """Return a clause that names a useless recovery rule, or a write that recovery never reads; empty if none."""
    start, newest, skips, leftover, _ = recovery
    from_marker, staged = start is Start.MARKER, Write.STAGED in writes
    reasons = {
        "nobody reads the decision": Write.DECISION in writes and start is not Start.DECISION,
        "nobody reads the state": Write.STATE in writes and start is Start.BEGINNING and not newest,
        "the newest state is read already": newest and start is Start.STATE,
        "nobody reads the marker": Write.MARKER in writes and not (skips or from_marker),
        "a restart from the marker never meets a step that is marked": skips and from_marker and not staged,
        "nobody reads what is staged": staged and leftover is Leftover.DROPPED,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def reduced(design: Design) -> Design:
    """Return an order of writes without the writes that its recovery never reads.

    An engine writes more than its recovery reads, for example a temporary file that a restart drops. Tests check that
    leaving out such a write changes nothing for readers. The result can be compared with the orders that `every`
    yields. These contain no notice (a message to the source), so if recovery starts from a notice, the function first
    replaces the notice by a decision, which has the same effect.
    """
    if why_not(design):
        design = _renamed(design)
    writes, recovery = design.writes, design.recovery
    unused = set()
    if recovery.leftover is Leftover.DROPPED:
        unused |= {Write.STAGED, Write.CLEAN}
    if design.output is Output.TRANSACTION:
        unused.add(Write.CLEAN)
    if Write.MARKER in writes and not recovery.skips and recovery.start is not Start.MARKER:
        unused.add(Write.MARKER)
    return design._replace(steps=without(design.steps, unused))


def _renamed(design: Design) -> Design:
    if Write.DECISION in design.writes or design.recovery.start is not Start.NOTICE:
        return design
    names = {Write.NOTICE: Write.DECISION}
    steps = tuple(atomic(names.get(write, write) for write in each) for each in design.steps)
    recovery = design.recovery._replace(start=Start.DECISION)
    return design._replace(steps=steps, recovery=recovery)
