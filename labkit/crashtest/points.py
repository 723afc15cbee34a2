"""Chooses the crash points, at which the job is killed, from the effects that a run without a crash has logged."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.instrument.effects import BOUNDS, DECISIVE, DURABLE, RECOVER, Effect, Kind, Point, Side

PAIRS, QUICK_PAIRS, QUICK_POINTS = 16, 2, 20
"""The maximum number of pairs of crash points in a whole and in a quick test, and of single points in a quick test."""
REPAIRS, QUICK_REPAIRS = 16, 6
"""The maximum number of further pairs whose second crash follows an effect of recoveries only (whole, quick test)."""
LARGE_POINTS = 2
"""The maximum number of crash points within a large batch."""
NEIGHBOURS, LINES = 8, 40
"""The maximum number of crash points before source lines: next to an unrecorded write, and in all."""

SEED = 7


class Plan(NamedTuple):
    """The chosen crash points of a test, and the number of all crash points."""

    chosen: tuple[Point, ...]
    total: int


def read_log(path: Path) -> list[Effect]:
    """Return the effects in the log of one run, in the order in which they ended.

    A line that a kill left incomplete is ignored.
    """
    effects = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            effects.append(Effect.from_json(json.loads(line)))
        except (ValueError, KeyError):
            continue
    return effects


def points(log: Sequence[Effect], batches: Iterable[int], *, driver: int = 1, lines: bool = False) -> list[Point]:
    """Return the crash points of some batches in order.

    They lie before and after every effect, at the beginning and end of every call of the sink, and after each
    `commits/N`. With `lines` they also lie before source lines, if the log has these. `driver` is the number of the
    driver in the run, 1 for the first.
    """
    left_out = {Kind.UNSEEN} if lines else {Kind.UNSEEN, Kind.LINE}
    places: list[Point] = []
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
            places += [each.point(side) for side in _sides(each.kind)]
        if of_batch:
            places.append(Point(batch, "engine", 0, Kind.COMMITS, Side.AFTER))
    return list(dict.fromkeys(places))


def _sides(kind: Kind) -> tuple[Side, ...]:
    """Return the sides of an effect of this kind, before or after it, at which a job can be killed."""
    if kind in BOUNDS:
        return (Side.AFTER,)
    return (Side.BEFORE,) if kind is Kind.LINE else (Side.BEFORE, Side.AFTER)


def place(where: str) -> tuple[int, int]:
    """Return a sort key for a call in its batch: `recover` comes first, then the tasks by number, then calls on the
    driver.
    """
    if where.startswith("task "):
        return 0, int(where.removeprefix("task "))
    return (-1, 0) if where == RECOVER else (1, 0)


Neighbours = dict[Point, object]
"""For each crash point, a description of the neighbouring effect on its other side.

It distinguishes crash points at the same source line that lie between different pairs of effects.
"""


def neighbours(log: Sequence[Effect]) -> Neighbours:
    """Return for each crash point of the run without a crash a description of the effect on its other side.

    The description consists of that effect's kind, file and line, and whether it changes the same target. So a crash
    point between two writes of one file differs from one between two files.
    """
    calls: dict[tuple[int, str], list[Effect]] = {}
    for each in log:
        if (
            each.driver == 1
            and not each.failed
            and not each.late
            and each.kind not in BOUNDS | {Kind.UNSEEN, Kind.LINE}
        ):
            calls.setdefault((each.batch, each.where), []).append(each)
    found: Neighbours = {}
    for call in calls.values():
        for before, after in pairwise(sorted(call, key=lambda each: each.place)):
            same = before.target == after.target
            found[before.point(Side.AFTER)] = after.kind, after.file, after.line, same
            found[after.point(Side.BEFORE)] = before.kind, before.file, before.line, same
    return found


def thin(candidates: Sequence[Point], beside: Neighbours | None = None) -> list[Point]:
    """Return the crash points without most of those at repetitions of an effect of one source line in one call.

    Of the repetitions, the first two and the last remain, and the first one next to each different effect (`beside`).
    """
    beside = beside or {}
    times = Counter(_line(point) for point in candidates)
    passed: Counter[object] = Counter()
    known: set[object] = set()
    kept = []
    for point in candidates:
        line, gap = _line(point), (_line(point), beside.get(point))
        passed[line] += 1
        if point.kind in BOUNDS or passed[line] <= 2 or passed[line] == times[line] or gap not in known:
            kept.append(point)
        known.add(gap)
    return kept


def _line(point: Point) -> object:
    return (point.batch, point.where, point.kind, point.file, point.line, point.side)


def with_lines(plan: Plan, log: Sequence[Effect], wanted: Iterable[Point], batches: int) -> Plan:
    """Return the plan with the wanted crash points before source lines added; `log` includes source lines."""
    every = points(log, range(batches), lines=True)
    both = {*plan.chosen, *wanted}
    return Plan(tuple(point for point in every if point in both), len(every))


def line_points(log: Sequence[Effect], neighbours: Sequence[Point]) -> list[Point]:
    """Return crash points before source lines: first the `neighbours` of unrecorded writes, then others of batch 0."""
    every = [point for point in points(log, [0], lines=True) if point.kind is Kind.LINE]
    chosen = [point for point in neighbours if point.batch < 2][:NEIGHBOURS]
    others = [point for point in thin(every) if point not in chosen]
    return chosen + others[: LINES - len(chosen)]


def choose(log: Sequence[Effect], batches: int, *, quick: bool) -> Plan:
    """Return the plan of single crashes, from the effects in `log`.

    A quick test uses two batches: the points after durable effects, and in the first batch also the points before each
    call's first and last effect, because unrecorded effects may lie next to the recorded ones. Of later batches it uses
    the points of effects that no other batch has, such as a compaction. If there are too many points, those of the most
    frequent effects are left out first.
    """
    places = points(log, range(batches))
    beside = neighbours(log)
    if not quick:
        return Plan(tuple(thin(places, beside)), len(places))
    first = [point for point in places if point.batch == 0]
    edges, few = _edges(first), set(thin(places, beside))
    wanted = {point for point in places if point.batch < 2 and (point in edges or (point in few and _matters(point)))}
    rare = _rare([point for point in places if point in few], beside)
    chosen = [point for point in places if point in wanted or point in rare]
    firsts = [point for point in places if point.kind is Kind.BEGIN and point.batch == 0][:1]
    chosen = firsts + [point for point in chosen if point not in firsts]
    times = Counter(_family(point, beside) for point in places)
    kept = edges.union(deciding_points(log), rare)
    while len(chosen) > QUICK_POINTS:
        del chosen[_least(chosen, kept, [times[_family(point, beside)] for point in chosen])]
    return Plan(tuple(chosen), len(places))


def _least(chosen: Sequence[Point], kept: set[Point], times: Sequence[int]) -> int:
    """Return the index of the chosen crash point to leave out first, one that is not in `kept` if there is any.

    `times` says for each chosen point how often points like it occur. The result is in the middle of the most frequent
    ones.
    """
    inner = [index for index, point in enumerate(chosen) if point not in kept]
    if not inner:
        return len(chosen) // 2
    most = max(times[index] for index in inner)
    frequent = [index for index in inner if times[index] == most]
    return frequent[len(frequent) // 2]


def _family(point: Point, beside: Neighbours) -> tuple[object, ...]:
    """Return a key that crash points of the same effect, next to the same effect, share in all batches and tasks."""
    where = "task" if point.where.startswith("task ") else point.where
    return where, point.kind, point.file, point.line, point.side, beside.get(point)


def _rare(places: Sequence[Point], beside: Neighbours) -> set[Point]:
    """Return the crash points of effects that occur in only one batch, other than the first, which creates tables.

    They are at most half the points of a quick test: first those at lines that no other batch executes, then, up to a
    quarter, those between effects, or at repetitions of a line, that no other batch has.
    """
    effects = [point for point in places if point.kind not in BOUNDS]
    of_line = _alone(effects, lambda point: _family(point, {})[:-1])
    of_gap = _alone(effects, lambda point: _family(point, beside))
    again = _alone(effects, lambda point: (*_family(point, {}), point.nth))
    most = QUICK_POINTS // 2
    found = _spread(_telling(of_line, places), most)
    others = [point for point in _telling([*of_gap, *again], places) if point not in _telling(of_line, places)]
    return {*found, *_spread(others, min(most - len(found), QUICK_POINTS // 4))}


def _alone(places: Sequence[Point], family: Callable[[Point], object]) -> list[Point]:
    """Return the crash points whose family occurs in only one batch, other than batch 0; `family` returns a comparable
    key.
    """
    batches: dict[object, set[int]] = {}
    for point in places:
        batches.setdefault(family(point), set()).add(point.batch)
    return [point for point in places if point.batch > 0 and len(batches[family(point)]) == 1]


def _telling(rare: Sequence[Point], places: Sequence[Point]) -> list[Point]:
    """Return the most informative of rare crash points.

    They are those after durable effects, the one before the first rare effect of each call, and the ends of these
    calls.
    """
    calls = {(point.batch, point.where) for point in rare}
    firsts = {
        next((point for point in rare if (point.batch, point.where) == call and point.side is Side.BEFORE), None)
        for call in calls
    }
    return [
        point
        for point in places
        if (point in rare and (_matters(point) or point in firsts))
        or (point.kind is Kind.RETURN and (point.batch, point.where) in calls and _matters(point))
    ]


def _spread(places: Sequence[Point], most: int) -> list[Point]:
    """Return at most `most` crash points, leaving out those in the middle."""
    kept = list(places)
    while len(kept) > most:
        del kept[len(kept) // 2]
    return kept


def _edges(places: Sequence[Point]) -> set[Point]:
    """Return the crash points before the first and the last effect of each call; of a writer's tasks, only
    of task 0.
    """
    edges: set[Point] = set()
    for batch, where in {(point.batch, point.where) for point in places}:
        befores = [
            point for point in places if (point.batch, point.where) == (batch, where) and point.side is Side.BEFORE
        ]
        if befores and where in ("call", "commit", "task 0"):
            edges |= {befores[0], befores[-1]}
    return edges


def _matters(point: Point) -> bool:
    if point.kind in (Kind.RETURN, Kind.COMMITS):
        return point.where in ("call", "commit", "engine")
    return point.side is Side.AFTER and point.kind in DECISIVE


def large_points(log: Sequence[Effect], small: Sequence[Effect]) -> list[Point]:
    """Return crash points that only a large batch has: after the first of several durable effects of one line.

    `log` is that of the run with the large batch, `small` that of the usual run without a crash. A line with several
    effects in the usual run is left out, because crashes between them have already been tried.
    """
    usual = _lasting_lines(small)
    return [
        first.point(Side.AFTER)
        for line, (first, times) in _lasting_lines(log).items()
        if times > usual.get(line, (first, 0))[1] <= 1
    ][:LARGE_POINTS]


def _lasting_lines(log: Sequence[Effect]) -> dict[object, tuple[Effect, int]]:
    """Return for each source line of the first batch its first durable effect, and how many durable effects it has."""
    by_line: dict[object, tuple[Effect, int]] = {}
    for each in log:
        is_first_batch = each.batch == 0 and each.driver == 1 and not each.late
        if is_first_batch and not each.failed and each.kind in DURABLE:
            line = each.where, each.file, each.line, each.kind
            first, times = by_line.get(line, (each, 0))
            by_line[line] = first, times + 1
    return by_line


class Pair(NamedTuple):
    """Two crash points: one of the first crash, and one of a second crash while the next driver recovers from the
    first.
    """

    first: Point
    second: Point

    @property
    def id(self) -> str:
        """The id of the run with both crashes: the ids of both crash points, joined by a plus sign."""
        return f"{self.first.id}+{self.second.id}"


class Pairs(NamedTuple):
    """The chosen pairs of crash points, the number of all pairs, and the ids of all directed pairs, chosen or not."""

    chosen: tuple[Pair, ...]
    total: int
    directed: frozenset[str]
    """The ids of the pairs that a complete test must try, because the second crash interrupts a repair or repeats the
    first.
    """


def pairs(logs: dict[Point, Sequence[Effect]], healthy: Sequence[Effect], *, quick: bool) -> Pairs:
    """Choose the pairs of crash points that a test tries: the directed ones, and a seeded sample over all first
    crashes.

    `logs` has for each first crash the log of the recovery from it; a recovery without an effect has no crash point.
    `healthy` is the log of the run without a crash. Pairs are directed if they crash twice at a deciding point, or (up
    to a limit) after an effect that only recoveries have, because no single crash reaches these.
    """
    candidates = [
        Pair(first, second)
        for first, log in logs.items()
        for second in points(log, [first.batch], driver=2)
        if second.kind not in (Kind.BEGIN, Kind.COMMITS)
    ]
    twice, later = _at_deciding_points(candidates, logs, healthy)
    candidates += later
    most = QUICK_PAIRS if quick else PAIRS
    chosen = _most_telling(candidates)[: most - most // 3]
    rest = [pair for pair in candidates if pair not in chosen]
    chosen += random.Random(SEED).sample(rest, min(most - len(chosen), len(rest)))
    repairs = _in_repairs(candidates, healthy)
    directed = [*twice, *later, *repairs[: QUICK_REPAIRS if quick else REPAIRS]]
    chosen += [pair for pair in dict.fromkeys(directed) if pair not in chosen]
    return Pairs(
        tuple(sorted(chosen, key=candidates.index)),
        len(candidates),
        frozenset(pair.id for pair in [*twice, *later, *repairs]),
    )


def second_points(first: Point, log: Sequence[Effect]) -> list[Point]:
    """Return the crash points at which a second crash can follow `first`; `log` is the log of the recovery.

    They lie in the same batch, or at the same effect as `first` in the next batch.
    """
    later = [point for point in points(log, [first.batch + 1], driver=2) if _same_effect(first, point)]
    return points(log, [first.batch], driver=2) + later


def _at_deciding_points(
    candidates: Sequence[Pair], logs: dict[Point, Sequence[Effect]], healthy: Sequence[Effect]
) -> tuple[list[Pair], list[Pair]]:
    """Return two lists of pairs that crash after the effect that completes a batch (its last durable effect).

    In the first list, the second crash is at the same point, which the recovery passes again. The second list has at
    most one pair, which crashes in batch 0, and after the same line in batch 1.
    """
    deciding = deciding_points(healthy)
    twice = [
        pair
        for pair in candidates
        if pair.first in deciding and pair.second.batch == pair.first.batch and _same_effect(pair.first, pair.second)
    ]
    later = [
        Pair(first, second)
        for first in deciding
        if first.batch == 0
        for second in points(logs.get(first, ()), [1], driver=2)
        if _same_effect(first, second)
    ]
    return twice, later[:1]


def deciding_points(healthy: Sequence[Effect]) -> list[Point]:
    """Return the crash points after the last durable effect of batch 0, and of batch 1, as these decide the batch."""
    found = []
    for batch in (0, 1):
        lasting = [point for point in points(healthy, [batch]) if point.side is Side.AFTER and point.kind in DURABLE]
        found += lasting[-1:]
    return found


def _same_effect(first: Point, second: Point) -> bool:
    """Return whether two crash points lie on the same side of the same effect, in whatever batches."""
    same = (first.where, first.kind, first.side, first.file, first.line, first.nth)
    return first.kind not in BOUNDS and same == (
        second.where,
        second.kind,
        second.side,
        second.file,
        second.line,
        second.nth,
    )


def _in_repairs(candidates: Sequence[Pair], healthy: Sequence[Effect]) -> list[Pair]:
    """Return the pairs whose second crash comes after a repair: for each source line, the last such pair.

    A line repairs something if it has an effect in a recovery of batch N, but none in batch N of the run without a
    crash. In the last pair most was written, so there is most to repair.
    """
    usual = {(each.batch, each.where, each.file, each.line) for each in healthy}
    by_line: dict[object, Pair] = {}
    for pair in candidates:
        second = pair.second
        line = second.where, second.file, second.line
        if second.side is not Side.AFTER or second.kind not in DECISIVE:
            continue
        if second.line and (second.batch, *line) not in usual:
            # Of a line the last crash that leads to it: more was written by then.
            by_line[line] = pair
    return list(by_line.values())


def _most_telling(candidates: Sequence[Pair]) -> list[Pair]:
    """Return the pairs that are most likely to show a violation, later batches first.

    They crash when a batch is written but not recorded in `commits/N`, and again after a durable effect of the repeated
    batch.
    """
    whole_calls = [pair for pair in candidates if pair.first.kind is Kind.RETURN and pair.second.side is Side.AFTER]
    lasting = [pair for pair in whole_calls if pair.second.kind in DURABLE or pair.second.kind is Kind.PREPARE]
    return sorted(lasting, key=lambda pair: -pair.first.batch)


def retry_point(log: Sequence[Effect]) -> Point | None:
    """Return the crash point at which one task dies alone: after its last durable effect in batch 1 (or 0).

    Return None if no task has an effect.
    """
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
            each for each in of_tasks if each.kind in DURABLE - {Kind.UNSEEN} or each.kind is Kind.PREPARE
        ] or of_tasks
        if lasting:
            return lasting[-1].point(Side.AFTER)
    return None


def zombie_point(log: Sequence[Effect]) -> Point | None:
    """Return the crash point at which a driver is stopped and later continued: before a first durable effect in batch 1
    (or 0).

    Return None if there is no such effect.
    """
    for batch in (1, 0):
        for each in log:
            if each.batch == batch and each.kind in DECISIVE and not each.late:
                return each.point(Side.BEFORE)
    return None


def last_point(log: Sequence[Effect]) -> Point | None:
    """Return the crash point at the end of the sink's last call in batch 1 (or 0), where only `commits/N` is missing.

    Return None if there is no call.
    """
    for batch in (1, 0):
        ends = [each for each in log if each.batch == batch and each.kind is Kind.RETURN]
        if ends:
            return ends[-1].point(Side.AFTER)
    return None


def unfinished(point: Point, log: Sequence[Effect]) -> bool:
    """Return whether the sink still has a durable effect of the batch to come when the job reaches this crash point."""
    if point.kind is Kind.COMMITS:
        return False
    order = place(point.where)
    for each in log:
        if each.batch != point.batch or each.kind not in DURABLE or each.driver != 1:
            continue
        if each.late:
            continue
        effect_place, point_place = (place(each.where), each.place), (order, point.place)
        if effect_place > point_place or (effect_place == point_place and point.side is Side.BEFORE):
            return True
    return False
