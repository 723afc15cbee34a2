"""The same job and sinks on a real Spark standalone cluster: master, two workers, executors in other processes.

What an executor's death gives was written down before it was run (`EXECUTOR_KILLED`), as the grid's cells were.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from conducted import conducted
from other_processes import until_killed
from waiting import until

from labkit.core.failpoints import Crash, FailPoint
from labkit.core.judge import Guarantee, judge
from labkit.core.records import History, Reading
from labkit.host.processes.executors import Executors
from labkit.host.processes.sessions import empty_session, session_members
from labkit.host.servers.spark_cluster import Cluster, spark_cluster
from labkit.runs.counting import Ones
from labkit.runs.outcome import Outcome
from labkit.runs.scenario import plan
from labkit.spark.options import HELLO_WORLD_HELLO
from labkit.spark.reach import Armed, Reaction
from labkit.stores import open_store

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("postgres")]

PATIENCE = 300.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A master and two workers for all tests of this module; afterwards no process, port or folder of them is left."""
    with spark_cluster() as cluster:
        yield cluster
    assert [session_members(session) for session in cluster.sessions] == [[], [], []]
    assert not Path(cluster.folder).exists()
    port = int(cluster.url.rpartition(":")[2])
    assert port not in {connection.laddr.port for connection in psutil.net_connections("tcp") if connection.laddr}


def found(outcome: Outcome) -> tuple:
    verdict = outcome.verdict
    assert (verdict.lost, dict(verdict.final)) == ((), {"hello": 2, "world": 1})
    return (verdict.guarantee.value, list(verdict.duplicate), list(verdict.regression))


@pytest.mark.slow
def test_a_driver_killed_in_commit_leaves_every_row_once(cluster: Cluster, tmp_path: Path):
    scenarios = [
        plan(master=cluster.url, sink="two_phase", store="postgres", crashes=["sink.mid_commit@0"]),
        plan(master=cluster.url, sink="append", store="postgres", crashes=["sink.after_pre_commit@0"]),
    ]
    outcomes = conducted(dict(enumerate(scenarios)), tmp_path)
    assert found(outcomes[0]) == ("exactly-once", [], [])
    assert found(outcomes[1]) == ("at-least-once", [0, 1, 2], [0])
    for outcome in outcomes.values():
        [crash] = outcome.crashes
        executors = crash["executors"]
        assert crash["signal"] == 9
        assert executors["outlived"], "an executor of a standalone cluster is not in its driver's session"
        assert not set(executors["outlived"]) & set(crash["killed"])
        assert executors["left"] == []
        assert outcome.to_json()["in_doubt_rows"] == 0


EXECUTOR_KILLED = {
    # world and the first hello were shown by the first attempts; hello's task was killed and is tried again, whole
    ("append", "sink.mid_write"): ("at-least-once", [0], []),
    # an attempt's transaction is open, and the next attempt aborts it
    ("two_phase", "sink.mid_write"): ("exactly-once", [], []),
}


@pytest.mark.variant
@pytest.mark.slow
@pytest.mark.parametrize(
    ("sink", "point"),
    [("append", "sink.mid_write"), pytest.param("two_phase", "sink.mid_write", marks=pytest.mark.variant)],
)
def test_an_executor_killed_in_write_gives_what_was_predicted(sink: str, point: str, cluster: Cluster, tmp_path: Path):
    case = {"sink": sink, "store": "postgres", "crashes": [f"{point}@0"], "victim": "executor"}
    outcome = conducted({point: plan(master=cluster.url, **case)}, tmp_path)[point]
    assert found(outcome) == EXECUTOR_KILLED[sink, point]
    [crash] = outcome.crashes
    assert {crash["executor"], crash["reached_by"]} <= set(crash["killed"])
    assert not any(map(psutil.pid_exists, crash["killed"]))
    assert (crash["point"], crash["signal"], outcome.record.drivers) == (point, 9, 1)
    log = (outcome.folder / "driver-1.log").read_text()
    assert "Command exited with code 137" in log, "what the worker says of an executor that died by signal 9"
    assert outcome.to_json()["in_doubt_rows"] == 0, "an attempt that lost has left its transaction"


DRIVER = """
import json, sys
from pathlib import Path
from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy
from labkit.spark.reach import Armed
from labkit.spark.session import start_session
from labkit.spark.source import LogSource
from labkit.spark.start import launch, open_checkpoint

base, log, master, scratch, armed = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]), sys.argv[5]
store = sys.argv[6]
spark = start_session(master, scratch, 3, sys.stderr.buffer, "cluster")
spark.dataSource.register(LogSource)
words = spark.readStream.format("labkit_log").option("path", log).load()
frame = words.selectExpr("offset", "word AS key", "1L AS value")
place = {"sink": Strategy.TWO_PHASE, "order": Order.DECISION, "store": store, "location": base / store}
opened = open_checkpoint(base / "checkpoint", partitions=1, armed=Armed.from_json(json.loads(armed)), **place)
opened.recover()
print(spark.sparkContext.applicationId, flush=True)
launch(frame, opened).await_end()
print("ended", flush=True)
"""


@contextmanager
def driver(base: Path, name: str, master: str, armed: Armed | None, store: str) -> Iterator[subprocess.Popen]:
    """A query of somebody's own on the cluster, in a session of its own, which is empty afterwards."""
    scratch, arming = base / name, json.dumps(armed and armed.to_json())
    command = [sys.executable, "-c", DRIVER, str(base), str(HELLO_WORLD_HELLO), master, str(scratch), arming, store]
    with (base / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    try:
        yield process
    finally:
        empty_session(process.pid, 30)
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("store", ["postgres"])
def test_a_zombie_executor_is_refused_by_the_store(
    store: str, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A task stops before its first write, its whole host with it; it wakes up when another driver has done its work.

    `SIGSTOP` to every process of a worker's session is what a paused machine looks like to all others.
    """
    monkeypatch.setattr("runners.PATIENCE", PATIENCE)
    armed = Armed(Crash(FailPoint.AFTER_OFFSET_LOG), tmp_path / "reached.json", Reaction.STOP)
    with frozen_when_reached(armed, cluster, tmp_path, store) as zombie:
        with driver(tmp_path, "second", cluster.url, None, store) as second:
            application = second.stdout.readline().strip()
            assert second.stdout.readline() == "ended\n", (tmp_path / "second.log").read_text()[-2000:]
        until(lambda: not Executors(application).look(), "the end of the second driver's executors")
        assert status(zombie) == psutil.STATUS_STOPPED, "the zombie has slept through everything"
        os.kill(zombie, signal.SIGCONT)
        until(lambda: said(armed) != "continued", "the end of the zombie's task")
    assert said(armed).endswith("was replaced by a later one and may not write any more.")
    assert verdict_of(tmp_path, store).guarantee is Guarantee.EXACTLY_ONCE


@contextmanager
def frozen_when_reached(armed: Armed, cluster: Cluster, base: Path, store: str) -> Iterator[int]:
    """The process at the armed point, stopped with its worker's whole session, its driver dead; awake again after."""
    with driver(base, "first", cluster.url, armed, store) as first:
        until(lambda: armed.evidence.exists() or first.poll() is not None, "the armed point", PATIENCE)
        seen = SimpleNamespace(**json.loads(armed.evidence.read_text()))
        assert seen.session in cluster.sessions
        # It leaves its evidence before it stops itself: stopped by us in between, it would stop again when it wakes up.
        until(lambda: status(seen.pid) == psutil.STATUS_STOPPED, "the process that stops itself")
        host = session_members(seen.session)
        try:
            signal_all(host, signal.SIGSTOP)
            until(lambda: all(status(pid) == psutil.STATUS_STOPPED for pid in host), "the paused machine")
            assert empty_session(first.pid, 30).left == []
            yield seen.pid
        finally:
            signal_all(host, signal.SIGCONT)


def signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        if psutil.pid_exists(pid):
            os.kill(pid, number)


def status(pid: int) -> str:
    return psutil.Process(pid).status()


def said(armed: Armed) -> str:
    return json.loads(armed.afterwards.read_text())[1] if armed.afterwards.exists() else "continued"


def verdict_of(base: Path, kind: str):
    store = open_store(kind, base / kind)
    try:
        history = History(events=[*store.history(), Reading("end")], hidden=list(store.hidden()))
        return judge(Ones(HELLO_WORLD_HELLO).expected(), history)
    finally:
        store.close()


@pytest.mark.slow
def test_a_cluster_ends_with_the_process_that_asked_for_it():
    """Even if that is killed by SIGKILL while an application could be running there."""
    code = (
        "import json, sys\nfrom labkit.host.servers.spark_cluster import spark_cluster\n"
        "with spark_cluster(workers=1) as cluster:\n"
        "    print(json.dumps([*cluster.sessions, cluster.guard]), flush=True)\n    sys.stdin.read()"
    )
    with until_killed(code) as line:
        sessions: list[int] = json.loads(line())
        assert all(map(session_members, sessions))
    until(lambda: not any(map(session_members, sessions)), f"the end of the sessions {sessions}")
