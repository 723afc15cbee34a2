"""The real engine: PySpark Structured Streaming, killed at a failpoint, restarted, and observed from outside.

Importing this package loads nothing; `session`, `source`, `data_source`, `jobs` and `start` load pyspark.
"""
