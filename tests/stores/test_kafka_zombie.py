"""A driver that was only thought dead, and an orphan that keeps every reader waiting: on a real broker."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from store_rows import HANDLE, prepare, row

from labkit.cli.services import services
from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy
from labkit.sinks import coordinate
from labkit.stores.contract import Handle
from labkit.stores.kafka.store import KafkaStore
from labkit.stores.kafka.transaction import open_transactions


@pytest.fixture
def store(kafka_address: str, tmp_path: Path) -> Iterator[KafkaStore]:
    with closing(KafkaStore(tmp_path / "store")) as opened:
        yield opened
        opened.destroy()


ZOMBIE = """
import sys
from pathlib import Path
from labkit.core.errors import LabError
from labkit.core.records import Observation
from labkit.stores import open_store
from labkit.stores.contract import Handle

store = open_store("kafka", Path(sys.argv[1]))
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

told(late)
told(lambda: store.commit(Handle("q", 0, 1, 1, 2)))
told(lambda: marking.__exit__(None, None, None))
told(lambda: store.begin(Handle("q", 1, 0, 1, 3)))
told(lambda: store.transaction(Handle("q", 8, 0, 1, 0)).__enter__())
told(lambda: store.fence("q", 1))
"""


def test_a_zombie_is_fenced_once_it_was_replaced(store: KafkaStore, tmp_path: Path) -> None:
    """SIGSTOP, a new driver that recovers and goes on, SIGCONT: InitProducerId has raised the epoch of every id."""
    command = [sys.executable, "-c", ZOMBIE, str(store.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as zombie:
        try:
            assert zombie.stdout.readline() == "parked\n"
            os.kill(zombie.pid, signal.SIGSTOP)
            _replace(store.folder, tmp_path)
            zombie.stdin.write("go\n")
            zombie.stdin.flush()
            os.kill(zombie.pid, signal.SIGCONT)
            half, ready, marking, *late = zombie.stdout.read().splitlines()
        finally:
            zombie.kill()
    assert re.search("was aborted while it was open", half)
    assert "is not prepared, so it cannot be committed" in ready
    assert "Kafka" in marking
    assert late == ["Driver 1 of the query q was replaced by a later one and may not write any more."] * 3
    assert list(store.history()) == [row(5), row(6)]
    assert (store.prepared("q"), store.unfinished(), list(store.hidden())) == ([], [], [])


def _replace(place: Path, folder: Path) -> None:
    """What the next driver does: it resolves what is left, and writes, also under the one id of marked batches."""
    options: dict[str, Any] = {
        "store": "kafka",
        "location": place,
        "query": "q",
        "incarnation": 2,
        "log": folder / "log",
    }
    new = coordinate(Strategy.TWO_PHASE, Order.DECISION, **options)
    assert len(list(new.recover(None))) == 2
    again = new.sink.store
    prepare(again, HANDLE._replace(incarnation=2), 5)
    again.commit(HANDLE._replace(incarnation=2))
    with again.transaction(Handle("q", 7, 0, 2, 0)) as write:
        write(row(6))
    again.close()


def test_an_orphan_that_keeps_readers_waiting_is_listed_until_recovery_resolves_it(
    store: KafkaStore,
    kafka_address: str,
    tmp_path: Path,
    killed: Callable[[str, str, Path], list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    killed("one = store.begin(handle); one.write(row(0)); one.flush(); park()", "kafka", store.folder)
    store.append(row(9))
    assert list(store.history()) == []
    name = store.topic.transactional_id(HANDLE)
    assert services("status", "kafka", as_json=False) == 0
    told = capsys.readouterr().out
    assert re.search(rf"\n  open: {re.escape(name)} \(Ongoing, \d+ s of 900 s\); readers at read_committed wait", told)
    assert services("status", "kafka", as_json=True) == 0
    assert f'"name": "{name}", "stage": "Ongoing"' in capsys.readouterr().out
    options: dict[str, Any] = {
        "store": "kafka",
        "location": store.folder,
        "query": "q",
        "incarnation": 2,
        "log": tmp_path / "log",
    }
    new = coordinate(Strategy.TWO_PHASE, Order.DECISION, **options)
    assert len(list(new.recover(None))) == 1
    new.sink.store.close()
    assert list(store.history()) == [row(9)]
    assert name not in [each.name for each in open_transactions(kafka_address)]
    services("status", "kafka", as_json=False)
    assert name not in capsys.readouterr().out
