"""PySpark: files and SQLite in foreachBatch, and files in the workers' processes."""

import os
import sqlite3
from pathlib import Path

from pyspark.sql import SparkSession


def part(rows):
    Path(f"part-{os.getpid()}").write_text(str(list(rows)))  # effect: part-*
    return iter([1])


def write_batch(frame, batch: int) -> None:
    with sqlite3.connect("rows.db") as database:  # effect: rows.db rows.db-journal
        database.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER)")  # effect: rows.db rows.db-journal
        database.executemany("INSERT INTO rows VALUES (?)", [(batch,)])  # effect: rows.db rows.db-journal
    Path("marker.tmp").write_text(str(batch))  # effect: marker.tmp
    Path("marker.tmp").rename("marker")  # effect: marker


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.parallelize([1, 2], 2).mapPartitions(part).collect()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
query = rows.writeStream.foreachBatch(write_batch).trigger(once=True).option("checkpointLocation", "checkpoint").start()
query.awaitTermination()
