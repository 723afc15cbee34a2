"""Kill a worker of Faust that is to process exactly once, start it again, and read what it has written.

Needs a Kafka broker, at 127.0.0.1:9092 or at the address in KAFKA. Run it with the Python of an environment that has
faust-streaming. Two workers are tried: of one, nobody in the app reads the topic that it writes to; of the other, an
agent of the same app does.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from importlib.metadata import version

import faust
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
ORDERS = 20
MOST_SECONDS = 180.0
NEVER, SOON = "3600", "1"
"""Seconds between two commits of a worker."""


def work(name: str, folder: str, interval: str, reads_back: str) -> None:
    """Copy the topic NAME-orders to NAME-bills."""
    app = faust.App(
        name,
        broker=f"kafka://{KAFKA}",
        processing_guarantee="exactly_once",
        broker_commit_interval=float(interval),
        topic_partitions=1,
        datadir=folder,
        web_enabled=False,
    )
    orders, bills = (
        app.topic(f"{name}-{each}", value_type=bytes, value_serializer="raw") for each in ("orders", "bills")
    )

    @app.agent(orders)
    async def bill(stream):
        async for order in stream:
            await bills.send(value=order)

    if reads_back:

        @app.agent(bills)
        async def look(stream):
            async for _ in stream:
                pass

    faust.Worker(app, loglevel="error").execute_from_commandline()


async def bills_of(name: str, isolation: str) -> list[int]:
    """Return the bills that a reader finds."""
    consumer = AIOKafkaConsumer(bootstrap_servers=KAFKA, isolation_level=isolation, auto_offset_reset="earliest")
    await consumer.start()
    consumer.assign([TopicPartition(f"{name}-bills", 0)])
    found = []
    while batches := await consumer.getmany(timeout_ms=2_000):
        found += [int(record.value) for batch in batches.values() for record in batch]
    await consumer.stop()
    return found


async def until(done, what: str) -> None:
    """Wait until `await done()` is true; end the program if it does not become true."""
    began = time.monotonic()
    while not await done():
        if time.monotonic() - began > MOST_SECONDS:
            raise SystemExit(f"not in {MOST_SECONDS:.0f} s: {what}")
        await asyncio.sleep(0.5)


async def tried(reads_back: str) -> list[int]:
    """Return the bills at read_committed after a kill and a restart."""
    name = f"faust-{uuid.uuid4().hex[:8]}"
    admin = AIOKafkaAdminClient(bootstrap_servers=KAFKA)
    await admin.start()
    await admin.create_topics([NewTopic(f"{name}-{each}", 1, 1) for each in ("orders", "bills")])
    producer = AIOKafkaProducer(bootstrap_servers=KAFKA)
    await producer.start()
    for order in range(ORDERS):
        await producer.send_and_wait(f"{name}-orders", str(order).encode(), partition=0)
    await producer.stop()

    async def all_written() -> bool:
        return len(await bills_of(name, "read_uncommitted")) >= ORDERS

    async def all_committed() -> bool:
        offsets = await admin.list_consumer_group_offsets(name)
        noted = offsets.get(TopicPartition(f"{name}-orders", 0))
        return noted is not None and noted.offset >= ORDERS

    with tempfile.TemporaryDirectory() as folder:

        def start(interval: str) -> subprocess.Popen:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            return subprocess.Popen([sys.executable, __file__, name, folder, interval, reads_back], **quiet)

        worker = start(NEVER)
        await until(all_written, "the first worker writes every bill")
        print(f"  before any commit: {len(await bills_of(name, 'read_committed'))} of {ORDERS} bills at read_committed")
        worker.kill()
        print(f"  killed: exit {worker.wait()}", flush=True)
        worker = start(SOON)
        await until(all_committed, "the second worker commits the last order")
        worker.terminate()
        worker.wait()
    bills = await bills_of(name, "read_committed")
    print(f"  after a restart: {len(bills)} bills at read_committed", flush=True)
    await admin.delete_topics([f"{name}-orders", f"{name}-bills"])
    await admin.close()
    return bills


async def main() -> int:
    print(f"faust-streaming {version('faust-streaming')}")
    print("an app that only writes the topic:")
    plain = await tried("")
    print("an app that also reads the topic:")
    await tried("yes")
    if doubled := sum(count > 1 for count in Counter(plain).values()):
        print("found: bills that came out twice:", doubled)
        return 1
    print("not found: every bill once")
    return 0


if __name__ == "__main__":
    if sys.argv[1:]:
        work(*sys.argv[1:])
    sys.exit(asyncio.run(main()))
