"""Searches that outgrow one process: a simulator's states on several cores of this machine, or on Spark.

The result of a search does not depend on where it runs.
"""
