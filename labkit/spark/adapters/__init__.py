"""The two ways in which Spark calls a sink: as a streaming data source, and through foreachBatch."""
