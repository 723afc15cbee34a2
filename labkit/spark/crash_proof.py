"""The proof that a crash happened as planned: one rule for the word-count runs and for the crash test.

A crash counts only with this proof: the supervisor killed the driver with signal 9, nothing of its session is left, the
process that reached the failpoint was among the killed, and the engine's logs show the batch in the state that the
failpoint implies.
"""

import signal
from typing import NamedTuple

from labkit.core.errors import JobFailed
from labkit.core.failpoints import EngineLogs
from labkit.host.processes.events import Ending, Killed, Proof
from labkit.host.processes.sessions import session_members
from labkit.spark.checkpoint import Checkpoint


class Reached(NamedTuple):
    """The identity of the process that reached the failpoint, which it recorded before it waited to be killed."""

    pid: int
    session: int


def check_death(where: object, ending: Ending | None, reached: Reached, *, in_executor: bool = False) -> Proof:
    """Return the proof that the driver was killed at its failpoint. Raises `JobFailed` if any part of it is missing.

    `in_executor` means that the failpoint was in an executor of a cluster. An executor has its own session, so it is
    not among the killed: it ends by itself, and the proof records whether it has.
    """
    proof = None if ending is None else ending.proof
    if proof is None or not isinstance(ending, Killed) or proof.signal != signal.SIGKILL or proof.left:
        raise JobFailed(
            f"the driver at {where} did not die by SIGKILL alone (it ended with {ending}), so the run proves nothing."
        )
    # Both are compared, because the process id alone may belong to a new process by now.
    is_member = reached.session == proof.session and reached.pid in proof.killed
    if not is_member and not in_executor:
        raise JobFailed(
            f"the process {reached.pid} that reached {where} was not among the killed processes, so the run "
            "proves nothing."
        )
    _check_executors(where, proof)
    return proof


def _check_executors(where: object, proof: Proof) -> None:
    """Raise `JobFailed` if an executor on this host still lives, because only its end completes the crash."""
    left = [] if proof.executors is None else proof.executors.left
    if left:
        raise JobFailed(
            f"{len(left)} process(es) of executors outlived the driver at {where} and do not end (first: "
            f"{left[0]}); kill them, and start the run again."
        )


def check_dead(ending: Ending) -> None:
    """Raise `JobFailed` unless the driver was killed and its session is empty, so that another driver may take over."""
    proof = ending.proof
    # The proof describes the moment of the kill. Another look costs little, and nobody may take over from a living
    # writer.
    if proof.signal != signal.SIGKILL or proof.left or session_members(proof.session):
        raise JobFailed(f"the old driver may still be alive ({proof}), so the standby must not take over.")


class BatchLogs(NamedTuple):
    """The batches whose `offsets/N` and `commits/N` were durable at a certain time."""

    offsets: tuple[int, ...]
    commits: tuple[int, ...]

    @classmethod
    def read(cls, checkpoint: Checkpoint) -> "BatchLogs":
        """Return the batches that both logs contain now."""
        return cls(tuple(checkpoint.offset_log()), tuple(checkpoint.commit_log()))


def check_logs(
    where: object, batch: int, expected: EngineLogs, checkpoint: Checkpoint, *, killed_at: float | None = None
) -> None:
    """Raise `JobFailed` unless this batch's `offsets/N` and `commits/N` exist or are absent as `expected`.

    `killed_at` (seconds since 1970) is set if the driver outlived the crash because an executor was killed: a file that
    is younger than the kill did not exist when the failpoint was reached.
    """
    for log, is_expected in (("offsets", expected.planned), ("commits", expected.finished)):
        if _was_there(checkpoint, log, batch, killed_at) is not is_expected:
            state = "missing" if is_expected else "there"
            raise JobFailed(f"{where} was reached, but {log}/{batch} is {state}, so the run proves nothing.")


def _was_there(checkpoint: Checkpoint, log: str, batch: int, killed_at: float | None) -> bool:
    path = checkpoint.folder / log / str(batch)
    try:
        # Spark writes a log entry to a temporary file and renames it. The rename changes the ctime of the inode, but
        # not the mtime.
        renamed = path.stat().st_ctime
    except FileNotFoundError:
        return False
    return killed_at is None or renamed <= killed_at


def check_unchanged(where: object, before: BatchLogs, checkpoint: Checkpoint) -> None:
    """Raise `JobFailed` unless recovery left the engine's logs as they were when its driver started (`before`)."""
    now = BatchLogs.read(checkpoint)
    if now != before:
        raise JobFailed(
            f"{where} was reached, but recovery changed the engine's logs (offsets {list(before.offsets)}, "
            f"commits {list(before.commits)} became {list(now.offsets)}, {list(now.commits)}), so the run "
            "proves nothing."
        )
