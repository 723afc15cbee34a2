"""A driver that was only thought dead, and an orphan that keeps every reader waiting: on real servers."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_rows import HANDLE, prepare, row

from labkit.cli.services import services
from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy
from labkit.sinks import coordinate
from labkit.sinks.coordinator import Coordinator
from labkit.stores.contract import Handle
from labkit.stores.kafka.transaction import open_transactions

ZOMBIE = """
import sys
from pathlib import Path
from labkit.core.errors import LabError
from labkit.core.records import Observation
from labkit.stores import open_store
from labkit.stores.contract import Handle

kind, place = sys.argv[1:]
store = open_store(kind, Path(place))
store.fence("q", 1)
row = lambda offset: Observation(offset, "hello", offset + 1, 0, 1)

def told(step):
    try:
        step()
    except LabError as error:
        print(error, flush=True)
    else:
        print("it went well", flush=True)

half = store.begin(Handle("q", 0, 0, 1, 1))
half.write(row(0))
if kind == "kafka":
    half.flush()
ready = store.begin(Handle("q", 0, 1, 1, 2))
ready.write(row(1))
ready.prepare()
marking = store.transaction(Handle("q", 7, 0, 1, 0))
marking.__enter__()(row(2))
print("parked", flush=True)
sys.stdin.readline()

def late():
    half.write(row(3))
    half.prepare()

def new():
    begun = store.begin(Handle("q", 1, 0, 1, 3))
    begun.write(row(4))
    begun.prepare()

def mark():
    with store.transaction(Handle("q", 8, 0, 1, 0)) as write:
        write(row(4))

told(late)
told(lambda: store.commit(Handle("q", 0, 1, 1, 2)))
told(lambda: marking.__exit__(None, None, None))
for step in (new, mark, lambda: store.fence("q", 1)):
    told(step)
"""
MARKING = {"kafka": "Kafka", "postgres": "ended the connection|terminating connection"}
"""What a zombie hears that would commit rows and marker of a batch."""


@pytest.mark.parametrize("kind", MARKING)
def test_a_zombie_is_fenced_once_it_was_replaced(kind: str, store: Any, place: Path, tmp_path: Path) -> None:
    """SIGSTOP, a new driver that recovers and goes on, SIGCONT."""
    command = [sys.executable, "-c", ZOMBIE, kind, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as zombie:
        try:
            assert zombie.stdout.readline() == "parked\n"
            os.kill(zombie.pid, signal.SIGSTOP)
            _replace(kind, place, tmp_path)
            zombie.stdin.write("go\n")
            zombie.stdin.flush()
            os.kill(zombie.pid, signal.SIGCONT)
            half, ready, marking, *late = zombie.stdout.read().splitlines()
        finally:
            zombie.kill()
    assert "was aborted while it was open" in half
    assert "is not prepared, so it cannot be committed" in ready
    assert re.search(MARKING[kind], marking)
    assert late == ["Driver 1 of the query q was replaced by a later one and may not write any more."] * 3
    assert (list(store.history()), store.prepared("q")) == ([row(5), row(6)], [])
    if kind == "kafka":
        assert (store.unfinished(), list(store.hidden())) == ([], [])
    store.destroy()


def _next_driver(kind: str, place: Path, folder: Path) -> Coordinator:
    return coordinate(
        Strategy.TWO_PHASE, Order.DECISION, store=kind, location=place, query="q", incarnation=2, log=folder / "log"
    )


def _replace(kind: str, place: Path, folder: Path) -> None:
    """What the next driver does: it fences, resolves what is left, and writes, also where the zombie holds a marker."""
    new = _next_driver(kind, place, folder)
    assert len(list(new.recover(None))) == 2
    again = new.sink.store
    prepare(again, HANDLE._replace(incarnation=2), 5)
    again.commit(HANDLE._replace(incarnation=2))
    with again.transaction(Handle("q", 7, 0, 2, 0)) as write:
        write(row(6))
    again.close()


@pytest.mark.parametrize("kind", ["kafka"])
def test_an_orphan_that_keeps_readers_waiting_is_listed_until_recovery_resolves_it(
    kind: str,
    store: Any,
    place: Path,
    kafka_address: str,
    tmp_path: Path,
    killed: Callable[[str, str, Path], list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    killed("one = store.begin(handle); one.write(row(0)); one.flush(); park()", kind, place)
    store.append(row(9))
    assert list(store.history()) == []
    name = store.topic.transactional_id(HANDLE)
    assert services("status", "kafka", as_json=False) == 0
    told = capsys.readouterr().out
    assert re.search(rf"\n  open: {re.escape(name)} \(Ongoing, \d+ s of 900 s\); readers at read_committed wait", told)
    assert services("status", "kafka", as_json=True) == 0
    assert f'"name": "{name}", "stage": "Ongoing"' in capsys.readouterr().out
    new = _next_driver(kind, place, tmp_path)
    assert len(list(new.recover(None))) == 1
    new.sink.store.close()
    assert list(store.history()) == [row(9)]
    assert name not in [each.name for each in open_transactions(kafka_address)]
    services("status", "kafka", as_json=False)
    assert name not in capsys.readouterr().out
    store.destroy()
