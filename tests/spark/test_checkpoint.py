"""One driver at a time, and only the query that the checkpoint belongs to. No Spark is needed to refuse."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.records import PlannedBatch
from labkit.host.processes.sessions import session_members
from labkit.spark.checkpoint import Checkpoint, DriverLock, Identity, enter

MINE = Identity("q1", "two_phase", "files", "/store", "decision", "running words.jsonl 3")

HOLD = """
import sys
from pathlib import Path
from labkit.spark.checkpoint import Checkpoint, DriverLock
DriverLock(Checkpoint(Path(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_driver_is_refused_while_the_first_lives(tmp_path: Path):
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout.readline() == "held\n"
    with pytest.raises(InvalidInput, match=f"driver process {first.pid} is still running this query"):
        DriverLock(Checkpoint(tmp_path))
    first.kill()
    first.communicate()
    DriverLock(Checkpoint(tmp_path)).release()


def test_a_driver_is_refused_while_a_process_of_the_dead_one_lives(tmp_path: Path):
    """The lock of a dead driver is free; a worker of its session may still write."""
    worker = subprocess.Popen(["sleep", "60"], start_new_session=True)
    (tmp_path / "labkit").mkdir()
    (tmp_path / "labkit" / "driver.lock").write_text(json.dumps({"pid": 1, "session": worker.pid}))
    with pytest.raises(InvalidInput, match=r"the driver is dead, but 1 of its processes are still running"):
        DriverLock(Checkpoint(tmp_path))
    worker.kill()
    worker.wait()
    DriverLock(Checkpoint(tmp_path)).release()


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_damaged_lock_file_locks_nobody_out(content: str, tmp_path: Path):
    (tmp_path / "labkit").mkdir()
    (tmp_path / "labkit" / "driver.lock").write_text(content)
    DriverLock(Checkpoint(tmp_path)).release()


def test_every_driver_of_a_query_has_an_incarnation_of_its_own(tmp_path: Path):
    checkpoint = Checkpoint(tmp_path)
    assert enter(checkpoint, MINE) == (MINE, 1)
    other_name = Identity("q2", *list(MINE.__dict__.values())[1:])
    assert enter(checkpoint, other_name) == (MINE, 2)


@pytest.mark.parametrize("name", ["strategy", "store", "location", "order", "source"])
def test_the_checkpoint_of_another_query_is_refused_with_what_differs(name: str, tmp_path: Path):
    checkpoint = Checkpoint(tmp_path)
    enter(checkpoint, MINE)
    other = Identity(**{**MINE.__dict__, name: "else"})
    with pytest.raises(InvalidInput, match=f"belongs to another query, whose {name} is .* and not 'else'"):
        enter(checkpoint, other)


def test_a_checkpoint_that_the_lab_did_not_start_is_refused(tmp_path: Path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n0")
    with pytest.raises(InvalidInput, match="labkit did not create this checkpoint"):
        enter(Checkpoint(tmp_path), MINE)


def test_a_damaged_identity_is_refused_by_its_file(tmp_path: Path):
    (tmp_path / "labkit").mkdir()
    (tmp_path / "labkit" / "query.json").write_text("{")
    with pytest.raises(InvalidInput, match=r"query\.json: .*damaged"):
        enter(Checkpoint(tmp_path), MINE)


def test_epochs_are_read_from_the_engines_own_offset_log(tmp_path: Path):
    (tmp_path / "offsets").mkdir()
    for batch, end in enumerate([3, 5]):
        (tmp_path / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"offset":{end}}}')
    (tmp_path / "offsets" / ".0.crc").write_bytes(b"crc")
    assert Checkpoint(tmp_path).planned_batches() == [PlannedBatch(0, 0, 3), PlannedBatch(1, 3, 5)]
    assert Checkpoint(tmp_path).decided() is None
    (tmp_path / "offsets" / "1").write_text("v1\n")
    with pytest.raises(JobFailed, match=r"offsets/1: .*not an offset that labkit"):
        Checkpoint(tmp_path).planned_batches()


def test_members_of_a_session_are_found_whatever_their_group():
    """As PySpark's daemons: a process group of its own, the same session."""
    script = "import os, subprocess, sys; subprocess.Popen(['sleep', '60'], preexec_fn=os.setpgrp); sys.stdin.read()"
    leader = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, start_new_session=True)
    try:
        while len({os.getpgid(pid) for pid in session_members(leader.pid)}) < 2:
            assert leader.poll() is None
        assert len(session_members(leader.pid)) == 2
    finally:
        for pid in session_members(leader.pid):
            os.kill(pid, signal.SIGKILL)
        leader.communicate()
