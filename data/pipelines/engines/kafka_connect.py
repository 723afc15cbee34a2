"""A standalone worker of Kafka Connect copies orders from a topic into a file, a table of PostgreSQL, or Iceberg.

The arguments name the sink and its way of writing; `setup` fills the topic. A worker runs for ever; this program ends
it when its group has committed the offset after the last order, and Iceberg's coordinator has committed as far.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import read_quix
from kafka import KafkaConsumer, TopicPartition

SINK, *MODE = sys.argv[1:]
KAFKA, SOURCE, CONTROL = os.environ["KAFKA"], TopicPartition("orders", 0), TopicPartition("orders-out", 0)
PATIENCE_SECONDS = 240
COMMIT_SECONDS = 2  # between two commits to Iceberg
HERE = Path.cwd()

worker = {
    "bootstrap.servers": KAFKA,
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.storage.file.filename": HERE / "checkpoint" / "offsets",
    "offset.flush.interval.ms": 1,  # the offset is committed after each delivery
    "listeners": "http://127.0.0.1:0",
}
connector = {
    "name": "orders",
    "topics": "orders",
    "tasks.max": 1,
    "consumer.override.group.id": "copy",
    "consumer.override.session.timeout.ms": 6000,
    "consumer.override.max.poll.records": 3,
    "consumer.override.auto.offset.reset": "earliest",
}
sinks = {
    "file": lambda: {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "file": HERE / "output" / "orders.jsonl",
    },
    "jdbc": lambda: {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "connection.url": os.environ["JDBC_URL"],
        "connection.username": os.environ["PGUSER"],
        "connection.password": "",
        "insert.mode": MODE[0],
        # The key of a row is its place in Kafka: topic, partition and offset.
        "primary.key.mode": "kafka" if MODE == ["upsert"] else "none",
        "schema.evolution": "basic",
        # A line of text becomes a record with one field.
        "transforms": "hoist",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.hoist.field": "line",
    },
    "iceberg": lambda: {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "iceberg.tables": "orders",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.connect.group-id": "copy",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": f"file://{HERE}/output",
        "iceberg.control.topic": CONTROL.topic,
        "iceberg.control.commit.interval-ms": COMMIT_SECONDS * 1000,
    },
}


def written(name, settings):
    path = HERE / "checkpoint" / name
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


def start():
    """Start the worker, whose own jars come first."""
    for folder in ("output", "checkpoint"):
        (HERE / folder).mkdir(exist_ok=True)
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    main = ["-cp", os.environ["JARS"], "org.apache.kafka.connect.cli.ConnectStandalone"]
    files = [written("worker.properties", worker), written("orders.properties", connector | sinks[SINK]())]
    return subprocess.Popen([java, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", *main, *files])


def await_end(group, place):
    """Wait until a group has committed what is now the end of a topic. Ends worker and program after too long."""
    consumer = KafkaConsumer(bootstrap_servers=KAFKA, group_id=group, enable_auto_commit=False)
    wanted = consumer.end_offsets([place])[place]
    while (consumer.committed(place) or 0) < wanted:
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            sys.exit(f"The group {group} has not committed offset {wanted}.")
        time.sleep(0.5)
    consumer.close()


if SINK == "setup":
    read_quix.reset()
    sys.exit()
process, deadline = start(), time.monotonic() + PATIENCE_SECONDS
await_end("copy", SOURCE)
if SINK == "iceberg":
    # The coordinator commits its offset after it has committed to the table what it has read.
    await_end("copy-coord", CONTROL)
process.terminate()
process.wait()
