"""The real engine: PySpark Structured Streaming, killed at a failpoint, restarted, and observed from outside.

Importing this package does not import pyspark; its modules `source`, `jobs`, `start` and `adapters` do.
"""
