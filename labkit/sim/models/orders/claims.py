"""The properties (claims) to check in the simulator `orders`, the judge of its visible rows, and its texts.

Only `labkit.core.judge` counts lost, duplicate and wrong rows: `Judge` turns a state into a History.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter

from labkit.core.records import History, Observation, PlannedBatch, Reading, Record, Visibility
from labkit.sim.model import Property
from labkit.sim.models.orders.state import (
    CRASHED,
    NO_JOB,
    ROWS_OF_A_STEP,
    TAKEN_BACK,
    Job,
    Note,
    Place,
    Process,
    Seen,
    Settings,
    State,
    World,
    kept,
)
from labkit.sim.verdicts import StateJudge
from labkit.sim.wording import listed
from labkit.sim.writes import Output, Recovery, Start, Write

KEY = "hello"


def expected(rows: int) -> list[Record]:
    """Return the records that a run should output: each has the same word, and the running count of this word."""
    return [Record(offset, KEY, offset + 1) for offset in range(rows)]


def is_done(settings: Settings, state: State) -> bool:
    """Return whether the run is complete: the process is up and has nothing left to do."""
    process = state.process
    return process.place is Place.IDLE and process.job.start >= settings.rows


def history_of(seen: Sequence[Seen], *, rows: int, keyed: bool, bounds_change: bool) -> History:
    """Return the rows that readers saw in a run as a `History`, the form that a judge needs.

    The history has a complete read at each crash and at the end. `rows` is the length of the input; `keyed` means that
    a row replaces the earlier row of its key. With `bounds_change`, a repeated step may take other rows, so the history
    does not say which rows belong to which batch.
    """
    batches = [
        PlannedBatch(step, start, min(start + ROWS_OF_A_STEP, rows))
        for step, start in enumerate(range(0, rows, ROWS_OF_A_STEP))
    ]
    return History(_events(seen, keyed=keyed), keyed, [] if bounds_change else batches)


def _events(seen: Sequence[Seen], *, keyed: bool) -> Iterator[Observation | Reading]:
    """Yield the rows that readers see, as they become visible, and a complete read at each crash and at the end.

    A row that recovery takes back later is yielded as part of an aborted transaction. With upserts (`keyed`), readers
    then see the earlier row of the key again, so that row is yielded a second time.
    """
    standing = set(kept(seen))
    crashes = 0
    for index, row in enumerate(seen):
        if row.offset == CRASHED:
            crashes += 1
            yield Reading(f"crash {crashes}")
        elif row.offset == TAKEN_BACK:
            if keyed and not any(each.offset == TAKEN_BACK for each in seen[index + 1 : index + 2]):
                left = kept(seen[: index + 1])[-1:]
                yield from (_observed(seen[each], stands=each in standing) for each in left)
        else:
            yield _observed(row, stands=index in standing)
    yield Reading("end")


def _observed(row: Seen, *, stands: bool) -> Observation:
    seen_as = Visibility.COMMITTED if stands else Visibility.ABORTED
    return Observation(row.offset, KEY, row.value, row.step, row.life, seen_as)


class Judge(StateJudge[State]):
    """Judges the rows that readers have seen: whether some are lost, duplicated, wrong, or taken back."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(expected(settings.rows), attrgetter("seen"))
        self._settings = settings

    def history(self, state: State) -> History:
        """Return the rows that an outside reader has seen, and a complete read at each crash and at the end."""
        settings = self._settings
        return history_of(
            state.seen,
            rows=settings.rows,
            keyed=settings.design.output is Output.UPSERT,
            bounds_change=settings.world is World.OTHER,
        )


ENDS = {
    "no_loss": "When all is done, no row is lost.",
    "no_duplicate": "When all is done, no row appears twice.",
    "no_unexpected": "When all is done, every value is right.",
}
"""The claims about the end of a run, from which the guarantee of a design follows."""

MEANWHILE = {
    "no_regression": "No reader sees an older value after a newer one.",
    "no_fractured_read": "At a crash, the rows of a step are visible completely or not at all.",
    "no_aborted_read": "No row disappears after readers could see it.",
}
"""The claims about readings before the end of a run; a design can break them although its final rows are right."""


def claims(settings: Settings, judge: Judge) -> Sequence[Property[State]]:
    """Return the properties of the simulator `orders` that a search checks.

    They say which rows readers may and must see; `judge` compares the rows with the expected ones.
    """
    done = partial(is_done, settings)
    return [
        *(judge.claim(name, sentence, done) for name, sentence in ENDS.items()),
        judge.claim("no_regression", MEANWHILE["no_regression"], None),
        judge.claim(
            "no_fractured_read", MEANWHILE["no_fractured_read"], lambda state: state.process.place is Place.DOWN
        ),
        judge.claim("no_aborted_read", MEANWHILE["no_aborted_read"], None),
        judge.all_out("All rows have come out.", done),
    ]


WRITTEN = {
    Write.PLAN: "its plan",
    Write.STATE: "the state after it",
    Write.STAGED: "its output, staged where nobody reads",
    Write.VISIBLE: "its output, visible",
    Write.MARKER: "the store's marker",
    Write.DECISION: "the decision that it is done",
    Write.NOTICE: "the notice to another system",
}
"""For each kind of durable write, the words that name it in a sentence."""


def set_in_words(writes: Sequence[Write]) -> str:
    """Return a sentence that says that these writes have become durable."""
    if tuple(writes) == (Write.CLEAN,):
        return "its staged output is removed"
    names = " and ".join(WRITTEN.get(each, "the removal of staged output") for each in writes)
    return f"{names} become durable at once" if len(writes) > 1 else f"{names} is durable"


def rows_in_words(job: Job, plan: Job | None) -> str:
    """Return a sentence that says which rows a step takes, and whether a plan, written before the step, fixes them."""
    rows = f"row {job.start}" if job.end == job.start + 1 else f"rows {job.start} to {job.end - 1}"
    planned = ", as its plan says" if plan else ""
    return f"Step {job.step} takes {rows}{planned}; the count before it is {job.base}."


def skipped_in_words(process: Process) -> str:
    """Return a sentence that says why the process skips the output of its step."""
    return f"The marker names step {process.marker.step}, so the process skips the output of step {process.job.step}."


_SOURCES = {
    Start.BEGINNING: "It reads no record",
    Start.PLAN: "It reads the last plan",
    Start.STATE: "It reads the newest state",
    Start.MARKER: "It reads the store's marker",
    Start.DECISION: "It reads the last decision",
    Start.NOTICE: "It reads the last notice to another system",
}


def started_in_words(recovery: Recovery, before: Process, after: Process) -> str:
    """Return a sentence that says which record the process read at its restart, and with which step it continues."""
    if after.place is Place.UNDOING:
        return f"The process starts. {_SOURCES[recovery.start]}, and finds visible output of step {after.job.step}."
    if after.place is Place.FINISHING:
        return f"The process starts, finds the staged output of step {after.job.step} and finishes it."
    dropped = f" and drops the staged output of step {before.staged.step}" if before.staged is not NO_JOB else ""
    job = after.job
    return (
        f"The process starts{dropped}. {_SOURCES[recovery.start]}: step {job.step} comes next, "
        f"from row {job.start}, with the count {job.base}."
    )


def text(state: State) -> str:
    """Return a state as one line of text: stores, memory, visible rows, and the crashes that may still happen."""
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
    if state.faults or process.is_late:
        parts.append(f"other faults left: {state.faults}{', late' * process.is_late}")
    return "; ".join(parts)


def _all(words: Iterable[str]) -> str:
    return listed(words, ", ", "none")


def _job(job: Job) -> str:
    return "none" if job is NO_JOB else f"{job.step}:{job.start}-{job.end} from {job.base}"


def _row(row: Seen) -> str:
    if row.offset == TAKEN_BACK:
        return "taken back"
    return f"crash {row.life}" if row.offset == CRASHED else f"{row.offset}={row.value}/{row.step}/{row.life}"


def _note(note: Note) -> str:
    return "none" if note.step < 0 else f"{note.step}:{note.end}"
