"""foreachBatch collects each batch and upserts it into PostgreSQL in one transaction; PGHOST names the server."""

from pathlib import Path

import psycopg
from pyspark.sql import SparkSession

ORDERS = str(Path(__file__).parent / "orders")
UPSERT = "INSERT INTO orders VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET key = excluded.key"

spark = SparkSession.builder.master("local[2]").getOrCreate()
orders = spark.readStream.schema("id INT, key STRING").option("maxFilesPerTrigger", 1).json(ORDERS)


def write_batch(batch, batch_id):
    with psycopg.connect() as db, db.cursor() as cursor:
        cursor.executemany(UPSERT, [(row.id, row.key) for row in batch.collect()])


with psycopg.connect() as db:
    db.execute("CREATE TABLE IF NOT EXISTS orders (id INT PRIMARY KEY, key TEXT)")
query = orders.writeStream.foreachBatch(write_batch).option("checkpointLocation", "checkpoint")
query.trigger(availableNow=True).start().awaitTermination()
