"""From the log of a run without a crash to the places at which the job is to be killed. None is listed by hand.

This module must not run anything, and must not drop a point without saying so.
"""

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.instrument.effects import (
    BOUNDS,
    DECISIVE,
    DURABLE,
    RECOVER,
    Effect,
    Kind,
    Point,
    Side,
)

PAIRS, QUICK_PAIRS, QUICK_POINTS = 16, 2, 20
LARGE_POINTS = 2
BESIDE, LINES = 8, 40
"""Places before lines: of those beside something unseen, and in all."""

SEED = 7


class Plan(NamedTuple):
    """The points of one kind of test: those chosen, and how many there are in all."""

    chosen: tuple[Point, ...]
    found: int


def read_log(path: Path) -> list[Effect]:
    """The effects of one run in the order in which they ended, without a line that a dying process did not finish."""
    effects = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            effects.append(Effect.from_json(json.loads(line)))
        except (ValueError, KeyError):
            continue
    return effects


def points(
    log: Sequence[Effect],
    batches: Iterable[int],
    *,
    driver: int = 1,
    lines: bool = False,
) -> list[Point]:
    """Every place before and after every effect, at the edges of every call, and behind every `commits/N`, in order.

    `lines`: also those before lines, where they were recorded.
    """
    left_out = {Kind.UNSEEN} if lines else {Kind.UNSEEN, Kind.LINE}
    found: list[Point] = []
    for batch in batches:
        of_driver = [
            each
            for each in log
            if each.batch == batch
            and each.driver == driver
            and not each.failed
            and not each.late
            and each.kind not in left_out
        ]
        of_batch = [each for each in of_driver if driver > 1 or each.where != RECOVER]
        for each in sorted(of_batch, key=lambda each: (place(each.where), each.place)):
            found += [each.point(side) for side in _sides(each.kind)]
        if of_batch:
            found.append(Point(batch, "engine", 0, Kind.COMMITS, Side.AFTER))
    return list(dict.fromkeys(found))


def _sides(kind: Kind) -> tuple[Side, ...]:
    """On which sides of an effect of this kind there is a place."""
    if kind in BOUNDS:
        return (Side.AFTER,)
    return (Side.BEFORE,) if kind is Kind.LINE else (Side.BEFORE, Side.AFTER)


def place(where: str) -> tuple[int, int]:
    if where.startswith("task "):
        return 0, int(where.removeprefix("task "))
    return (-1, 0) if where == RECOVER else (1, 0)


def thin(found: Sequence[Point]) -> list[Point]:
    """Of the effects that one line has again and again in one call: the first two and the last."""
    times = Counter(_line(point) for point in found)
    seen: Counter[object] = Counter()
    kept = []
    for point in found:
        seen[_line(point)] += 1
        if (
            point.kind in BOUNDS
            or seen[_line(point)] <= 2
            or seen[_line(point)] == times[_line(point)]
        ):
            kept.append(point)
    return kept


def _line(point: Point) -> object:
    return (
        point.batch,
        point.where,
        point.kind,
        point.file,
        point.line,
        point.side,
    )


def with_lines(
    plan: Plan, log: Sequence[Effect], wanted: Iterable[Point], batches: int
) -> Plan:
    """The plan with places before lines as well, `log` being one in which these were recorded."""
    every = points(log, range(batches), lines=True)
    both = {*plan.chosen, *wanted}
    return Plan(tuple(point for point in every if point in both), len(every))


def line_points(log: Sequence[Effect], beside: Sequence[Point]) -> list[Point]:
    """Places before lines: those `beside` which something was written unseen, then the others of the first batch."""
    every = [point for point in points(log, [0], lines=True) if point.kind is Kind.LINE]
    chosen = [point for point in beside if point.batch < 2][:BESIDE]
    others = [point for point in thin(every) if point not in chosen]
    return chosen + others[: LINES - len(chosen)]


def choose(log: Sequence[Effect], batches: int, *, quick: bool) -> Plan:
    """The points of single crashes.

    Quick takes two batches: the places behind something lasting; and of the first batch those before the first and the
    last effect of each call, since what nobody saw lies beside what was seen.
    """
    found = points(log, range(batches))
    if not quick:
        return Plan(tuple(thin(found)), len(found))
    first = [point for point in found if point.batch == 0]
    edges, few = _edges(first), set(thin(found))
    chosen = [
        point
        for point in found
        if point.batch < 2 and (point in edges or (point in few and _matters(point)))
    ]
    firsts = [
        point for point in found if point.kind is Kind.BEGIN and point.batch == 0
    ][:1]
    chosen = firsts + chosen
    while len(chosen) > QUICK_POINTS:
        del chosen[_least(chosen, edges)]
    return Plan(tuple(chosen), len(found))


def _least(chosen: Sequence[Point], edges: set[Point]) -> int:
    """Which one goes first where there are too many: the middle one of those that are no edge."""
    inner = [index for index, point in enumerate(chosen) if point not in edges]
    return inner[len(inner) // 2] if inner else len(chosen) // 2


def _edges(found: Sequence[Point]) -> set[Point]:
    """The places before the first and the last effect of each call; of a writer's tasks, only of the first one."""
    edges: set[Point] = set()
    for batch, where in {(point.batch, point.where) for point in found}:
        befores = [
            point
            for point in found
            if (point.batch, point.where) == (batch, where)
            and point.side is Side.BEFORE
        ]
        if befores and where in ("call", "commit", "task 0"):
            edges |= {befores[0], befores[-1]}
    return edges


def _matters(point: Point) -> bool:
    if point.kind in (Kind.RETURN, Kind.COMMITS):
        return point.where in ("call", "commit", "engine")
    return point.side is Side.AFTER and point.kind in DECISIVE


def large_points(log: Sequence[Effect], small: Sequence[Effect]) -> list[Point]:
    """Places within a large batch that a small one does not have: behind the first of several lasting effects of a line.

    `small` is the log of the healthy run. A line that has several in a small batch was cut between them there.
    """
    usual = _lasting_lines(small)
    return [
        first.point(Side.AFTER)
        for line, (first, times) in _lasting_lines(log).items()
        if times > usual.get(line, (first, 0))[1] <= 1
    ][:LARGE_POINTS]


def _lasting_lines(log: Sequence[Effect]) -> dict[object, tuple[Effect, int]]:
    """By line of the first batch: its first lasting effect, and how many it has."""
    found: dict[object, tuple[Effect, int]] = {}
    for each in log:
        seen = each.batch == 0 and each.driver == 1 and not each.late
        if seen and not each.failed and each.kind in DURABLE:
            line = each.where, each.file, each.line, each.kind
            first, times = found.get(line, (each, 0))
            found[line] = first, times + 1
    return found


class Pair(NamedTuple):
    """A crash, and a second one while the next driver recovers from it."""

    first: Point
    second: Point

    @property
    def id(self) -> str:
        """Both points, joined."""
        return f"{self.first.id}+{self.second.id}"


def pairs(
    logs: dict[Point, Sequence[Effect]], *, quick: bool
) -> tuple[list[Pair], int]:
    """A seeded sample of all pairs, spread over the first crashes, and how many there are in all.

    `logs` has the log of the recovery from each first crash: where it did nothing there is nothing to crash.
    """
    found = [
        Pair(first, second)
        for first, log in logs.items()
        for second in points(log, [first.batch], driver=2)
        if second.kind not in (Kind.BEGIN, Kind.COMMITS)
    ]
    most = QUICK_PAIRS if quick else PAIRS
    chosen = _most_telling(found)[: most - most // 3]
    rest = [pair for pair in found if pair not in chosen]
    chosen += random.Random(SEED).sample(rest, min(most - len(chosen), len(rest)))
    return sorted(chosen, key=found.index), len(found)


def _most_telling(found: Sequence[Pair]) -> list[Pair]:
    """A batch that was wholly written and not recorded, whose replay is cut behind something that lasts."""
    whole = [
        pair
        for pair in found
        if pair.first.kind is Kind.RETURN and pair.second.side is Side.AFTER
    ]
    lasting = [
        pair
        for pair in whole
        if pair.second.kind in DURABLE or pair.second.kind is Kind.PREPARE
    ]
    return sorted(lasting, key=lambda pair: -pair.first.batch)


def retry_point(log: Sequence[Effect]) -> Point | None:
    """Where a task is to die alone: behind its last lasting effect in batch 1 (or 0); None if no task has any."""
    for batch in (1, 0):
        of_tasks = [
            each
            for each in log
            if each.batch == batch
            and each.where.startswith("task ")
            and each.line
            and not each.late
            and each.kind not in (Kind.LINE, Kind.UNSEEN)
        ]
        lasting = [
            each
            for each in of_tasks
            if each.kind in DURABLE - {Kind.UNSEEN} or each.kind is Kind.PREPARE
        ] or of_tasks
        if lasting:
            return lasting[-1].point(Side.AFTER)
    return None


def zombie_point(log: Sequence[Effect]) -> Point | None:
    """Where a driver is to be stopped: before its first lasting effect in batch 1 (or 0)."""
    for batch in (1, 0):
        for each in log:
            if each.batch == batch and each.kind in DECISIVE and not each.late:
                return each.point(Side.BEFORE)
    return None


def last_point(log: Sequence[Effect]) -> Point | None:
    """The end of the sink's last call in batch 1 (or 0): everything is done, and `commits/N` is not there."""
    for batch in (1, 0):
        ends = [
            each for each in log if each.batch == batch and each.kind is Kind.RETURN
        ]
        if ends:
            return ends[-1].point(Side.AFTER)
    return None


def unfinished(point: Point, log: Sequence[Effect]) -> bool:
    """Whether the sink still has something lasting to do for the batch when this point is reached."""
    if point.kind is Kind.COMMITS:
        return False
    order = place(point.where)
    for each in log:
        if each.batch != point.batch or each.kind not in DURABLE or each.driver != 1:
            continue
        if each.late:
            continue
        there, here = (place(each.where), each.place), (order, point.place)
        if there > here or (there == here and point.side is Side.BEFORE):
            return True
    return False
