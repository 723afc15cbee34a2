"""Spark's own Kafka sink."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

ORDERS = str(Path(__file__).parent / "orders")

spark = SparkSession.builder.master("local[2]").getOrCreate()
orders = spark.readStream.schema("id INT, key STRING").option("maxFilesPerTrigger", 1).json(ORDERS)

query = orders.selectExpr("to_json(struct(*)) AS value").writeStream.format("kafka").option("topic", "orders-out")
query = query.option("kafka.bootstrap.servers", os.environ["KAFKA"]).option("checkpointLocation", "checkpoint")
query.trigger(availableNow=True).start().awaitTermination()
