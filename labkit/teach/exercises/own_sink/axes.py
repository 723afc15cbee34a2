"""Test a learner's sink on several axes, such as crashes or an older writer, and report the first fault of each.

Each axis is a separately graded property with its own trials. A crash happens before a request of the sink, in the
middle of writing a file, or after the sink has returned.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain, count, takewhile
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from labkit.core.judge import Guarantee, Verdict
from labkit.core.words import sentence
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant
from labkit.teach.exercises.own_sink.fencing import fenced_trials, overtaken
from labkit.teach.exercises.own_sink.trials import (
    MADE_ANOTHER_REQUEST,
    Batches,
    Bench,
    Broken,
    Kill,
    Past,
    Row,
    StepAsker,
    StoreServer,
    TrialResult,
    conclude,
)
from labkit.teach.exercises.searching import unusable

CRASH = "a crash at every place"
SECOND = "a second crash, in the recovery"
READER = "what a reader saw"
OLDER = "an older checkpoint"
QUERY = "a second query"
STOPPED = "a stopped writer goes on"
LEFT = "nothing is left over"
RESTORED = "a restored checkpoint"


def places(tried: TrialResult, batches: Sequence[int], *, torn: bool) -> Iterator[Kill]:
    """Yield every kill in these batches: before each request of the sink, and after its last request.

    `tried` is a run without a crash. `torn` adds kills in the middle of writing a file. A batch in which the sink
    raised an error gets no kill.
    """
    deliveries = tried.story.deliveries
    for batch in (each for each in batches if each < len(deliveries)):
        for at in range(deliveries[batch] + 1):
            yield Kill(batch, at)
            if torn:
                yield Kill(batch, at, torn=True)


def _crashes(bench: Bench) -> Iterator[TrialResult]:
    healthy = bench.run()
    yield healthy
    # A stuck job never got its later batches, so there is no place in them to kill.
    if healthy.story.stuck:
        return
    torn = bench.kind == "folder"
    for kill in places(healthy, range(len(bench.batches)), torn=torn):
        yield bench.run([kill])
    if bench.wide:
        wide = bench._replace(batches=bench.wide, wide=())
        undisturbed = wide.run()
        yield undisturbed
        # Killed before its last request, a sink that commits a large batch in parts has left all but the last one.
        if undisturbed.story.deliveries:
            yield wide.run([Kill(0, undisturbed.story.deliveries[0] - 1)])


def _second_crashes(bench: Bench) -> Iterator[TrialResult]:
    """Yield a run without a kill, and then runs with two kills: one in the first batch, the other in the recovery.

    If several first kills leave the same content in the store, only one of them is used, because all their recoveries
    are equal.
    """
    two = bench._replace(batches=bench.batches[:2])
    healthy = two.run()
    yield healthy
    seen = set()
    for first in places(healthy, (0,), torn=two.kind == "folder"):
        [state] = bench.run([first]).story.states or [b""]
        if state in seen:  # the recovery would be the same
            continue
        seen.add(state)
        for at in count():
            tried = two.run([first, Kill(0, at)])
            if len(tried.story.kills) < 2:  # the recovery has no such request
                break
            yield tried
            if two.kind == "folder" and "before write(" in tried.story.kills[1]:
                yield two.run([first, Kill(0, at, torn=True)])


def _older(bench: Bench) -> Iterator[TrialResult]:
    """Yield runs in which a job finishes, and then repeats its batches from the first, the second or the last one on.

    If the store is a folder, further runs are killed in the middle of writing a file while they repeat the last batch.
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


def _restored(bench: Bench) -> Iterator[TrialResult]:
    """Yield a run in which a finished job repeats its last batch under the same number, but with one more row."""
    last = len(bench.batches) - 1
    item = bench.batches[-1][-1]
    cut_anew = [*bench.batches[:last], [*bench.batches[last], item | {"id": int(str(item["id"])) + 1}]]
    with bench.trial() as begun:
        if begun.run(bench.query, bench.batches):
            begun.restart()
            begun.run(bench.query, cut_anew, first=last)
        tried = conclude(begun, cut_anew, "all batches finished, then the last one repeated with one row more")
    yield tried


def _again(bench: Bench, first: int, kills: Sequence[Kill] = ()) -> TrialResult:
    with bench.trial() as begun:
        if begun.run(bench.query, bench.batches):
            begun.restart()
            begun.run(bench.query, bench.batches, kills, first=first)
        tried = conclude(begun, bench.batches)
    killed = f", {tried.what}" if tried.story.kills else ""
    return replace(tried, what=f"all batches finished, then repeated from batch {first}{killed}")


def _queries(bench: Bench) -> Iterator[TrialResult]:
    healthy = bench.run()
    if not healthy.story.deliveries:  # its first batch raised
        yield healthy
        return
    last, due = Kill(0, healthy.story.deliveries[0]), [*bench.batches, *bench.others]
    for kills in ([], [last]):
        with bench.trial() as begun:
            if begun.run(bench.query, bench.batches, kills):
                begun.run(bench.other, bench.others, kills)
            tried = conclude(begun, due, "a second query after the first, with batches from 0 on")
        yield tried
    with bench.trial() as begun:
        if begun.run(bench.query, bench.batches) and begun.run(bench.other, bench.others):
            begun.restart()
            begun.run(bench.query, bench.batches, first=len(bench.batches) - 1)
        tried = conclude(begun, due, "a second query after the first, and then the last batch of the first again")
    yield tried
    if bench.alike:
        yield _names_alike(bench)


def _names_alike(bench: Bench) -> TrialResult:
    """Run queries with similar names, each of which writes a batch 0 and repeats it; return the result.

    The first query also writes the batches `LATER_BATCHES`. A query whose name is a 0 and the first query's name also
    writes batch 1, which a sink that joins batch number and name confuses with batch 10 of the first query. The first
    query then writes more batches, until all queries together have written `MOST_BATCHES`, the largest number that the
    task allows. If queries have epochs (fencing numbers), this part is left out, because their task states no largest
    number. Finally the first query repeats its batch 0, which a sink must not have forgotten.
    """
    has_epoch = len(bench.query) > 1
    queries: list[list[Plain]] = [
        [*([100 - number] if has_epoch else []), name] for number, name in enumerate(bench.alike)
    ]
    one_each: list[Batches] = [[_one_row(1_000 - number)] for number in range(len(bench.alike))]
    with bench.trial() as begun:
        for _ in range(2):
            for query, batches in zip(queries, one_each, strict=True):
                begun.run(query, batches)
            begun.restart()
        due = [batch for batches in one_each for batch in batches]
        glued = [(query, 1, 2_000) for query in queries if query[-1] == f"0{bench.alike[0]}"]
        for query, number, row in (*((queries[0], *later) for later in LATER_BATCHES.items()), *glued):
            due.append(_one_row(row))
            for _ in range(2):
                begun.deliver([*query, number, [*due[-1]]], number, None)
                begun.restart()
        last, more = max(LATER_BATCHES), 0 if has_epoch else MOST_BATCHES - len(due)
        for number in range(last + 1, last + 1 + more):
            due.append(_one_row(900_000_000 + number))
            begun.deliver([*queries[0], number, [*due[-1]]], number, None)
        begun.deliver([*queries[0], 0, [*due[0]]], 0, None)
        return conclude(begun, due, "queries with names alike, each with a batch 0, and then each once more")


def _one_row(number: int) -> list[Row]:
    return [{"id": number, "item": "pen", "amount": 1}]


LATER_BATCHES = {10: 1_000 + 2**16 * 5**5, 100: 1_000 + 7 * 10**8, 1_000: 1_000 + 92 * 97 * 101 * 997}
"""Batch numbers that a sink confuses with 0 if it keeps only their last digit or digits, and the id of the row of each.

A sink confuses the ids with 1,000 if it keeps only their last digits, their last 16 bits or a remainder.
"""
MOST_BATCHES = 60
"""The largest number of batches of all queries together, as the tasks say."""


def wrong_in_the_end(tried: TrialResult) -> str:
    """Return the fault in the final rows of a run, such as a lost row; an empty text if the rows are right."""
    if tried.story.stuck:
        again = "the batch was repeated, and " if tried.story.kills else ""
        return f"the job is stuck: {again}the sink raised {tried.story.stuck}"
    verdict = tried.verdict
    if verdict.guarantee == Guarantee.EXACTLY_ONCE:
        return tried.story.wrong_reply
    lost_and_more = f"{verdict.guarantee}: {_in_words(verdict, tried.due, _altered(tried))}"
    return "; ".join(filter(None, [lost_and_more, tried.story.wrong_reply]))


def _altered(tried: TrialResult) -> str:
    """Return a sentence on the first stored row whose item or amount the sink has changed; empty if there is none."""
    sent = {row["id"]: row for batch in tried.due for row in batch}
    for row in tried.story.samples[-1].seen:
        if row.id not in sent:
            continue
        item, amount = str(sent[row.id]["item"]), sent[row.id]["amount"]
        if row.key is not None and row.key != item:
            equal = takewhile(lambda pair: pair[0] == pair[1], zip(row.key, item, strict=False))
            same = max(0, len(list(equal)) - 20)  # a long item may differ only at its end
            after = f", after {same} characters that are the same" if same else ""
            return f"row {row.id} has the item {shown(row.key[same:])} instead of {shown(item[same:])}{after}"
        if row.amount != amount:
            return f"row {row.id} has the amount {row.amount} instead of {amount}"
    return ""


def _in_words(verdict: Verdict, due: Batches, altered: str) -> str:
    rows = sum(map(len, due))
    counted = ((verdict.lost, f"of {rows} rows got lost"), (verdict.duplicate, f"of {rows} rows got duplicated"))
    faults = [f"{len(numbers)} {what}, the first is number {numbers[0]}" for numbers, what in counted if numbers]
    if verdict.unexpected:
        faults.append(altered or "there are rows that the sink never received")
    return "; ".join(faults) or verdict.because


def wrong_meanwhile(tried: TrialResult) -> str:
    """Return the fault that a reader saw during the run, such as half a batch; an empty text if there was none."""
    verdict = tried.verdict
    if verdict.fractured_read:
        return "a reader saw a part of a batch"
    if verdict.aborted_read:
        return "a reader saw a row that later disappeared"
    return ""


def left_over(tried: TrialResult) -> str:
    """Return a clause that names the files which the sink left behind unused; an empty text if there are none."""
    names = tried.story.left_over
    return f"files left over at the end: {', '.join(names[:3])}" if names else ""


def wrong_at_any_time(tried: TrialResult) -> str:
    """Return the fault in the final rows or, if these are right, the fault that a reader saw earlier; empty if none."""
    return wrong_in_the_end(tried) or wrong_meanwhile(tried)


PARAMETERS = ("batches", "query", "others", "other")
"""The parameters of an exercise's variant that determine the input of the sink."""

_runs: "WeakKeyDictionary[Answer, dict[str, Past]]" = WeakKeyDictionary()
"""The finished runs of each learner's sink that is being judged, by the sink's input, because several axes use them."""

TESTS: dict[str, tuple[Callable[[Bench], Iterator[TrialResult]], Callable[[TrialResult], str]]] = {
    CRASH: (_crashes, wrong_in_the_end),
    SECOND: (_second_crashes, wrong_at_any_time),
    READER: (_crashes, wrong_meanwhile),
    OLDER: (_older, wrong_at_any_time),
    QUERY: (_queries, wrong_at_any_time),
    STOPPED: (fenced_trials, wrong_in_the_end),
    LEFT: (lambda bench: chain(_crashes(bench), _second_crashes(bench)), left_over),
    RESTORED: (_restored, wrong_at_any_time),
}
"""For each axis the function that runs its trials, and the one that finds the fault of a trial."""


def _judged(axis: str, bench: Bench) -> Iterator[tuple[TrialResult, str]]:
    """Yield every run that tests a sink on one axis (a separately graded property), with its fault or an empty text."""
    trials, wrong = TESTS[axis]
    for number, each in enumerate(trials(bench)):
        # A sink that writes nothing would pass on the other axes, so the first run's final rows must always be right.
        yield each, (wrong_in_the_end(each) if number == 0 else "") or wrong(each)


def judge_axis(answer: Answer, variant: Variant, *, name: str, kind: str) -> Finding:
    """Test a learner's sink on one axis (a separately graded property), up to the first fault.

    `variant` names the axis, `name` is the name of the sink's function, and `kind` is the kind of its store.
    """
    ask, axis, runs = StepAsker(answer, name), str(variant["axis"]), 0
    parameters = {each: variant[each] for each in PARAMETERS}
    more = {each: dict(variant.parameters).get(each, ()) for each in ("alike", "wide")}
    known = _runs.setdefault(answer, {}).setdefault(json.dumps(parameters, sort_keys=True), Past())
    try:
        with closing(StoreServer()) as server:
            for each, wrong in _judged(axis, Bench(server, ask, kind, **parameters, past=known, **more)):
                runs += 1
                if wrong:
                    _hold_still(ask)
                    return _finding(axis, each, wrong)
            _hold_still(ask)
    except Broken as error:
        return Finding(False, sentence(str(error)), general=f"A trial could not continue: {axis}.")
    except Unusable as error:
        return unusable(name, error)
    seen = f"{axis}: {runs} runs without a fault"
    return Finding(True, sentence(seen), seen)


RIGHT = {READER: "readers see only whole batches, and no row disappears", LEFT: "no file is left that no reader uses"}
"""The property of a right sink, for axes that examine something other than the final rows."""


def _hold_still(ask: Asker) -> None:
    # The results of a sink whose requests vary prove nothing, because its next run may be different.
    if ask.changed():
        raise Unusable(f"{ask.name} {MADE_ANOTHER_REQUEST}")


def _finding(axis: str, tried: TrialResult, fault: str) -> Finding:
    short = fault.partition(": ")[0]
    right = RIGHT.get(axis, "every row once, and nothing else")
    general = f"With other rows, {axis}: {short}."
    return Finding(False, sentence(f"{tried.what}: {fault}"), short, right, general=general)


AXES: Mapping[str, Sequence[str]] = {
    "table": (CRASH, READER, SECOND, OLDER, QUERY),
    "folder": (CRASH, READER, SECOND, OLDER, QUERY, LEFT),
    "writers": (CRASH, STOPPED, QUERY),
}
"""The axes on which each kind of sink is tested."""


class Axis(NamedTuple):
    """The result of all runs that tested a sink on one axis, a separately graded property such as crash safety."""

    axis: str
    runs: int
    """The number of trials; 0 if there were none, because the sink fails without a crash."""
    wrong: str
    """The first fault, or an empty text."""


class Place(NamedTuple):
    """The result of a kill at one point of the sink's first batch or, with two writers, of stopping the older one."""

    request: str
    """The request that the sink would make next at this point; empty if the sink had returned."""
    verdict: str
    torn: str = ""
    """The result of a kill in the middle of the request; empty if it does not write a file."""


FEW = (OLDER, QUERY)
"""The axes with few trials, which can therefore be repeated with more batches and other query names."""


def tried(
    answer: Answer,
    parameters: Mapping[str, Any],
    *,
    name: str,
    kind: str,
    more: Sequence[Mapping[str, Any]] = (),
    also: Sequence[str] = (),
) -> tuple[list[Axis], list[Place]]:
    """Test a sink on the axes (separately graded properties) of its `kind` and on those in `also`.

    Returns a list with the result on each axis, and a list with the result at each point of the first batch (see
    `Place`). `name` is the name of the sink's function. `parameters` maps fields of `Bench`, such as `batches` and
    `query`, to their values. `more` lists further dicts of this form; with each of them, the axes in `FEW` are tested
    again until a fault is found. Raises `Unusable` for a wrong request, and the errors of `Answer.step`.
    """
    first, *others = [*AXES[kind], *also]
    store = "table" if kind == "writers" else kind
    with closing(StoreServer()) as server:
        bench = Bench(server, StepAsker(answer, name), store, **parameters, past=Past())
        try:
            healthy = bench.run()
        except Broken as error:
            return [Axis(first, 1, str(error)), *(Axis(each, 0, str(error)) for each in others)], []
        axes = [_all(axis, bench) for axis in (first, *others)]
        for each in more:
            if not any(axis.wrong for axis in axes):
                other = bench._replace(**each, past=Past())
                axes = [_more(axis, other) for axis in axes]
        stopped = kind == "writers"
        return axes, list(_places(bench, healthy, stopped=stopped))


def _more(axis: Axis, bench: Bench) -> Axis:
    if axis.axis not in FEW:
        return axis
    runs, wrong = _all(axis.axis, bench)[1:]
    if wrong:
        called = f'queries called "{bench.query[-1]}" and "{bench.other[-1]}"'
        wrong = f"{called}, {len(bench.batches)} batches: {wrong}"
    return axis._replace(runs=axis.runs + runs, wrong=wrong)


def _all(axis: str, bench: Bench) -> Axis:
    fault, runs = "", 0
    try:
        for each, wrong in _judged(axis, bench):
            runs += 1
            fault = fault or (f"{each.what}: {wrong}" if wrong else "")
    except Broken as error:
        runs, fault = runs + 1, fault or str(error)
    return Axis(axis, runs, fault)


def _places(bench: Bench, healthy: TrialResult, *, stopped: bool) -> Iterator[Place]:
    requests = healthy.story.requests[: healthy.story.deliveries[0]]
    if stopped and healthy.story.stuck:
        return
    for at, request in enumerate([*requests, ""]):
        try:
            one = overtaken(bench, at) if stopped else bench.run([Kill(0, at)])
        except Broken:
            return
        verdict = one.verdict.guarantee
        writes = request.startswith("write(")
        yield Place(request, verdict.value, _torn(bench, at) if writes else "")


def _torn(bench: Bench, at: int) -> str:
    """Return the guarantee after a kill in the middle of request `at`; unknown if nobody can read the store then."""
    try:
        torn = bench.run([Kill(0, at, torn=True)])
    except Broken:
        return Guarantee.UNKNOWN.value
    return torn.verdict.guarantee.value
