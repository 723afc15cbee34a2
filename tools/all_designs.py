"""Compares two searches of all designs (orders of writes): `python tools/all_designs.py`, about 20 minutes.

The expected counts are those in `docs/order_of_writes.md`. The tests compare every design of at most three writes, and
one in fifty of the others; this script compares all, and what each reader saw. It exits 1 if the searches differ, or if
a count is not as expected. The second search is `tests/support/plain_orders.py`.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from labkit.sim.orders import merging, outcomes
from labkit.sim.orders.designs import every
from labkit.sim.orders.merging import merged, searched

GOLDEN = {1: (6, 6), 2: (75, 46), 3: (588, 182), 4: (2_915, 406)}
"""By the largest number of writes: the number of designs, and the number of classes that a reader can tell apart."""
ALL = 7
DESIGNS, CLASSES = 17_539, 620
"""The number of all designs, and of the classes that a reader can tell apart."""
EXACTLY_ONCE = (2_543, 35)
"""The number of designs that are exactly-once even if a repeated step gets other rows, and of their classes."""
QUIET = (445, 1)
"""The number of exactly-once designs that also show no reader anything wrong on the way, and of their classes."""


def figures(found: Mapping[Any, Any]) -> dict[str, object]:
    """Return the counts to compare with `WANTED`, by title; `found` maps each design to the result of its search."""
    classes = merged(found.items())
    once = [each for each in classes if set(each.verdicts.guarantees) == {"exactly-once"}]
    quiet = [each for each in once if not any(each.verdicts.broken)]
    small = {
        most: (len(list(every(most))), len(merged((each, found[each]) for each in every(most)))) for most in GOLDEN
    }
    return {
        "designs of few writes": small,
        "all designs": (len(found), len(classes)),
        "exactly-once": (_designs(once), len(once)),
        "with nothing odd on the way": (_designs(quiet), len(quiet)),
    }


WANTED = {
    "designs of few writes": GOLDEN,
    "all designs": (DESIGNS, CLASSES),
    "exactly-once": EXACTLY_ONCE,
    "with nothing odd on the way": QUIET,
}


def _designs(classes: list[merging.Class]) -> int:
    return sum(len(each.designs) for each in classes)


def main() -> int:
    """Search all designs twice and print the differences; return 1 if there are any, otherwise 0."""
    sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
    plain = import_module("plain_orders")
    results = dict(searched(every(ALL)))
    once = {str(design): each.digests for design, each in results.items()}
    print(f"{len(once):,} designs were searched; now the plain enumerator", flush=True)
    again = {
        text: tuple(outcomes.digest(plain.histories(text, same_rows=same)) for same in (True, False))
        for text in plain.designs(ALL)
    }
    differing = [text for text in {**once, **again} if once.get(text) != again.get(text)]
    print(*(f"the two searches differ: {text}" for text in differing), sep="\n")
    counts = figures(results)
    for name, figure in counts.items():
        print(f"{name}: {figure}, expected {WANTED[name]}")
    return 1 if differing or counts != WANTED else 0


if __name__ == "__main__":
    sys.exit(main())
