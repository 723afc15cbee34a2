"""Search all orders of writes, and write the tables of `docs/order_of_writes.md`; `--check` only compares."""

import sys
from pathlib import Path
from textwrap import wrap

from build_sinks import keep_in_step, with_parts
from seen_orders import seen

from labkit.core.verdict import Guarantee
from labkit.core.words import markdown_table
from labkit.sim.models.orders.state import Fault, World
from labkit.sim.orders.designs import RULES, why_not
from labkit.sim.orders.named import NAMED
from labkit.sim.orders.outcomes import find
from labkit.sim.orders.table import BLOCKS, COLUMNS, ROWS, under
from labkit.sim.writes import Design
from labkit.teach.orders import FAULTS, GRANTED, Order, orders

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "order_of_writes.md"
STALE = f"{PAGE.relative_to(ROOT)} is out of step: run python tools/build_orders.py"
WHO = "written by tools/build_orders.py"
END = "<!-- end -->"


def grid() -> str:
    """Return the Markdown of the table of orders, one table for each block."""
    squares = orders().grid.squares
    lines = []
    for block in BLOCKS:
        lines += [f"**{block.capitalize()}**", ""]
        lines += [f"| | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
        for row in ROWS:
            guarantees = [squares[block, row, each].guarantee for each in COLUMNS]
            cells = [each if each in list(Guarantee) else "-" for each in guarantees]
            lines.append(f"| {row} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def kills() -> str:
    """Return a Markdown table of the designs that are ever broken, each with the crash that shows it."""
    rows = [
        (f"`{order.design}`", order.guarantee, order.killing)
        for order in orders().squares.values()
        if order and order.is_ever_broken
    ]
    return markdown_table([("design", "guarantee", "the crash that shows its weakness"), *rows]) + "\n"


def built() -> str:
    """Return a Markdown table of known engines' designs, with verdicts, what a reader may see, and source."""
    same, others = "a repeated step has the same rows", "it may have others"
    rows = [("name", "who", "design", same, others, "seen meanwhile", "source")]
    for name, each in NAMED.items():
        order = Order(each.design, each.fault)
        fault = f"The verdicts include the fault `{each.fault}`." if each.fault in FAULTS else ""
        who = " ".join(filter(None, (f"{each.who}.", each.limit, fault)))
        verdicts = order.guarantee, order.guarantee_with_other_rows, ", ".join(order.meanwhile) or "-"
        rows.append((f"`{name}`", who, f"`{each.design}`", *verdicts, each.source))
    return "\n".join([*wrap(GRANTED, 120), "", markdown_table(rows)]) + "\n"


def rules() -> str:
    """Return a list of the rules that a design must satisfy to be searched."""
    return "".join(f"- {rule}\n" for rule in RULES)


def faults() -> str:
    """Return a Markdown table of the squares that are exactly-once, with the guarantee of each under other faults."""
    rows = [
        (f"`{order.design}`", *(_left(under(order.design, fault), fault) for fault in FAULTS))
        for order in orders().squares.values()
        if order and order.is_exactly_once and not why_not(order.design)
    ]
    return markdown_table([("design", *FAULTS), *rows]) + "\n"


def _left(design: Design | None, fault: Fault) -> str:
    return find(design, World.OTHER, fault=fault.value).guarantee if design else "-"


PARTS = {"grid": grid, "faults": faults, "rules": rules, "built": built, "seen": seen, "kills": kills}


def page(text: str) -> str:
    """Return the text of the page with its tables replaced by new ones."""
    return with_parts(text, PARTS, WHO, END)


if __name__ == "__main__":
    sys.exit(keep_in_step(PAGE, page, STALE, __doc__))
