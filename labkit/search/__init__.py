"""Searches of a simulator's states that are too large for one process: on several cores of this machine, or on Spark.

The result of a search does not depend on where it runs.
"""
