"""Spark's own file sink: Parquet files, and a log of those that count in output/_spark_metadata."""

from pathlib import Path

from pyspark.sql import SparkSession

ORDERS = str(Path(__file__).parent / "orders")

spark = SparkSession.builder.master("local[2]").getOrCreate()
orders = spark.readStream.schema("id INT, key STRING").option("maxFilesPerTrigger", 1).json(ORDERS)

query = orders.writeStream.format("parquet").option("checkpointLocation", "checkpoint").option("path", "output")
query.trigger(availableNow=True).start().awaitTermination()
