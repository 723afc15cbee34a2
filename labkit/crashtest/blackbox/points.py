"""From the effects of a run without a crash to the places at which the pipeline is to be killed: before each of them.

What is after one effect is before the next, and after the last is the command's own end. This module must not run
anything, and must not leave a place out without saying so.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.syscalls.calls import CallKind

QUICK_POINTS, POINTS = 12, 60
"""How many places are tried, at most."""
QUICK_PAIRS, PAIRS = 3, 8
SEED = 7

EXIT = "exit"
"""The name of the command's own end; of one that never ends by itself, of the moment when all is done."""

THEN = " then "
"""Between the names of two places: a crash, and a second one during its recovery."""

_DECIDING = frozenset({CallKind.RENAME, CallKind.LINK, CallKind.UNLINK})


class Point(NamedTuple):
    """A place before an effect, or the end."""

    name: str
    number: int
    """From 1, in the order of the run without a crash."""
    after: str = ""
    """The effect just before it; empty: it is the first."""

    def __str__(self) -> str:
        if self.name == EXIT:
            return f"at the end of the command, after {self.after or 'nothing'}"
        return f"before {self.name}"


class Plan(NamedTuple):
    """The places of one test: those chosen, in their order, and how many there are in all."""

    chosen: tuple[Point, ...]
    found: int


def points(effects: Sequence[Effect]) -> list[Point]:
    """Every place, in order. The end is always one."""
    found: list[Point] = []
    after = ""
    for effect in effects:
        if effect.kind is not CallKind.EXIT:
            found.append(Point(effect.name, len(found) + 1, after))
            after = effect.name
    return [*found, Point(EXIT, len(found) + 1, after)]


def choose(effects: Sequence[Effect], shown: Iterable[str], most: int) -> Plan:
    """At most so many places. `shown`: names of the effects by which rows were seen to change.

    First those just behind a change and the end; then those before what makes something visible at once, as a rename;
    then the others. Of many that are alike the last, the first and the second come first.
    """
    found = points(effects)
    kinds: dict[str, CallKind] = {each.name: each.kind for each in effects}
    alike = {each.name: each.family for each in effects}
    groups: Mapping[str, list[Point]] = defaultdict(list)
    for point in found:
        groups[alike.get(point.name, EXIT)].append(point)
    changes = set(shown)
    ranks: dict[Point, tuple[int, int, int]] = {}
    for group in groups.values():
        for turn, point in enumerate(_by_turn(group)):
            ranks[point] = (turn, _importance(point, kinds, changes), point.number)
    # Two turns of what decides are worth more than the first turn of everything else.
    chosen = sorted(found, key=lambda point: _order(ranks[point]))[:most]
    return Plan(tuple(sorted(chosen, key=found.index)), len(found))


def _order(rank: tuple[int, int, int]) -> tuple[int, int, int]:
    turn, importance, number = rank
    return (turn + importance, importance, number)


def _importance(point: Point, kinds: Mapping[str, CallKind], changes: set[str]) -> int:
    """Small is important."""
    if point.name == EXIT or point.after in changes:
        return 0
    kind = kinds[point.name]
    if kind in _DECIDING or kind is CallKind.SEND:
        return 1
    return 3 if kind is CallKind.SYNC else 2


def _by_turn(group: Sequence[Point]) -> list[Point]:
    """The last, the first, the second, then the others spread over the whole."""
    if len(group) <= 3:
        return [group[-1], *group[:-1]]
    rest = list(group[2:-1])
    random.Random(SEED).shuffle(rest)
    return [group[-1], *group[:2], *rest]


class Pair(NamedTuple):
    """A crash, and a second one while the next start recovers from it."""

    first: Point
    second: Point

    @property
    def name(self) -> str:
        """Both names, joined."""
        return f"{self.first.name}{THEN}{self.second.name}"


def pairs(
    recoveries: Mapping[Point, Sequence[Effect]], most: int
) -> tuple[list[Pair], int]:
    """A seeded sample of all pairs, spread over the first crashes, and how many there are in all."""
    found = [
        Pair(first, second)
        for first, effects in recoveries.items()
        for second in points(effects)[:-1]
    ]
    by_first: dict[Point, list[Pair]] = defaultdict(list)
    chance = random.Random(SEED)
    for pair in chance.sample(found, len(found)):
        by_first[pair.first].append(pair)
    chosen: list[Pair] = []
    while len(chosen) < most and any(by_first.values()):
        waiting = [group for group in by_first.values() if group]
        chosen += [group.pop() for group in waiting[: most - len(chosen)]]
    return sorted(chosen, key=found.index), len(found)
