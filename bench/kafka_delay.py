"""How long a record takes until a reader has it, at either isolation level: the price of read_committed.

Two reader processes read while transactions are written; all use the machine's monotonic clock, and a record carries
the time at which it was passed to its producer.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from bench.rows import Rows, median, percentile
from labkit.core.errors import JobFailed
from labkit.core.records import Observation
from labkit.stores.kafka.reader import READ_COMMITTED, READ_UNCOMMITTED, Reader
from labkit.stores.kafka.store import KafkaStore
from labkit.stores.kafka.topic import Topic
from labkit.stores.kafka.transaction import explained
from labkit.stores.kafka.writer import initialise

SIZES = {10: 20, 100: 20, 1_000: 5}
"""By number of records in a transaction, the number of such transactions in a round."""

WARM = 10
LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)
PATIENCE = 60.0

Delays = Mapping[str, Sequence[float]]
"""By the reader's isolation level, the seconds until it had each record."""


def measure(folder: Path, rounds: int) -> dict[int, Delays]:
    """Return the delays of all records of all rounds, by size of the transaction."""
    with closing(KafkaStore(folder)) as store:
        try:
            blocks = _read_along(store.topic, [WARM, *[*SIZES] * rounds])
        finally:
            store.destroy()
    results: dict[int, dict[str, list[float]]] = {size: {level: [] for level in LEVELS} for size in SIZES}
    for size, delays in blocks[1:]:  # without the block in which the readers connected
        for level in LEVELS:
            results[size][level] += delays[level]
    return dict(results)


def _read_along(topic: Topic, sizes: Sequence[int]) -> list[tuple[int, dict[str, list[float]]]]:
    """Write a block of transactions of each size; return for each size the delays at both isolation levels.

    A block begins only after both readers have received all records of the block before it.
    """
    results = []
    with ExitStack() as until_then:
        writer = topic.writer(f"{topic.name()}.bench")
        until_then.callback(writer.close, timeout=10)
        blocks = [size * SIZES[size] for size in sizes]
        readers = {level: until_then.enter_context(_reader(topic, level, blocks)) for level in LEVELS}
        until_then.enter_context(explained(topic.address))
        initialise(writer, topic.timeout)
        for size in sizes:
            for number in range(SIZES[size]):
                _write(topic, writer, size, number)
            results.append((size, {level: _delays(each, size * SIZES[size]) for level, each in readers.items()}))
    return results


def _write(topic: Topic, writer: Any, size: int, number: int) -> None:
    writer.begin_transaction()
    for place in range(size):
        topic.send(writer, Observation(time.monotonic_ns(), f"w{place}", place, number, 1), None)
    writer.flush()
    writer.commit_transaction()


_FOLLOW = "import sys; from bench.kafka_delay import follow; follow(*sys.argv[1:])"


@contextmanager
def _reader(topic: Topic, level: str, blocks: Sequence[int]) -> Iterator["subprocess.Popen[str]"]:
    """Provide a process that reads the topic; it is killed at the end of the `with` block."""
    command = [sys.executable, "-c", _FOLLOW, topic.address, topic.name(), level, *map(str, blocks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise JobFailed(f"A reader at {level} did not start; run the measurement again.")
            yield process
        finally:
            process.kill()


def _delays(reader: "subprocess.Popen[str]", count: int) -> list[float]:
    assert reader.stdout is not None
    result: list[float] = json.loads(reader.stdout.readline() or "[]")
    if len(result) != count:
        raise JobFailed(f"A reader got {len(result)} of {count} records, so the delays are worthless; run it again.")
    return result


def follow(address: str, topic: str, level: str, *blocks: str) -> None:
    """Run a reader: print `ready`, then the delays of each block as JSON; end after `PATIENCE` without a record.

    `blocks` are the numbers of records in the blocks.
    """
    print("ready", flush=True)
    delays = (_since(entry.row.offset) for entry in Reader(address, topic, level).follow(PATIENCE))
    for count in map(int, blocks):
        print(json.dumps(list(islice(delays, count))), flush=True)


def _since(nanoseconds: int) -> float:
    return (time.monotonic_ns() - nanoseconds) / 1e9


def table_of(delays: Mapping[int, Delays]) -> Rows:
    """Return a row for every size and isolation level, with the additional delay of read_committed."""
    rows: Rows = []
    for size, by_level in delays.items():
        times = {level: [1000 * delay for delay in values] for level, values in by_level.items()}
        early = times[READ_UNCOMMITTED]
        for level, values in times.items():
            rows.append(
                {
                    "kafka": f"{size:,} records a transaction, reader at {level}",
                    "median ms": median(values),
                    "p99 ms": percentile(values, 99),
                    "of": "delay until visible",
                    "times": len(values),
                    "price, median ms": round(median(values) - median(early), 2),
                    "price, p99 ms": round(percentile(values, 99) - percentile(early, 99), 2),
                }
            )
    return rows
