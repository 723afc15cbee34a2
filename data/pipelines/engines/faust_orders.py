"""faust-streaming copies orders from a topic to another topic; the argument is its processing guarantee.

It commits after every third record. A worker runs for ever; a task of this one ends it when the group has committed
the offset behind the last order.
"""

import asyncio
import os
import signal
import sys
import time

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition

KAFKA, SOURCE, GUARANTEE = os.environ["KAFKA"], TopicPartition("orders", 0), sys.argv[1]
PATIENCE_SECONDS = 60

app = faust.App(
    "copy",
    broker=f"kafka://{KAFKA}",
    processing_guarantee=GUARANTEE,
    broker_commit_every=3,
    broker_session_timeout=6,
    broker_heartbeat_interval=2,
    consumer_auto_offset_reset="earliest",
    topic_partitions=1,
    topic_allow_declare=False,
    topic_disable_leader=True,
    web_enabled=False,
    datadir="checkpoint",
)
orders = app.topic("orders", value_type=bytes, value_serializer="raw")
copies = app.topic("orders-out", value_type=bytes, value_serializer="raw")


@app.agent(orders)
async def copy(lines):
    async for line in lines:
        await copies.send(value=line)


@app.task
async def stop():
    group = AIOKafkaConsumer(bootstrap_servers=KAFKA, group_id="copy", enable_auto_commit=False)
    await group.start()
    group.assign([SOURCE])
    end, deadline = (await group.end_offsets([SOURCE]))[SOURCE], time.monotonic() + PATIENCE_SECONDS
    while await group.committed(SOURCE) != end and time.monotonic() < deadline:  # noqa: ASYNC110 - the broker knows it
        await asyncio.sleep(0.5)
    if await group.committed(SOURCE) != end:
        print(f"The group copy has not committed offset {end} in {PATIENCE_SECONDS} s.", file=sys.stderr, flush=True)
        os._exit(1)
    await group.stop()
    os.kill(os.getpid(), signal.SIGTERM)


sys.argv[1:] = ["worker", "--loglevel", "error"]
app.main()
