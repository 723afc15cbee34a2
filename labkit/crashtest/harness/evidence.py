"""Checks the evidence that a job reached its crash point, and that Spark's logs agree with that crash point.

`labkit.spark.crash_proof` checks how the driver died.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labkit.core.errors import JobFailed
from labkit.core.failpoints import EngineLogs
from labkit.crashtest.instrument.effects import RECOVER, Kind, Point, Side
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.crash_proof import BatchLogs, check_logs, check_unchanged


def check_point_logs(point: Point, crashes: Sequence[dict[str, Any]], checkpoint: Checkpoint) -> None:
    """Raise `JobFailed` unless Spark's offset log and commit log agree with a crash at this crash point.

    A sink's effects lie between `offsets/N` and `commits/N`. Its `recover` runs before the query, so for a crash in it
    the logs must be those of the previous crash, if there was one. `crashes` are the run's earlier crashes.
    """
    if point.where != RECOVER:
        logs = EngineLogs(planned=True, finished=point.kind is Kind.COMMITS)
        check_logs(point.id, point.batch, logs, checkpoint)
    elif crashes:
        before = BatchLogs(tuple(crashes[-1]["offsets"]), tuple(crashes[-1]["commits"]))
        check_unchanged(point.id, before, checkpoint)
    elif point.batch not in checkpoint.offset_log():
        raise JobFailed(
            f"the job reached {point.id} although there was nothing to recover, so the run says nothing about recovery"
        )


def read_evidence(path: Path, point: Point) -> dict[str, Any]:
    """Return the evidence that a process wrote when it reached this crash point.

    Raises `JobFailed` if there is none, or if it names another crash point.
    """
    try:
        evidence: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        named, kind = evidence["point"], evidence["kind"]
    except (OSError, ValueError, KeyError):
        raise JobFailed("there is no evidence that the point was reached") from None
    if named != point.id or (point.side is Side.AFTER and kind != point.kind.value):
        raise JobFailed(f"the evidence names the point {named} ({kind}) instead of {point.id} ({point.kind})")
    return evidence
