"""What the Flink pipelines share: a job with checkpoints that goes on from the newest one, and files fed to it."""

import glob
import os
import shutil
import time
from pathlib import Path

from pyflink.common import Configuration
from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

HERE, ORDERS = Path.cwd(), Path(__file__).parent / "orders"
CHECKPOINTS = "checkpoint/*/chk-*/_metadata"
SAVEPOINTS = "checkpoint/savepoints"
PATIENCE = 120
"""Seconds for the checkpoints behind one file; a job that crashes again and again completes none."""


def copy_orders(sink: str, settings: dict[str, str], key: str = "") -> None:
    """Copies the orders into the table `copies`, whose connector is `sink`, and stops the job when all are there.

    `key` is the part of its definition that names a primary key.
    """
    tables = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(_configured(settings)).build()
    )
    (HERE / "inbox").mkdir(exist_ok=True)
    tables.execute_sql(f"""CREATE TABLE orders (id INT, `key` STRING) WITH ('connector' = 'filesystem',
        'path' = 'file://{HERE}/inbox', 'format' = 'json', 'source.monitor-interval' = '200ms')""")
    tables.execute_sql(f"CREATE TABLE copies (id INT, `key` STRING{key}) WITH ({sink})")
    job = tables.execute_sql("INSERT INTO copies SELECT * FROM orders").get_job_client()
    for path in sorted(ORDERS.iterdir()):
        if not (HERE / "inbox" / path.name).exists():
            shutil.copy(path, HERE / "inbox" / f".{path.name}")
            (HERE / "inbox" / f".{path.name}").rename(HERE / "inbox" / path.name)
        # The first may have begun before the file was found; as a rule the second holds its rows, and is announced,
        # which commits them, before the third completes.
        _await_checkpoints(3)
    # Rows that came into the last checkpoint only are not committed yet: a cancelled job would leave them to the next
    # start, a stopped one commits them first.
    # PyFlink 2.3's own stop_with_savepoint calls a method without a format, which Flink 2 has no more.
    formats = get_gateway().jvm.org.apache.flink.core.execution.SavepointFormatType
    advance_to_end_of_event_time = False
    folder = f"file://{HERE}/{SAVEPOINTS}"
    job._j_job_client.stopWithSavepoint(advance_to_end_of_event_time, folder, formats.CANONICAL).get()


def _configured(settings: dict[str, str]) -> Configuration:
    """Checkpoints twice a second, which stay when the job fails; the newest one, or savepoint, is to go on from."""
    made = Configuration()
    for name, value in {
        "parallelism.default": "1",
        "execution.checkpointing.interval": "500ms",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": f"file://{HERE}/checkpoint",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        **settings,
    }.items():
        made.set_string(name, value)
    if complete := glob.glob(CHECKPOINTS) + glob.glob(f"{SAVEPOINTS}/*/_metadata"):
        newest = Path(max(complete, key=os.path.getmtime)).parent
        made.set_string("execution.state-recovery.path", f"file://{newest.resolve()}")
    return made


def _await_checkpoints(more: int) -> None:
    """Waits until so many further checkpoints have completed. Raises `TimeoutError`."""
    seen = set(glob.glob(CHECKPOINTS))
    wanted, deadline = len(seen) + more, time.monotonic() + PATIENCE
    # Flink keeps the newest only, so they are collected as they come.
    while len(seen) < wanted:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {more} checkpoints completed within {PATIENCE} s: see Flink's log")
        time.sleep(0.05)
        seen |= set(glob.glob(CHECKPOINTS))
