"""From a design as somebody built it to the searched design that says the same, without the writes that nobody reads.

An engine writes more than its recovery reads: a temporary file that a restart drops, a commit's empty folder. Such a
write changes nothing for any reader; tests compare both designs by all that readers can have seen.
"""

from labkit.sim.orders.designs import why_not
from labkit.sim.writes import Design, Leftover, Output, Start, Write, atomic, without


def reduced(design: Design) -> Design:
    """The searched design, or, where none is known to say the same, the design as far as it could be reduced.

    `why_not` says of the result whether it is searched.
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
    """With a decision for a notice, where there is no other: whoever keeps it, a restart reads the same note."""
    if Write.DECISION in design.writes or design.recovery.start is not Start.NOTICE:
        return design
    names = {Write.NOTICE: Write.DECISION}
    steps = tuple(atomic(names.get(write, write) for write in each) for each in design.steps)
    recovery = design.recovery._replace(start=Start.DECISION)
    return design._replace(steps=steps, recovery=recovery)
