"""Runs in which something forgets: a source without memory, and a deleted checkpoint."""

import socket
import time
from pathlib import Path

import pytest
from conducted import Outcomes, conducted

from labkit.host.servers.lines import LineServer
from labkit.runs.scenario import plan

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SOCKET = {"job": "socket", "records_per_batch": 2, "crashes": ["source.after_offset_log@1"]}
AFTER_FIRST = {"crashes": ["engine.after_commit_log@0"], "records_per_batch": 1, "delete_checkpoint": True}

RUNS = {
    "socket, append": plan(sink="append", **SOCKET),
    "socket, two_phase": plan(sink="two_phase", **SOCKET),
    "deleted, append": plan(sink="append", **AFTER_FIRST),
    "deleted, marker of a new query": plan(sink="batch_marker", store="sqlite", **AFTER_FIRST),
    "deleted, marker that outlived its query": plan(
        sink="batch_marker", store="sqlite", query="counts", later_records_per_batch=3, **AFTER_FIRST
    ),
    "deleted, idempotent": plan(
        sink="idempotent",
        store="sqlite",
        crashes=["engine.after_commit_log@2"],
        records_per_batch=1,
        delete_checkpoint=True,
    ),
    "deleted, prepared transactions of nobody": plan(
        sink="two_phase", crashes=["sink.after_pre_commit@0"], delete_checkpoint=True
    ),
}

GIVES = {
    # Two lines died with the driver; two more came under the offsets of those and were taken for done.
    "socket, append": ("at-most-once", [0, 1, 2, 3], [], []),
    "socket, two_phase": ("at-most-once", [0, 1, 2, 3], [], []),
    # A fresh query reads the log from its start.
    "deleted, append": ("at-least-once", [], [0], []),
    "deleted, marker of a new query": ("at-least-once", [], [0], []),
    # Batch 0 is another batch now, with all three records; its number is marked, and all of it is skipped.
    "deleted, marker that outlived its query": ("at-most-once", [1, 2], [], []),
    "deleted, idempotent": ("exactly-once", [], [], [0]),
    "deleted, prepared transactions of nobody": ("exactly-once", [], [], []),
}
IN_DOUBT = {"deleted, prepared transactions of nobody": 3}
"""Rows that nobody will ever commit or abort: their query's name went with its checkpoint."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LineServer, "send", slowly)
        return conducted(RUNS, tmp_path_factory.mktemp("forgetting"))


def slowly(_server: LineServer, connection: socket.socket, lines: bytes) -> None:
    """Sends one line after the other, as a busy machine may: Spark's next batch must have all of them even so."""
    for line in lines.splitlines(keepends=True):
        connection.sendall(line)
        time.sleep(0.1)


@pytest.mark.parametrize("name", GIVES)
def test_what_is_forgotten_shows(name: str, outcomes: Outcomes):
    outcome = outcomes[name]
    verdict = outcome.verdict
    found = (verdict.guarantee, list(verdict.lost), list(verdict.duplicate), list(verdict.regression))
    assert found == GIVES[name]
    assert outcome.to_json()["in_doubt_rows"] == IN_DOUBT.get(name, 0)
    [crash] = outcome.crashes
    assert crash["signal"] == 9


def test_a_socket_says_why_no_sink_could_help(outcomes: Outcomes):
    said = str(outcomes["socket, two_phase"])
    assert "at-most-once at best, whatever the sink" in said


def test_a_deleted_checkpoint_can_be_looked_into(outcomes: Outcomes):
    outcome = outcomes["deleted, append"]
    assert (outcome.folder / "checkpoint-1" / "commits" / "0").exists()
    assert (outcome.folder / "checkpoint" / "commits" / "2").exists()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """The same count with either provider of state, killed in its second batch."""
    options = {"job": "totals", "sink": "two_phase", "records_per_batch": 18, "crashes": ["sink.after_pre_commit@1"]}
    runs = {state: plan(state=state, **options) for state in ("hdfs", "rocksdb")}
    return conducted(runs, tmp_path_factory.mktemp("state"))


@pytest.mark.slow
@pytest.mark.parametrize(("state", "ending"), [("hdfs", ".delta"), ("rocksdb", ".zip")])
def test_what_the_state_store_leaves_at_a_crash(state: str, ending: str, kept: Outcomes):
    """The first batch's state is durable, the second's was not committed yet, and the count is right in the end."""
    outcome = kept[state]
    assert outcome.verdict.guarantee == "exactly-once"
    [crash] = outcome.crashes
    assert crash["commit_log"] == [0]
    versions = {Path(name).stem for name in crash["state_files"] if name.endswith(ending)}
    assert "1" in versions
