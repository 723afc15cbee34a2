"""Flink's Kafka sink, exactly-once by transactions; a restart goes on from the last checkpoint."""

import glob
import os
import shutil
import time
from pathlib import Path

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

HERE, ORDERS = Path.cwd(), Path(__file__).parent / "orders"

settings = Configuration()
settings.set_string("parallelism.default", "1")
settings.set_string("pipeline.jars", os.environ["FLINK_JARS"])
settings.set_string("execution.checkpointing.interval", "500ms")
settings.set_string("execution.checkpointing.storage", "filesystem")
settings.set_string("execution.checkpointing.dir", f"file://{HERE}/checkpoint")
settings.set_string("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION")
if complete := glob.glob("checkpoint/*/chk-*/_metadata"):
    newest = Path(max(complete, key=os.path.getmtime)).parent
    settings.set_string("execution.state-recovery.path", f"file://{newest.resolve()}")

(HERE / "inbox").mkdir(exist_ok=True)
tables = TableEnvironment.create(
    EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings).build()
)
tables.execute_sql(f"""CREATE TABLE orders (id INT, `key` STRING) WITH ('connector' = 'filesystem',
    'path' = 'file://{HERE}/inbox', 'format' = 'json', 'source.monitor-interval' = '200ms')""")
tables.execute_sql(f"""CREATE TABLE copies (id INT, `key` STRING) WITH ('connector' = 'kafka', 'topic' = 'orders-out',
    'properties.bootstrap.servers' = '{os.environ["KAFKA"]}', 'format' = 'json',
    'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'orders',
    'properties.transaction.timeout.ms' = '600000')""")
job = tables.execute_sql("INSERT INTO copies SELECT * FROM orders").get_job_client()

for path in sorted(ORDERS.iterdir()):
    if not (HERE / "inbox" / path.name).exists():
        shutil.copy(path, HERE / "inbox" / f".{path.name}")
        (HERE / "inbox" / f".{path.name}").rename(HERE / "inbox" / path.name)
    time.sleep(1)
time.sleep(2)
job.cancel().result()
