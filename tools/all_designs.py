"""Every design of the order of writes by two enumerators: `python tools/all_designs.py`, in a quarter of an hour.

The golden figures are those of `docs/order_of_writes.md`. The tests compare every design of at most three writes, and
one in fifty of the others; this compares all of them, and what each reader saw. Exits 1 where the two differ. The
second enumerator is `tests/support/plain_orders.py`.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from labkit.sim.orders import merging, outcomes
from labkit.sim.orders.designs import every
from labkit.sim.orders.merging import merged, searched

GOLDEN = {1: (3, 3), 2: (50, 30), 3: (481, 140), 4: (2_756, 354)}
"""Of all designs of at most so many writes: how many there are, and how many a reader can tell apart."""
ALL = 7
DESIGNS, CLASSES = 17_380, 568
"""Of all designs: how many there are, and how many a reader can tell apart."""
EXACTLY_ONCE = (2_457, 23)
"""Designs that are exactly-once in both worlds, and how many of them a reader can tell apart."""
QUIET = (445, 1)
"""Those of which no reader sees anything odd on the way either."""


def figures(found: Mapping[Any, Any]) -> dict[str, object]:
    """The golden figures, from what a search found of each design."""
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
    """Searches all designs twice, and prints what differs."""
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
    print(*(f"the two differ: {text}" for text in differing), sep="\n")
    counts = figures(results)
    for name, figure in counts.items():
        print(f"{name}: {figure}, and should be {WANTED[name]}")
    return 1 if differing or counts != WANTED else 0


if __name__ == "__main__":
    sys.exit(main())
