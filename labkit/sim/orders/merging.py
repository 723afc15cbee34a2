"""Group designs of writes into classes: no reader can distinguish two designs of one class.

Two designs are equal if readers can see exactly the same rows and crashes with both, whether a repeated step gets the
same rows or others, and if both treat a repeated row alike: an upsert replaces it, other output adds it. This is trace
equivalence at the reader, within the numbers of rows and crashes that the search allows.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from labkit.core.verdict import Guarantee
from labkit.sim.models.orders.state import World
from labkit.sim.orders.outcomes import CLAIMS, find
from labkit.sim.writes import Design, Output

WORLDS = (World.SAME, World.OTHER)
"""The assumptions (worlds) under which designs are compared: a repeated step gets the same rows, or others."""


class Verdicts(NamedTuple):
    """The results of two searches through all runs of a job that makes its writes in a certain order.

    In the first search, a step that is repeated after a crash gets the same rows; in the second, it may get others.
    Each result has the guarantee, the violated properties, and a hash of everything that readers can have seen.
    """

    replaces: bool
    """Whether a repeated row replaces the earlier one."""
    guarantees: tuple[Guarantee, ...]
    broken: tuple[tuple[str, ...], ...]
    digests: tuple[str, ...]

    @property
    def key(self) -> tuple[bool, tuple[str, ...]]:
        """Return a key that is the same for two orders of writes if no reader can distinguish them."""
        return self.replaces, self.digests


def verdicts(design: Design) -> Verdicts:
    """Search all runs of a design (an order of writes) twice, and return which properties they violate.

    In the first search, a step that is repeated after a crash gets the same rows; in the second, it may get others.
    """
    results = [find(design, world) for world in WORLDS]
    return Verdicts(
        design.output is Output.UPSERT,
        tuple(each.guarantee for each in results),
        tuple(tuple(name for name in CLAIMS if name in each.witnesses) for each in results),
        tuple(each.digest for each in results),
    )


class Class(NamedTuple):
    """A group of orders of writes that no reader can distinguish, the smallest order first."""

    verdicts: Verdicts
    designs: tuple[Design, ...]


def merged(designs: Iterable[tuple[Design, Verdicts]]) -> list[Class]:
    """Group the orders of writes that no reader can distinguish.

    The groups are sorted by the position of their first order in `designs`.
    """
    classes: dict[object, tuple[Verdicts, list[Design]]] = {}
    for design, verdicts in designs:
        classes.setdefault(verdicts.key, (verdicts, []))[1].append(design)
    return [Class(verdicts, tuple(equal)) for verdicts, equal in classes.values()]


def searched(designs: Iterable[Design]) -> Iterator[tuple[Design, Verdicts]]:
    """Yield each order of writes with its `Verdicts`, which are computed when the caller asks for them."""
    return ((design, verdicts(design)) for design in designs)
