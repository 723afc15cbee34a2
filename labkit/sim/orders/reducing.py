"""Reduce the design of a real system to an equivalent one that the search enumerates, by removing unread writes.

An engine writes more than its recovery reads, for example a temporary file that a restart drops. Such a write changes
nothing for any reader; tests compare both designs by everything that readers can have seen.
"""

from labkit.sim.orders.designs import why_not
from labkit.sim.writes import Design, Leftover, Output, Start, Write, atomic, without


def reduced(design: Design) -> Design:
    """Return a write order without the writes that its recovery never reads.

    If `designs.every` does not list the write order, a notice to the source in it is first replaced by a decision.
    """
    if why_not(design):
        design = _renamed(design)
    writes, recovery = design.writes, design.recovery
    unread = set()
    if recovery.leftover is Leftover.DROPPED:
        unread |= {Write.STAGED, Write.CLEAN}
    if design.output is Output.TRANSACTION:
        unread.add(Write.CLEAN)
    if Write.MARKER in writes and not recovery.skips and recovery.start is not Start.MARKER:
        unread.add(Write.MARKER)
    return design._replace(steps=without(design.steps, unread))


def _renamed(design: Design) -> Design:
    if Write.DECISION in design.writes or design.recovery.start is not Start.NOTICE:
        return design
    names = {Write.NOTICE: Write.DECISION}
    steps = tuple(atomic(names.get(write, write) for write in each) for each in design.steps)
    recovery = design.recovery._replace(start=Start.DECISION)
    return design._replace(steps=steps, recovery=recovery)
