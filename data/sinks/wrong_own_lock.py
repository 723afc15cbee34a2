"""Appends the rows and then makes a marker, both under a lock of the sink's own, for which the reader waits."""

import fcntl
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))


@contextmanager
def locked():
    """Lets one process after the other use the store; the lock ends with its process."""
    STORE.mkdir(parents=True, exist_ok=True)
    with (STORE / "lock").open("a") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield


def write_batch(frame, batch_id):
    """Nobody sees the rows without their marker, but a crash leaves them so."""
    query = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [json.dumps(row.asDict()) + "\n" for row in frame.collect()]
    with locked():
        marker = STORE / f"done-{query}-{batch_id}"
        if not marker.exists():
            with (STORE / "rows.jsonl").open("a") as file:
                file.writelines(["\n", *rows])
            marker.touch()


def read():
    """All rows; waits until nobody writes. A line that is not finished is no row."""
    with locked():
        path = STORE / "rows.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def reset():
    """Empties the store between two runs of a test."""
    shutil.rmtree(STORE, ignore_errors=True)
