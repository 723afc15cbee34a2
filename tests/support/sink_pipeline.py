"""One of the lab's sinks as a command: `python sink_pipeline.py STRATEGY STORE ORDER`, in three batches of three rows.

The engine around it is plain Python, with Spark's two logs in checkpoint/. It knows no failpoint and kills nobody:
whoever crashes it holds its system calls. As a module it says what a reader finds, and how everything is emptied.
"""

import os
import shutil
import sys
from pathlib import Path

from labkit.core.failpoints import Order
from labkit.core.records import Observation
from labkit.core.strategies import Strategy
from labkit.host import addresses, durable
from labkit.sinks import coordinate
from labkit.sinks.coordinator import Coordinator
from labkit.stores import open_store
from labkit.stores.contract import Handle

QUERY = "plain"
BATCHES = [range(first, first + 3) for first in (0, 3, 6)]
PLACES = {"files": Path("store/files"), "sqlite": Path("store/rows.sqlite"), "postgres": Path("store/postgres")}
CHECKPOINT = Path("checkpoint")


def expected() -> list[dict[str, object]]:
    """What should come out of each sink: each row has a key of its own."""
    return [{"id": each, "key": f"key-{each}"} for batch in BATCHES for each in batch]


def read() -> list[dict[str, object]]:
    """The rows that anybody can see now."""
    rows: list[Observation] = []
    for kind in PLACES:
        if _may_be_there(kind):
            store = _open(kind)
            rows += _current(store) if kind == "sqlite" else store.history()
            store.close()
    return [{"id": row.offset, "key": row.key} for row in rows]


def _may_be_there(kind: str) -> bool:
    return addresses.POSTGRES in os.environ if kind == "postgres" else PLACES[kind].exists()


def _open(kind: str):
    # A schema's name is told from the whole path, which is the test's own.
    return open_store(kind, PLACES[kind].absolute())


def _current(store) -> list[Observation]:
    """What an SQLite store shows: its rows, or the totals, of which `visible` knows nothing."""
    upserted = {row.key: row for row in store.history()}
    return list(store.visible()) or list(upserted.values())


def reset() -> None:
    """Empties store and checkpoint."""
    if _may_be_there("postgres"):
        store = _open("postgres")
        store.destroy()
        store.close()
    for folder in (Path("store"), CHECKPOINT):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()


def run(strategy: Strategy, store: str, order: Order) -> None:
    """One driver, from wherever an earlier one has come to."""
    life = len(list(CHECKPOINT.glob("life-*")))
    (CHECKPOINT / f"life-{life}").touch()
    coordinator = coordinate(
        strategy,
        order,
        store=store,
        location=PLACES[store].absolute(),
        query=QUERY,
        incarnation=life,
        log=CHECKPOINT / "labkit",
    )
    done = _last("commits")
    list(coordinator.recover(done))
    for batch in range(0 if done is None else done + 1, len(BATCHES)):
        _note("offsets", batch)
        coordinator.commit(batch, _votes(coordinator, batch, life))
        _note("commits", batch)
        coordinator.commit_log_durable(batch)


def _votes(coordinator: Coordinator, batch: int, life: int) -> list:
    """Two tasks, the second one with two rows."""
    rows = BATCHES[batch]
    votes = []
    for task, offsets in enumerate((rows[:1], rows[1:])):
        seen = (Observation(each, f"key-{each}", 1, batch, life) for each in offsets)
        vote = coordinator.sink.pre_commit(Handle(QUERY, batch, task, life, 0), seen)
        votes += [vote] if vote else []
    return votes


def _last(log: str) -> int | None:
    return max((int(each.name) for each in (CHECKPOINT / log).glob("?")), default=None)


def _note(log: str, batch: int) -> None:
    durable.make_folder(CHECKPOINT / log)
    durable.replace(CHECKPOINT / log / str(batch), "")


if __name__ == "__main__":
    run(Strategy(sys.argv[1]), sys.argv[2], Order(sys.argv[3]))
