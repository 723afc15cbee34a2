"""Check that a crash happened as planned, for the word-count runs and for the crash test.

A crash counts only if the supervisor killed the driver with SIGKILL, no process of its session is left, the process
that reached the failpoint was among the killed, and Spark's logs show the batch in the state implied by the failpoint.
"""

import signal
from typing import NamedTuple

from labkit.core.errors import JobFailed
from labkit.core.failpoints import EngineLogs
from labkit.host.processes.events import Ending, Killed, Proof
from labkit.host.processes.sessions import session_members
from labkit.spark.checkpoint import Checkpoint


class Reached(NamedTuple):
    """The process and session id of a process that reached a failpoint, as it wrote them to a file before its death."""

    pid: int
    session: int


def check_death(where: object, ending: Ending | None, reached: Reached, *, in_executor: bool = False) -> Proof:
    """Check that the driver was killed by SIGKILL at the failpoint `where`, and return the proof.

    `ending` is the supervisor's report of the driver's end, and `reached` identifies the process that waited at the
    failpoint. With `in_executor`, that process belongs to an executor. It then need not be among the killed ones,
    because an executor has a session of its own and ends by itself. Raises `JobFailed` if any part of the proof is
    missing.
    """
    proof = None if ending is None else ending.proof
    if proof is None or not isinstance(ending, Killed) or proof.signal != signal.SIGKILL or proof.left:
        raise JobFailed(
            f"the run proves nothing; repeat it. The driver reached {where}, but it is not certain that SIGKILL then "
            f"ended it and every other process of its session (the supervisor's report: {ending})."
        )
    # The session is compared as well, because the process id may belong to a new process by now.
    is_member = reached.session == proof.session and reached.pid in proof.killed
    if not is_member and not in_executor:
        raise JobFailed(
            f"the process {reached.pid} that reached {where} was not among the killed processes, so the run "
            "proves nothing; repeat it."
        )
    # An executor that outlived its driver may still write.
    left = [] if proof.executors is None else proof.executors.left
    if left:
        raise JobFailed(
            f"{len(left)} executor process(es) outlived the driver that was killed at {where} (first: {left[0]}); "
            "kill them, and start the run again."
        )
    return proof


def check_dead(ending: Ending) -> None:
    """Raise `JobFailed` unless the driver's end `ending` is a SIGKILL and no process of its session is left."""
    proof = ending.proof
    # The session is checked again now, because the proof describes the moment of the kill.
    if proof.signal != signal.SIGKILL or proof.left or session_members(proof.session):
        raise JobFailed(
            f"the old driver may still be alive ({proof}), so the standby driver must not take over; start the "
            "run again."
        )


class BatchLogs(NamedTuple):
    """The numbers of the batches that Spark had planned (`offsets/N`) and finished (`commits/N`) at one moment."""

    offsets: tuple[int, ...]
    commits: tuple[int, ...]

    @classmethod
    def read(cls, checkpoint: Checkpoint) -> "BatchLogs":
        """Read which batches are planned and finished in the checkpoint now."""
        return cls(tuple(checkpoint.offset_log()), tuple(checkpoint.commit_log()))


def check_logs(
    where: object, batch: int, expected: EngineLogs, checkpoint: Checkpoint, *, killed_at: float | None = None
) -> None:
    """Raise `JobFailed` unless the batch's files `offsets/N` and `commits/N` are present or missing as `expected`.

    `where` names the failpoint in the message. If only an executor was killed, the driver may have written files after
    the kill. Then pass `killed_at`, the time of the kill in seconds since 1970, so that later files count as missing.
    """
    for log, is_expected in (("offsets", expected.planned), ("commits", expected.finished)):
        if _was_there(checkpoint, log, batch, killed_at) is not is_expected:
            state = "missing" if is_expected else "there"
            raise JobFailed(
                f"{where} was reached, but the checkpoint's file {log}/{batch} is {state}, which is "
                "impossible at this failpoint, so the run proves nothing; start it again."
            )


def _was_there(checkpoint: Checkpoint, log: str, batch: int, killed_at: float | None) -> bool:
    path = checkpoint.folder / log / str(batch)
    try:
        # Not the mtime: Spark writes a temporary file and renames it, and a rename changes only the ctime.
        renamed = path.stat().st_ctime
    except FileNotFoundError:
        return False
    return killed_at is None or renamed <= killed_at


def check_unchanged(where: object, before: BatchLogs, checkpoint: Checkpoint) -> None:
    """Raise `JobFailed` if the batches in the checkpoint's `offsets` or `commits` are not the same as in `before`.

    Call this function after a kill during recovery, which must not change these two logs. `before` lists the batches
    that they contained when the killed driver started. `where` names the failpoint in the message.
    """
    now = BatchLogs.read(checkpoint)
    if now != before:
        raise JobFailed(
            f"the driver was killed at {where}, during its recovery. Recovery must not change Spark's files in the "
            f"checkpoint, but they have changed (offsets from {list(before.offsets)} to {list(now.offsets)}, commits "
            f"from {list(before.commits)} to {list(now.commits)}), so the run proves nothing; start it again."
        )
