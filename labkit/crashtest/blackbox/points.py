"""Choose the points at which the pipeline is killed: before each effect of the run without a crash, and at its end.

The point after one effect is the point before the next; the point after the last effect is the command's own
end. `Plan.total` counts all points, so the report can say how many were not tried.
"""

import random
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.syscalls.calls import CallKind

QUICK_POINTS, POINTS = 12, 60
"""The maximum number of points that are tried, with and without `--quick`."""
QUICK_PAIRS, PAIRS = 3, 8
"""The maximum number of pairs of points that are tried, with and without `--quick`."""
SEED = 7

EXIT = "exit"
"""The name of the point at the command's own end; for a command that never ends, the moment when all rows are there."""

THEN = " then "
"""The separator between the point of a crash and the point of a second crash during its recovery."""

_DECIDING = frozenset({CallKind.RENAME, CallKind.LINK, CallKind.UNLINK})


class Point(NamedTuple):
    """A point at which the pipeline can be killed: before an effect, or at the command's end."""

    name: str
    number: int
    """The number of the point in the run without a crash, from 1."""
    after: str = ""
    """The effect just before this point; empty for the first point."""

    def __str__(self) -> str:
        if self.name == EXIT:
            return f"at the end of the command, after {self.after or 'nothing'}"
        return f"before {self.name}"


class Plan(NamedTuple):
    """The points that one test tries, in their order, and the number of all points."""

    chosen: tuple[Point, ...]
    total: int


def points(effects: Sequence[Effect]) -> list[Point]:
    """Return every point in order; the last is the command's end."""
    places: list[Point] = []
    after = ""
    for effect in effects:
        if effect.kind is not CallKind.EXIT:
            places.append(Point(effect.name, len(places) + 1, after))
            after = effect.name
    return [*places, Point(EXIT, len(places) + 1, after)]


def choose(effects: Sequence[Effect], shown: Iterable[str], most: int) -> Plan:
    """Return a plan of at most `most` points. `shown` are the names of the effects that changed the reader's rows.

    Points just after such an effect, or after a similar one, and the end come first. Points before an effect
    that can make rows visible at once, such as a rename, come next, then all others. Among similar points of
    equal importance, the last, the first and the second come first.
    """
    places = points(effects)
    ranking = _Importance(effects, families(effects, shown))
    alike = {each.name: each.family for each in effects}
    groups: Mapping[tuple[str, int], list[Point]] = defaultdict(list)
    for point in places:
        groups[alike.get(point.name, EXIT), ranking.of(point)].append(point)
    ranks: dict[Point, tuple[int, int, int]] = {}
    for group in groups.values():
        for turn, point in enumerate(_by_turn(group)):
            ranks[point] = (turn, ranking.of(point), point.number)
    # The first two turns of deciding effects come before the first turn of all others.
    chosen = sorted(places, key=lambda point: _order(ranks[point]))[:most]
    return Plan(tuple(sorted(chosen, key=places.index)), len(places))


def _order(rank: tuple[int, int, int]) -> tuple[int, int, int]:
    turn, importance, number = rank
    return (turn + importance, importance, number)


def families(effects: Iterable[Effect], shown: Iterable[str]) -> frozenset[str]:
    """Return the families of the effects with these names."""
    names = set(shown)
    return frozenset(each.family for each in effects if each.name in names)


class _Importance:
    """Ranks the points of one start; 0 is the most important."""

    def __init__(self, effects: Iterable[Effect], showing: Container[str]) -> None:
        """`showing` are the families of the effects that change the reader's rows."""
        self._effects = {each.name: each for each in effects}
        self._showing = showing

    def of(self, point: Point) -> int:
        """Return the rank of one point."""
        after = self._effects.get(point.after)
        if point.name == EXIT or (after and after.family in self._showing):
            return 0
        kind = self._effects[point.name].kind
        if kind in _DECIDING or kind is CallKind.SEND:
            return 1
        return 3 if kind is CallKind.SYNC else 2


def _by_turn(group: Sequence[Point]) -> list[Point]:
    """Return similar points in the order in which they are chosen: the last, the first, the second, then a seeded
    shuffle.
    """
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
        """Return the names of both points, joined."""
        return f"{self.first.name}{THEN}{self.second.name}"


def pairs(
    recoveries: Mapping[Point, Sequence[Effect]], most: int, showing: Container[str] = ()
) -> tuple[list[Pair], int]:
    """Return a seeded sample of at most `most` pairs, and the number of all pairs.

    Two in three are of the most informative kind: the first crash came when all was done, and the second
    interrupts the repeated work just after an effect of a family in `showing`, or before an effect that can
    make rows visible. The others are spread evenly over the first crashes.
    """
    ranks: dict[Pair, int] = {}
    for first, effects in recoveries.items():
        ranking = _Importance(effects, showing)
        ranks |= {Pair(first, second): ranking.of(second) for second in points(effects)[:-1]}
    candidates = list(ranks)
    mixed = random.Random(SEED).sample(candidates, len(candidates))
    telling = [pair for pair in mixed if pair.first.name == EXIT and ranks[pair] < 2]
    chosen = sorted(telling, key=lambda pair: ranks[pair])[: most - most // 3]
    by_first: dict[Point, list[Pair]] = defaultdict(list)
    for pair in mixed:
        if pair not in chosen:
            by_first[pair.first].append(pair)
    while len(chosen) < most and any(by_first.values()):
        waiting = [group for group in by_first.values() if group]
        chosen += [group.pop() for group in waiting[: most - len(chosen)]]
    return sorted(chosen, key=candidates.index), len(candidates)
