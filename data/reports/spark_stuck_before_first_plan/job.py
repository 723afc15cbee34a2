"""Stock PySpark: a file source with one file per batch, and a checkpoint."""

import pathlib
import sys

from pyspark.sql import SparkSession

folder = pathlib.Path(sys.argv[1]).resolve()
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
rows = spark.readStream.schema("id INT").json(str(folder / "input"))
query = rows.writeStream.format("json").option("path", str(folder / "output"))
query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
print("the job has ended")
