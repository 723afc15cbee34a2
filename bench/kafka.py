"""What transactions cost in Kafka: throughput, the latency of a commit, resuming, and the delay until rows are visible.

All producers are kafka-python's, with the settings and records of the Kafka store. A transactional producer flushes
once per transaction, and an idempotent producer after the same number of records. The two kinds of producer alternate,
and take turns to begin.
"""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import kafka_delay, servers
from bench.rows import Rows, median, percentile, ratio
from labkit.core.errors import JobFailed
from labkit.core.records import Observation
from labkit.stores.contract import Handle
from labkit.stores.kafka.store import KafkaStore
from labkit.stores.kafka.topic import Topic
from labkit.stores.kafka.transaction import explained
from labkit.stores.kafka.writer import initialise

SIZES = {10: 30, 100: 30, 1_000: 10, 10_000: 2}
"""By number of records in a transaction, the number of such transactions that a producer writes in a round."""

IDEMPOTENT, TRANSACTIONAL = "idempotent", "transactional"
RESUMES = 10
"""The number of prepared transactions that are committed in a round, each by a new client."""


class Written(NamedTuple):
    """One producer's part of a round: records, seconds, and seconds of each commit (empty without transactions)."""

    records: int
    seconds: float
    commits: Sequence[float]


def measure(rounds: int) -> Rows:
    """Return a row for every size of a transaction, one for resuming, and one for the delay of each reader."""
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as folder, servers.kafka():
        written = _written(Path(folder) / "written", rounds)
        resumed = _resumed(Path(folder) / "resumed", rounds * RESUMES)
        delays = kafka_delay.measure(Path(folder) / "delays", rounds)
    return [*throughput(written), resuming(resumed), *kafka_delay.table_of(delays)]


@contextmanager
def _topic(folder: Path) -> Iterator[Topic]:
    """Provide the topic of a new store within a `with` block, and delete it afterwards."""
    with closing(KafkaStore(folder)) as store:
        try:
            yield store.topic
        finally:
            store.destroy()


def _written(folder: Path, rounds: int) -> dict[int, dict[str, list[Written]]]:
    """Return the results of all rounds as a dict from transaction size to a dict from kind of producer to a list.

    The first transaction of each producer does not count, because it includes the time to connect.
    """
    taken: dict[int, dict[str, list[Written]]] = {size: {IDEMPOTENT: [], TRANSACTIONAL: []} for size in SIZES}
    with _topic(folder) as topic, _writer(topic, None) as idempotent, _writer(topic, "bench") as transactional:
        writers = {IDEMPOTENT: idempotent, TRANSACTIONAL: transactional}
        for way, writer in writers.items():
            write(topic, writer, 10, 1, in_transactions=way == TRANSACTIONAL)
        for round_ in range(rounds):
            for size, times in SIZES.items():
                for way in writers if round_ % 2 == 0 else reversed(writers):
                    result = write(topic, writers[way], size, times, in_transactions=way == TRANSACTIONAL)
                    taken[size][way].append(result)
    return taken


@contextmanager
def _writer(topic: Topic, transactional_id: str | None) -> Iterator[Any]:
    name = None if transactional_id is None else f"{topic.name()}.{transactional_id}"
    writer = topic.writer(name)
    try:
        with explained(topic.address):
            if name is not None:
                initialise(writer, topic.timeout)
            yield writer
    finally:
        writer.close(timeout=10)


def write(topic: Topic, writer: Any, size: int, times: int, *, in_transactions: bool) -> Written:
    """Write `times` transactions of `size` records, one after the other. Raises `JobFailed` if a record was refused."""
    commits = []
    begun = time.perf_counter()
    for number in range(times):
        if in_transactions:
            writer.begin_transaction()
        sent: list[Any] = [
            topic.send(writer, Observation(place, f"w{place}", place, number, 1), None) for place in range(size)
        ]
        writer.flush()
        if not all(future.succeeded() for future in sent):
            raise JobFailed("Kafka refused a record, so the measured time is worthless; run the measurement again.")
        if in_transactions:
            before = time.perf_counter()
            writer.commit_transaction()
            commits.append(time.perf_counter() - before)
    return Written(size * times, time.perf_counter() - begun, commits)


def _resumed(folder: Path, times: int) -> list[float]:
    """Prepare `times` transactions; return the seconds that a new client takes to commit each of them."""
    taken = []
    with _topic(folder), closing(KafkaStore(folder)) as writing:
        for batch in range(times):
            handle = Handle("bench", batch, 0, 1, 0)
            transaction = writing.begin(handle)
            for number in range(10):
                transaction.write(Observation(number, f"w{number}", number, batch, 1))
            transaction.prepare()
            begun = time.perf_counter()
            with closing(KafkaStore(folder)) as resuming_:
                resuming_.commit(handle)
                taken.append(time.perf_counter() - begun)
    return taken


def throughput(taken: Mapping[int, Mapping[str, Sequence[Written]]]) -> Rows:
    """Return rows: records per second of both producers, their ratio within a round, and the latency of a commit."""
    rows: Rows = []
    for size, ways in taken.items():
        speeds = {way: [one.records / one.seconds for one in writes] for way, writes in ways.items()}
        commits = [1000 * seconds for one in ways[TRANSACTIONAL] for seconds in one.commits]
        rows.append(
            {
                "kafka": f"{size:,} records a transaction",
                "idempotent records/s": round(median(speeds[IDEMPOTENT])),
                "transactional records/s": round(median(speeds[TRANSACTIONAL])),
                "of idempotent": ratio(speeds[TRANSACTIONAL], speeds[IDEMPOTENT]),
                "median ms": median(commits),
                "p99 ms": percentile(commits, 99),
                "of": "commit",
                "times": len(commits),
            }
        )
    return rows


def resuming(seconds: Sequence[float]) -> dict[str, object]:
    """Return the row for commits by another client than the one that prepared the transaction.

    `seconds` are the times from the creation of this client until the commit markers are written.
    """
    times = [1000 * each for each in seconds]
    return {
        "kafka": "prepared by one client, committed by another",
        "median ms": median(times),
        "p99 ms": percentile(times, 99),
        "of": "resume and commit",
        "times": len(times),
    }
