"""foreachBatch appends each batch to a table of PostgreSQL through JDBC."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

ORDERS = str(Path(__file__).parent / "orders")

URL = os.environ["JDBC_URL"]
# Named, since Java's DriverManager does not find a driver that came with spark.jars.
PROPERTIES = {"user": os.environ["PGUSER"], "driver": "org.postgresql.Driver"}

spark = SparkSession.builder.master("local[2]").getOrCreate()
orders = spark.readStream.schema("id INT, key STRING").option("maxFilesPerTrigger", 1).json(ORDERS)


def write_batch(batch, batch_id):
    batch.write.mode("append").jdbc(URL, "orders", properties=PROPERTIES)


query = orders.writeStream.foreachBatch(write_batch).option("checkpointLocation", "checkpoint")
query.trigger(availableNow=True).start().awaitTermination()
