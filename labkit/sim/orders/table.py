"""The cells of two tables: orders of writes under crashes and, for the exactly-once ones, what other faults do to them.

The first table has a block for each kind of output, a row for each order of output and decision, and columns for
additional writes.

In each design the engine plans first and records its decision. Recovery starts from that record and reads everything
else that is written. State is left out, because versioned state changes nothing that a reader sees.
"""

from collections.abc import Mapping
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.sim.models.orders.state import Fault
from labkit.sim.orders.named import NAMED
from labkit.sim.writes import READS, Design, Leftover, Output, Start, Write, atomic, without

BLOCKS: Mapping[str, Output] = {
    "rows are added one by one": Output.APPEND,
    "rows replace those of their key, one by one": Output.UPSERT,
    "rows of a step come in one transaction": Output.TRANSACTION,
}

ROWS: Mapping[str, str] = {
    "output, then decision": "{output} > decision",
    "decision, then output": "decision > {output}",
    "output with decision": "{output}+decision",
}
"""The rows of the table: name and order of writes. `{output}` stands for the output with the column's writes."""


class Column(NamedTuple):
    """A column of the table of write orders: the additional writes that a job makes.

    `before`, `joined` and `behind` are the writes before, together with, and after the visible output. `recovery` says
    how a restart uses them.
    """

    before: str = ""
    joined: str = ""
    behind: str = ""
    recovery: str = ""
    first: str = ""
    """Writes that come before both the output and the decision."""


COLUMNS: Mapping[str, Column] = {
    "nothing else": Column(),
    "marker before output": Column(before="marker > ", recovery=", skips marked"),
    "marker after output": Column(behind=" > marker", recovery=", skips marked"),
    "marker with output": Column(joined="+marker", recovery=", skips marked"),
    "staged, dropped": Column(first="staged > "),
    "staged, finished": Column(first="staged > ", recovery=", finishes {leftover}"),
    "undone": Column(recovery=", undoes undecided"),
}


def square(block: str, row: str, column: str) -> Design | None:
    """Return the order of writes in the cell (block, row, column) of the table; None if no store can implement it."""
    output, added, form = BLOCKS[block], COLUMNS[column], ROWS[row]
    shown = f"{Write.VISIBLE}{added.joined}"
    if "+decision" in form:
        order = f"{added.before}{form.format(output=shown)}{added.behind}"
    else:
        order = form.format(output=f"{added.before}{shown}{added.behind}")
    leftover = "staged" if row == "output, then decision" else "decided"
    recovery = "from decision" + added.recovery.format(leftover=leftover)
    try:
        return Design.parse(f"plan > {added.first}{order}; {output}; {recovery}")
    except InvalidInput:
        return None


def without_plan(design: Design) -> Design:
    """Return the order of writes without `plan`, the record of a step's input that is written before the step runs."""
    return design._replace(steps=without(design.steps, (Write.PLAN,)))


def every() -> dict[tuple[str, str, str], Design | None]:
    """Return the cells (block, row, column) of the table, each with its order of writes or None (see `square`)."""
    return {(block, row, column): square(block, row, column) for block in BLOCKS for row in ROWS for column in COLUMNS}


def under(design: Design, fault: Fault) -> Design | None:
    """Return an order of writes adapted to a fault; None if the fault cannot happen to this order.

    For example, the fault `EXPIRY` (a prepared transaction expires) cannot happen if the order prepares no transaction.
    With the fault `LEASE`, the source lends its rows for a limited time, and only the source remembers which rows are
    done. Therefore the job records neither the input of a step (`plan`) nor that the step is done (`decision`); instead
    of the decision it sends the source a message (`notice`).
    """
    if fault is Fault.EXPIRY and (Write.STAGED not in design.writes or design.output is not Output.TRANSACTION):
        return None
    if fault is not Fault.LEASE:
        return design
    names = {Write.DECISION: Write.NOTICE}
    steps = tuple(atomic(names.get(write, write) for write in each) for each in without_plan(design).steps)
    return design._replace(steps=steps, recovery=design.recovery._replace(start=Start.NOTICE))


def square_of(design: Design) -> tuple[str, str, str] | None:
    """Return the cell (block, row, column) of the table of orders that matches a real system's design, or None.

    In the table, `decision` is the record from which a restart resumes. No cell matches the design in these cases:

    - A restart resumes from no record, or from a plan.
    - A restart resumes from a decision and skips the steps that the store's marker contains, but the job writes neither
      a plan nor its state, so nothing records which input a marked step took.

    Two kinds of writes are ignored, because they change nothing for readers: the operator's state; and, if the order
    has a marker, staged output that a restart drops.
    """
    start = design.recovery.start
    note = None if start is Start.PLAN else READS.get(start)
    planned = {Write.PLAN, Write.STATE} & design.writes
    if note is None or (note is Write.DECISION and design.recovery.skips and not planned):
        return None
    block = next(name for name, output in BLOCKS.items() if output is design.output)
    shown, noted = design.place(Write.VISIBLE), design.place(note)
    row = list(ROWS)[0 if shown < noted else 1 if shown > noted else 2]
    return block, row, _column(design)


def _column(design: Design) -> str:
    if design.recovery.undoes:
        return "undone"
    if design.recovery.leftover is not Leftover.DROPPED:
        return "staged, finished"
    if design.recovery.skips:
        marked = design.place(Write.MARKER) - design.place(Write.VISIBLE)
        if marked < 0:
            return "marker before output"
        return "marker after output" if marked else "marker with output"
    return "staged, dropped" if Write.STAGED in design.writes else "nothing else"


def built() -> dict[tuple[str, str, str], list[str]]:
    """Return a dict from each cell (block, row, column) of the table of orders to real systems that have its design.

    The systems are given by their short names. A system is left out if the verdict on it assumes a fault other than a
    crash, such as the expiry of a lease.
    """
    names: dict[tuple[str, str, str], list[str]] = {}
    for name, each in NAMED.items():
        if each.fault is Fault.NONE and (place := square_of(each.design)) is not None:
            names.setdefault(place, []).append(name)
    return names
