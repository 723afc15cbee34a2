"""Designs that no reader can tell apart are one: the searched designs in classes.

Two designs are equal if, in each world, readers can have seen exactly the same, value by value and crash by crash, and
if a repeated row means the same to both: an upsert replaces, other output adds. That is trace equivalence at the
reader, bounded by the rows and the crashes of the search.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from labkit.core.verdict import Guarantee
from labkit.sim.models.orders.state import World
from labkit.sim.orders.outcomes import CLAIMS, Found, find
from labkit.sim.writes import Design, Output

WORLDS = (World.SAME, World.OTHER)
"""The worlds in which designs are compared: a step that runs again gets the same rows, or others."""


class Verdicts(NamedTuple):
    """What is left of a design in each world, short enough to keep of every design."""

    replaces: bool
    """Whether a repeated row replaces the earlier one."""
    guarantees: tuple[Guarantee, ...]
    broken: tuple[tuple[str, ...], ...]
    digests: tuple[str, ...]

    @property
    def key(self) -> tuple[bool, tuple[str, ...]]:
        """What two equal designs have in common."""
        return self.replaces, self.digests


def verdicts(design: Design) -> Verdicts:
    """Searches a design in both worlds."""
    return concluded(design, [find(design, world) for world in WORLDS])


def concluded(design: Design, found: Iterable[Found]) -> Verdicts:
    """The verdicts of a design, from what was found in each world."""
    found = list(found)
    return Verdicts(
        design.output is Output.UPSERT,
        tuple(each.guarantee for each in found),
        tuple(tuple(name for name in CLAIMS if name in each.witnesses) for each in found),
        tuple(each.digest for each in found),
    )


class Class(NamedTuple):
    """Designs that no reader can tell apart, the smallest first."""

    verdicts: Verdicts
    designs: tuple[Design, ...]


def merged(designs: Iterable[tuple[Design, Verdicts]]) -> list[Class]:
    """The classes of designs, in the order in which their first design comes."""
    classes: dict[object, tuple[Verdicts, list[Design]]] = {}
    for design, found in designs:
        classes.setdefault(found.key, (found, []))[1].append(design)
    return [Class(found, tuple(equal)) for found, equal in classes.values()]


def searched(designs: Iterable[Design]) -> Iterator[tuple[Design, Verdicts]]:
    """Every design with its verdicts, one after the other."""
    return ((design, verdicts(design)) for design in designs)
