"""A design's states and actions in words. This module must not decide anything."""

from collections.abc import Iterable, Sequence

from labkit.sim.models.orders.parts import NO_JOB, Job, Note, Place, Process, Seen, State
from labkit.sim.wording import listed
from labkit.sim.writes import Recovery, Start, Write

WRITTEN = {
    Write.PLAN: "its plan",
    Write.STATE: "the state behind it",
    Write.STAGED: "its output, staged where nobody reads",
    Write.VISIBLE: "its output, visible",
    Write.MARKER: "the store's marker",
    Write.DECISION: "the decision that it is done",
    Write.NOTICE: "the notice to somebody else",
}
"""Each write as a thing that becomes durable."""


def set_in_words(writes: Sequence[Write]) -> str:
    """What happens when these writes are made."""
    if tuple(writes) == (Write.CLEAN,):
        return "its staged output is removed"
    said = " and ".join(WRITTEN.get(each, "the removal of staged output") for each in writes)
    return f"{said} become durable at once" if len(writes) > 1 else f"{said} is durable"


def rows_in_words(job: Job, plan: Job | None) -> str:
    """Which rows a step takes, and whether a plan says so."""
    rows = f"row {job.start}" if job.end == job.start + 1 else f"rows {job.start} to {job.end - 1}"
    planned = ", as its plan says" if plan else ""
    return f"Step {job.step} takes {rows}{planned}; the count before it is {job.base}."


def skipped_in_words(process: Process) -> str:
    """Why output is left out."""
    return f"The marker names step {process.marker.step}, so the output of step {process.job.step} is left out."


_SOURCES = {
    Start.BEGINNING: "It reads no note",
    Start.PLAN: "It reads the last plan",
    Start.STATE: "It reads the newest state",
    Start.MARKER: "It reads the store's marker",
    Start.DECISION: "It reads the last decision",
    Start.NOTICE: "It reads what somebody else was told",
}


def started_in_words(recovery: Recovery, before: Process, after: Process) -> str:
    """What a restart read, and where it goes on."""
    if after.place is Place.FINISHING:
        return f"The process starts, finds the staged output of step {after.job.step} and finishes it."
    dropped = f" and drops the staged output of step {before.staged.step}" if before.staged is not NO_JOB else ""
    job = after.job
    return (
        f"The process starts{dropped}. {_SOURCES[recovery.start]}: step {job.step} comes next, "
        f"from row {job.start}, with the count {job.base}."
    )


def text(state: State) -> str:
    """The stores, the memory, what was seen, and what may still come."""
    process = state.process
    parts = [
        f"plans {_all(f'{each.step}:{each.start}-{each.end}' for each in process.plans)}",
        f"states {_all(f'{each.step}:{each.end}={each.total}' for each in process.states)}",
        f"staged {_job(process.staged)}",
        *(
            f"{name} {_note(note)}"
            for name, note in (("marker", process.marker), ("decision", process.decision), ("notice", process.notice))
        ),
        f"{process.place} {_job(process.job)} at {process.at}.{process.shown}{' marked' * process.is_marked}",
        f"seen {_all(map(_row, state.seen))}",
        f"life {state.life}, {state.crashes} crashes left",
    ]
    return "; ".join(parts)


def _all(words: Iterable[str]) -> str:
    return listed(words, ", ", "none")


def _job(job: Job) -> str:
    return "none" if job is NO_JOB else f"{job.step}:{job.start}-{job.end} from {job.base}"


def _row(row: Seen) -> str:
    written = f"{row.offset}={row.value}/{row.step}/{row.life}"
    return written if row.offset >= 0 else f"crash {row.life}"


def _note(note: Note) -> str:
    return "none" if note.step < 0 else f"{note.step}:{note.end}"
