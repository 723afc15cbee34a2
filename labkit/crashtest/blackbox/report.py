"""Notes of a report on runs that needed more than one restart, or that could not be watched by system calls."""

from collections.abc import Sequence

from labkit.crashtest.blackbox.runs import IDLE, LEASE, ONCE_MORE, OUTAGE
from labkit.crashtest.verdict import Result

BETWEEN_LINES = (
    "the test killed only before lines of your Python in the driver, so the guarantee is at best not refuted: it "
    "cut nothing within a line or a commit, in the JVM, in Spark's workers or while a module is imported, and left out "
    "the runs with a large batch, other rows for a batch, new rows and a dying task ({why})"
)
"""The note on a test that could not watch system calls, with the reason for that."""


def late_notes(results: Sequence[Result]) -> list[str]:
    """Return notes on runs in which rows were missing after the restart.

    The rows came with one more start, or never came because further starts did nothing, as with a lease.
    """
    late = [each.id for each in results if ONCE_MORE in each.notes and not each.rows_of("lost") and not each.stuck]
    idle = [f"{each.id}: {note}" for each in results for note in each.notes if IDLE in note and each.rows_of("lost")]
    notes = [
        f"{each}; rows that would come after a longer wait, as for a lease, count as lost (--limit)" for each in idle
    ]
    restarts = "one restart ended well without all rows; they came with another start"
    return notes[:1] + ([f"after {len(late)} crash(es), as {late[0]}, {restarts}"] if late else [])


def outage_notes(results: Sequence[Result]) -> list[str]:
    """Return notes on runs in which the reader failed until the recovery, or the command refused to run for a while."""
    notes = []
    for beginning in (OUTAGE, LEASE):
        recovered = (each for each in results if not each.stuck)
        found = [(each.id, note) for each in recovered for note in each.notes if note.startswith(beginning)]
        count = len({name for name, _ in found})
        notes += [f"in {count} run(s), as {name}, {note}" for name, note in found[:1]]
    return notes
