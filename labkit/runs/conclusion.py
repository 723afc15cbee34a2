"""The end of a run: its store is read once, the judge is asked, and everything that is known is written down.

The history goes to the judge and into its file in the same pass, so that it need not fit into memory. This module
must not count anything itself.
"""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from labkit.core.explanation import Explanation, judge_and_explain, settled
from labkit.core.exposure import Exposure
from labkit.core.judge import judge
from labkit.core.records import History, Observation, PlannedBatch, Reading, Record
from labkit.host import durable
from labkit.runs import moments
from labkit.runs.kafka_source import drop_source
from labkit.runs.record import RunRecord, final_text, read_history, written
from labkit.runs.run import Run, keep_evidence, open_store_of
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.options import CheckpointFate, Job
from labkit.stores.contract import ServerBacked, Shown, Store


def conclude(run: Run) -> RunRecord:
    """Judges a run that has ended, writes history, evidence and verdict, and drops what it left in a server."""
    keep_evidence(run)
    with closing(open_store_of(run)) as store:
        record = _judged(run, store)
        final = final_text(record.verdict)
        if final is not None:
            durable.replace(run.folder.final, final)
        durable.replace(run.folder.verdict, json.dumps(record.to_json(), indent=2))
        release(run, store)
    return record


def _judged(run: Run, store: Store) -> RunRecord:
    """Reads the store's history once: into its file, and past the judge."""
    count = run.scenario.count
    # In this order a transaction that somebody commits in between is seen twice, and
    # never missed.
    hidden = list(count.numbered(store.hidden()))
    known = moments.Moments()
    rows = count.numbered(known.read(store))
    events = written(_with_readings(rows, run.readings), run.folder.history)
    history = History(
        events=events, keyed=run.scenario.strategy.facts.replaces, planned_batches=_planned_batches(run), hidden=hidden
    )
    try:
        verdict, explanation = judge_and_explain(count.expected(), history, count.outcomes())
    finally:
        for _ in events:  # the file is whole even where the judge refuses a row of it
            continue
    if count.outcomes():
        # Which outcome each record has is known only now, when all has been read.
        said = replace(history, events=read_history(run.folder.history))
        verdict = judge(_expected(run), said)
    shown = _bounded(run, known) if known.are_whole else []
    if known.are_whole:
        moments.write(run.folder.moments, shown)
    return RunRecord(
        scenario=run.scenario,
        folder=run.folder,
        verdict=verdict,
        explanation=_timed(run, explanation, shown),
        exposure=_exposure(run, shown, hidden) if known.are_whole else None,
        crashes=run.crashes,
        seconds=run.seconds,
        drivers=run.drivers,
        hidden=hidden,
        files=Checkpoint(run.folder.checkpoint).files(),
        released=isinstance(store, ServerBacked) and not run.keep_store,
    )


def _bounded(run: Run, known: moments.Moments) -> list[Shown]:
    """The moments of the rows, with bounds where the store knows nothing."""
    kept = run.scenario.checkpoint is not CheckpointFate.DELETED
    frame = moments.frame(
        _begun(run),
        time.time(),
        readings=run.readings,
        crashes=run.crashes,
        # Batches of a deleted checkpoint bear the numbers of others.
        checkpoint=Checkpoint(run.folder.checkpoint) if kept else None,
        strategy=run.scenario.strategy,
        started=run.started,
    )
    rows = _rows(run)
    return [frame.bound(place, row, shown) for place, (row, shown) in enumerate(zip(rows, known.shown, strict=True))]


def _rows(run: Run) -> Iterator[Observation]:
    events = read_history(run.folder.history)
    return (event for event in events if isinstance(event, Observation))


def _begun(run: Run) -> float | None:
    config = run.folder.config
    return config.stat().st_ctime if config.exists() else None


def _expected(run: Run) -> Iterable[Record]:
    """The records of the run that is compared with; of what was looked up, as the run's history shows it in the end."""
    count = run.scenario.count
    if outcomes := count.outcomes():
        return settled(count.expected(), _rows(run), outcomes)
    return count.expected()


def _exposure(run: Run, shown: Sequence[Shown], hidden: Sequence[Observation]) -> Exposure:
    scenario = run.scenario
    return moments.exposed(
        _expected(run), _rows(run), shown, time.time(), run.ready, strategy=scenario.strategy, hidden=hidden
    )


def _timed(run: Run, explanation: Explanation, shown: Sequence[Shown]) -> Explanation:
    """The explanation with the moment of the row that refutes, in seconds since the run began."""
    begun = _begun(run)
    at = shown[explanation.rows].at if shown and explanation.row else None
    if at is None or begun is None:
        return explanation
    least, most = (f"{moment - begun:.2f}" for moment in at)
    said = f"at {least} s" if least == most else f"between {least} and {most} s"
    return replace(explanation, at=said)


def release(run: Run, store: Store) -> None:
    """Drops what a run left in servers, unless it is to be kept; its history is in the run's folder."""
    if run.keep_store:
        return
    # Rows on this machine stay in the run's folder for whoever wants to look; rows in a
    # server would pile up there.
    if isinstance(store, ServerBacked):
        store.destroy()
    drop_source(run.scenario, run.folder)


def _with_readings(rows: Iterable[Observation], readings: Sequence[tuple[str, int]]) -> Iterator[Observation | Reading]:
    """The rows, with every moment at which an outside reader really looked in its place."""
    waiting = list(readings)
    for position, row in enumerate(rows):
        # Several readings may lie at one position: nothing became visible between them.
        while waiting and waiting[0][1] == position:
            yield Reading(waiting.pop(0)[0])
        yield row
    for moment, _ in waiting:
        yield Reading(moment)
    yield Reading("end")


def _planned_batches(run: Run) -> Sequence[PlannedBatch]:
    """The planned batches: none where a deleted checkpoint leaves two plans, or where offsets are no line numbers."""
    scenario = run.scenario
    if scenario.checkpoint is CheckpointFate.DELETED or scenario.job in (Job.SOCKET, Job.KAFKA):
        return ()
    return scenario.count.planned_batches(Checkpoint(run.folder.checkpoint).planned_batches())
