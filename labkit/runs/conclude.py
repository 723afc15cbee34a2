"""Finish a run: read its store once, let the judge count the anomalies, and write verdict, report and diagram.

The judge and the history file receive each row in the same pass, so that a long history need not fit into memory.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from labkit.core.explanation import judge_and_explain, settled
from labkit.core.judge import judge
from labkit.core.records import History, Observation, PlannedBatch, Record
from labkit.host import durable
from labkit.runs import moments
from labkit.runs.history import Recording, written
from labkit.runs.kafka_source import drop_source, progress
from labkit.runs.outcome import Outcome
from labkit.runs.record import RunRecord, final_text
from labkit.runs.run import Run
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.master import Victim
from labkit.spark.options import CheckpointFate, Job
from labkit.stores.contract import ServerBacked, Store

LEADS = {
    Victim.DRIVER: (
        "One real Spark job, killed by SIGKILL and restarted from its checkpoint. A separate process read the results."
    ),
    Victim.EXECUTOR: (
        "One real Spark job. An executor was killed by SIGKILL, and the driver ran the task again. A separate process "
        "read the results."
    ),
}
"""The introduction of a run's report, by the kind of process that was killed."""


def conclude(run: Run) -> Outcome:
    """Judge a run that has ended, write the results into its folder, and return them.

    Then delete the run's rows and its input topic from PostgreSQL or Kafka, unless `run.keep_store` is set. Raises the
    error of a run that failed.
    """
    if run.error is not None:
        raise run.error
    # Imported here, because the pages load the drawing libraries, which a refused run never needs.
    from labkit.runs.pages.diagram import write_diagram
    from labkit.runs.pages.report import write_report

    end = _end(run)
    run.keep_evidence(end)
    with closing(run.open_store()) as store:
        record = _judged(run, store, end["files"])
        final = final_text(record.verdict)
        if final is not None:
            durable.replace(run.folder.final, final)
        durable.replace(run.folder.verdict, json.dumps(record.to_json(), indent=2))
        release(run, store)
    title = f"Crash report: {run.scenario.label}"
    write_report([record], run.folder.report, title, LEADS[run.scenario.victim])
    write_diagram(record)
    return Outcome(record)


def _end(run: Run) -> dict[str, Any]:
    checkpoint = Checkpoint(run.folder.checkpoint)
    end: dict[str, Any] = {"offset_log": checkpoint.offset_log(), "commit_log": checkpoint.commit_log()}
    end["files"] = checkpoint.files()
    return end | {"progress": progress(run.folder)} if run.scenario.job is Job.KAFKA else end


def _judged(run: Run, store: Store, files: Sequence[str]) -> RunRecord:
    """Judge all rows that the store showed to readers, write them to the run's history file, and return all results.

    `files` are the names of the checkpoint's files at the end of the run, which become a part of the results.
    """
    scenario, count = run.scenario, run.scenario.count
    outcomes = count.outcomes()
    # Read before the visible rows: a transaction that commits between the two reads is then seen twice, and not missed.
    hidden = list(count.numbered(store.hidden()))
    recording = Recording(run.readings, keeps_all=bool(outcomes))
    events = written(recording.read(store, count.numbered), run.folder.history)
    history = History(
        events=events, keyed=scenario.strategy.facts.replaces, planned_batches=_planned_batches(run), hidden=hidden
    )
    try:
        verdict, explanation = judge_and_explain(count.expected(), history, outcomes)
    finally:
        for _ in events:  # the file is complete even if the judge refuses one of its rows
            continue
    expected: Iterable[Record] = count.expected()
    if outcomes:
        assert recording.events is not None, "every event of such a run is kept"
        # The outcome of each record is known only after everything has been read.
        expected = settled(expected, recording.events, outcomes)
        verdict = judge(expected, replace(history, events=recording.events))
    exposure = None
    if recording.shown is not None and recording.events is not None:
        rows = [event for event in recording.events if isinstance(event, Observation)]
        explanation, exposure = moments.timed(run, explanation, expected, rows, recording.shown, hidden=hidden)
    return RunRecord(
        scenario=scenario,
        folder=run.folder,
        verdict=verdict,
        explanation=explanation,
        exposure=exposure,
        crashes=run.crashes,
        seconds=run.seconds,
        drivers=run.drivers,
        hidden=hidden,
        files=files,
        released=isinstance(store, ServerBacked) and not run.keep_store,
        kept=recording.events,
    )


def release(run: Run, store: Store) -> None:
    """Delete the run's rows and its input topic from their servers, unless `run.keep_store` is set."""
    if run.keep_store:
        return
    # Rows on this machine stay in the run's folder for inspection. Rows in a server would accumulate there.
    if isinstance(store, ServerBacked):
        store.destroy()
    drop_source(run.scenario, run.folder)


def _planned_batches(run: Run) -> Sequence[PlannedBatch]:
    """Return the batches that Spark planned, each with its range of expected rows; empty if the ranges are unknown.

    They are unknown for the jobs `socket` and `kafka`, because the offsets of these sources are not line numbers. They
    are also unknown if the scenario deletes the checkpoint, because batches before and after the deletion then contain
    the same lines.
    """
    scenario = run.scenario
    if scenario.checkpoint is CheckpointFate.DELETED or scenario.job in (Job.SOCKET, Job.KAFKA):
        return ()
    return scenario.count.planned_batches(Checkpoint(run.folder.checkpoint).planned_batches())
