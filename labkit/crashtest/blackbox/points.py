"""Chooses the places at which the pipeline is killed: before each effect of the run without a crash, and at the end.

The place after one effect is the place before the next; after the last comes the command's own end. This module must
not run anything, and must not leave a place out without saying so.
"""

import random
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.syscalls.calls import CallKind

QUICK_POINTS, POINTS = 12, 60
"""How many places are tried, at most."""
QUICK_PAIRS, PAIRS = 3, 8
"""How many pairs of places are tried, at most."""
SEED = 7

EXIT = "exit"
"""The name of the command's own end; for a command that never ends by itself, of the moment when all is done."""

THEN = " then "
"""The separator of two places: a crash, and a second one during its recovery."""

_DECIDING = frozenset({CallKind.RENAME, CallKind.LINK, CallKind.UNLINK})


class Point(NamedTuple):
    """A place at which the pipeline can be killed: before an effect, or at the command's end."""

    name: str
    number: int
    """The place's number, from 1, in the order of the run without a crash."""
    after: str = ""
    """The effect just before this place; empty: this place is the first."""

    def __str__(self) -> str:
        if self.name == EXIT:
            return f"at the end of the command, after {self.after or 'nothing'}"
        return f"before {self.name}"


class Plan(NamedTuple):
    """The places of one test that were chosen, in their order, and the number of all places."""

    chosen: tuple[Point, ...]
    found: int


def points(effects: Sequence[Effect]) -> list[Point]:
    """Every place, in order; the last is the command's end."""
    places: list[Point] = []
    after = ""
    for effect in effects:
        if effect.kind is not CallKind.EXIT:
            places.append(Point(effect.name, len(places) + 1, after))
            after = effect.name
    return [*places, Point(EXIT, len(places) + 1, after)]


def choose(effects: Sequence[Effect], shown: Iterable[str], most: int) -> Plan:
    """At most `most` places. `shown`: names of the effects by which rows were seen to change.

    Places just after a change, or after an effect like the one that made it, and the end come first; then those before
    an effect that makes something visible at once, as a rename does; then the others. Of many alike places that are
    equally important the last, the first and the second come first.
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
    """What the effects of these names have in common with those that are alike."""
    names = set(shown)
    return frozenset(each.family for each in effects if each.name in names)


class _Importance:
    """Ranks the places of one start; 0 is the most important."""

    def __init__(self, effects: Iterable[Effect], showing: Container[str]) -> None:
        """`showing`: families of the effects by which rows change."""
        self._effects = {each.name: each for each in effects}
        self._showing = showing

    def of(self, point: Point) -> int:
        """The rank of one place."""
        after = self._effects.get(point.after)
        if point.name == EXIT or (after and after.family in self._showing):
            return 0
        kind = self._effects[point.name].kind
        if kind in _DECIDING or kind is CallKind.SEND:
            return 1
        return 3 if kind is CallKind.SYNC else 2


def _by_turn(group: Sequence[Point]) -> list[Point]:
    """Alike places in the order of their turns: the last, the first, the second, then the others, shuffled by seed."""
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
        """The names of both places, joined."""
        return f"{self.first.name}{THEN}{self.second.name}"


def pairs(
    recoveries: Mapping[Point, Sequence[Effect]], most: int, showing: Container[str] = ()
) -> tuple[list[Pair], int]:
    """A seeded sample of at most `most` pairs, and the number of all pairs.

    Two in three are of the kind that tells most: all was done when the first crash came, and what is done again is cut
    just after an effect that shows rows, of a family in `showing`, or before one that may. The others are spread over
    the first crashes.
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
