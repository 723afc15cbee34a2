"""foreachBatch appends each batch to an Iceberg table."""

from pathlib import Path

from pyspark.sql import SparkSession

ORDERS = str(Path(__file__).parent / "orders")

spark = SparkSession.builder.master("local[2]").getOrCreate()
orders = spark.readStream.schema("id INT, key STRING").option("maxFilesPerTrigger", 1).json(ORDERS)


def write_batch(batch, batch_id):
    batch.writeTo("output.orders").append()


spark.sql("CREATE TABLE IF NOT EXISTS output.orders (id INT, key STRING) USING iceberg")
query = orders.writeStream.foreachBatch(write_batch).option("checkpointLocation", "checkpoint")
query.trigger(availableNow=True).start().awaitTermination()
