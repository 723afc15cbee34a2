"""foreachBatch appends each batch to a Delta table, which keeps the batch's number in the same commit."""

from pathlib import Path

from pyspark.sql import SparkSession

ORDERS = str(Path(__file__).parent / "orders")

spark = SparkSession.builder.master("local[2]").getOrCreate()
orders = spark.readStream.schema("id INT, key STRING").option("maxFilesPerTrigger", 1).json(ORDERS)


def write_batch(batch, batch_id):
    numbered = batch.write.format("delta").option("txnAppId", "orders").option("txnVersion", batch_id)
    numbered.mode("append").save("output")


query = orders.writeStream.foreachBatch(write_batch).option("checkpointLocation", "checkpoint")
query.trigger(availableNow=True).start().awaitTermination()
