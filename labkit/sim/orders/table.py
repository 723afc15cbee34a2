"""The table of orders: which design stands in which square. Blocks are kinds of output, rows say what comes first.

The engine plans first and notes its decision; recovery starts from that note and reads everything else that is written.
State is left out: kept by version it changes nothing that a reader sees. This module must not judge a square.
"""

from collections.abc import Mapping
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.sim.orders.writes import Design, Output, Write, without

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
"""What comes first; `{output}` is what the column makes of the output."""


class Column(NamedTuple):
    """What a sink adds to the output: writes around it, and what recovery does with them."""

    before: str = ""
    joined: str = ""
    behind: str = ""
    recovery: str = ""
    first: str = ""
    """Writes that come before output and decision."""


COLUMNS: Mapping[str, Column] = {
    "nothing else": Column(),
    "marker before output": Column(before="marker > ", recovery=", skips marked"),
    "marker behind output": Column(behind=" > marker", recovery=", skips marked"),
    "marker with output": Column(joined="+marker", recovery=", skips marked"),
    "staged, dropped": Column(first="staged > "),
    "staged, finished": Column(first="staged > ", recovery=", finishes {leftover}"),
}


def square(block: str, row: str, column: str) -> Design | None:
    """The design of a square; None where no store can do that."""
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
    """The same design whose steps have no plan."""
    return design._replace(steps=without(design.steps, (Write.PLAN,)))


def every() -> dict[tuple[str, str, str], Design | None]:
    """All squares, block by block, row by row."""
    return {
        (block, row, column): square(block, row, column)
        for block in BLOCKS
        for row in ROWS
        for column in COLUMNS
    }
