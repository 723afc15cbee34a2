"""Iceberg's own streaming sink."""

from pathlib import Path

from pyspark.sql import SparkSession

ORDERS = str(Path(__file__).parent / "orders")

spark = SparkSession.builder.master("local[2]").getOrCreate()
orders = spark.readStream.schema("id INT, key STRING").option("maxFilesPerTrigger", 1).json(ORDERS)

spark.sql("CREATE TABLE IF NOT EXISTS output.orders (id INT, key STRING) USING iceberg")
query = orders.writeStream.format("iceberg").option("checkpointLocation", "checkpoint")
query.trigger(availableNow=True).toTable("output.orders").awaitTermination()
