"""What a sink is tried for, one function an axis: each runs its trials and tells the first that goes wrong.

Every crash lies before a request of the sink, in the middle of a file that is written, or behind the sink's return.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from labkit.core.judge import Guarantee, Verdict
from labkit.teach.exercises.asking import Asker, Unusable
from labkit.teach.exercises.contract import Answer, Finding, Variant
from labkit.teach.exercises.own_sink.fencing import fenced_trials, overtaken
from labkit.teach.exercises.own_sink.trials import (
    CHANGES,
    Batches,
    Bench,
    Broken,
    Kill,
    Runs,
    Steps,
    Tried,
    stores,
    told,
    trial,
    verdict_of,
)
from labkit.teach.exercises.searching import unusable

CRASH = "a crash at every place"
SECOND = "a second crash, in the recovery"
READER = "what a reader saw"
OLDER = "an older checkpoint"
QUERY = "a second query"
STOPPED = "a stopped writer goes on"
LEFT = "nothing is left over"


def places(tried: Tried, batches: Sequence[int], *, torn: bool) -> Iterator[Kill]:
    """Every place of these batches at which a kill may come, as a run without a crash shows them.

    A batch that raised has none: the sink is wrong without any kill.
    """
    deliveries = tried.story.deliveries
    for batch in (each for each in batches if each < len(deliveries)):
        for at in range(deliveries[batch] + 1):
            yield Kill(batch, at)
            if torn:
                yield Kill(batch, at, torn=True)


def _crashes(bench: Bench) -> Iterator[Tried]:
    healthy = bench.run()
    yield healthy
    # Of a job that is stuck, later batches were never handed over: they have no places.
    if healthy.story.stuck:
        return
    torn = bench.kind == "folder"
    for kill in places(healthy, range(len(bench.batches)), torn=torn):
        yield bench.run([kill])


def _second_crashes(bench: Bench) -> Iterator[Tried]:
    """Every place of every recovery that differs.

    A recovery begins with what the store holds behind the kill. So of the places behind which it holds the same, one is
    killed again, at each place of its recovery.
    """
    two = bench._replace(batches=bench.batches[:2])
    healthy = two.run()
    yield healthy
    seen = set()
    for first in places(healthy, (0,), torn=two.kind == "folder"):
        [state] = bench.run([first]).story.states or [""]
        if state in seen:
            continue
        seen.add(state)
        for at in count():
            tried = two.run([first, Kill(0, at)])
            if len(tried.story.kills) < 2:  # the recovery has no such request
                break
            yield tried
            if two.kind == "folder" and "before write(" in tried.story.kills[1]:
                yield two.run([first, Kill(0, at, torn=True)])


def _older(bench: Bench) -> Iterator[Tried]:
    """Once more from the first, the second and the last batch; in a folder also killed within a write of the
    last one.
    """
    last = len(bench.batches) - 1
    for first in (*range(min(2, last)), last):
        yield _again(bench, first)
    if bench.kind == "folder":
        for at in count():
            tried = _again(bench, last, [Kill(last, at, torn=True)])
            if not tried.story.kills:  # the repeated batch has no such request
                break
            yield tried


def _again(bench: Bench, first: int, kills: Sequence[Kill] = ()) -> Tried:
    with trial(bench.server, bench.ask, bench.kind) as begun:
        if begun.run(bench.query, bench.batches):
            begun.restart()
            begun.run(bench.query, bench.batches, kills, first=first)
        tried = told(begun, bench.batches)
    killed = f", {tried.what}" if tried.story.kills else ""
    what = f"all batches done, then once more from batch {first}{killed}"
    return tried._replace(what=what)


def _queries(bench: Bench) -> Iterator[Tried]:
    healthy = bench.run()
    if not healthy.story.deliveries:  # its first batch raised
        yield healthy
        return
    last = Kill(0, healthy.story.deliveries[0])
    for kills in ([], [last]):
        with trial(bench.server, bench.ask, bench.kind) as begun:
            if begun.run(bench.query, bench.batches, kills):
                begun.run(bench.other, bench.others, kills)
            tried = told(begun, [*bench.batches, *bench.others])
        yield tried._replace(what="a second query behind the first, its batches from 0 on")
    with trial(bench.server, bench.ask, bench.kind) as begun:
        if begun.run(bench.query, bench.batches) and begun.run(bench.other, bench.others):
            begun.restart()
            begun.run(bench.query, bench.batches, first=len(bench.batches) - 1)
        tried = told(begun, [*bench.batches, *bench.others])
    yield tried._replace(what="a second query behind the first, and then the first one's last batch again")


def _all_crashes(bench: Bench) -> Iterator[Tried]:
    yield from _crashes(bench)
    yield from _second_crashes(bench)


TRIALS: dict[str, Callable[[Bench], Iterator[Tried]]] = {
    CRASH: _crashes,
    SECOND: _second_crashes,
    READER: _crashes,
    OLDER: _older,
    QUERY: _queries,
    STOPPED: fenced_trials,
    LEFT: _all_crashes,
}
"""The trials of each axis."""


def wrong_in_the_end(tried: Tried) -> str:
    """What is wrong with the rows in the end; empty: nothing is."""
    if tried.story.stuck:
        again = "the batch came again, and " if tried.story.kills else ""
        return f"the job is stuck: {again}the sink raised {tried.story.stuck}"
    verdict = verdict_of(tried.story, tried.due)
    if verdict.guarantee == Guarantee.EXACTLY_ONCE:
        return tried.story.told_wrong
    lost_and_more = f"{verdict.guarantee}: {_in_words(verdict, tried.due)}"
    return "; ".join(filter(None, [lost_and_more, tried.story.told_wrong]))


def _in_words(verdict: Verdict, due: Batches) -> str:
    """What the judge has counted, with the number of the first row of each kind; its own words where it is none of
    these.
    """
    rows = sum(map(len, due))
    counted = (
        (verdict.lost, f"of {rows} rows got lost"),
        (verdict.duplicate, f"of {rows} rows are there more than once"),
    )
    said = [f"{len(numbers)} {what}, the first is number {numbers[0]}" for numbers, what in counted if numbers]
    if verdict.unexpected:
        said.append("there are rows that nobody has handed over")
    return "; ".join(said) or verdict.because


def wrong_meanwhile(tried: Tried) -> str:
    """What a reader saw that should not be seen; empty: nothing."""
    verdict = verdict_of(tried.story, tried.due)
    if verdict.fractured_read:
        return "a reader saw a part of a batch"
    if verdict.aborted_read:
        return "a reader saw a row that was gone later"
    return ""


def left_over(tried: Tried) -> str:
    """Which files are left that no reader knows; empty: none."""
    names = tried.story.left_over
    return f"left over in the end: {', '.join(names[:3])}" if names else ""


def wrong_at_any_time(tried: Tried) -> str:
    """What is wrong in the end, or what a reader saw before; empty: nothing."""
    return wrong_in_the_end(tried) or wrong_meanwhile(tried)


GIVEN = ("batches", "query", "others", "other")
"""What a variant hands over, beside the name of its axis."""

_runs: "WeakKeyDictionary[Answer, dict[str, Runs]]" = WeakKeyDictionary()
"""The runs of each answer that is still being judged, by the rows that were handed over: several axes look at the same.
"""

WRONG = {
    READER: wrong_meanwhile,
    SECOND: wrong_at_any_time,
    OLDER: wrong_at_any_time,
    QUERY: wrong_at_any_time,
    LEFT: left_over,
}
"""What an axis looks at, where that is not the rows in the end alone."""


def _judged(axis: str, bench: Bench) -> Iterator[tuple[Tried, str]]:
    """Every trial of an axis with the first thing that is wrong with it; empty: nothing is.

    The first trial must also come out right in the end: a sink that writes nothing shows nothing wrong, either.
    """
    wrong = WRONG.get(axis, wrong_in_the_end)
    for number, each in enumerate(TRIALS[axis](bench)):
        yield each, (wrong_in_the_end(each) if number == 0 else "") or wrong(each)


def judge_axis(answer: Answer, variant: Variant, *, name: str, kind: str) -> Finding:
    """Judges one axis of a sink by the first trial that goes wrong."""
    ask, axis, runs = Asker(Steps(answer), name), str(variant["axis"]), 0
    given = {each: variant[each] for each in GIVEN}
    known = _runs.setdefault(answer, {}).setdefault(json.dumps(given, sort_keys=True), {})
    try:
        with stores() as server:
            for each, wrong in _judged(axis, Bench(server, ask, kind, **given, known=known)):
                runs += 1
                if wrong:
                    _hold_still(ask)
                    return _finding(axis, each, wrong)
            _hold_still(ask)
    except Broken as error:
        return Finding(False, f"{str(error)[:1].upper()}{str(error)[1:]}.", general=f"It broke off: {axis}.")
    except Unusable as error:
        return unusable(name, error)
    seen = f"{axis}: {runs} runs, and nothing was wrong"
    return Finding(True, f"{seen[:1].upper()}{seen[1:]}.", seen)


def _hold_still(ask: Asker) -> None:
    """Raises `Unusable` for a sink whose requests change: whatever it did is no sign of what it will do."""
    if ask.changed():
        raise Unusable(f"{ask.name} {CHANGES}")


def _finding(axis: str, tried: Tried, said: str) -> Finding:
    what = f"{tried.what[:1].upper()}{tried.what[1:]}"
    short = said.partition(": ")[0]
    return Finding(
        False,
        f"{what}: {said}.",
        short,
        "every row once, and nothing else" if axis not in (READER, LEFT) else "nothing of that kind",
        general=f"With other rows, {axis}: {short}.",
    )


AXES: Mapping[str, Sequence[str]] = {
    "table": (CRASH, READER, SECOND, OLDER, QUERY),
    "folder": (CRASH, READER, SECOND, OLDER, QUERY, LEFT),
    "writers": (CRASH, STOPPED, QUERY),
}
"""What a sink of each kind is tried for."""


class Axis(NamedTuple):
    """What came of one axis."""

    axis: str
    runs: int
    """How often it was tried; 0: not at all, since the sink fails without a crash."""
    wrong: str
    """The first thing that went wrong; empty: nothing did."""


class Place(NamedTuple):
    """One place in the first batch, and what came of a kill there, or of a stop."""

    request: str
    """What the sink asks for behind it; empty: it has returned."""
    verdict: str
    torn: str = ""
    """What came of a kill in the middle of it, where it writes a file."""


FEW = (OLDER, QUERY)
"""Axes of which a sink has few runs, so that more batches and more names cost little."""


def tried(
    answer: Answer, given: Mapping[str, Any], *, name: str, kind: str, more: Sequence[Mapping[str, Any]] = ()
) -> tuple[list[Axis], list[Place]]:
    """Every axis of a sink, and every place of its first batch. Raises `Unusable`, and what `Answer.step` raises.

    `more`: what else is handed to a sink with which nothing was wrong, on the axes of which there are `FEW` runs. For
    `writers` the places are those at which the older writer is stopped.
    """
    first, *others = AXES[kind]
    store = "table" if kind == "writers" else kind
    with stores() as server:
        bench = Bench(server, Asker(Steps(answer), name), store, **given, known={})
        try:
            healthy = bench.run()
        except Broken as error:
            return [Axis(first, 1, str(error)), *(Axis(each, 0, str(error)) for each in others)], []
        found = [_all(axis, bench) for axis in AXES[kind]]
        for each in more:
            if not any(axis.wrong for axis in found):
                other = bench._replace(**each, known={})
                found = [_more(axis, other) for axis in found]
        stopped = kind == "writers"
        return found, list(_places(bench, healthy, stopped=stopped))


def _more(axis: Axis, bench: Bench) -> Axis:
    """The axis with the runs of another bench, where an axis of this kind has few."""
    if axis.axis not in FEW:
        return axis
    runs, wrong = _all(axis.axis, bench)[1:]
    if wrong:
        called = f'queries called "{bench.query[-1]}" and "{bench.other[-1]}"'
        wrong = f"{called}, {len(bench.batches)} batches: {wrong}"
    return axis._replace(runs=axis.runs + runs, wrong=wrong)


def _all(axis: str, bench: Bench) -> Axis:
    """All runs of an axis, and what the first one says that goes wrong."""
    said, runs = "", 0
    try:
        for each, wrong in _judged(axis, bench):
            runs += 1
            said = said or (f"{each.what}: {wrong}" if wrong else "")
    except Broken as error:
        runs, said = runs + 1, said or str(error)
    return Axis(axis, runs, said)


def _places(bench: Bench, healthy: Tried, *, stopped: bool) -> Iterator[Place]:
    requests = healthy.story.requests[: healthy.story.deliveries[0]]
    if stopped and healthy.story.stuck:
        return
    for at, request in enumerate([*requests, ""]):
        try:
            one = overtaken(bench, at) if stopped else bench.run([Kill(0, at)])
        except Broken:
            return
        verdict = verdict_of(one.story, one.due).guarantee
        writes = request.startswith("write(")
        yield Place(request, verdict.value, _torn(bench, at) if writes else "")


def _torn(bench: Bench, at: int) -> str:
    """What came of a kill in the middle of this write; unknown where nobody could read behind it."""
    try:
        torn = bench.run([Kill(0, at, torn=True)])
    except Broken:
        return Guarantee.UNKNOWN.value
    return verdict_of(torn.story, torn.due).guarantee.value
